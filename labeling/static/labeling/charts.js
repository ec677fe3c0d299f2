// Pictures of a run. Each figure carries its numbers as a table, which is the chart's only source.
"use strict";
(() => {
  const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const rows = (figure) => [...figure.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
  const tooltip = () => ({
    renderMode: "richText", // HTML tooltips would need inline styles
    confine: true,
    backgroundColor: token("--surface"),
    borderColor: token("--line"),
    textStyle: { color: token("--ink"), fontFamily: token("--sans"), width: 280, overflow: "break" },
  });
  const axisText = () => ({ color: token("--muted"), fontFamily: token("--sans") });

  const charts = {
    histogram(figure) {
      const data = rows(figure).map(([size, count]) => [size, Number(count.replaceAll(",", ""))]);
      return {
        grid: { left: 8, right: 12, top: 28, bottom: 24, containLabel: true },
        xAxis: { type: "category", data: data.map(([size]) => size), name: "set size", nameLocation: "middle", nameGap: 28, nameTextStyle: axisText(), axisLabel: axisText(), axisTick: { show: false }, axisLine: { lineStyle: { color: token("--line") } } },
        yAxis: { type: "value", name: "questions", nameTextStyle: { ...axisText(), align: "left" }, axisLabel: axisText(), splitLine: { lineStyle: { color: token("--line") } } },
        tooltip: { ...tooltip(), trigger: "axis", axisPointer: { type: "none" }, formatter: ([bar]) => `${bar.value} question${bar.value === 1 ? "" : "s"} with ${bar.name} plausible answer${bar.name === "1" ? "" : "s"}` },
        series: [{ type: "bar", data: data.map(([, count]) => count), barMaxWidth: 44, itemStyle: { color: token("--accent"), borderRadius: [4, 4, 0, 0] } }],
      };
    },

    map(figure) {
      const points = rows(figure).map(([uid, text, size, cluster, rank, x, y]) => ({ uid, text, size: Number(size), cluster, rank, value: [Number(x), Number(y)] }));
      const largest = Math.max(1, ...points.map((point) => point.size));
      const words = ({ data }) => [data.rank ? `Pick ${data.rank}` : data.uid, `${data.size} plausible answer${data.size === 1 ? "" : "s"}, cluster ${data.cluster || "–"}`, "", data.text].join("\n");
      const plain = (axis) => ({ type: "value", scale: true, axisLabel: { show: false }, axisTick: { show: false }, axisLine: { show: false }, splitLine: { lineStyle: { color: token("--line") } }, ...axis });
      return {
        grid: { left: 8, right: 8, top: 12, bottom: 12 },
        xAxis: plain(),
        yAxis: plain(),
        tooltip: { ...tooltip(), trigger: "item", formatter: words },
        series: [
          {
            type: "scatter",
            symbolSize: 8,
            data: points.filter((point) => !point.rank).map((point) => ({ ...point, itemStyle: { color: token("--accent"), opacity: 0.18 + (0.62 * point.size) / largest } })),
          },
          {
            type: "scatter",
            symbolSize: 24,
            z: 3,
            data: points.filter((point) => point.rank),
            itemStyle: { color: token("--gold-mark"), borderColor: token("--surface"), borderWidth: 2 },
            label: { show: true, formatter: ({ data }) => data.rank, color: "#14120c", fontWeight: 600, fontSize: 11, fontFamily: token("--sans") },
          },
        ],
      };
    },

    variance(figure) {
      const cells = rows(figure).map(([mean, variance, category, count]) => ({ value: [Number(mean), Number(variance)], category, count: Number(count.replaceAll(",", "")) }));
      const most = Math.max(1, ...cells.map((cell) => cell.count));
      const colours = { useful: "--accent", "always right": "--gold-mark", "always wrong": "--danger" };
      const parabola = Array.from({ length: 51 }, (_, i) => [i / 50, (i / 50) * (1 - i / 50)]);
      const axis = (name, more) => ({ type: "value", name, min: 0, nameTextStyle: axisText(), axisLabel: axisText(), axisTick: { show: false }, axisLine: { lineStyle: { color: token("--line") } }, splitLine: { lineStyle: { color: token("--line") } }, ...more });
      const words = ({ data }) => (data.count ? `${data.count} question${data.count === 1 ? "" : "s"}, ${data.category}\nmean ${data.value[0]}, variance ${data.value[1]}` : "");
      return {
        grid: { left: 8, right: 28, top: 32, bottom: 28, containLabel: true },
        xAxis: axis("mean", { max: 1, nameLocation: "middle", nameGap: 28 }),
        yAxis: axis("variance", { nameTextStyle: { ...axisText(), align: "left" } }),
        tooltip: { ...tooltip(), trigger: "item", formatter: words },
        series: [
          { type: "line", data: parabola, showSymbol: false, silent: true, smooth: true, lineStyle: { color: token("--field-line"), width: 1.5 }, tooltip: { show: false }, z: 1 },
          {
            type: "scatter",
            z: 2,
            clip: false,
            symbolSize: (_, { data }) => 12 + 34 * Math.sqrt(data.count / most),
            data: cells.map((cell) => ({ ...cell, itemStyle: { color: token(colours[cell.category] || "--field-line"), opacity: 0.85, borderColor: token("--surface"), borderWidth: 2 } })),
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
  };

  document.addEventListener("DOMContentLoaded", () => {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      const chart = echarts.init(figure.querySelector(".chart"), null, { renderer: "canvas" });
      const draw = () => chart.setOption({ animation: !still, animationDuration: 300, ...charts[figure.dataset.chart](figure) }, true);
      draw();
      new ResizeObserver(() => chart.resize()).observe(figure);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    }
  });
})();
