"""What all strategies of a comparison share: answers grouped once, thresholds, clusters and eligibility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selector.config import SelectionConfig
from selector.conformal import Floats
from selector.picking import choose_rows
from selector.pipeline import (
    Calibration,
    Progress,
    barred_reasons,
    calibrate,
    choose_jointly,
    clusters_of,
    group_votes,
    groups_of,
    ineligible_reasons,
    q_hats_of,
    score,
)
from selector.requirements import available_evidence, check_evidence, check_fit
from selector.strategies import STRATEGIES, Evidence, PoolScores, Strategy
from selector.votes import QuestionVotes, VoteSource, VoteTable, canonical_order

if TYPE_CHECKING:
    from selector.answers import AnswerPolicy, Grader
    from selector.internals import Internals

Clusters = tuple[NDArray[np.intp], Floats | None, dict[str, Any]]


@dataclass(frozen=True)
class Choice:
    """What a strategy makes of the pool: a score for each question [N] and the rows it picks, best first."""

    strategy: Strategy
    acquisition_scores: Floats
    rows: NDArray[np.intp]


class SharedPool:
    """One pool's evidence in canonical order (under ``ties="file_order"`` in the file's).

    ``choose`` picks exactly what ``run_selection`` picks from the same evidence. Raises FingerprintMismatch and
    InvalidConfig where the evidence does not fit together.
    """

    def __init__(
        self,
        pool_votes: Sequence[QuestionVotes],
        calibration_votes: Sequence[QuestionVotes],
        *,
        config: SelectionConfig,
        embeddings: NDArray[np.float32] | None = None,
        internals: Internals | None = None,
        grader: Grader | None = None,
        policy: AnswerPolicy | None = None,
        ineligible: Mapping[str, str] = MappingProxyType({}),
        progress: Progress = lambda stage, done, total: None,
    ) -> None:
        check_fit(pool_votes, calibration_votes, embeddings, config)
        if config.ties != "file_order":
            order = canonical_order([question.uid for question in pool_votes])
            pool_votes = [pool_votes[row] for row in order]
            embeddings = None if embeddings is None else embeddings[order]
            order = canonical_order([question.uid for question in calibration_votes])
            calibration_votes = [calibration_votes[row] for row in order]
        self.config, self.embeddings = config, embeddings
        self.pool_votes, self.calibration_votes = pool_votes, calibration_votes
        self.uids = tuple(question.uid for question in pool_votes)
        self.internals = None if internals is None else internals.take(self.uids)
        self.calibration_table, self.table = group_votes(
            pool_votes, calibration_votes, config=config, grader=grader, policy=policy, progress=progress
        )
        self._given_ineligible = ineligible
        self._scores: dict[VoteSource, PoolScores] = {}
        self._eligible: dict[VoteSource, NDArray[np.bool_]] = {}
        self._clusters: dict[tuple[str, int], Clusters] = {}

    def __len__(self) -> int:
        return len(self.uids)

    def calibration(self, source: VoteSource, rows: NDArray[np.intp] | None = None) -> Calibration | None:
        """Return the threshold from answers of one kind, on some calibration questions (all of them); None for none."""
        if not self.calibration_votes:
            return None
        table, groups = self.calibration_table.of(source), groups_of(self.calibration_votes, self.config)
        if rows is not None:
            table = table.rows(rows.tolist())
            groups = None if groups is None else [groups[row] for row in rows.tolist()]
        return calibrate(table, self.config, groups)

    def scores_with(self, table: VoteTable, calibration: Calibration | None) -> PoolScores:
        """Measure a table of the pool's votes against a threshold."""
        return score(table, q_hats_of(calibration, self.pool_votes, self.config), self.config)

    def scores(self, source: VoteSource = "all") -> PoolScores:
        """Return what the recorded answers of one kind measure."""
        if source not in self._scores:
            self._scores[source] = self.scores_with(self.table.of(source), self.calibration(source))
        return self._scores[source]

    def reasons(self, source: VoteSource = "all") -> dict[str, str]:
        """Return why questions may not be picked by a strategy that reads answers of this kind, by uid."""
        scores = self.scores(source)
        barred = barred_reasons(self.pool_votes, self.calibration_votes, self._given_ineligible, (), self.config)
        return ineligible_reasons(scores.table, scores.n_readable, barred, self.config)

    def is_eligible(self, source: VoteSource = "all") -> NDArray[np.bool_]:
        """Return which questions may be picked [N]."""
        if source not in self._eligible:
            reasons = self.reasons(source)
            self._eligible[source] = np.array([uid not in reasons for uid in self.uids], bool)
        return self._eligible[source]

    def strategy(self, key: str) -> Strategy:
        """Return a strategy that has all it needs. Raises MissingEvidence."""
        strategy = STRATEGIES[key]()
        found = available_evidence(self.pool_votes, self.calibration_votes, strategy, self.embeddings, self.internals)
        check_evidence(strategy, found)
        return strategy

    def clusters(self, strategy: Strategy, n_picks: int) -> Clusters:
        """Return labels [N], distances to the centres [N] or None, and how the clusters came about; made once."""
        key = (strategy.key if not strategy.uses_clusters else "", strategy.n_clusters(n_picks, strategy.per_cluster))
        if key not in self._clusters:
            self._clusters[key] = clusters_of(self.pool_votes, self.embeddings, strategy, self.config, n_picks)
        return self._clusters[key]

    def choose(self, key: str, scores: PoolScores | None = None) -> Choice:
        """Return what a strategy picks, from the recorded answers or from other scores of the same questions.

        Eligibility and clusters are those of the recorded answers. Raises MissingEvidence and PoolTooSmall.
        """
        strategy = self.strategy(key)
        config = self.config.replace(strategy=key)
        is_eligible = self.is_eligible(strategy.votes)
        scores = self.scores(strategy.votes) if scores is None else scores
        evidence = Evidence(scores, self.embeddings, self.internals)
        acquisition_scores = strategy.acquisition_scores(evidence, config.seed)
        n_picks = strategy.n_picks(config.budget, int(np.count_nonzero(is_eligible)))
        labels, distances, clusters = self.clusters(strategy, n_picks)
        nobody = np.zeros(len(self), bool)
        joint = choose_jointly(strategy, evidence, acquisition_scores, is_eligible, nobody, (), n_picks, config.seed)
        chosen = choose_rows(
            scores,
            acquisition_scores,
            labels=labels,
            distances=distances,
            is_eligible=is_eligible,
            per_cluster=strategy.per_cluster or max(1, n_picks // clusters["n"]),
            config=config,
            n_picks=n_picks,
            joint=joint,
        )
        return Choice(strategy, acquisition_scores, np.concatenate([chosen.first, chosen.others]))


def with_truths(votes: Sequence[QuestionVotes], truths: Mapping[str, str | None] | None) -> list[QuestionVotes]:
    """Return the votes with the given truths and no others, so that what is not known cannot count."""
    return [replace(question, truth=(truths or {}).get(question.uid)) for question in votes]
