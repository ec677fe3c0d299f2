// Draws every figure, and makes it usable without a mouse and outside the page: arrow keys go from point to point and
// a live region says which one, a legend of buttons hides and shows, and picture and numbers can be saved.
"use strict";
(() => {
  const { kinds, token, say } = assayCharts;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let count = 0;

  const element = (name, fields, ...children) => {
    const made = Object.assign(document.createElement(name), fields);
    made.append(...children);
    return made;
  };
  const SHAPES = { circle: "M5 .5a4.5 4.5 0 1 0 .01 0Z", rect: "M0 0H10V10H0Z", triangle: "M5 .5L9.8 9.5H.2Z", diamond: "M5 0L10 5 5 10 0 5Z", line: "M0 3.7H10V6.3H0Z" };
  const swatch = (colour, symbol) => {
    const [svg, shape] = ["svg", "path"].map((name) => document.createElementNS("http://www.w3.org/2000/svg", name));
    svg.setAttribute("viewBox", "0 0 10 10");
    svg.setAttribute("aria-hidden", "true");
    shape.setAttribute("d", SHAPES[symbol] ?? SHAPES.circle);
    shape.setAttribute("fill", colour);
    svg.append(shape);
    return svg;
  };

  // Every point that can be looked at, with its words: those of the tooltip.
  function stopsOf(option) {
    const axis = [option.xAxis, option.yAxis].flat().find((each) => each?.type === "category" && each.data);
    const live = option.series.map((series, seriesIndex) => ({ ...series, seriesIndex }))
      .filter((series) => !series.silent && series.data?.length && series.tooltip?.show !== false);
    const params = (series, dataIndex) => {
      const data = series.data[dataIndex];
      return { ...series, seriesName: series.name ?? "", dataIndex, data, value: data?.value ?? data, name: String(axis?.data[dataIndex]?.value ?? axis?.data[dataIndex] ?? "") };
    };
    const say = (found) => {
      const words = option.tooltip.formatter ? option.tooltip.formatter(found) : [found].flat().map((each) => `${each.seriesName} ${[each.value].flat().at(-1)}`).join("\n");
      return words.replaceAll(/\n+/g, ". ").trim();
    };
    if (option.tooltip.trigger === "axis") {
      const along = live.filter((series) => series.type === "bar" || series.type === "line");
      return (along[0]?.data ?? []).map((_, dataIndex) => ({ seriesIndex: along[0].seriesIndex, dataIndex, words: say(along.map((series) => params(series, dataIndex))) }));
    }
    return live.flatMap((series) => series.data.map((data, dataIndex) => {
      const found = params(series, dataIndex);
      const at = Array.isArray(found.value) ? { xAxisIndex: series.xAxisIndex ?? 0, yAxisIndex: series.yAxisIndex ?? 0, value: found.value } : null;
      return { seriesIndex: series.seriesIndex, seriesName: series.name, dataIndex, at, data, words: say(found) };
    })).filter((stop) => stop.words);
  }

  // Lines of at most so many letters: a tooltip of ECharts does not break them by itself.
  const wrapped = (text, most = 44) => text.split("\n").map((line) => line.split(" ").reduce((lines, word) => {
    const longer = `${lines.at(-1)} ${word}`.trim();
    return longer.length > most && lines.at(-1) ? [...lines, word] : [...lines.slice(0, -1), longer];
  }, [""]).join("\n")).join("\n");

  const save = (name, blob) => {
    const link = element("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  const cell = (text) => {
    const guarded = /^[=+@\t\r]|^-(?![\d.]+$)/.test(text) ? `'${text}` : text; // a spreadsheet would compute it
    return /[",\n\r]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
  };
  const csv = (figure) => [assayCharts.heads(figure), ...assayCharts.rows(figure)].map((row) => row.map(cell).join(",")).join("\r\n");

  function prepare(figure) {
    if (figure.dataset.drawn) return;
    figure.dataset.drawn = "yes";
    const box = figure.querySelector(".chart");
    const title = (figure.querySelector("h3") ?? figure.closest("section")?.querySelector("h2"))?.textContent.trim() || gettext("Picture");
    const fileName = (figure.dataset.file || title).toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, "-").replaceAll(/^-|-$/g, "");
    const hidden = new Set();
    let option = kinds[figure.dataset.chart](figure); // a picture whose height depends on its rows says so before there is one
    const chart = echarts.init(box, null, { renderer: "canvas" });
    let stops = [];
    let current = -1;

    const selected = () => Object.fromEntries([...hidden].map((name) => [name, false]));
    function draw() {
      option = kinds[figure.dataset.chart](figure);
      const ring = { borderColor: token("--focus"), borderWidth: 3, opacity: 1 };
      const series = option.series.map((each) => (each.silent ? each : { ...each, emphasis: { ...each.emphasis, itemStyle: { ...ring, ...each.emphasis?.itemStyle } } }));
      const { formatter } = option.tooltip;
      const tooltip = formatter ? { ...option.tooltip, formatter: (found) => wrapped(formatter(found)) } : option.tooltip;
      chart.setOption({ animation: !still, animationDuration: 300, ...option, series, tooltip, legend: { show: false, selected: selected() } }, true);
      stops = stopsOf(option).filter((stop) => !hidden.has(stop.seriesName));
      current = -1;
      drawLegend();
    }

    const legend = element("div", { className: "chart-legend", role: "group" });
    legend.setAttribute("aria-label", say(gettext("Shown in “%(title)s”"), { title }));
    function drawLegend() {
      const shown = option.legend && option.legend.show !== false ? (option.legend.data ?? option.series.filter((each) => !each.silent && each.name).map((each) => each.name)) : [];
      if (legend.parentNode === null && shown.length) box.before(legend);
      const focused = document.activeElement?.dataset?.series;
      legend.replaceChildren(...(option.legend?.title ? [option.legend.title] : []), ...shown.map((name) => {
        const series = option.series.find((each) => each.name === name);
        const colour = series.itemStyle?.color ?? series.data?.find((each) => each?.itemStyle)?.itemStyle.color ?? series.lineStyle?.color;
        const button = element("button", { type: "button" }, swatch(series.areaStyle?.color ?? colour, series.type === "line" ? (series.areaStyle ? "rect" : "line") : series.type === "bar" ? "rect" : series.symbol), name);
        button.dataset.series = name;
        button.setAttribute("aria-pressed", String(!hidden.has(name)));
        button.addEventListener("click", () => {
          hidden.has(name) ? hidden.delete(name) : hidden.add(name);
          draw();
        });
        return button;
      }));
      if (focused) legend.querySelector(`[data-series="${CSS.escape(focused)}"]`)?.focus();
    }

    // Keyboard
    const hintId = `chart-keys-${++count}`;
    const live = element("div", { className: "visually-hidden" });
    live.setAttribute("role", "status");
    box.tabIndex = 0;
    box.setAttribute("role", "application");
    box.setAttribute("aria-roledescription", gettext("picture"));
    box.setAttribute("aria-label", say(gettext("%(title)s. Arrow keys go through it; the numbers are in the table below."), { title }));
    box.setAttribute("aria-describedby", hintId);

    function leave() {
      if (current >= 0) chart.dispatchAction({ type: "downplay", seriesIndex: stops[current].seriesIndex, dataIndex: stops[current].dataIndex });
      chart.dispatchAction({ type: "hideTip" });
      current = -1;
    }
    function go(to) {
      if (!stops.length || to === current) return;
      leave();
      current = Math.max(0, Math.min(stops.length - 1, to));
      const { seriesIndex, dataIndex, words } = stops[current];
      chart.dispatchAction({ type: "highlight", seriesIndex, dataIndex });
      chart.dispatchAction({ type: "showTip", seriesIndex, dataIndex });
      live.textContent = say(gettext("%(words)s (%(at)s of %(n)s)"), { words, at: current + 1, n: stops.length });
    }
    const pixel = (stop) => (stop.pixel ??= stop.at ? chart.convertToPixel({ xAxisIndex: stop.at.xAxisIndex, yAxisIndex: stop.at.yAxisIndex }, stop.at.value) : null);
    function nearest(dx, dy) { // the point that lies best in that direction
      const from = pixel(stops[current]);
      if (!from) return null;
      let best = null;
      let least = Infinity;
      stops.forEach((stop, i) => {
        const to = i === current ? null : pixel(stop);
        if (!to) return;
        const [right, down] = [to[0] - from[0], to[1] - from[1]];
        const along = right * dx + down * dy;
        const cost = along + 2 * Math.abs(right * dy - down * dx);
        if (along > 0.5 && cost < least) [best, least] = [i, cost];
      });
      return best;
    }
    const first = () => Math.max(0, stops.findIndex((stop) => stop.data?.rank === "1"));
    const ranked = (step) => {
      const order = stops.map((stop, i) => [Number(stop.data?.rank) || 0, i]).filter(([rank]) => rank).sort(([a], [b]) => a - b);
      const here = order.findIndex(([, i]) => i === current);
      return order.length ? order[(Math.max(here, step > 0 ? -1 : 0) + step + order.length) % order.length][1] : current + step * 10;
    };
    function open(data) {
      if (data?.href) location.href = data.href;
      else document.getElementById(`pick-${data?.rank}`)?.scrollIntoView({ behavior: still ? "auto" : "smooth", block: "center" });
    }
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (step[event.key]) {
        const [dx, dy] = step[event.key];
        if (current < 0) go(first());
        else if (stops[current].at) go(nearest(dx, dy) ?? current);
        else go(current + (dx + dy > 0 ? 1 : -1));
      } else if (event.key === "Home") go(0);
      else if (event.key === "End") go(stops.length - 1);
      else if (event.key === "PageDown") go(ranked(1));
      else if (event.key === "PageUp") go(ranked(-1));
      else if (event.key === "Enter" && current >= 0) open(stops[current].data);
      else if (event.key === "Escape") leave();
      else return;
      event.preventDefault();
    });
    box.addEventListener("blur", leave);
    chart.on("click", ({ data }) => open(data));

    // Saving
    function apart(renderer, use) { // a copy of what is on the page, with the legend in the picture
      const width = Math.max(box.clientWidth, 640);
      const copy = echarts.init(element("div", {}), null, { renderer, ssr: renderer === "svg", width, height: box.clientHeight + 40 });
      const lower = (grid) => ({ ...grid, top: typeof grid.top === "number" ? grid.top + 40 : grid.top });
      const legend = option.legend && { type: "plain", top: 4, left: 8, itemWidth: 12, itemHeight: 12, textStyle: assayCharts.axisText(), show: true, ...option.legend, selected: selected() };
      const grid = Array.isArray(option.grid) ? option.grid.map(lower) : lower(option.grid);
      copy.setOption({ ...option, animation: false, backgroundColor: token("--surface"), grid, legend });
      const made = use(copy);
      copy.dispose();
      return made;
    }
    const savers = {
      PNG: () => apart("canvas", (copy) => copy.renderToCanvas({ pixelRatio: 2 })).toBlob((blob) => save(`${fileName}.png`, blob)),
      SVG: () => save(`${fileName}.svg`, new Blob([apart("svg", (copy) => copy.renderToSVGString())], { type: "image/svg+xml" })),
      CSV: () => save(`${fileName}.csv`, new Blob(["\ufeff", csv(figure)], { type: "text/csv" })),
    };
    const saving = element("span", {}, gettext("Save as"), ...Object.entries(savers).map(([kind, onclick]) => {
      const button = element("button", { type: "button", className: "quiet", onclick }, kind);
      button.setAttribute("aria-label", say(gettext("Save “%(title)s” as %(kind)s"), { title, kind }));
      return button;
    }));
    const keys = element("span", { className: "keys", id: hintId }, figure.querySelector("tbody a") ? gettext("Arrow keys move, Page Up and Down go through the picks, Enter opens, Esc ends.") : gettext("Arrow keys move, Esc ends."));
    const tools = element("div", { className: "figure-tools" }, saving, keys);

    // What the colour says, where a figure offers a choice: data-choices="size:Set size,cluster:Cluster".
    if (figure.dataset.choices) {
      const choices = element("span", { className: "segmented", role: "group" });
      choices.setAttribute("aria-label", gettext("Colour by"));
      const pairs = figure.dataset.choices.split(",").map((pair) => pair.split(":"));
      const press = () => choices.querySelectorAll("button").forEach((button, i) => button.setAttribute("aria-pressed", String(pairs[i][0] === figure.dataset.colour)));
      choices.append(...pairs.map(([value, words]) => element("button", { type: "button", onclick: () => {
        figure.dataset.colour = value;
        hidden.clear();
        press();
        draw();
      } }, words)));
      press();
      box.before(element("div", { className: "figure-tools" }, element("span", {}, gettext("Colour by"), choices)));
    }
    (figure.querySelector("figcaption") ?? box).after(tools);
    box.after(live);

    draw();
    let width = figure.clientWidth;
    new ResizeObserver(() => {
      if (figure.clientWidth === width) return;
      width = figure.clientWidth;
      draw();
      chart.resize();
    }).observe(figure);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }

  const prepareAll = (root) => root.querySelectorAll?.("figure[data-chart]").forEach(prepare);
  document.addEventListener("DOMContentLoaded", () => prepareAll(document));
  document.addEventListener("htmx:afterSettle", (event) => prepareAll(event.target));
})();
