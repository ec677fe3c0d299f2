"""From scores to picks: the best of each cluster, a total order for ties, and the reason for each pick."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from selector.config import SelectionConfig
from selector.conformal import Floats, VoteCounts, scored_chunks
from selector.errors import PoolTooSmall
from selector.seeds import question_uniform
from selector.strategies import PoolScores
from selector.votes import VoteTable, canonical_order

WHOLE_MEASURES = ("set_size", "set_size_from_probes", "n_probe_answers", "n_readable", "n_distinct")
REAL_MEASURES = ("entropy", "max_frequency", "worst_score")


@dataclass(frozen=True)
class PredictedAnswer:
    """One member of a prediction set: the answer as the model first gave it, and its share of the votes."""

    answer: str
    frequency: float


@dataclass(frozen=True)
class Pick:
    """One question worth paying for, and why.

    ``taken_by``: "cluster" (the best of its own), "global_order" (of all the rest), "joint" (a strategy that picks a
    set) or "control" (drawn at random). ``inclusion_probability``: the chance that a control had of being drawn, exact
    and equal for every eligible question; None for what was chosen on purpose.
    ``tied_with``: how many other questions of the same comparison (its cluster, or the whole pool for one taken by the
    global order) had the same acquisition score; ``tie_break_reason``: what decided against the next of them. A race
    knows of neither (None and "").
    """

    uid: str
    rank: int
    cluster: int
    set_size: int
    acquisition_score: float
    prediction_set: tuple[PredictedAnswer, ...]
    tied_with: int | None
    tie_break_reason: str
    taken_by: str
    inclusion_probability: float | None = None

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
            "inclusion_probability": self.inclusion_probability,
        }


class Chosen(NamedTuple):
    """Rows that may be picked, best first, with what broke ties; those taken first; those that fill up the budget."""

    order: NDArray[np.intp]
    tie_breaks: dict[str, Floats]
    first: NDArray[np.intp]
    others: NDArray[np.intp]


def answer_scores_of(table: VoteTable, config: SelectionConfig) -> Iterator[tuple[slice, VoteCounts, Floats]]:
    """Yield (rows, their votes, their answers' scores) under the rules of the configuration."""
    as_published = config.preset_name == "reference"
    return scored_chunks(table.codes, lam=config.lam, unread=config.unread, as_published=as_published)


def score(table: VoteTable, q_hat: float | Floats, config: SelectionConfig) -> PoolScores:
    """Measure every question's votes against the threshold, one for all or one for each [N]."""
    q_hats = np.broadcast_to(np.asarray(q_hat, np.float64), len(table))
    whole: dict[str, Any] = {name: np.zeros(len(table), np.int64) for name in WHOLE_MEASURES}
    real: dict[str, Any] = {name: np.zeros(len(table)) for name in REAL_MEASURES}
    for rows, votes, answer_scores in answer_scores_of(table, config):
        given = votes.counts > 0
        whole["set_size"][rows] = _n_members(votes, answer_scores, q_hats[rows])
        whole["n_readable"][rows], whole["n_distinct"][rows] = votes.n_readable, votes.n_distinct
        real["entropy"][rows], real["max_frequency"][rows] = votes.entropy, votes.max_frequency
        real["worst_score"][rows] = np.max(answer_scores, axis=1, initial=-np.inf, where=given)
    for rows, votes, answer_scores in answer_scores_of(table.of("probes"), config):
        whole["set_size_from_probes"][rows] = _n_members(votes, answer_scores, q_hats[rows])
        whole["n_probe_answers"][rows] = votes.n_distinct
    return PoolScores(table=table, q_hat=q_hats, **whole, **real)


def set_sizes(codes: NDArray[np.int16], q_hats: Floats, config: SelectionConfig) -> NDArray[np.int64]:
    """Return the set sizes alone [N] of questions given by the codes of their answers [N, n]; ``q_hats`` [N]."""
    as_published = config.preset_name == "reference"
    found = np.zeros(len(codes), np.int64)
    for rows, votes, scores in scored_chunks(codes, lam=config.lam, unread=config.unread, as_published=as_published):
        found[rows] = _n_members(votes, scores, q_hats[rows])
    return found


def _n_members(votes: VoteCounts, answer_scores: Floats, q_hats: Floats) -> NDArray[np.int64]:
    """Return how many answers of each question its threshold lets in: the one place where set sizes are decided."""
    is_member = (answer_scores <= q_hats[:, None]) & (votes.counts > 0)
    return np.asarray(np.count_nonzero(is_member, axis=1), np.int64)


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
    n_picks: int | None = None,
    is_labeled: NDArray[np.bool_] | None = None,
    joint: Sequence[int] | None = None,
    controls: Sequence[int] = (),
    is_raced: bool = False,
    n_drawn_from: int | None = None,
) -> list[Pick]:
    """Pick ``n_picks`` questions (the budget where None): the best of each cluster, the best of the rest, the controls.

    The order is the acquisition score, then, known before any rollout is drawn: the set size from the probes alone, the
    number of distinct probe answers, nearness to the centre of the cluster (``distances`` [N]), sha256 of the uid;
    under ``ties="file_order"`` the row. Each cluster gives ``per_cluster`` or floor(picks / clusters), at least one;
    of more winners than picks the best are kept, and what is missing comes from the global order. Picks come best
    first; in file order they come by cluster, as the published code lists them.

    Rows with ``is_labeled`` [N] are part of an earlier round: they are never picked and use up their cluster's share.
    ``joint`` are rows that a strategy chose as a set, taken as they come instead of the best of each cluster.
    ``controls`` are rows drawn by ``draw_controls``, listed last, of ``n_drawn_from`` (the eligible ones where None).
    ``is_raced``: others than the eligible rows may have as high a score. Raises PoolTooSmall.
    """
    n_picks = config.budget if n_picks is None else n_picks
    n_eligible = int(np.count_nonzero(is_eligible))
    if n_eligible < n_picks:
        raise PoolTooSmall(n_eligible=n_eligible, n_questions=len(scores.table), budget=n_picks)
    order, tie_breaks, first, others = choose_rows(
        scores,
        acquisition_scores,
        labels=labels,
        distances=distances,
        is_eligible=is_eligible,
        per_cluster=per_cluster,
        config=config,
        n_picks=n_picks,
        is_labeled=is_labeled,
        joint=joint,
        controls=controls,
    )
    picks = []
    chosen = np.zeros(len(is_eligible), bool)
    chosen[first] = chosen[others] = True
    taken = [("cluster" if joint is None else "joint", row) for row in first.tolist()]
    taken += [("global_order", row) for row in others.tolist()] + [("control", int(row)) for row in controls]
    for rank, (taken_by, row) in enumerate(taken, 1):
        is_compared = taken_by in ("cluster", "global_order")
        rivals = order[labels[order] == labels[row]] if taken_by == "cluster" else order[: len(order) * is_compared]
        tied = rivals[(acquisition_scores[rivals] == acquisition_scores[row]) & (rivals != row)]
        beaten = tied[~chosen[tied]]
        reason = _tie_break_reason(row, int(beaten[0]), tie_breaks) if len(beaten) and not is_raced else ""
        picks.append(
            Pick(
                uid=scores.table.uids[row],
                rank=rank,
                cluster=int(labels[row]),
                set_size=int(scores.set_size[row]),
                acquisition_score=float(acquisition_scores[row]),
                prediction_set=prediction_set(scores.table, row, float(scores.q_hat[row]), config),
                tied_with=None if is_raced else len(tied),
                tie_break_reason=reason,
                taken_by=taken_by,
                inclusion_probability=len(controls) / (n_drawn_from or n_eligible) if taken_by == "control" else None,
            )
        )
    return picks


def choose_rows(
    scores: PoolScores,
    acquisition_scores: Floats,
    *,
    labels: NDArray[np.intp],
    distances: Floats | None,
    is_eligible: NDArray[np.bool_],
    per_cluster: int | None,
    config: SelectionConfig,
    n_picks: int,
    is_labeled: NDArray[np.bool_] | None = None,
    joint: Sequence[int] | None = None,
    controls: Sequence[int] = (),
) -> Chosen:
    """Return the rows that ``select`` picks, without the reasons; for choosing again and again."""
    is_control = np.zeros(len(is_eligible), bool)
    is_control[list(controls)] = True
    order, tie_breaks = _global_order(scores, acquisition_scores, distances, config)
    order = order[(is_eligible & ~is_control)[order]]
    n_chosen = n_picks - len(controls)
    if joint is None:
        in_order = config.ties != "file_order"
        first = _best_of_clusters(order, labels, is_labeled, per_cluster, n_chosen, in_order=in_order)
    else:
        first = np.array(joint[:n_chosen], np.intp)
    others = order[~np.isin(order, first)][: n_chosen - len(first)]
    return Chosen(order, tie_breaks, first, others)


def _best_of_clusters(
    order: NDArray[np.intp],
    labels: NDArray[np.intp],
    is_labeled: NDArray[np.bool_] | None,
    per_cluster: int | None,
    n_chosen: int,
    *,
    in_order: bool,
) -> NDArray[np.intp]:
    """Return the rows that clusters give, at most ``n_chosen``, best first or (not ``in_order``) cluster by cluster.

    ``order`` holds the rows that may be picked, best first; ``is_labeled`` [N] rows use up their cluster's share.
    """
    place = np.empty(len(labels), np.intp)  # a question's place in the global order
    place[order] = np.arange(len(order))
    by_cluster = order[np.argsort(labels[order], kind="stable")]
    first_of_cluster = np.searchsorted(labels[by_cluster], labels[by_cluster])
    place_in_cluster = np.arange(len(by_cluster)) - first_of_cluster
    if is_labeled is not None:
        numbers, of_row = np.unique(labels, return_inverse=True)
        place_in_cluster += np.bincount(of_row[is_labeled], minlength=len(numbers))[of_row[by_cluster]]
    winners = by_cluster[place_in_cluster < (per_cluster or max(1, n_chosen // len(np.unique(labels))))]
    best_first = winners[np.argsort(place[winners])][:n_chosen]
    return best_first if in_order else winners[np.isin(winners, best_first)]


def draw_controls(uids: Sequence[str], is_eligible: NDArray[np.bool_], n_controls: int, seed: int) -> list[int]:
    """Draw ``n_controls`` of the eligible rows uniformly without replacement: the lowest of one draw for each uid.

    Whatever the scores say, each eligible question is among them with probability n_controls / eligible.
    """
    rows = np.flatnonzero(is_eligible).tolist()
    rows.sort(key=lambda row: (question_uniform(seed, "control", uids[row]), uids[row]))
    return rows[:n_controls]


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


def places(
    scores: PoolScores, acquisition_scores: Floats, distances: Floats | None, config: SelectionConfig
) -> NDArray[np.intp]:
    """Return the place [N] of each row in the order of the whole pool, best 0, whether or not it may be picked."""
    order, _ = _global_order(scores, acquisition_scores, distances, config)
    found = np.empty(len(order), np.intp)
    found[order] = np.arange(len(order))
    return found


def _tie_break_reason(row: int, beaten: int, tie_breaks: dict[str, Floats]) -> str:
    return next(name for name, keys in tie_breaks.items() if keys[row] != keys[beaten])
