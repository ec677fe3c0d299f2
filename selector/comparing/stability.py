"""How much picks owe to chance: the same choice again from resampled answers, and from resampled calibration sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selector.comparing.measures import interval
from selector.comparing.shared import Choice, SharedPool
from selector.conformal import Floats
from selector.pipeline import Progress
from selector.seeds import question_rng
from selector.strategies import Need
from selector.votes import VoteTable, canonical_order

VOTES_METHOD = (
    "Each question's outcomes are drawn anew, with replacement, from those recorded, and its probes likewise (although "
    "probes of one chain depend on each other); grouping, threshold, clusters and eligibility stay."
)
CALIBRATION_METHOD = (
    "As many calibration questions are drawn anew, with replacement, and the threshold is fitted on them; the pool's "
    "answers stay."
)


def resampled_votes(table: VoteTable, rng: np.random.Generator) -> VoteTable:
    """Return the table with every question's probes and outcomes drawn with replacement from its own.

    Codes are drawn, nothing is grouped again; questions in canonical order take their draws, whatever row they are in.
    """
    n, width = table.codes.shape
    drawn = np.empty((n, width), np.intp)
    n_outcomes = width - table.n_probes
    order = canonical_order(table.uids)
    drawn[order] = np.concatenate(
        [
            rng.integers(0, max(table.n_probes, 1), size=(n, table.n_probes)),
            table.n_probes + rng.integers(0, max(n_outcomes, 1), size=(n, n_outcomes)),
        ],
        axis=1,
    )
    return replace(table, codes=np.take_along_axis(table.codes, drawn, axis=1))


def stability(
    pool: SharedPool, choices: Sequence[Choice], *, n_bootstrap: int, seed: int, progress: Progress
) -> dict[str, Any]:
    """Return the mean Jaccard index of picks from resampled evidence with the picks at hand, by strategy.

    ``mean``, its standard error and the central 95 % of ``n_bootstrap`` resamplings. None for a strategy that does not
    look at what is resampled: its picks cannot change.
    """
    by_votes = [choice for choice in choices if choice.strategy.needs_votes()]
    by_calibration = [choice for choice in choices if Need.CALIBRATION in choice.strategy.needs]
    total = n_bootstrap * 2
    found: dict[str, dict[str, list[float]]] = {
        "votes": {choice.strategy.key: [] for choice in by_votes},
        "calibration": {choice.strategy.key: [] for choice in by_calibration},
    }
    calibrations = {source: pool.calibration(source) for source in {choice.strategy.votes for choice in by_votes}}
    progress("resampling", 0, total)
    for draw in range(n_bootstrap if by_votes else 0):
        table = resampled_votes(pool.table, question_rng(seed, "resampled_votes", str(draw)))
        scores = {source: pool.scores_with(table.of(source), fitted) for source, fitted in calibrations.items()}
        for choice in by_votes:
            again = pool.choose(choice.strategy.key, scores[choice.strategy.votes])
            found["votes"][choice.strategy.key].append(_jaccard(choice.rows, again.rows))
        progress("resampling", draw + 1, total)
    m, calibration_order = len(pool.calibration_votes), canonical_order([q.uid for q in pool.calibration_votes])
    for draw in range(n_bootstrap if by_calibration else 0):
        rows = calibration_order[question_rng(seed, "resampled_calibration", str(draw)).integers(0, m, size=m)]
        sources = {choice.strategy.votes for choice in by_calibration}
        scores = {each: pool.scores_with(pool.table.of(each), pool.calibration(each, rows)) for each in sources}
        for choice in by_calibration:
            again = pool.choose(choice.strategy.key, scores[choice.strategy.votes])
            found["calibration"][choice.strategy.key].append(_jaccard(choice.rows, again.rows))
        progress("resampling", n_bootstrap + draw + 1, total)
    keys = [choice.strategy.key for choice in choices]
    return {
        "n_bootstrap": n_bootstrap,
        **{
            what: {"method": method, "strategies": {key: _summary(found[what].get(key, [])) for key in keys}}
            for what, method in (("votes", VOTES_METHOD), ("calibration", CALIBRATION_METHOD))
        },
    }


def _jaccard(rows: NDArray[np.intp], others: NDArray[np.intp]) -> float:
    common = len(np.intersect1d(rows, others, assume_unique=True))
    return common / (len(rows) + len(others) - common)


def _summary(values: Sequence[float]) -> dict[str, Any] | None:
    if not values:
        return None
    found: Floats = np.array(values, np.float64)
    error = float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else 0.0
    return {"mean": float(np.mean(found)), "standard_error": error, "interval": list(interval(found))}
