// Pictures of rewards: how they vary, what signal a group of rollouts carries, and a curriculum over its steps.
"use strict";
(() => {
  const { kinds, token, table, rows, heads, number, tooltip, axisText, amounts, say, counts } = assayCharts;

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
      const cells = rows(figure).map(([mean, variance, category, count], i) => ({ key: table(figure)[i].cells[0].dataset.category, value: [Number(mean), Number(variance)], category, count: Number(count.replaceAll(",", "")) }));
      const most = Math.max(1, ...cells.map((cell) => cell.count));
      const size = (count) => 10 + (cells.length > 12 ? 22 : 34) * Math.sqrt(count / most);
      const colours = { useful: "--accent", always_right: "--gold-mark", always_wrong: "--danger" };
      const parabola = Array.from({ length: 51 }, (_, i) => [i / 50, (i / 50) * (1 - i / 50)]);
      const axis = (name, more) => ({ type: "value", name, min: 0, nameTextStyle: axisText(), axisLabel: { ...axisText(), margin: 26 }, axisTick: { show: false }, axisLine: { lineStyle: { color: token("--line") } }, splitLine: { lineStyle: { color: token("--line") } }, ...more });
      const words = ({ data }) => (data.count ? `${counts.questions(data.count)}, ${data.category}\n` + say(gettext("mean %(mean)s, variance %(variance)s"), { mean: data.value[0], variance: data.value[1] }) : "");
      return {
        grid: { left: 8, right: 28, top: 38, bottom: 28, containLabel: true },
        xAxis: axis(gettext("mean"), { max: 1, nameLocation: "middle", nameGap: 46 }),
        yAxis: axis(gettext("variance"), { nameGap: 22, nameTextStyle: { ...axisText(), align: "left" } }),
        tooltip: { ...tooltip(), trigger: "item", formatter: words },
        series: [
          { type: "line", data: parabola, showSymbol: false, silent: true, smooth: true, lineStyle: { color: token("--field-line"), width: 1.5 }, tooltip: { show: false }, z: 1 },
          {
            type: "scatter",
            z: 2,
            clip: false,
            symbolSize: (_, { data }) => size(data.count),
            label: { show: true, formatter: ({ data }) => (size(data.count) >= 22 ? data.count : ""), color: token("--surface"), fontFamily: token("--sans"), fontSize: 11, fontWeight: 600 },
            data: cells.map((cell) => ({ ...cell, itemStyle: { color: token(colours[cell.key] || "--field-line"), opacity: 0.92, borderColor: token("--surface"), borderWidth: 2 } })),
          },
        ],
      };
    },

    signal(figure) {
      const points = rows(figure).map(([runs, share, known], i) => ({ runs, known, isMeasured: "measured" in table(figure)[i].dataset, value: Number(share) }));
      const dot = (point) => ({ ...point, itemStyle: { color: point.isMeasured ? token("--accent") : token("--surface"), borderColor: token("--accent"), borderWidth: 2 } });
      return {
        grid: { left: 8, right: 16, top: 32, bottom: 28, containLabel: true },
        xAxis: { type: "category", data: points.map((point) => point.runs), name: gettext("rollouts"), nameLocation: "middle", nameGap: 28, nameTextStyle: axisText(), axisLabel: axisText(), axisTick: { show: false }, axisLine: { lineStyle: { color: token("--line") } } },
        yAxis: { type: "value", min: 0, max: 100, name: gettext("both outcomes, %"), nameTextStyle: { ...axisText(), align: "left" }, axisLabel: axisText(), splitLine: { lineStyle: { color: token("--line") } } },
        tooltip: { ...tooltip(), trigger: "item", formatter: ({ data }) => say(ngettext("%(n)s rollout: %(share)s (%(known)s)", "%(n)s rollouts: %(share)s (%(known)s)", Number(data.runs)), { n: data.runs, share: `${data.value} %`, known: data.known }) },
        series: [{ type: "line", data: points.map(dot), symbol: "circle", symbolSize: 11, lineStyle: { color: token("--accent"), width: 2 } }],
      };
    },
  });
})();
