"""Pictures of a comparison, for a folder: overlap, rank correlation, profiles of the picks, stability, backtest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from selector.backtest import MEASURES

TEAL, GOLD, GREY, INK, LINE = "#17605a", "#c08a12", "#8b8d88", "#1c1f22", "#e1ded5"
SHARES = LinearSegmentedColormap.from_list("assay_shares", ["#f7f6f2", "#79b7ae", TEAL, "#0b2f2c"])
SIGNED = LinearSegmentedColormap.from_list("assay_signed", [GOLD, "#f7f6f2", TEAL])
FORMATS = ("png", "svg")
BACKTEST_TITLES = {
    "pass_rate": "pass rate",
    "with_variance": "share with reward variance",
    "advantage_mass": "advantage mass E|A|",
    "majority_wrong": "share whose majority is wrong",
}


def draw(found: Mapping[str, Any], directory: Path) -> list[Path]:
    """Write every picture there is something for, as PNG and SVG; return their paths."""
    pictures: dict[str, Callable[[Mapping[str, Any]], Figure]] = {
        "overlap": overlap_figure,
        "rank_correlation": rank_correlation_figure,
        "profiles": profiles_figure,
    }
    if any(of_votes(found) + of_calibration(found)):
        pictures["stability"] = stability_figure
    if found["backtest"]:
        pictures["backtest"] = backtest_figure
    written = []
    with mpl.rc_context({"svg.hashsalt": "assay", "font.size": 9}):
        for name, make in pictures.items():
            figure = make(found)
            for each in FORMATS:
                written.append(directory / f"{name}.{each}")
                figure.savefig(written[-1], dpi=150, metadata={"Date": None} if each == "svg" else None)
    return written


def overlap_figure(found: Mapping[str, Any]) -> Figure:
    """Draw the Jaccard index of every two strategies' picks as a heat map."""
    keys = found["overlap"]["keys"]
    figure = Figure(figsize=_square(keys), layout="constrained")
    axes = figure.subplots()
    _heat(axes, keys, found["overlap"]["jaccard"], SHARES, 0.0, 1.0)
    chance = found["stability"]["expected"]
    axes.set_title(f"Overlap of the picks (Jaccard), budget {found['budget']}; by chance {chance:.3f}", loc="left")
    return figure


def rank_correlation_figure(found: Mapping[str, Any]) -> Figure:
    """Draw Spearman's and Kendall's correlations of the acquisition scores as heat maps."""
    correlation = found["rank_correlation"]
    keys = correlation["keys"]
    width, height = _square(keys)
    figure = Figure(figsize=(2 * width, height), layout="constrained")
    for axes, (name, title) in zip(
        figure.subplots(1, 2), (("spearman", "Spearman"), ("kendall", "Kendall tau-b")), strict=True
    ):
        _heat(axes, keys, correlation[name], SIGNED, -1.0, 1.0)
        axes.set_title(f"{title}, {correlation['n']:,} questions", loc="left")
    return figure


def profiles_figure(found: Mapping[str, Any]) -> Figure:
    """Draw the shares of picks by set size and by pass rate (or majority share), one row a strategy, the pool first."""
    profiles = found["profiles"]
    parts = []
    if profiles["set_size"]:
        sizes = [str(size) for size in profiles["set_size"]["sizes"]]
        parts.append(("Set size of the picks", sizes, profiles["set_size"]["counts"]))
    word = "Pass rate" if profiles["share"]["kind"] == "pass_rate" else "Majority share"
    parts.append((f"{word} of the picks", profiles["share"]["bins"], profiles["share"]["counts"]))
    n_rows = len(found["strategies"]) + 1
    figure = Figure(figsize=(6.5 * len(parts), 1.4 + 0.42 * n_rows), layout="constrained")
    for axes, (title, labels, counts) in zip(np.atleast_1d(figure.subplots(1, len(parts))), parts, strict=True):
        keys = list(counts)
        shares = np.array([np.array(counts[key]) / max(sum(counts[key]), 1) for key in keys])
        image = axes.imshow(shares, cmap=SHARES, vmin=0, vmax=1, aspect="auto")
        axes.set_yticks(range(len(keys)), ["eligible pool" if key == "pool" else key for key in keys])
        every = max(1, len(labels) // 12)
        axes.set_xticks(range(0, len(labels), every), labels[::every])
        axes.set_title(title, loc="left")
        _plain(axes)
        figure.colorbar(image, ax=axes, label="share", shrink=0.8)
    return figure


def stability_figure(found: Mapping[str, Any]) -> Figure:
    """Draw the mean Jaccard index with resampled picks, and the central 95 % of resamplings, by strategy."""
    keys = [strategy["key"] for strategy in found["strategies"]]
    figure = Figure(figsize=(8, 1.4 + 0.42 * len(keys)), layout="constrained")
    axes = figure.subplots()
    parts = (
        ("answers resampled", of_votes(found), TEAL, -0.14),
        ("calibration set resampled", of_calibration(found), GOLD, 0.14),
    )
    for label, summaries, colour, shift in parts:
        shown = [(row, each) for row, each in enumerate(summaries) if each]
        if not shown:
            continue
        rows = np.array([row for row, _ in shown]) + shift
        low, high = np.array([each["interval"] for _, each in shown]).T
        axes.hlines(rows, low, high, color=colour, linewidth=2)
        axes.plot([each["mean"] for _, each in shown], rows, "o", color=colour, label=label)
    axes.axvline(found["stability"]["expected"], color=GREY, linestyle="--", label="two random selections")
    axes.set_yticks(range(len(keys)), keys)
    axes.set(xlim=(0, 1.02), ylim=(len(keys) - 0.5, -0.5), xlabel="Jaccard index with the picks at hand")
    axes.set_title(f"Stability: mean and central 95 % of {found['stability']['n_bootstrap']} resamplings", loc="left")
    figure.legend(frameon=False, loc="outside lower center", ncols=3)
    axes.grid(axis="x", color=LINE)
    _plain(axes)
    return figure


def backtest_figure(found: Mapping[str, Any]) -> Figure:
    """Draw every measure of the backtest, a dot a strategy, over the central 95 % of random selections."""
    judged = found["backtest"]
    keys = list(judged["strategies"])
    figure = Figure(figsize=(13, 1.4 + 0.36 * len(keys)), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(MEASURES), sharey=True), MEASURES, strict=True):
        if judged["random"]:
            axes.axvspan(*judged["random"][name]["interval"], color=GOLD, alpha=0.25, linewidth=0)
            axes.axvline(judged["random"][name]["mean"], color=GOLD)
        shown = [(judged["strategies"][key][name], row) for row, key in enumerate(keys)]
        shown = [(value, row) for value, row in shown if value is not None]
        axes.plot([value for value, _ in shown], [row for _, row in shown], "o", color=TEAL)
        axes.set_yticks(range(len(keys)), keys)
        axes.set(xlim=(-0.03, 1.03), ylim=(len(keys) - 0.5, -0.5))
        axes.set_title(BACKTEST_TITLES[name], loc="left", fontsize=9)
        axes.grid(axis="x", color=LINE)
        axes.set_axisbelow(True)
        _plain(axes)
    figure.suptitle("Judged by the right answers; gold: mean and central 95 % of random selections", fontsize=10)
    return figure


def of_votes(found: Mapping[str, Any]) -> list[Mapping[str, Any] | None]:
    """Return the stability of every strategy where answers are resampled."""
    return list(found["stability"]["votes"]["strategies"].values())


def of_calibration(found: Mapping[str, Any]) -> list[Mapping[str, Any] | None]:
    """Return the same where the calibration set is."""
    return list(found["stability"]["calibration"]["strategies"].values())


def _square(keys: Sequence[str]) -> tuple[float, float]:
    side = 2.4 + 0.55 * len(keys)
    return side + 0.6, side


def _heat(
    axes: Axes, keys: Sequence[str], matrix: Sequence[Sequence[float | None]], colours: Any, low: float, high: float
) -> None:
    values = np.array([[np.nan if value is None else value for value in row] for row in matrix])
    axes.imshow(values, cmap=colours, vmin=low, vmax=high)
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            if not np.isnan(value):
                is_dark = sum(colours((value - low) / (high - low))[:3]) < 1.6
                text = f"{value:.2f}".replace("-", "−")
                axes.text(j, i, text, ha="center", va="center", fontsize=8, color="white" if is_dark else INK)
    axes.set_xticks(range(len(keys)), keys, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(keys)), keys)
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
