// Pictures of runs and comparisons. Each figure carries its numbers as a table, which is the chart's only source.
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
  const heads = (figure) => [...figure.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
  const number = (text) => Number.parseFloat(text.replaceAll(",", "").replace("−", "-")); // NaN for a dash
  const names = (data, more) => ({ type: "category", data, inverse: true, axisLabel: { ...axisText(), interval: 0 }, axisTick: { show: false }, axisLine: { show: false }, ...more });
  const amounts = (more) => ({ type: "value", axisLabel: { ...axisText(), hideOverlap: true }, splitLine: { lineStyle: { color: token("--line") } }, ...more });
  const short = (value) => (value >= 1e9 ? `${value / 1e9} G` : value >= 1e6 ? `${value / 1e6} M` : value >= 1e3 ? `${value / 1e3} k` : `${value}`);
  const channels = (colour) => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  const tint = (colour, strength) => { // on the surface, so that what lies behind does not show through
    const [over, under] = [channels(colour), channels(token("--surface"))];
    return `rgb(${over.map((value, i) => Math.round(under[i] + (value - under[i]) * strength)).join(",")})`;
  };
  const tall = (figure, height) => { figure.querySelector(".chart").style.height = `${height}px`; };
  const reference = ({ dataset }) => dataset.reference && {
    silent: true, symbol: "none", animation: false,
    label: { formatter: dataset.referenceName, color: token("--muted"), fontFamily: token("--sans"), position: "start" },
    lineStyle: { color: token("--gold-mark"), type: "dashed", width: 2 },
    data: [{ xAxis: Number(dataset.reference) }],
  };

  // Strategies against strategies: a square for each pair, its value in it.
  function matrix(figure, { colour, strength, words }) {
    const keys = heads(figure).slice(1);
    const width = figure.clientWidth;
    const wide = Math.max(...keys.map((key) => key.length)) * 7 + 14;
    const side = Math.max(12, Math.min(46, (width - wide - 8) / keys.length));
    tall(figure, side * keys.length + wide + 8);
    const data = rows(figure).flatMap(([key, ...cells], row) => cells.map((cell, column) => {
      const value = number(cell);
      const strong = Number.isNaN(value) ? 0 : strength(value);
      return {
        value: [column, row], key, other: keys[column], cell, amount: value,
        itemStyle: { color: Number.isNaN(value) ? token("--sunken") : tint(colour(value), 0.07 + 0.93 * strong), opacity: 1 },
        label: { color: strong > 0.55 ? token("--on-accent") : token("--ink") },
      };
    }));
    return {
      grid: { left: wide, right: Math.max(8, width - wide - side * keys.length), top: 4, height: side * keys.length },
      xAxis: names(keys, { inverse: false, axisLabel: { ...axisText(), interval: 0, rotate: 90 } }),
      yAxis: names(keys),
      tooltip: { ...tooltip(), trigger: "item", formatter: ({ data: pair }) => words(pair) },
      series: [{ type: "scatter", symbol: "rect", symbolSize: side - 2, data, emphasis: { scale: false }, label: { show: side >= 30, formatter: ({ data: pair }) => pair.cell, fontSize: 11, fontFamily: token("--sans") } }],
    };
  }

  const charts = {
    histogram(figure) {
      const data = rows(figure).map(([size, count]) => [size, Number(count.replaceAll(",", ""))]);
      return {
        grid: { left: 8, right: 12, top: 44, bottom: 24, containLabel: true },
        xAxis: { type: "category", data: data.map(([size]) => size), name: figure.dataset.across || "set size", nameLocation: "middle", nameGap: 28, nameTextStyle: axisText(), axisLabel: axisText(), axisTick: { show: false }, axisLine: { lineStyle: { color: token("--line") } } },
        yAxis: { type: "value", name: "questions", nameGap: 26, nameTextStyle: { ...axisText(), align: "left" }, axisLabel: axisText(), splitLine: { lineStyle: { color: token("--line") } } },
        tooltip: { ...tooltip(), trigger: "axis", axisPointer: { type: "none" }, formatter: ([bar]) => `${bar.value} question${bar.value === 1 ? "" : "s"} with ${bar.name} ${figure.dataset.across || `plausible answer${bar.name === "1" ? "" : "s"}`}` },
        series: [{ type: "bar", data: data.map(([, count]) => count), barMaxWidth: 44, itemStyle: { color: token("--accent"), borderRadius: [4, 4, 0, 0] }, label: { show: data.length <= 16, position: "top", ...axisText(), formatter: ({ value }) => value.toLocaleString() } }],
      };
    },

    map(figure) {
      const points = rows(figure).map(([uid, text, size, cluster, rank, x, y]) => ({ uid, text, size: Number(size), cluster, rank, value: [Number(x), Number(y)] }));
      const largest = Math.max(1, ...points.map((point) => point.size));
      const words = ({ data }) => [data.rank ? `Pick ${data.rank}` : data.uid, `${data.size} plausible answer${data.size === 1 ? "" : "s"}, cluster ${data.cluster || "–"}`, "", data.text].join("\n");
      const plain = () => ({ type: "value", scale: true, axisLabel: { show: false }, axisTick: { show: false }, axisLine: { show: false }, splitLine: { show: false } });
      return {
        grid: { left: 1, right: 1, top: 1, bottom: 1, show: true, borderColor: token("--line") },
        xAxis: plain(),
        yAxis: plain(),
        tooltip: { ...tooltip(), trigger: "item", formatter: words },
        series: [
          {
            type: "scatter",
            data: points.filter((point) => !point.rank).map((point) => ({ ...point, symbolSize: 5 + (6 * point.size) / largest, itemStyle: { color: token("--accent"), opacity: 0.25 + (0.55 * point.size) / largest } })),
          },
          {
            type: "scatter",
            symbolSize: 22,
            emphasis: { scale: 1.25 },
            z: 3,
            data: points.filter((point) => point.rank),
            itemStyle: { color: token("--gold-mark"), borderColor: token("--surface"), borderWidth: 2 },
            label: { show: true, formatter: ({ data }) => data.rank, color: "#14120c", fontWeight: 600, fontSize: 11, fontFamily: token("--sans") },
          },
        ],
      };
    },

    shares: (figure) => matrix(figure, {
      colour: () => token("--accent"),
      strength: (value) => value,
      words: ({ key, other, cell }) => `${key} and ${other}\n${cell} of their picks are shared`,
    }),

    signed: (figure) => matrix(figure, {
      colour: (value) => token(value < 0 ? "--gold-mark" : "--accent"),
      strength: Math.abs,
      words: ({ key, other, cell }) => `${key} and ${other}\n${cell === "–" ? "one of them gives every question the same score" : cell}`,
    }),

    bars(figure) {
      const [, column, ...more] = heads(figure);
      const data = rows(figure);
      const { bandLow, bandHigh } = figure.dataset;
      tall(figure, 26 * data.length + 54);
      return {
        grid: { left: 8, right: 24, top: 22, bottom: 8, containLabel: true },
        xAxis: amounts({ axisLabel: { ...axisText(), hideOverlap: true, formatter: short } }),
        yAxis: names(data.map(([key]) => key)),
        tooltip: { ...tooltip(), trigger: "axis", axisPointer: { type: "none" }, formatter: ([bar]) => [bar.name, `${column}: ${data[bar.dataIndex][1]}`, ...more.map((name, i) => `${name}: ${data[bar.dataIndex][i + 2]}`)].join("\n") },
        series: [{
          type: "bar", barMaxWidth: 14,
          data: data.map(([key, value]) => ({ value: number(value), itemStyle: { color: token(key === "whole pool" ? "--field-line" : "--accent"), borderRadius: [0, 4, 4, 0] } })),
          markLine: reference(figure),
          markArea: bandLow && { silent: true, animation: false, itemStyle: { color: token("--gold-mark"), opacity: 0.2 }, data: [[{ xAxis: Number(bandLow) }, { xAxis: Number(bandHigh) }]] },
        }],
      };
    },

    stacked(figure) {
      const bins = heads(figure).slice(1);
      const data = rows(figure);
      tall(figure, 26 * data.length + 96);
      return {
        grid: { left: 8, right: 16, top: 66, bottom: 8, containLabel: true },
        legend: { top: 0, left: 0, itemWidth: 12, itemHeight: 12, itemGap: 10, textStyle: axisText() },
        xAxis: amounts({ max: 100, axisLabel: { ...axisText(), formatter: "{value}%", hideOverlap: true } }),
        yAxis: names(data.map(([key]) => key)),
        tooltip: { ...tooltip(), trigger: "axis", axisPointer: { type: "none" }, formatter: (parts) => [parts[0].name, ...parts.filter((part) => part.value).map((part) => `${part.seriesName}: ${part.value}%`)].join("\n") },
        series: bins.map((name, bin) => ({
          name, type: "bar", stack: "all", barMaxWidth: 16,
          itemStyle: { color: tint(token("--accent"), 0.1 + (0.9 * bin) / Math.max(1, bins.length - 1)), borderColor: token("--surface"), borderWidth: 1 },
          data: data.map((row) => number(row[bin + 1])),
        })),
      };
    },

    intervals(figure) {
      const data = rows(figure);
      const kinds = [["answers resampled", 1, "--accent", "circle", -0.16], ["calibration set resampled", 4, "--gold-mark", "diamond", 0.16]];
      tall(figure, 26 * data.length + 84);
      const marks = kinds.map(([name, at, colour, symbol, shift]) => ({
        name, type: "scatter", symbol, symbolSize: 10, z: 3, itemStyle: { color: token(colour) },
        data: data.map((row, i) => ({ value: [number(row[at]), i + shift], key: row[0], words: `${row[at]} (${row[at + 1]} to ${row[at + 2]})` })).filter(({ value }) => !Number.isNaN(value[0])),
      }));
      marks[0].markLine = reference(figure);
      const spans = kinds.flatMap(([, at, colour, , shift]) => data.map((row, i) => ({
        type: "line", silent: true, showSymbol: false, lineStyle: { color: token(colour), width: 3, opacity: 0.45 },
        data: [[number(row[at + 1]), i + shift], [number(row[at + 2]), i + shift]],
      })).filter(({ data: [[low]] }) => !Number.isNaN(low)));
      const wide = Math.max(...data.map(([key]) => key.length)) * 7 + 16;
      return {
        grid: { left: wide, right: 20, top: 52, bottom: 28 },
        legend: { top: 0, left: 0, data: kinds.map(([name]) => name), textStyle: axisText(), itemWidth: 12 },
        xAxis: amounts({ min: 0, max: 1, axisLine: { show: false }, axisTick: { show: false } }),
        yAxis: { type: "value", min: -0.5, max: data.length - 0.5, inverse: true, interval: 1, splitLine: { show: false }, axisTick: { show: false }, axisLine: { show: false }, axisLabel: { show: false } },
        tooltip: { ...tooltip(), trigger: "item", formatter: ({ data: mark, seriesName }) => `${mark.key}, ${seriesName}\n${mark.words}` },
        series: [
          ...spans,
          ...marks,
          { type: "scatter", silent: true, symbolSize: 0, data: data.map(([key], i) => ({ value: [0, i], label: { show: true, position: "left", distance: 8, formatter: key, ...axisText() } })) },
        ],
      };
    },

    lines(figure) {
      const data = rows(figure);
      const [across, ...series] = heads(figure);
      const tones = ["--accent", "--gold-mark", "--danger"];
      return {
        grid: { left: 8, right: 16, top: 36, bottom: 28, containLabel: true },
        legend: { show: series.length > 1, left: 0, top: 0, textStyle: axisText() },
        xAxis: { type: "value", min: "dataMin", max: "dataMax", name: across.toLowerCase(), nameLocation: "middle", nameGap: 28, nameTextStyle: axisText(), axisLabel: axisText(), axisTick: { show: false }, axisLine: { lineStyle: { color: token("--line") } }, splitLine: { show: false } },
        yAxis: amounts({ min: 0 }),
        tooltip: { ...tooltip(), trigger: "axis", axisPointer: { lineStyle: { color: token("--line") } } },
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
  };

  document.addEventListener("DOMContentLoaded", () => {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      charts[figure.dataset.chart](figure); // a picture whose height depends on its rows says so before there is one
      const chart = echarts.init(figure.querySelector(".chart"), null, { renderer: "canvas" });
      const draw = () => chart.setOption({ animation: !still, animationDuration: 300, ...charts[figure.dataset.chart](figure) }, true);
      draw();
      chart.on("click", ({ data }) => document.getElementById(`pick-${data?.rank}`)?.scrollIntoView({ behavior: still ? "auto" : "smooth", block: "center" }));
      let width = figure.clientWidth;
      new ResizeObserver(() => {
        if (figure.clientWidth === width) return;
        width = figure.clientWidth;
        draw();
        chart.resize();
      }).observe(figure);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    }
  });
})();
