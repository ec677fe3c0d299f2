"""The threshold: what the calibration questions' votes and truths say an answer's score may be at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf

import numpy as np
from numpy.typing import NDArray

from selector.config import SelectionConfig
from selector.conformal import THRESHOLDS, Floats, group_thresholds
from selector.picking import answer_scores_of
from selector.votes import QuestionVotes, VoteTable


@dataclass(frozen=True)
class Calibration:
    """The threshold and what it rests on.

    ``nonconformity_scores`` and ``is_absent`` [m] belong to the calibration questions that were used; ``n_dropped``
    were left out (preset ``reference`` only). ``n_unread`` had no readable answer at all. Where the calibration was
    raced, ``n_drawn`` and ``uids`` [calibration questions] say which outcomes were drawn; scores then are what they can
    be at most, ``is_absent`` says what had not come up, and only the thresholds are what all answers would give.
    ``group_q_hats``: by group of questions, "" for all others, where there is a threshold for each.
    """

    q_hat: float
    nonconformity_scores: Floats
    is_absent: NDArray[np.bool_]
    n_dropped: int = 0
    n_unread: int = 0
    group_q_hats: Mapping[str, float] = field(default_factory=dict)
    n_drawn: NDArray[np.int64] | None = None
    uids: tuple[str, ...] = ()

    def q_hats(self, groups: Sequence[str]) -> Floats:
        """Return the threshold of each question [N], given its group [N]."""
        other = self.group_q_hats.get("", self.q_hat)
        return np.array([self.group_q_hats.get(group, other) for group in groups], np.float64)

    @property
    def n(self) -> int:
        """Number of calibration questions used, m."""
        return len(self.nonconformity_scores)

    @property
    def n_absent(self) -> int:
        """Number of them whose truth was never generated."""
        return int(np.count_nonzero(self.is_absent))

    @property
    def smallest_attainable_alpha(self) -> Fraction:
        """(n_absent + 1) / (m + 1): below it no threshold covers the wanted share of truths."""
        return Fraction(self.n_absent + 1, self.n + 1)


def calibrate(table: VoteTable, config: SelectionConfig, groups: Sequence[str] | None = None) -> Calibration:
    """Fit q_hat on the calibration questions' votes and truths (``table.truth_codes``).

    A truth nobody voted for scores +inf; under ``absent_truth="zero_frequency"`` it scores ``lam * H``, and questions
    without any readable answer are left out. ``groups`` [m] asks for a threshold of each group as well.
    Raises CalibrationSetTooSmall.
    """
    scores, is_absent, is_used = truth_scores(table, config)
    is_unread = np.all(table.codes < 0, axis=1)
    return fit_thresholds(scores, is_absent, is_used, config, groups, n_unread=int(np.count_nonzero(is_unread)))


def truth_scores(table: VoteTable, config: SelectionConfig) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the score of each question's truth [m], whether it was never generated [m], and whether it counts [m]."""
    scores = np.full(len(table), np.inf)
    is_used = np.ones(len(table), bool)
    absent_scores = np.full(len(table), np.inf)
    for rows, votes, answer_scores in answer_scores_of(table, config):
        truth = table.truth_codes[rows]
        known = np.flatnonzero((truth >= 0) & (truth < answer_scores.shape[1]))
        scores[rows][known] = answer_scores[known, truth[known]]
        if config.absent_truth == "zero_frequency":
            absent_scores[rows] = config.lam * votes.entropy
            is_used[rows] = votes.n_readable > 0
    is_absent = np.isinf(scores)
    return np.where(is_absent, absent_scores, scores), is_absent, is_used


def fit_thresholds(
    scores: Floats,
    is_absent: NDArray[np.bool_],
    is_used: NDArray[np.bool_],
    config: SelectionConfig,
    groups: Sequence[str] | None,
    *,
    n_unread: int,
    n_drawn: NDArray[np.int64] | None = None,
) -> Calibration:
    """Return the threshold, and those of groups, for the scores [m] of the truths. Raises CalibrationSetTooSmall."""
    scores = scores[is_used]
    alpha, quantile = config.alpha_fraction, config.quantile
    q_hat = THRESHOLDS[quantile](scores, alpha)
    group_q_hats = {}
    if groups is not None:
        used_groups = [groups[row] for row in np.flatnonzero(is_used).tolist()]
        group_q_hats = group_thresholds(scores, used_groups, alpha, quantile=quantile)
    return Calibration(
        q_hat,
        scores,
        is_absent[is_used],
        n_dropped=int(np.count_nonzero(~is_used)),
        n_unread=n_unread,
        group_q_hats=group_q_hats,
        n_drawn=n_drawn,
    )


def groups_of(votes: Sequence[QuestionVotes], config: SelectionConfig) -> list[str] | None:
    """Return each question's group, which must be a function of the question alone; None for one threshold for all."""
    return None if config.groups == "none" else [question.kind or "" for question in votes]


def q_hats_of(
    calibration: Calibration | None, votes: Sequence[QuestionVotes], config: SelectionConfig
) -> float | Floats:
    if calibration is None:
        return -inf  # nothing is in any set
    groups = groups_of(votes, config)
    return calibration.q_hat if groups is None else calibration.q_hats(groups)
