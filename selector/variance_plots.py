"""Pictures of a variance report, for a folder: which questions vary, and what more runs would show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerPathCollection

from selector.variance import Category, VarianceReport

COLOURS = {
    Category.USEFUL: "#17605a",
    Category.ALWAYS_RIGHT: "#c08a12",
    Category.ALWAYS_WRONG: "#9c2620",
    Category.CONSTANT: "#8b8d88",
}
MAX_LABELLED = 40  # cells whose numbers are written into them


def draw(report: VarianceReport, directory: Path) -> list[Path]:
    """Write variance.png and, for binary rewards, runs.png; return their paths."""
    written = [directory / "variance.png"]
    variance_figure(report).savefig(written[0], dpi=150)
    if report.signals:
        written.append(directory / "runs.png")
        runs_figure(report).savefig(written[1], dpi=150)
    return written


def variance_figure(report: VarianceReport) -> Figure:
    """Draw the mean (x) and variance (y) of the questions, as dots whose area is the number of questions there; the
    line is p(1 - p), the most that rewards in [0, 1] can vary: binary ones lie on it."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    p = np.linspace(0, 1, 201)
    axes.plot(p, p * (1 - p), color="#8b8d88", linewidth=1, zorder=1, label="p (1 − p)")
    cells = report.cells()
    most = max(cell[-1] for cell in cells)
    for category, colour in COLOURS.items():
        mine = [(mean, variance, n) for mean, variance, found, n in cells if found is category]
        if not mine:
            continue
        x, y, counts = (np.array(column) for column in zip(*mine, strict=True))
        axes.scatter(
            x, y, s=40 + 1400 * counts / most, color=colour, alpha=0.75, edgecolors="white", zorder=2,
            label=f"{category.words}: {report.counts[category]:,}",
        )  # fmt: skip
    if len(cells) <= MAX_LABELLED:
        for mean, variance, _, n in cells:
            axes.annotate(f"{n:,}", (mean, variance), ha="center", va="center", fontsize=8, zorder=3)
    axes.set(xlabel="mean reward", ylabel="variance", title=f"{len(report.uids):,} questions", ylim=(-0.02, None))
    axes.legend(loc="upper right", frameon=False, scatterpoints=1, handler_map={PathCollection: _SameSize()})
    _plain(axes)
    return figure


def runs_figure(report: VarianceReport) -> Figure:
    """Draw the share of questions that show both outcomes by the number of runs; hollow where it is expected only."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot([s.runs for s in report.signals], [s.share for s in report.signals], color="#17605a", linewidth=1)
    for is_measured, fill, label in ((True, "#17605a", "measured"), (False, "white", "expected")):
        mine = [signal for signal in report.signals if signal.is_measured is is_measured]
        axes.scatter(
            [s.runs for s in mine], [s.share for s in mine], color=fill, edgecolors="#17605a", zorder=2, label=label
        )
    axes.set_xscale("log", base=2)
    ticks = [signal.runs for signal in report.signals]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set(xlabel="runs of each question", ylabel="share that shows both outcomes", ylim=(0, 1))
    axes.legend(loc="upper left", frameon=False)
    _plain(axes)
    return figure


class _SameSize(HandlerPathCollection):
    """Dots of one size in the legend, whatever their size in the picture."""

    def get_sizes(self, legend: object, orig_handle: object, *unused: object) -> list[float]:
        return [60.0]


def _plain(axes: object) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)  # type: ignore[attr-defined]
