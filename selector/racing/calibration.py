"""The race for the threshold: the same q_hat, bit for bit, from fewer answers of the calibration questions.

q_hat is one of the sorted calibration scores. Each question's score lies between two bounds; the same rank of the lower
ones and of the upper ones enclose q_hat, and only questions whose bounds reach into that gap draw another answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from selector.calibration import Calibration, fit_thresholds, truth_scores
from selector.config import SelectionConfig
from selector.conformal import Floats, count_votes
from selector.racing.bounds import SLACK, table_of_n_log_n
from selector.votes import UNDRAWN, VoteTable


class OutcomesWanted(Exception):
    """The race cannot go on without the next outcome of each of ``rows``."""

    def __init__(self, rows: list[int]) -> None:
        self.rows = rows
        super().__init__(f"{len(rows)} outcomes")


Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def race_calibration(
    table: VoteTable,
    config: SelectionConfig,
    groups: Sequence[str] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Calibration:
    """Fit what ``calibrate`` fits, drawing recorded outcomes in their order and only while they can still matter.

    A truth that has not come up counts as open until every answer is there. Raises CalibrationSetTooSmall, and
    OutcomesWanted where the next outcomes are not recorded.
    """
    scores = _RacedScores(table, config)
    while True:
        progress(int(scores.n_drawn.sum()), len(table) * scores.n_outcomes)
        undecided = ~scores.is_decided
        if undecided.any():  # whether they count at all decides the rank
            scores.draw(undecided)
            continue
        lower, upper = (
            fit_thresholds(bound, scores.is_absent, scores.is_used, config, groups, n_unread=0, n_drawn=scores.n_drawn)
            for bound in (scores.lower, scores.upper)
        )
        contested = np.zeros(len(table), bool)
        for rows, least, most in _gaps(lower, upper, groups, len(table)):
            contested |= rows & (scores.upper >= least) & (scores.lower <= most)
        contested &= scores.is_used & (scores.n_drawn < scores.n_outcomes)
        if not contested.any():
            return replace(upper, uids=table.uids)
        scores.draw(contested)


def _gaps(
    lower: Calibration, upper: Calibration, groups: Sequence[str] | None, n: int
) -> Iterator[tuple[Bools, float, float]]:
    """Yield (questions that decide a threshold, its bounds) for each that is not known yet."""
    if lower.q_hat != upper.q_hat:
        yield np.ones(n, bool), lower.q_hat, upper.q_hat
    names = np.array(groups or [], dtype=object)
    for name, least in lower.group_q_hats.items():
        most = upper.group_q_hats[name]
        if least != most:
            among_all = name == ""  # those too few for a threshold of their own, or the whole set in their place
            yield np.ones(n, bool) if among_all else names == name, least, most


class _RacedScores:
    """Bounds on the score of each calibration question's truth [m], from its probes and the outcomes drawn so far."""

    def __init__(self, table: VoteTable, config: SelectionConfig) -> None:
        self.table, self.config = table, config
        self.n_outcomes = table.codes.shape[1] - table.n_probes
        self.n_drawn = np.zeros(len(table), np.int64)
        self.lower, self.upper = np.zeros((2, len(table)))
        self.is_absent, self.is_used, self.is_decided = np.ones((3, len(table)), bool)
        self._measure(np.arange(len(table)))

    def draw(self, rows: Bools) -> None:
        """Draw the next outcome of some questions. Raises OutcomesWanted where some of them are not recorded."""
        drawn = np.flatnonzero(rows)
        is_missing = self.table.codes[drawn, self.table.n_probes + self.n_drawn[drawn]] == UNDRAWN
        if is_missing.any():
            raise OutcomesWanted(drawn[is_missing].tolist())
        self.n_drawn[rows] += 1
        self._measure(np.flatnonzero(rows))

    def _measure(self, rows: NDArray[np.intp]) -> None:
        is_complete = self.n_drawn[rows] == self.n_outcomes
        complete, partial = rows[is_complete], rows[~is_complete]
        if len(complete):
            scores, is_absent, is_used = truth_scores(self.table.rows(complete.tolist()), self.config)
            self.lower[complete] = self.upper[complete] = scores
            self.is_absent[complete], self.is_used[complete], self.is_decided[complete] = is_absent, is_used, True
        for n_drawn in np.unique(self.n_drawn[partial]).tolist():
            among = partial[self.n_drawn[partial] == n_drawn]
            codes = self.table.codes[among, : self.table.n_probes + n_drawn]
            self._bound(among, codes)

    def _bound(self, rows: NDArray[np.intp], codes: NDArray[np.int16]) -> None:
        """Set the bounds of questions of which some answers are to come; ``codes`` [R, n] are those that are there."""
        config, truth = self.config, self.table.truth_codes[rows]
        votes = count_votes(codes, unread=config.unread)
        n_truth = np.count_nonzero((codes == truth[:, None]) & (truth >= 0)[:, None], axis=1)
        n_left = self.table.codes.shape[1] - codes.shape[1]
        least_entropy, most_entropy = _entropies(codes, n_left, config.unread)
        n_votes = votes.n_votes + n_left
        self.lower[rows] = -(n_truth + n_left) / n_votes + config.lam * least_entropy - SLACK
        seen = -n_truth / n_votes + config.lam * most_entropy + SLACK
        unseen = seen if config.absent_truth == "zero_frequency" else np.inf
        self.upper[rows] = np.where(n_truth > 0, seen, unseen)
        self.is_absent[rows] = n_truth == 0
        if config.absent_truth == "zero_frequency":
            self.is_decided[rows] = votes.n_readable > 0


def _entropies(codes: NDArray[np.int16], n_left: int, unread: str) -> tuple[Floats, Floats]:
    """Return the smallest and the largest entropy that the votes of each question can end with, ``n_left`` to come."""
    n_log_n = table_of_n_log_n(codes.shape[1] + n_left)
    counts = count_votes(codes, unread="dropped").counts
    n_readable = counts.sum(axis=1)
    n_unread = codes.shape[1] - n_readable
    largest, spread = counts.max(axis=1, initial=0), n_log_n[counts].sum(axis=1)
    placed = np.arange(n_left + 1)[None, :]
    if unread == "symbol":
        largest, spread = np.maximum(largest, n_unread), spread + n_log_n[n_unread]
        n_readable, placed = n_readable + n_unread, np.array([[n_left]])
    total = n_readable[:, None] + placed
    together = spread[:, None] - n_log_n[largest][:, None] + n_log_n[largest[:, None] + placed]
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(total > 1, 1 - together / n_log_n[total], 0.0)
        most = np.where(total > 1, 1 - spread[:, None] / n_log_n[total], 0.0)
    return least.min(axis=1), most.max(axis=1)
