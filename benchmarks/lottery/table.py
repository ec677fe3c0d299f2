"""From finished trainings to tables: means over seeds, and differences to random paired by seed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from scipy.stats import t

from benchmarks.lottery.arms import ARMS, BASELINE
from selector.state import write_atomically

DOCUMENT = Path("docs/lottery.md")
CONFIDENCE = 0.95
BUDGETS = (4, 8, 16)
MEASURES = ("mean_of_8", "greedy")
LEAST_FOR_INTERVAL = 3  # of two seeds it is wide or, by chance, nothing
NOTHING_YET = "No training is finished yet."
POOL_NAMES = ("scarce", "mixed", "demo")

Result = Mapping[str, Any]


def paired_difference(ours: Mapping[int, float], baseline: Mapping[int, float]) -> tuple[float, float, int]:
    """Return the mean difference over the seeds both have, half the width of its 95 % t-interval, and their number.

    The half width is infinite for fewer than two seeds.
    """
    differences = [ours[seed] - baseline[seed] for seed in sorted(set(ours) & set(baseline))]
    n = len(differences)
    if n < 2:
        return (fmean(differences) if n else float("nan")), float("inf"), n
    return fmean(differences), float(t.ppf((1 + CONFIDENCE) / 2, n - 1)) * stdev(differences) / n**0.5, n


def by_seed(results: Sequence[Result], pool: str, arm: str, budget: int, measure: str) -> dict[int, float]:
    """Return one measure of one arm by seed. The whole pool is the same at any budget."""
    return {
        result["seed"]: float(result[measure])
        for result in results
        if result["pool"] == pool and result["arm"] == arm and result["budget"] == budget
    }


def main_table(results: Sequence[Result], pool: str, measure: str) -> str:
    """Return the main table of one pool: accuracy by arm and budget, with the difference to random of that budget."""
    found = {each["arm"] for each in results if each["pool"] == pool}
    budgets = [b for b in BUDGETS if any(each["pool"] == pool and each["budget"] == b for each in results)]
    if not budgets:
        return NOTHING_YET
    lines = [
        "| chosen by | " + " | ".join(f"{budget} labels | against random" for budget in budgets) + " | seeds |",
        "|---" * (2 * len(budgets) + 2) + "|",
    ]
    for name, arm in ARMS.items():
        if name not in found:
            continue
        cells, counts = [], []
        for budget in budgets:
            ours = by_seed(results, pool, name, budget, measure)
            baseline = by_seed(results, pool, BASELINE, budget, measure)
            cells += [f"{fmean(ours.values()):.3f}" if ours else "", difference_cell(name, ours, baseline)]
            counts += [str(len(ours))] if ours else []
        lines.append("| " + " | ".join([arm.title, *cells, ", ".join(counts)]) + " |")
    untrained = by_seed(results, pool, "untrained", 0, measure)
    if untrained:
        empty = ["", ""] * (len(budgets) - 1)
        lines.append("| " + " | ".join(["before training", f"{fmean(untrained.values()):.3f}", "", *empty, ""]) + " |")
    return "\n".join(lines)


def difference_cell(arm: str, ours: Mapping[int, float], baseline: Mapping[int, float]) -> str:
    """Return "+.021 ± .015", in bold where the interval leaves zero out; nothing for random itself or without data."""
    if arm == BASELINE or not set(ours) & set(baseline):
        return ""
    mean, half, n = paired_difference(ours, baseline)
    if n < LEAST_FOR_INTERVAL:
        return f"{mean:+.3f}"
    cell = f"{mean:+.3f} ± {half:.3f}"
    return f"**{cell}**" if abs(mean) > half else cell


def picks_table(picks: Mapping[str, Sequence[float]], pool: str) -> str:
    """Return what each arm picked: the share of its questions that were always, never or sometimes right in 20."""
    lines = ["| chosen by | labels | always right | never right | between |", "|---|---|---|---|---|"]
    for name, arm in ARMS.items():
        for budget in BUDGETS:
            shares = [
                share
                for key, right in picks.items()
                for share in right
                if key.startswith(f"{pool}/{name}/{budget}/") and name != "full"
            ]
            if shares:
                ends = [fmean(share == 1 for share in shares), fmean(share == 0 for share in shares)]
                row = [arm.title, str(budget), *(f"{each:.2f}" for each in [*ends, 1 - sum(ends)])]
                lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def tables(results: Sequence[Result], picks: Mapping[str, Sequence[float]]) -> dict[str, str]:
    """Return every table of the document by its name."""
    found = {f"{pool} {measure}": main_table(results, pool, measure) for pool in POOL_NAMES for measure in MEASURES}
    return {**found, **{f"{pool} picks": picks_table(picks, pool) for pool in POOL_NAMES}}


def rewrite(document: Path, found: Mapping[str, str]) -> None:
    """Put each table between its markers, ``<!-- table: NAME -->`` and ``<!-- end -->``."""
    text = document.read_text(encoding="utf-8")
    for name, table in found.items():
        pattern = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = pattern.sub(lambda match, table=table: f"{match[1]}{table}\n{match[2]}", text)  # type: ignore[misc]
    write_atomically(document, [text])
