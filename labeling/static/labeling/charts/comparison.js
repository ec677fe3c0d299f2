// Pictures of strategies side by side.
"use strict";
(() => {
  const { kinds, token, rows, heads, number, tooltip, axisText, names, amounts, short, say, tint, tall, reference, plain } = assayCharts;

  const pairOf = (key, other) => say(gettext("%(one)s and %(other)s"), { one: key, other });

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

  Object.assign(kinds, {
    shares: (figure) => matrix(figure, {
      colour: () => token("--accent"),
      strength: (value) => value,
      words: ({ key, other, cell }) => pairOf(key, other) + "\n" + say(gettext("%(share)s of their picks are shared"), { share: cell }),
    }),

    signed: (figure) => matrix(figure, {
      colour: (value) => token(value < 0 ? "--gold-mark" : "--accent"),
      strength: Math.abs,
      words: ({ key, other, cell }) => pairOf(key, other) + "\n" + (cell === "–" ? gettext("one of them gives every question the same score") : cell),
    }),

    bars(figure) {
      const [, column, ...more] = heads(figure);
      const data = rows(figure);
      const { bandLow, bandHigh } = figure.dataset;
      tall(figure, 26 * data.length + 54);
      return {
        grid: { left: 8, right: 24, top: 22, bottom: 8, containLabel: true },
        xAxis: amounts({ axisLabel: { ...axisText(), hideOverlap: true, formatter: short } }),
        yAxis: names(data.map(([key]) => plain(key))),
        tooltip: { ...tooltip(), trigger: "axis", axisPointer: { type: "none" }, formatter: ([bar]) => [bar.name, `${column}: ${data[bar.dataIndex][1]}`, ...more.map((name, i) => `${name}: ${data[bar.dataIndex][i + 2]}`)].join("\n") },
        series: [{
          type: "bar", barMaxWidth: 14,
          data: data.map(([key, value]) => ({ value: number(value), itemStyle: { color: token(key === figure.dataset.apart ? "--field-line" : "--accent"), borderRadius: [0, 4, 4, 0] } })),
          markLine: reference(figure),
          markArea: bandLow && { silent: true, animation: false, itemStyle: { color: token("--gold-mark"), opacity: 0.2 }, data: [[{ xAxis: Number(bandLow) }, { xAxis: Number(bandHigh) }]] },
        }],
      };
    },

    stacked(figure) {
      const bins = heads(figure).slice(1);
      const data = rows(figure);
      tall(figure, 26 * data.length + 38);
      return {
        grid: { left: 8, right: 16, top: 8, bottom: 8, containLabel: true },
        legend: {},
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
      const sources = [[gettext("answers resampled"), 1, "--accent", "circle", -0.16], [gettext("calibration set resampled"), 4, "--gold-mark", "diamond", 0.16]];
      tall(figure, 26 * data.length + 60);
      const marks = sources.map(([name, at, colour, symbol, shift]) => ({
        name, type: "scatter", symbol, symbolSize: 10, z: 3, itemStyle: { color: token(colour) },
        data: data.map((row, i) => ({ value: [number(row[at]), i + shift], key: row[0], words: say(gettext("%(value)s (%(low)s to %(high)s)"), { value: row[at], low: row[at + 1], high: row[at + 2] }) })).filter(({ value }) => !Number.isNaN(value[0])),
      }));
      marks[0].markLine = reference(figure);
      const spans = sources.flatMap(([, at, colour, , shift]) => data.map((row, i) => ({
        type: "line", silent: true, showSymbol: false, lineStyle: { color: token(colour), width: 3, opacity: 0.45 },
        data: [[number(row[at + 1]), i + shift], [number(row[at + 2]), i + shift]],
      })).filter(({ data: [[low]] }) => !Number.isNaN(low)));
      const wide = Math.max(...data.map(([key]) => key.length)) * 7 + 16;
      return {
        grid: { left: wide, right: 20, top: 24, bottom: 28 },
        legend: { data: sources.map(([name]) => name) },
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
  });
})();
