"""From recorded votes to picks: calibrate, score, select. Pure functions; the order of rows never matters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selector.config import SelectionConfig
from selector.conformal import THRESHOLDS, Floats, group_thresholds
from selector.diversity import cluster, distances_to_centres
from selector.errors import InvalidConfig, MissingEvidence, PoolTooSmall
from selector.picking import Pick, answer_scores_of, draw_controls, places, select
from selector.requirements import available_evidence, check_evidence, check_fit, fit_empty_votes
from selector.strategies import STRATEGIES, Evidence, Need, PoolScores, Strategy
from selector.strategies.contract import HOW_TO_GET
from selector.votes import QuestionVotes, VoteTable, build_table, canonical_order

if TYPE_CHECKING:
    from selector.answers import AnswerPolicy, Grader
    from selector.internals import Internals

Progress = Callable[[str, int, int], None]
WHOLE_MEASURES = ("set_size", "set_size_from_probes", "n_probe_answers", "n_readable", "n_distinct")
REAL_MEASURES = ("entropy", "max_frequency", "worst_score")


@dataclass(frozen=True)
class Calibration:
    """The threshold and what it rests on.

    ``nonconformity_scores`` and ``is_absent`` [m] belong to the calibration questions that were used; ``n_dropped``
    were left out (preset ``reference`` only). ``n_unread`` had no readable answer at all.
    ``group_q_hats``: by group of questions, "" for all others, where there is a threshold for each.
    """

    q_hat: float
    nonconformity_scores: Floats
    is_absent: NDArray[np.bool_]
    n_dropped: int = 0
    n_unread: int = 0
    group_q_hats: Mapping[str, float] = field(default_factory=dict)

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
    scores = np.full(len(table), np.inf)
    is_used = np.ones(len(table), bool)
    absent_scores = np.full(len(table), np.inf)
    n_unread = 0
    for rows, votes, answer_scores in answer_scores_of(table, config):
        truth = table.truth_codes[rows]
        n_unread += int(np.count_nonzero(votes.n_readable == 0))
        known = np.flatnonzero((truth >= 0) & (truth < answer_scores.shape[1]))
        scores[rows][known] = answer_scores[known, truth[known]]
        if config.absent_truth == "zero_frequency":
            absent_scores[rows] = config.lam * votes.entropy
            is_used[rows] = votes.n_readable > 0
    is_absent = np.isinf(scores)
    scores = np.where(is_absent, absent_scores, scores)[is_used]
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
    )


def score(table: VoteTable, q_hat: float | Floats, config: SelectionConfig) -> PoolScores:
    """Measure every question's votes against the threshold, one for all or one for each [N]."""
    q_hats = np.broadcast_to(np.asarray(q_hat, np.float64), len(table))
    whole: dict[str, Any] = {name: np.zeros(len(table), np.int64) for name in WHOLE_MEASURES}
    real: dict[str, Any] = {name: np.zeros(len(table)) for name in REAL_MEASURES}
    for rows, votes, answer_scores in answer_scores_of(table, config):
        given = votes.counts > 0
        whole["set_size"][rows] = np.count_nonzero((answer_scores <= q_hats[rows, None]) & given, axis=1)
        whole["n_readable"][rows], whole["n_distinct"][rows] = votes.n_readable, votes.n_distinct
        real["entropy"][rows], real["max_frequency"][rows] = votes.entropy, votes.max_frequency
        real["worst_score"][rows] = np.max(answer_scores, axis=1, initial=-np.inf, where=given)
    for rows, votes, answer_scores in answer_scores_of(table.of("probes"), config):
        is_member = (answer_scores <= q_hats[rows, None]) & (votes.counts > 0)
        whole["set_size_from_probes"][rows] = np.count_nonzero(is_member, axis=1)
        whole["n_probe_answers"][rows] = votes.n_distinct
    return PoolScores(table=table, q_hat=q_hats, **whole, **real)


@dataclass(frozen=True)
class SelectionResult:
    """Picks, what every question measured, and the report (plain JSON values, without tokens and seconds).

    ``scores``, ``acquisition_scores``, ``labels``, ``places`` and ``ineligible`` are aligned with
    ``scores.table.uids``; ``places`` are those in the order of the whole pool, ties broken, from 0; ``ineligible``
    holds a reason code or "". ``calibration`` is None where there was no calibration set.
    """

    picks: list[Pick]
    scores: PoolScores
    acquisition_scores: Floats
    labels: NDArray[np.intp]
    places: NDArray[np.intp]
    ineligible: list[str]
    calibration: Calibration | None
    report: dict[str, object]


def run_selection(
    pool_votes: Sequence[QuestionVotes],
    calibration_votes: Sequence[QuestionVotes],
    *,
    config: SelectionConfig,
    embeddings: NDArray[np.float32] | None = None,
    embedder: str = "",
    internals: Internals | None = None,
    grader: Grader | None = None,
    policy: AnswerPolicy | None = None,
    ineligible: Mapping[str, str] = MappingProxyType({}),
    labeled: Collection[str] = (),
    progress: Progress = lambda stage, done, total: None,
) -> SelectionResult:
    """Select questions from recorded votes: the one way from evidence to picks.

    What the strategy does not need may be missing: ``calibration_votes`` may be empty, and the questions of
    ``pool_votes`` may have no answers at all. ``embeddings`` [N, D] are aligned with ``pool_votes``; ``internals`` has
    a row for each of their uids, in any order. ``ineligible`` maps uids that must not be picked to a reason code.
    ``labeled`` uids already have labels: they are not picked, and the picks go on from the set they form (those that
    are not in the pool count for nothing). ``progress(stage, done, total)`` is called at the start of each stage and
    within the long ones. Raises MissingEvidence, CalibrationSetTooSmall, FingerprintMismatch, InvalidConfig,
    PoolTooSmall.
    """
    from selector import report as reporting

    strategy = STRATEGIES[config.strategy]()
    config = fit_empty_votes(pool_votes, calibration_votes, strategy, config)
    check_evidence(strategy, available_evidence(pool_votes, calibration_votes, strategy, embeddings, internals))
    generation = check_fit(pool_votes, calibration_votes, embeddings, config)
    if strategy.n_picks(config.budget, len(pool_votes)) > len(pool_votes):
        raise PoolTooSmall(n_eligible=len(pool_votes), n_questions=len(pool_votes), budget=config.budget)
    if config.ties != "file_order":
        order = canonical_order([question.uid for question in pool_votes])
        pool_votes = [pool_votes[row] for row in order]
        embeddings = None if embeddings is None else embeddings[order]
        calibration_order = canonical_order([question.uid for question in calibration_votes])
        calibration_votes = [calibration_votes[row] for row in calibration_order]

    calibration_table, pool_table = (
        table.of(strategy.votes)
        for table in group_votes(
            pool_votes, calibration_votes, config=config, grader=grader, policy=policy, progress=progress
        )
    )

    progress("calibrating and scoring", 0, 1)
    groups = groups_of(calibration_votes, config)
    calibration = calibrate(calibration_table, config, groups) if calibration_votes else None
    scores = score(pool_table, q_hats_of(calibration, pool_votes, config), config)
    taken = None if internals is None else internals.take(pool_table.uids)
    evidence = Evidence(scores, embeddings, taken)
    acquisition_scores = strategy.acquisition_scores(evidence, config.seed)

    known = set(labeled)
    is_labeled = np.array([uid in known for uid in pool_table.uids], bool)
    reasons = ineligible_reasons(pool_votes, calibration_votes, scores, ineligible, known, config)
    is_eligible = np.array([uid not in reasons for uid in pool_table.uids], bool)
    n_picks = strategy.n_picks(config.budget, int(np.count_nonzero(is_eligible)))
    controls = draw_controls(pool_table.uids, is_eligible, config.n_controls, config.seed)
    progress("clustering", 0, 1)
    n_continued = n_picks - len(controls) + int(np.count_nonzero(is_labeled))
    labels, distances, clusters = clusters_of(pool_votes, embeddings, strategy, config, n_continued)
    progress("selecting", 0, 1)
    joint = choose_jointly(
        strategy, evidence, acquisition_scores, is_eligible, is_labeled, controls, n_picks, config.seed
    )
    picks = select(
        scores,
        acquisition_scores,
        labels=labels,
        distances=distances,
        is_eligible=is_eligible,
        per_cluster=config.per_cluster or strategy.per_cluster or max(1, n_continued // clusters["n"]),
        config=config,
        n_picks=n_picks,
        is_labeled=is_labeled if known else None,
        joint=joint,
        controls=controls,
    )
    progress("checking", 0, 1)
    fingerprints: dict[str, object] = {
        "config": config.fingerprint(),
        "generation": generation,
        "embedder": embedder or None,
    }
    if internals is not None:
        fingerprints["internals"] = internals.fingerprint
    if known:
        fingerprints["labeled"] = reporting.hash_of({"labeled": sorted(known & set(pool_table.uids))})
    report = reporting.describe_selection(
        strategy,
        config,
        scores=scores,
        is_eligible=is_eligible,
        reasons=reasons,
        picks=picks,
        clusters=clusters,
        labeled={"given": len(known), "in_pool": int(np.count_nonzero(is_labeled))},
        calibration=calibration,
        calibration_scores=score(calibration_table, calibration.q_hat, config) if calibration else None,
        groups=groups,
        fingerprints=fingerprints,
    )
    return SelectionResult(
        picks=picks,
        scores=scores,
        acquisition_scores=acquisition_scores,
        labels=labels,
        places=places(scores, acquisition_scores, distances, config),
        ineligible=[reasons.get(uid, "") for uid in pool_table.uids],
        calibration=calibration,
        report=report,
    )


def group_votes(
    pool_votes: Sequence[QuestionVotes],
    calibration_votes: Sequence[QuestionVotes],
    *,
    config: SelectionConfig,
    grader: Grader | None = None,
    policy: AnswerPolicy | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> tuple[VoteTable, VoteTable]:
    """Return the tables of calibration and pool, answers grouped as the settings say; the slow part of a selection."""
    tables = []
    for stage, votes in (("grouping calibration answers", calibration_votes), ("grouping pool answers", pool_votes)):
        if votes:
            progress(stage, 0, len(votes))
        table = build_table(
            votes,
            grouping=config.grouping,
            policy=policy,
            grader=grader,
            progress=lambda done, total, stage=stage: progress(stage, done, total),  # type: ignore[misc]
        )
        tables.append(table)
    return tables[0], tables[1]


def choose_jointly(
    strategy: Strategy,
    evidence: Evidence,
    acquisition_scores: Floats,
    is_eligible: NDArray[np.bool_],
    is_labeled: NDArray[np.bool_],
    controls: Sequence[int],
    n_picks: int,
    seed: int,
) -> list[int] | None:
    """Return the rows a strategy chooses as a set; None where the scores decide.

    Raises PoolTooSmall with fewer eligible questions than picks, or none: not even the whole pool is a choice then.
    """
    n_eligible = int(np.count_nonzero(is_eligible))
    if n_eligible < max(n_picks, 1):
        raise PoolTooSmall(n_eligible=n_eligible, n_questions=len(evidence), budget=max(n_picks, 1))
    is_candidate = is_eligible.copy()
    is_candidate[list(controls)] = False
    rows = strategy.choose(
        evidence,
        acquisition_scores,
        candidates=np.flatnonzero(is_candidate),
        chosen=np.flatnonzero(is_labeled),
        budget=n_picks - len(controls),
        seed=seed,
    )
    return None if rows is None else [int(row) for row in rows]


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


def clusters_of(
    votes: Sequence[QuestionVotes],
    embeddings: NDArray[np.float32] | None,
    strategy: Strategy,
    config: SelectionConfig,
    n_picks: int,
) -> tuple[NDArray[np.intp], Floats | None, dict[str, Any]]:
    """Return labels [N], distances to the centres [N] where there are embeddings, and how the clusters came about.

    ``n_picks`` are those of this round and of earlier ones: a second round finds clusters that the first has not seen.
    """
    given = [question.cluster for question in votes]
    if not strategy.uses_clusters:
        return np.zeros(len(votes), np.intp), None, {"n": 1, "source": "none"}
    if n := n_given_clusters({question.uid: question.cluster for question in votes}, config):
        labels = np.array(given, np.intp)
        distances = None if embeddings is None else distances_to_centres(embeddings, labels)
        return labels, distances, {"n": n, "source": "given"}
    if embeddings is None:
        raise MissingEvidence(strategy=strategy.key, need=Need.EMBEDDINGS, how_to_get=HOW_TO_GET[Need.EMBEDDINGS])
    n_wanted = strategy.n_clusters(n_picks, config.per_cluster or strategy.per_cluster)
    n = config.n_clusters or max(1, min(n_wanted, len(votes)))
    uids = [question.uid for question in votes]
    in_given_order = config.ties == "file_order"
    labels, distances = cluster(embeddings, uids, n, config.seed, in_given_order=in_given_order)
    return labels, distances, {"n": n, "source": "embeddings"}


def n_given_clusters(clusters: Mapping[str, int | None], config: SelectionConfig) -> int:
    """Return how many clusters the questions bring, by uid; 0 where they bring none.

    Raises InvalidConfig where some bring one and others do not, or where another number is asked for.
    """
    given = {label for label in clusters.values() if label is not None}
    if not given:
        if config.n_clusters is not None and config.n_clusters > len(clusters):
            wanted = f"at most the number of questions, {len(clusters)}"
            raise InvalidConfig("n_clusters", config.n_clusters, wanted)
        return 0
    if missing := next((uid for uid, label in clusters.items() if label is None), ""):
        raise InvalidConfig("cluster", f"missing for question {missing}", "given for every question or for none")
    if config.n_clusters not in (None, len(given)):
        wanted = f"left out: the questions bring {len(given)} clusters of their own"
        raise InvalidConfig("n_clusters", config.n_clusters, wanted)
    return len(given)


def ineligible_reasons(
    pool: Sequence[QuestionVotes],
    calibration: Sequence[QuestionVotes],
    scores: PoolScores,
    given: Mapping[str, str],
    labeled: Collection[str],
    config: SelectionConfig,
) -> dict[str, str]:
    """Return a reason code for every question that must not be picked."""
    from selector.rows import question_uid

    sealed = {question_uid(question.text, question.choices) for question in calibration if question.text}
    first_uid: dict[str, str] = {}
    fewest = config.min_readable * scores.table.codes.shape[1]
    reasons = {}
    for question, n_readable in zip(pool, scores.n_readable.tolist(), strict=True):
        identity = question_uid(question.text, question.choices) if question.text and config.exclude_repeats else ""
        if question.uid in given:
            reasons[question.uid] = given[question.uid]
        elif question.uid in labeled:
            reasons[question.uid] = "already_labeled"
        elif identity and identity in sealed:
            reasons[question.uid] = "in_calibration_set"
        elif identity and first_uid.setdefault(identity, question.uid) != question.uid:
            reasons[question.uid] = "repeats_another"
        elif n_readable < fewest:
            reasons[question.uid] = "too_few_readable"
    return reasons
