"""A comparison as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from selector.backtest import MEASURES

NOTHING = "–"
BACKTEST_NAMES = {
    "pass_rate": "pass rate",
    "with_variance": "variance",
    "advantage_mass": "E|A|",
    "majority_wrong": "maj. wrong",
}


def lines_of(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows as lines of aligned columns, the first to the left and the others to the right; row 0 heads."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in widths)


def comparison_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the whole comparison, table after table, with what each column means."""
    pool, calibration = found["pool"], found["calibration"]
    yield f"{pool['n']:,} questions, {pool['n_eligible']:,} of them eligible; budget {found['budget']}."
    if calibration:
        q_hat = "infinite" if calibration["q_hat_infinite"] else f"{calibration['q_hat']:.4f}"
        note = ", degenerate: set size only counts distinct answers" if calibration["degenerate"] else ""
        yield f"Threshold {q_hat} at alpha {found['settings']['alpha']} from {calibration['n']:,} questions{note}."
    yield ""
    yield from lines_of(_summary_rows(found))
    yield ""
    share = "pass rate" if found["profiles"]["share"]["kind"] == "pass_rate" else "majority share"
    yield (
        f"set size, {share}: means over the picks. distance: mean of embeddings, pairwise. clusters: of the "
        f"{(found['diversity'] or {}).get('n_clusters', 0)} that hold a pick. tokens: millions, for pool and "
        "calibration set, as if nothing were recorded. stable: mean Jaccard of the picks with those from resampled "
        f"answers and from resampled calibration sets ({found['stability']['n_bootstrap']} each); "
        f"{found['stability']['expected']:.3f} is chance; {NOTHING} does not look at them. * reconstruction."
    )
    yield ""
    yield "Overlap of the picks (Jaccard)"
    yield from lines_of(_matrix_rows(found["overlap"]["keys"], found["overlap"]["jaccard"]))
    for name, title in (("spearman", "Spearman's"), ("kendall", "Kendall's tau-b")):
        yield ""
        yield f"Rank correlation of the acquisition scores ({title}, {found['rank_correlation']['n']:,} questions)"
        yield from lines_of(_matrix_rows(found["rank_correlation"]["keys"], found["rank_correlation"][name]))
    if found["backtest"]:
        yield ""
        yield from backtest_lines(found["backtest"])
    yield from not_run_lines(found)


def not_run_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield which strategies could not run, and why."""
    if found["not_run"]:
        yield ""
        yield "Not run"
        for each in found["not_run"]:
            yield f"  {each['key']}: {each['reason']}"


def backtest_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the truths show of every strategy's picks, next to the pool and to random selections."""
    yield (
        f"Judged by the right answers ({found['pool']['n']:,} known, {found['n_rollouts']} rollouts each, "
        f"groups of {found['group_size']})"
    )
    head = ["", "picks", *BACKTEST_NAMES.values()]
    rows = [head, ["whole pool", f"{found['pool']['n']:,}", *(_share(found["pool"][name]) for name in MEASURES)]]
    if random := found["random"]:
        rows.append(["random, mean", f"{random['n']:,}", *(_share(random[name]["mean"]) for name in MEASURES)])
        for i, bound in enumerate(("2.5 %", "97.5 %")):
            rows.append([f"random, {bound}", "", *(_share(random[name]["interval"][i]) for name in MEASURES)])
    for key, judged in found["strategies"].items():
        cells = [_share(judged[name]) + _mark(judged, name) for name in MEASURES]
        rows.append([key, f"{judged['n']:,}", *cells])
    yield from lines_of(rows)
    yield (
        "pass rate: of the rollouts. variance: share of picks with 0 < pass rate < 1. E|A|: mean size of the GRPO "
        "advantage. maj. wrong: share of picks whose most frequent answer is wrong. "
        f"+ and - mark what is above and below 97.5 % of {found['n_random']:,} random selections of as many."
    )


def _mark(judged: Mapping[str, Any], name: str) -> str:
    beats = judged["beats_random"]
    if beats is None or 0.025 < beats[name] < 0.975:
        return " "
    return "+" if beats[name] >= 0.975 else "-"


def _summary_rows(found: Mapping[str, Any]) -> list[list[str]]:
    profiles, stability = found["profiles"], found["stability"]
    share = "pass rate" if profiles["share"]["kind"] == "pass_rate" else "majority"
    diversity = (found["diversity"] or {}).get("strategies", {})
    rows = [["strategy", "picks", "set size", share, "distance", "clusters", "tokens", "stable: votes", "calibration"]]
    rows.append(
        [
            "(eligible pool)",
            f"{found['pool']['n_eligible']:,}",
            _figure(profiles["set_size"] and profiles["set_size"]["means"]["pool"], 2),
            _figure(profiles["share"]["means"]["pool"], 3),
            _figure((found["diversity"] or {}).get("pool_mean_distance"), 3),
            "",
            "",
            "",
            "",
        ]
    )
    for strategy in found["strategies"]:
        key = strategy["key"]
        spread = diversity.get(key, {})
        rows.append(
            [
                key + ("*" if strategy["provenance"] == "reconstruction" else ""),
                f"{strategy['n_picks']:,}",
                _figure(profiles["set_size"] and profiles["set_size"]["means"][key], 2),
                _figure(profiles["share"]["means"][key], 3),
                _figure(spread.get("mean_distance"), 3),
                NOTHING if not spread else str(spread["n_clusters"]),
                f"{found['cost']['strategies'][key]['tokens'] / 1e6:.2f}",
                *(_stable(stability[what]["strategies"][key]) for what in ("votes", "calibration")),
            ]
        )
    return rows


def _matrix_rows(keys: Sequence[str], matrix: Sequence[Sequence[float | None]]) -> list[list[str]]:
    return [["", *keys], *([key, *(_figure(value, 2) for value in row)] for key, row in zip(keys, matrix, strict=True))]


def _stable(found: Mapping[str, Any] | None) -> str:
    return NOTHING if found is None else "{:.2f} ({:.2f}–{:.2f})".format(found["mean"], *found["interval"])


def _figure(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def _share(value: float | None) -> str:
    return _figure(value, 3)
