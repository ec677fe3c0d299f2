// Pictures of a selection run: set sizes, threshold, coverage, the map of the pool, votes along a chain, two runs.
"use strict";
(() => {
  const { kinds, token, table, rows, links, heads, number, tooltip, axisText, line, across, up, say, counts, tint, tall, mark, marks, plain, cut, series } = assayCharts;

  Object.assign(kinds, {
    // Bars of questions by some number; where the table says how many of them were picked, a badge on the bar.
    histogram(figure) {
      const name = figure.dataset.across || gettext("set size");
      const data = rows(figure).map(([size, count, picked]) => ({ size, count: number(count), picked: picked ? number(picked) : 0 }));
      const some = data.some((bar) => bar.picked);
      const words = ([{ dataIndex }]) => {
        const { size, count, picked } = data[dataIndex];
        const what = figure.dataset.across ? `${size} ${name}` : counts.answers(Number(size));
        const first = say(gettext("%(questions)s with %(what)s"), { questions: counts.questions(count), what });
        return picked ? first + "\n" + say(gettext("%(n)s of them picked"), { n: picked.toLocaleString() }) : first;
      };
      return {
        grid: { left: 8, right: 12, top: some ? 62 : 44, bottom: 24, containLabel: true },
        xAxis: across(name, { type: "category", data: data.map((bar) => bar.size) }),
        yAxis: up(gettext("questions"), { nameGap: some ? 44 : 26 }),
        tooltip: { ...tooltip(), trigger: "axis", axisPointer: { type: "none" }, formatter: words },
        legend: { show: some },
        series: [
          { name: gettext("All questions"), type: "bar", data: data.map((bar) => bar.count), barMaxWidth: 44, itemStyle: { color: token("--accent"), borderRadius: [4, 4, 0, 0] }, label: { show: data.length <= 16, position: "top", ...axisText(), formatter: ({ value }) => value.toLocaleString() } },
          {
            name: gettext("Picked"), type: "scatter", symbol: "circle", symbolSize: 21, symbolOffset: [0, data.length <= 16 ? -34 : -16], z: 3, itemStyle: { color: token("--gold-mark"), opacity: 1 },
            data: data.map(({ count, picked }, i) => ({ value: [i, picked ? count : null], picked })),
            label: { show: true, formatter: ({ data: { picked } }) => (picked ? picked : ""), color: "#14120c", fontWeight: 600, fontSize: 11, fontFamily: token("--sans") },
          },
        ],
      };
    },

    // Where the threshold falls among the scores of the calibration set's right answers. The last row: never given.
    threshold(figure) {
      const data = rows(figure).map(([from, to, count]) => ({ from: number(from), to: number(to), label: from, count: number(count) }));
      const never = data.filter((bar) => Number.isNaN(bar.from));
      const bins = data.filter((bar) => !Number.isNaN(bar.from));
      const { qHat } = figure.dataset;
      const width = bins.length ? bins[0].to - bins[0].from : 1;
      const beyond = (bins.at(-1)?.to ?? 0) + 2 * width;
      const scored = ({ from, to, count }) => say(ngettext("%(n)s right answer with a score from %(from)s to %(to)s", "%(n)s right answers with a score from %(from)s to %(to)s", count), { n: count.toLocaleString(), from, to });
      const ungiven = (count) => say(ngettext("%(n)s right answer never given by the model", "%(n)s right answers never given by the model", count), { n: count.toLocaleString() });
      const bar = ({ from, to, count }) => ({ value: [(from + to) / 2, count], words: scored({ from, to, count }), itemStyle: { color: token(!qHat || (from + to) / 2 > Number(qHat) ? "--field-line" : "--accent"), borderRadius: [3, 3, 0, 0] } });
      return {
        grid: { left: 8, right: 16, top: 44, bottom: 24, containLabel: true },
        xAxis: across(gettext("score of the right answer"), { type: "value", min: bins[0]?.from ?? -1, max: beyond + width, axisLabel: { ...axisText(), hideOverlap: true, formatter: (value) => (value > 0.08 ? "" : `${Math.round(value * 100) / 100}`) } }),
        yAxis: up(gettext("calibration questions"), { nameGap: 26 }),
        tooltip: { ...tooltip(), trigger: "item", formatter: ({ data: { words } }) => words },
        series: [{
          type: "bar", barWidth: Math.max(3, Math.floor((0.8 * (figure.clientWidth - 60)) / (bins.length + 3))),
          data: [...bins.map(bar), ...never.map(({ count }) => ({ value: [beyond, count], words: ungiven(count), itemStyle: { color: token("--danger"), borderRadius: [3, 3, 0, 0] }, label: { show: true, position: "top", formatter: gettext("never given"), ...axisText() } }))],
          markLine: qHat && marks([mark(qHat, gettext("threshold"))]),
        }],
      };
    },

    // Coverage against alpha above, what it costs in set size below.
    coverage(figure) {
      const data = rows(figure).map((row) => row.map(number));
      const { alpha, smallest } = figure.dataset;
      const of = (column) => data.map((row) => [row[0], row[column]]);
      const columns = heads(figure);
      const words = ([{ dataIndex }]) => [say(gettext("alpha %(alpha)s"), { alpha: data[dataIndex][0] }), ...columns.slice(1).map((name, i) => `${name.toLowerCase()}: ${rows(figure)[dataIndex][i + 1]}`)].join("\n");
      const n = data.some((row) => !Number.isNaN(row[6])) ? 2 : 1; // pictures: after a race nobody knows the sizes
      const lines = [smallest && mark(smallest, gettext("smallest"), { colour: "--danger", position: n === 2 ? "start" : "end" }), alpha && mark(alpha, say(gettext("alpha %(alpha)s"), { alpha }))].filter(Boolean);
      tall(figure, n === 2 ? 430 : 300);
      const [covered, wanted, expected] = [gettext("Covered in the check"), gettext("Wanted"), gettext("To be expected")];
      const upper = { xAxisIndex: 0, yAxisIndex: 0, type: "line", showSymbol: false };
      return {
        grid: [{ left: 46, right: 20, top: 40, height: 196 }, { left: 46, right: 20, bottom: 44, height: 86 }].slice(0, n),
        xAxis: [
          across(n === 2 ? "" : gettext("alpha"), { type: "value", min: 0, max: "dataMax", axisLabel: { show: n === 1 } }),
          across(gettext("alpha"), { type: "value", min: 0, max: "dataMax", gridIndex: 1 }),
        ].slice(0, n),
        yAxis: [
          up(gettext("covered, %"), { min: 0, max: 100, interval: 25, nameGap: 14, nameTextStyle: { ...axisText(), align: "left", padding: [0, 0, 0, -34] } }),
          up(gettext("mean set size"), { gridIndex: 1, min: 0, splitNumber: 2, nameGap: 10, nameTextStyle: { ...axisText(), align: "left", padding: [0, 0, 0, -34] } }),
        ].slice(0, n),
        axisPointer: { link: [{ xAxisIndex: "all" }] },
        tooltip: { ...tooltip(), trigger: "axis", axisPointer: { lineStyle: { color: token("--field-line") } }, formatter: words },
        legend: { data: [covered, wanted, expected] },
        series: [
          { ...upper, name: covered, data: of(2), lineStyle: { color: token("--accent"), width: 2.5 }, itemStyle: { color: token("--accent") }, z: 4, markLine: lines.length ? marks(lines) : undefined },
          { ...upper, name: wanted, data: of(1), lineStyle: { color: token("--muted"), type: "dashed", width: 1.5 }, itemStyle: { color: token("--muted") }, z: 3 },
          { ...upper, name: "band", data: of(3), stack: "band", silent: true, lineStyle: { opacity: 0 }, itemStyle: { opacity: 0 }, z: 1 },
          { ...upper, name: expected, data: data.map((row) => [row[0], row[4] - row[3]]), stack: "band", lineStyle: { opacity: 0 }, itemStyle: { color: token("--gold-mark") }, areaStyle: { color: token("--gold-mark"), opacity: 0.22 }, z: 1 },
          { name: gettext("Mean set size"), type: "line", xAxisIndex: 1, yAxisIndex: 1, showSymbol: false, data: of(6), lineStyle: { color: token("--accent"), width: 2 }, itemStyle: { color: token("--accent") }, markLine: lines.length ? marks(lines.map((each) => ({ ...each, label: { show: false } }))) : undefined },
        ].slice(0, 3 + n),
      };
    },

    // The pool in two dimensions; the colour says the size of the prediction set, or the cluster.
    map(figure) {
      const href = links(figure);
      const points = rows(figure).map(([uid, text, size, cluster, rank, x, y], i) => ({ uid, text, size: Number(size), cluster, rank, href: href[i], value: [Number(x), Number(y)] }));
      const others = points.filter((point) => !point.rank);
      const pickOf = ({ rank }) => say(gettext("Pick %(rank)s"), { rank });
      const plausible = ({ size, cluster }) => (cluster ? say(gettext("%(answers)s, cluster %(cluster)s"), { answers: counts.answers(size), cluster }) : counts.answers(size));
      const words = ({ data }) => [data.rank ? pickOf(data) : data.uid, plausible(data), "", data.text].join("\n");
      const bare = () => ({ type: "value", scale: true, axisLabel: { show: false }, axisTick: { show: false }, axisLine: { show: false }, splitLine: { show: false } });
      const symbols = ["circle", "triangle", "diamond", "rect"];
      const small = others.length > 800 ? 6 : 8;
      const picks = points.filter((point) => point.rank);
      const crowd = (picks.length * 520) / figure.clientWidth;
      const disc = crowd > 70 ? 10 : crowd > 25 ? 16 : 22;
      let groups;
      if (figure.dataset.colour === "cluster") {
        const clusters = [...new Set(others.map((point) => point.cluster))].sort((a, b) => a - b);
        groups = clusters.map((cluster, i) => ({ name: say(gettext("Cluster %(cluster)s"), { cluster }), color: series(i), symbol: symbols[Math.floor(i / 8) % 4], data: others.filter((point) => point.cluster === cluster) }));
      } else {
        const sizes = [...new Set(others.map((point) => point.size))].sort((a, b) => a - b);
        const n = Math.min(6, sizes.length);
        const cuts = Array.from({ length: n }, (_, i) => sizes.slice(Math.floor((i * sizes.length) / n), Math.floor(((i + 1) * sizes.length) / n)));
        groups = cuts.map((each, i) => ({ name: each.length > 1 ? `${each[0]}–${each.at(-1)}` : `${each[0]}`, color: tint(token("--accent"), n > 1 ? 0.3 + (0.7 * i) / (n - 1) : 0.6), symbol: "circle", data: others.filter((point) => each.includes(point.size)) }));
      }
      const title = figure.dataset.colour === "cluster" ? "" : gettext("Set size");
      return {
        grid: { left: 1, right: 1, top: 1, bottom: 1, show: true, borderColor: token("--line") },
        xAxis: bare(),
        yAxis: bare(),
        tooltip: { ...tooltip(), trigger: "item", formatter: words },
        legend: { title, show: groups.length <= 24, data: [...groups.map(({ name }) => name), gettext("Picks")] },
        dataZoom: [0, 1].map((i) => ({ type: "inside", [i ? "yAxisIndex" : "xAxisIndex"]: 0, filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, preventDefaultMouseMove: false })),
        series: [
          ...groups.map(({ name, color, symbol, data }) => ({ name, type: "scatter", symbol, symbolSize: small, data, itemStyle: { color, borderColor: token("--surface"), borderWidth: 0.5, opacity: 0.9 } })),
          {
            name: gettext("Picks"), type: "scatter", symbolSize: disc, z: 3, emphasis: { scale: 1.25 },
            data: picks,
            itemStyle: { color: token("--gold-mark"), borderColor: token("--surface"), borderWidth: disc > 10 ? 2 : 1, opacity: 1 },
            label: { show: disc > 10, formatter: ({ data }) => data.rank, color: "#14120c", fontWeight: 600, fontSize: disc > 16 ? 11 : 9, fontFamily: token("--sans") },
          },
        ],
      };
    },

    // What a question's chain of thought would have answered at each cut, and what sampling answered, answer by answer.
    chain(figure) {
      const nCuts = Number(figure.dataset.cuts);
      const marked = table(figure).map((row) => row.dataset);
      const data = rows(figure).map(([answer, , share, probes, outcomes, cuts], i) => ({ answer: plain(answer), unread: "unread" in marked[i], member: "plausible" in marked[i], share, probes: number(probes), outcomes: number(outcomes), cuts: cuts.split(",").map(Number).filter(Boolean) }));
      const narrow = figure.clientWidth < 520;
      const labels = data.map(({ answer }) => cut(answer, narrow ? 9 : 22));
      const wide = Math.max(...labels.map((label) => label.length)) * 7.2 + 18;
      tall(figure, Math.max(150, (data.length > 14 ? 24 : 34) * data.length + 84));
      const tone = ({ member, unread }) => token(unread ? "--field-line" : member ? "--accent" : "--gold-mark");
      const path = data.flatMap(({ cuts }, row) => cuts.map((at) => [at, row])).sort(([a], [b]) => a - b);
      const category = (gridIndex, more) => ({ type: "category", inverse: true, data: labels, gridIndex, axisTick: { show: false }, axisLine: { show: false }, splitLine: { show: true, ...line() }, splitArea: { show: false }, ...more });
      const said = (row) => {
        const { answer, unread, member } = data[row];
        return unread ? answer : say(member ? gettext("%(answer)s, plausible") : gettext("%(answer)s, not plausible"), { answer });
      };
      const cutAt = (at, row) => say(gettext("cut %(at)s of %(n)s, %(share)s of the chain: %(said)s"), { at, n: nCuts, share: `${Math.round((100 * at) / nCuts)}%`, said: said(row) });
      const given = (row, i) => {
        const sampled = say(ngettext("%(n)s sampled answer", "%(n)s sampled answers", row.outcomes), { n: row.outcomes.toLocaleString() });
        const cutAnswers = say(ngettext("%(n)s cut", "%(n)s cuts", row.probes), { n: row.probes.toLocaleString() });
        return say(gettext("%(said)s: %(sampled)s, %(cuts)s, %(share)s of all"), { said: said(i), sampled, cuts: cutAnswers, share: row.share });
      };
      return {
        grid: [
          { left: wide, top: 34, bottom: 44, width: nCuts ? `${narrow ? 42 : 58}%` : 0 },
          { right: 34, top: 34, bottom: 44, left: nCuts ? (narrow ? "75%" : "72%") : wide },
        ],
        xAxis: [
          across(gettext("chain of thought kept, %"), { type: "value", min: 0, max: nCuts || 1, gridIndex: 0, show: Boolean(nCuts), axisLabel: { ...axisText(), formatter: (value) => Math.round((100 * value) / nCuts) } }),
          across(narrow ? gettext("sampled") : gettext("sampled answers"), { type: "value", min: 0, gridIndex: 1, minInterval: 1, splitNumber: 2 }),
        ],
        yAxis: [category(0, { axisLabel: { ...axisText(), interval: 0, color: token("--ink") } }), category(1, { axisLabel: { show: !nCuts, ...axisText(), interval: 0, color: token("--ink") } })],
        tooltip: { ...tooltip(), trigger: "item", formatter: ({ data: point }) => point?.words ?? "" },
        series: [
          { type: "line", step: "end", silent: true, showSymbol: false, data: path, lineStyle: { color: token("--field-line"), width: 1.5 }, xAxisIndex: 0, yAxisIndex: 0, z: 1 },
          { type: "scatter", symbolSize: narrow ? 8 : 12, z: 3, xAxisIndex: 0, yAxisIndex: 0, data: path.map(([at, row]) => ({ value: [at, row], words: cutAt(at, row), itemStyle: { color: tone(data[row]), opacity: 1 } })) },
          { type: "bar", barMaxWidth: 16, xAxisIndex: 1, yAxisIndex: 1, data: data.map((row, i) => ({ value: [row.outcomes, i], words: given(row, i), itemStyle: { color: tone(row), borderRadius: [0, 4, 4, 0] } })), label: { show: true, position: "right", ...axisText(), formatter: ({ value }) => value[0] || "" } },
        ],
      };
    },

    // The picks of two runs by the place that each run gives them; nearer to the lower left is better.
    places(figure) {
      const href = links(figure);
      const data = rows(figure).map(([question, by, first, second], i) => ({ question, by, at: [number(first), number(second)], href: href[i] }));
      const [, , firstName, secondName] = heads(figure);
      const worst = Math.max(10, ...data.flatMap(({ at }) => at).filter((place) => !Number.isNaN(place)));
      const none = worst * 2; // where the other run has no place for it
      const groups = [[figure.dataset.both, "--gold-mark", "diamond", 15], [figure.dataset.first, "--series-1", "circle", 11], [figure.dataset.second, "--series-2", "triangle", 12]];
      const taken = new Map(); // equal scores share a place: their marks are moved apart
      const apart = (at) => {
        const n = taken.get(String(at)) ?? 0;
        taken.set(String(at), n + 1);
        const turn = 2.4 * n;
        return [at[0] * (1 + 0.055 * Math.sqrt(n) * Math.cos(turn)), at[1] * (1 + 0.1 * Math.sqrt(n) * Math.sin(turn))];
      };
      const place = (value) => (Number.isNaN(value) ? gettext("none") : value.toLocaleString());
      const scale = (name, more) => across(name, { type: "log", min: 0.8, max: none * 1.25, axisLabel: { ...axisText(), hideOverlap: true, formatter: (value) => (value < 1 || value > worst ? "" : value.toLocaleString()) }, splitLine: { show: true, ...line() }, ...more });
      return {
        grid: { left: 62, right: 24, top: 12, bottom: 46 },
        xAxis: scale(firstName.toLowerCase()),
        yAxis: scale(secondName.toLowerCase(), { nameGap: 42 }),
        tooltip: { ...tooltip(), trigger: "item", formatter: ({ data: { row } }) => (row ? `${firstName}: ${place(row.at[0])}\n${secondName}: ${place(row.at[1])}\n\n${row.question}` : "") },
        legend: { data: groups.map(([name]) => name) },
        series: [
          { type: "line", silent: true, showSymbol: false, data: [[1, 1], [none, none]], lineStyle: { color: token("--field-line"), type: "dashed", width: 1 }, z: 1 },
          ...groups.map(([name, colour, symbol, size]) => ({
            name, type: "scatter", symbol, symbolSize: size, itemStyle: { color: token(colour), borderColor: token("--surface"), borderWidth: 1, opacity: 1 },
            data: data.filter((row) => row.by === name).map((row) => ({ value: apart(row.at.map((value) => (Number.isNaN(value) ? none : value))), href: row.href, row })),
          })),
        ],
      };
    },
  });
})();
