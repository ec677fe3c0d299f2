"""From scores to picks: the best of each cluster, a total order for ties, and the reason for each pick."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from selector.config import SelectionConfig
from selector.conformal import Floats, VoteCounts, scored_chunks
from selector.errors import PoolTooSmall
from selector.strategies import PoolScores
from selector.votes import VoteTable, canonical_order


@dataclass(frozen=True)
class PredictedAnswer:
    """One member of a prediction set: the answer as the model first gave it, and its share of the votes."""

    answer: str
    frequency: float


@dataclass(frozen=True)
class Pick:
    """One question worth paying for, and why.

    ``tied_with``: how many other questions of the same comparison (its cluster, or the whole pool for one taken by the
    global order) had the same acquisition score; ``tie_break_reason``: what decided against the next of them.
    """

    uid: str
    rank: int
    cluster: int
    set_size: int
    acquisition_score: float
    prediction_set: tuple[PredictedAnswer, ...]
    tied_with: int
    tie_break_reason: str
    taken_by: str  # "cluster" or "global_order"

    def to_json(self) -> dict[str, object]:
        """Return one line of a picks file."""
        return {
            "id": self.uid,
            "rank": self.rank,
            "cluster": self.cluster,
            "set_size": self.set_size,
            "acquisition_score": self.acquisition_score,
            "prediction_set": [{"answer": each.answer, "frequency": each.frequency} for each in self.prediction_set],
            "tied_with": self.tied_with,
            "tie_break_reason": self.tie_break_reason,
            "taken_by": self.taken_by,
        }


def answer_scores_of(table: VoteTable, config: SelectionConfig) -> Iterator[tuple[slice, VoteCounts, Floats]]:
    """Yield (rows, their votes, their answers' scores) under the rules of the configuration."""
    as_published = config.preset_name == "reference"
    return scored_chunks(table.codes, lam=config.lam, unread=config.unread, as_published=as_published)


def prediction_set(table: VoteTable, row: int, q_hat: float, config: SelectionConfig) -> tuple[PredictedAnswer, ...]:
    """Return the answers of one question that the threshold lets in, most frequent first."""
    ((_, votes, answer_scores),) = answer_scores_of(table.rows([row]), config)
    members = np.flatnonzero((answer_scores[0] <= q_hat) & (votes.counts[0] > 0))
    shown = [(int(votes.counts[0, code]), table.representatives[row][code]) for code in members]
    shown.sort(key=lambda each: (-each[0], each[1]))
    return tuple(PredictedAnswer(answer, count / int(votes.n_votes[0])) for count, answer in shown)


def select(
    scores: PoolScores,
    acquisition_scores: Floats,
    *,
    labels: NDArray[np.intp],
    distances: Floats | None,
    is_eligible: NDArray[np.bool_],
    per_cluster: int | None,
    config: SelectionConfig,
) -> list[Pick]:
    """Pick ``config.budget`` questions: the best of each cluster, then the best of the rest.

    The order is the acquisition score, then, known before any rollout is drawn: the set size from the probes alone, the
    number of distinct probe answers, nearness to the centre of the cluster (``distances`` [N]), sha256 of the uid;
    under ``ties="file_order"`` the row. Each cluster gives ``per_cluster`` or floor(budget / clusters), at least one;
    of more winners than the budget the best are kept, and what is missing comes from the global order. Picks come best
    first; in file order they come by cluster, as the published code lists them. Raises PoolTooSmall.
    """
    n_eligible = int(np.count_nonzero(is_eligible))
    if n_eligible < config.budget:
        raise PoolTooSmall(n_eligible=n_eligible, n_questions=len(scores.table), budget=config.budget)
    order, tie_breaks = _global_order(scores, acquisition_scores, distances, config)
    order = order[is_eligible[order]]
    place = np.empty(len(is_eligible), np.intp)  # a question's place in the global order
    place[order] = np.arange(len(order))

    by_cluster = order[np.argsort(labels[order], kind="stable")]
    first_of_cluster = np.searchsorted(labels[by_cluster], labels[by_cluster])
    place_in_cluster = np.arange(len(by_cluster)) - first_of_cluster
    quota = per_cluster or max(1, config.budget // len(np.unique(labels)))
    winners = by_cluster[place_in_cluster < quota]
    best_first = winners[np.argsort(place[winners])][: config.budget]
    if config.ties == "file_order":
        best_first = winners[np.isin(winners, best_first)]
    others = order[~np.isin(order, best_first)][: config.budget - len(best_first)]

    picks = []
    chosen = np.zeros(len(is_eligible), bool)
    chosen[best_first] = chosen[others] = True
    for rank, row in enumerate([*best_first.tolist(), *others.tolist()], 1):
        from_cluster = rank <= len(best_first)
        rivals = order[labels[order] == labels[row]] if from_cluster else order
        tied = rivals[(acquisition_scores[rivals] == acquisition_scores[row]) & (rivals != row)]
        beaten = tied[~chosen[tied]]
        reason = _tie_break_reason(row, int(beaten[0]), tie_breaks) if len(beaten) else ""
        picks.append(
            Pick(
                uid=scores.table.uids[row],
                rank=rank,
                cluster=int(labels[row]),
                set_size=int(scores.set_size[row]),
                acquisition_score=float(acquisition_scores[row]),
                prediction_set=prediction_set(scores.table, row, float(scores.q_hat[row]), config),
                tied_with=len(tied),
                tie_break_reason=reason,
                taken_by="cluster" if from_cluster else "global_order",
            )
        )
    return picks


def _global_order(
    scores: PoolScores, acquisition_scores: Floats, distances: Floats | None, config: SelectionConfig
) -> tuple[NDArray[np.intp], dict[str, Floats]]:
    """Return all rows, best first, and the keys that broke ties (smaller is better), in their order."""
    n = len(scores.table)
    if config.ties == "file_order":
        tie_breaks = {"file_order": np.arange(n, dtype=np.float64)}
    else:
        by_hash = np.empty(n)
        by_hash[canonical_order(scores.table.uids)] = np.arange(n)
        tie_breaks = {
            "set_size_from_probes": -scores.set_size_from_probes.astype(np.float64),
            "distinct_probe_answers": -scores.n_probe_answers.astype(np.float64),
            "nearness_to_centre": np.zeros(n) if distances is None else distances,
            "sha256_of_id": by_hash,
        }
    order = np.lexsort([*reversed(tie_breaks.values()), -acquisition_scores])
    return order, tie_breaks


def _tie_break_reason(row: int, beaten: int, tie_breaks: dict[str, Floats]) -> str:
    return next(name for name, keys in tie_breaks.items() if keys[row] != keys[beaten])
