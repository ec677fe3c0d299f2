// Pictures of rewards: how they vary, what signal a group of rollouts carries, and a curriculum over its steps.
"use strict";
(() => {
  const { kinds, token, rows, heads, number, tooltip, axisText, amounts } = assayCharts;

  Object.assign(kinds, {
    lines(figure) {
      const data = rows(figure);
      const [across, ...series] = heads(figure);
      const tones = ["--accent", "--gold-mark", "--danger"];
      return {
        grid: { left: 8, right: 16, top: 12, bottom: 28, containLabel: true },
        legend: { show: series.length > 1 },
        xAxis: { type: "value", min: "dataMin", max: "dataMax", name: across.toLowerCase(), nameLocation: "middle", nameGap: 28, nameTextStyle: axisText(), axisLabel: axisText(), axisTick: { show: false }, axisLine: { lineStyle: { color: token("--line") } }, splitLine: { show: false } },
        yAxis: amounts({ min: 0 }),
        tooltip: { ...tooltip(), trigger: "axis", axisPointer: { lineStyle: { color: token("--line") } }, formatter: (parts) => [`${across} ${[parts[0].value].flat()[0]}`, ...parts.filter((part) => part.value[1] !== null).map((part) => `${part.seriesName}: ${part.value[1]}`)].join("\n") },
        series: series.map((name, i) => ({
          name,
          type: "line",
          showSymbol: data.length === 1,
          connectNulls: true,
          data: data.map((row) => [number(row[0]), Number.isNaN(number(row[i + 1])) ? null : number(row[i + 1])]),
          lineStyle: { color: token(tones[i]), width: 2 },
          itemStyle: { color: token(tones[i]) },
        })),
      };
    },

    variance(figure) {
      const cells = rows(figure).map(([mean, variance, category, count]) => ({ value: [Number(mean), Number(variance)], category, count: Number(count.replaceAll(",", "")) }));
      const most = Math.max(1, ...cells.map((cell) => cell.count));
      const size = (count) => 10 + (cells.length > 12 ? 22 : 34) * Math.sqrt(count / most);
      const colours = { useful: "--accent", "always right": "--gold-mark", "always wrong": "--danger" };
      const parabola = Array.from({ length: 51 }, (_, i) => [i / 50, (i / 50) * (1 - i / 50)]);
      const axis = (name, more) => ({ type: "value", name, min: 0, nameTextStyle: axisText(), axisLabel: { ...axisText(), margin: 26 }, axisTick: { show: false }, axisLine: { lineStyle: { color: token("--line") } }, splitLine: { lineStyle: { color: token("--line") } }, ...more });
      const words = ({ data }) => (data.count ? `${data.count} question${data.count === 1 ? "" : "s"}, ${data.category}\nmean ${data.value[0]}, variance ${data.value[1]}` : "");
      return {
        grid: { left: 8, right: 28, top: 38, bottom: 28, containLabel: true },
        xAxis: axis("mean", { max: 1, nameLocation: "middle", nameGap: 46 }),
        yAxis: axis("variance", { nameGap: 22, nameTextStyle: { ...axisText(), align: "left" } }),
        tooltip: { ...tooltip(), trigger: "item", formatter: words },
        series: [
          { type: "line", data: parabola, showSymbol: false, silent: true, smooth: true, lineStyle: { color: token("--field-line"), width: 1.5 }, tooltip: { show: false }, z: 1 },
          {
            type: "scatter",
            z: 2,
            clip: false,
            symbolSize: (_, { data }) => size(data.count),
            label: { show: true, formatter: ({ data }) => (size(data.count) >= 22 ? data.count : ""), color: token("--surface"), fontFamily: token("--sans"), fontSize: 11, fontWeight: 600 },
            data: cells.map((cell) => ({ ...cell, itemStyle: { color: token(colours[cell.category] || "--field-line"), opacity: 0.92, borderColor: token("--surface"), borderWidth: 2 } })),
          },
        ],
      };
    },

    signal(figure) {
      const points = rows(figure).map(([runs, share, known]) => ({ runs, known, value: Number(share) }));
      const dot = (point) => ({ ...point, itemStyle: { color: point.known === "measured" ? token("--accent") : token("--surface"), borderColor: token("--accent"), borderWidth: 2 } });
      return {
        grid: { left: 8, right: 16, top: 32, bottom: 28, containLabel: true },
        xAxis: { type: "category", data: points.map((point) => point.runs), name: "rollouts", nameLocation: "middle", nameGap: 28, nameTextStyle: axisText(), axisLabel: axisText(), axisTick: { show: false }, axisLine: { lineStyle: { color: token("--line") } } },
        yAxis: { type: "value", min: 0, max: 100, name: "both outcomes, %", nameTextStyle: { ...axisText(), align: "left" }, axisLabel: axisText(), splitLine: { lineStyle: { color: token("--line") } } },
        tooltip: { ...tooltip(), trigger: "item", formatter: ({ data }) => `${data.runs} rollouts: ${data.value} % (${data.known})` },
        series: [{ type: "line", data: points.map(dot), symbol: "circle", symbolSize: 11, lineStyle: { color: token("--accent"), width: 2 } }],
      };
    },
  });
})();
