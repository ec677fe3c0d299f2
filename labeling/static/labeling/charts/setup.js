// What the pictures share: tokens, reading a figure's table, axes. Each figure carries its numbers as a table, which is
// the picture's only source. A kind of picture is a function from its figure to an ECharts option, in assayCharts.kinds.
"use strict";
const assayCharts = (() => {
  const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const table = (figure) => [...figure.querySelectorAll("tbody tr")];
  const rows = (figure) => table(figure).map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
  const links = (figure) => table(figure).map((row) => row.querySelector("a")?.getAttribute("href"));
  const heads = (figure) => [...figure.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
  const number = (text) => Number.parseFloat(text.replaceAll(",", "").replace("−", "-")); // NaN for a dash
  const tooltip = () => ({
    renderMode: "richText", // HTML tooltips would need inline styles
    confine: true,
    backgroundColor: token("--surface"),
    borderColor: token("--line"),
    textStyle: { color: token("--ink"), fontFamily: token("--sans"), width: 280, overflow: "break" },
  });
  const axisText = () => ({ color: token("--muted"), fontFamily: token("--sans") });
  const line = () => ({ lineStyle: { color: token("--line") } });
  const names = (data, more) => ({ type: "category", data, inverse: true, axisLabel: { ...axisText(), interval: 0 }, axisTick: { show: false }, axisLine: { show: false }, ...more });
  const amounts = (more) => ({ type: "value", axisLabel: { ...axisText(), hideOverlap: true }, splitLine: line(), ...more });
  const across = (name, more) => ({ name, nameLocation: "middle", nameGap: 28, nameTextStyle: axisText(), axisLabel: { ...axisText(), hideOverlap: true }, axisTick: { show: false }, axisLine: line(), splitLine: { show: false }, ...more });
  const up = (name, more) => ({ type: "value", name, nameGap: 18, nameTextStyle: { ...axisText(), align: "left" }, axisLabel: axisText(), splitLine: line(), ...more });
  const short = (value) => (value >= 1e9 ? `${value / 1e9} G` : value >= 1e6 ? `${value / 1e6} M` : value >= 1e3 ? `${value / 1e3} k` : `${value}`);
  const say = (words, values) => interpolate(words, values, true);
  // The common counts; those of a sentence are said with ngettext where the sentence is.
  const counts = {
    answers: (n) => say(ngettext("%(n)s plausible answer", "%(n)s plausible answers", n), { n: n.toLocaleString() }),
    questions: (n) => say(ngettext("%(n)s question", "%(n)s questions", n), { n: n.toLocaleString() }),
  };
  const channels = (colour) => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  const tint = (colour, strength) => { // on the surface, so that what lies behind does not show through
    const [over, under] = [channels(colour), channels(token("--surface"))];
    return `rgb(${over.map((value, i) => Math.round(under[i] + (value - under[i]) * strength)).join(",")})`;
  };
  const tall = (figure, height) => { figure.querySelector(".chart").style.height = `${height}px`; };
  // A line at a value that the figure names, with its words beside it.
  const mark = (at, words, { colour = "--gold-mark", axis = "xAxis", position = "end", ...more } = {}) => ({
    [axis]: Number(at),
    lineStyle: { color: token(colour), type: "dashed", width: 2 },
    label: { formatter: words, color: token("--muted"), fontFamily: token("--sans"), position, ...more },
  });
  const marks = (data) => ({ silent: true, symbol: "none", animation: false, data });
  const reference = ({ dataset }) => dataset.reference && marks([mark(dataset.reference, dataset.referenceName, { position: "start" })]);
  // LaTeX as plain text, for where a picture has no room for more.
  const plain = (text) => text
    .replace(/\\(?:d|t)?frac\{([^{}]*)\}\{([^{}]*)\}/g, (_, top, bottom) => [top, bottom].map((part) => (/^[\w.]+$/.test(part) ? part : `(${part})`)).join("/"))
    .replace(/\\sqrt\{(\w+)\}/g, "√$1").replace(/\\sqrt\{([^{}]*)\}/g, "√($1)")
    .replace(/\\(?:left|right|text|mathrm|,|;|!)/g, "").replace(/\\pm/g, "±").replace(/\\pi/g, "π").replace(/\\infty/g, "∞").replace(/\\times|\\cdot/g, "·").replace(/\$/g, "");
  const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const series = (i) => token(`--series-${(i % 8) + 1}`);
  return { kinds: {}, token, table, rows, links, heads, number, tooltip, axisText, line, names, amounts, across, up, short, say, counts, tint, tall, mark, marks, reference, plain, cut, series };
})();
