"""From recorded votes to picks: calibrate, score, select. Pure functions; the order of rows never matters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selector.calibration import Calibration, calibrate, groups_of, q_hats_of
from selector.config import SelectionConfig
from selector.conformal import Floats
from selector.diversity import ClusteringStore, cluster, distances_to_centres
from selector.errors import InvalidConfig, MissingEvidence, PoolTooSmall
from selector.picking import Pick, draw_controls, places, score, select
from selector.requirements import available_evidence, check_evidence, check_fit, fit_empty_votes
from selector.strategies import STRATEGIES, Evidence, Need, PoolScores, Strategy
from selector.strategies.contract import HOW_TO_GET
from selector.votes import QuestionVotes, VoteTable, build_table, canonical_order

if TYPE_CHECKING:
    from selector.answers import AnswerPolicy, Grader
    from selector.internals import Internals
    from selector.racing.live import OutcomeSource
    from selector.racing.selection import Raced, RacedPool
    from selector.racing.settings import RaceSettings

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class SelectionResult:
    """Picks, what every question measured, and the report (plain JSON values, without tokens and seconds).

    ``scores``, ``acquisition_scores``, ``labels``, ``places`` and ``ineligible`` are aligned with
    ``scores.table.uids``; ``places`` are those in the order of the whole pool, ties broken, from 0; ``ineligible``
    holds a reason code or "". ``calibration`` is None where there was no calibration set, ``raced`` without a race.
    ``pool_votes`` and ``calibration_votes`` are the votes that the picks rest on, those that were asked for on the way
    among them; ``race_history`` says how that went, which depends on how fast answers came.
    """

    picks: list[Pick]
    scores: PoolScores
    acquisition_scores: Floats
    labels: NDArray[np.intp]
    places: NDArray[np.intp]
    ineligible: list[str]
    calibration: Calibration | None
    report: dict[str, object]
    pool_votes: Sequence[QuestionVotes]
    calibration_votes: Sequence[QuestionVotes]
    raced: Raced | None = None
    race_history: Sequence[Mapping[str, int]] = ()


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
    race: RaceSettings | None = None,
    outcomes: OutcomeSource | None = None,
    calibration_outcomes: OutcomeSource | None = None,
    clusterings: ClusteringStore | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> SelectionResult:
    """Select questions from recorded votes: the one way from evidence to picks.

    What the strategy does not need may be missing: ``calibration_votes`` may be empty, and the questions of
    ``pool_votes`` may have no answers at all. ``embeddings`` [N, D] are aligned with ``pool_votes``; ``internals`` has
    a row for each of their uids, in any order. ``ineligible`` maps uids that must not be picked to a reason code.
    ``labeled`` uids already have labels: they are not picked, and the picks go on from the set they form (those that
    are not in the pool count for nothing). ``race`` draws the recorded outcomes in their order, and only those that the
    picks depend on; questions may then lack outcomes that a race before it did not draw, and ``outcomes`` is asked for
    those that are missing, as ``calibration_outcomes`` is where the threshold is raced for. ``clusterings`` keeps which
    clusters were found, for the next time.
    ``progress(stage, done, total)`` is called at the start of each stage and within the long ones. Raises
    MissingEvidence, CalibrationSetTooSmall, FingerprintMismatch, InvalidConfig, PoolTooSmall, CannotRace,
    MissingCompletions, and what ``outcomes`` raises.
    """
    from selector import report as reporting
    from selector.racing.calibration import race_calibration
    from selector.racing.live import draw_calibration, draw_outcomes
    from selector.racing.selection import check_can_race, race_pool

    strategy = STRATEGIES[config.strategy]()
    race = race if race and race.mode != "off" else None
    if race:
        check_can_race(strategy)
    config = fit_empty_votes(pool_votes, calibration_votes, strategy, config)
    found = available_evidence(pool_votes, calibration_votes, strategy, embeddings, internals)
    check_evidence(strategy, found if outcomes is None else {*found, Need.VOTES})
    generation = check_fit(
        pool_votes,
        calibration_votes,
        embeddings,
        config,
        is_raced=race is not None,
        is_calibration_raced=race is not None and race.calibration,
    )
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

    groups = groups_of(calibration_votes, config)
    if race and race.calibration and calibration_outcomes is not None:

        def table_of(votes: Sequence[QuestionVotes]) -> VoteTable:
            return group_votes([], votes, config=config, grader=grader, policy=policy)[0].of(strategy.votes)

        calibration_votes = draw_calibration(
            calibration_votes, config, groups, table_of=table_of, outcomes=calibration_outcomes, progress=progress
        )
        calibration_table = table_of(calibration_votes)
    progress("calibrating and scoring", 0, 1)
    fit = race_calibration if race and race.calibration else calibrate
    calibration = fit(calibration_table, config, groups) if calibration_votes else None
    q_hat = q_hats_of(calibration, pool_votes, config)
    known = set(labeled)
    is_labeled = np.array([uid in known for uid in pool_table.uids], bool)
    barred = barred_reasons(pool_votes, calibration_votes, ineligible, known, config)

    def clusters_for(n_picks: int) -> tuple[NDArray[np.intp], Floats | None, dict[str, Any], int]:
        progress("clustering", 0, 1)
        labels, distances, clusters = clusters_of(pool_votes, embeddings, strategy, config, n_picks, clusterings)
        per_cluster = config.per_cluster or strategy.per_cluster or max(1, n_picks // clusters["n"])
        return labels, distances, clusters, per_cluster

    n_labeled = int(np.count_nonzero(is_labeled))
    raced_pool: RacedPool | None = None
    history: Sequence[Mapping[str, int]] = ()
    if race:
        labels, distances, clusters, per_cluster = clusters_for(config.budget - config.n_controls + n_labeled)
        is_barred = np.array([uid in barred for uid in pool_table.uids], bool)
        if outcomes is not None:
            pool_votes, history = draw_outcomes(
                pool_votes,
                config,
                q_hat=q_hat,
                labels=labels,
                distances=distances,
                is_barred=is_barred,
                is_labeled=is_labeled,
                per_cluster=per_cluster,
                source=strategy.votes,
                outcomes=outcomes,
                grader=grader,
                policy=policy,
                concurrency=race.concurrency or max(race.concurrency_for(len(pool_votes)), outcomes.fewest_at_once),
                progress=progress,
            )
            barred |= {uid: aside.code for uid, aside in outcomes.set_aside.items()}
            _no_calibration, pool_table = group_votes(
                pool_votes, [], config=config, grader=grader, policy=policy, progress=progress
            )
            pool_table = pool_table.of(strategy.votes)
        raced_pool = race_pool(
            pool_table,
            config,
            race,
            q_hat=q_hat,
            labels=labels,
            distances=distances,
            is_barred=is_barred,
            is_labeled=is_labeled,
            per_cluster=per_cluster,
            calibration=calibration_table,
            progress=progress,
        )
    scores = raced_pool.scores if raced_pool else score(pool_table, q_hat, config)
    evidence = Evidence(scores, embeddings, None if internals is None else internals.take(pool_table.uids))
    acquisition_scores = strategy.acquisition_scores(evidence, config.seed)
    n_readable = raced_pool.most_readable if raced_pool else scores.n_readable
    reasons = ineligible_reasons(pool_table, n_readable, barred, config)
    is_eligible = np.array([uid not in reasons for uid in pool_table.uids], bool)
    if raced_pool:
        n_picks, controls = config.budget, raced_pool.controls
    else:
        n_picks = strategy.n_picks(config.budget, int(np.count_nonzero(is_eligible)))
        controls = draw_controls(pool_table.uids, is_eligible, config.n_controls, config.seed)
        labels, distances, clusters, per_cluster = clusters_for(n_picks - len(controls) + n_labeled)
    may_be_picked = raced_pool.is_eligible if raced_pool else is_eligible
    progress("selecting", 0, 1)
    joint = choose_jointly(
        strategy, evidence, acquisition_scores, may_be_picked, is_labeled, controls, n_picks, config.seed
    )
    picks = select(
        scores,
        acquisition_scores,
        labels=labels,
        distances=distances,
        is_eligible=may_be_picked,
        per_cluster=per_cluster,
        config=config,
        n_picks=n_picks,
        is_labeled=is_labeled if known else None,
        joint=joint,
        controls=controls,
        is_raced=raced_pool is not None,
        n_drawn_from=raced_pool.n_eligible if raced_pool else None,
    )
    progress("checking", 0, 1)
    fingerprints: dict[str, object] = {
        "config": config.fingerprint(),
        "generation": generation,
        "embedder": embedder or None,
    }
    if internals is not None:
        fingerprints["internals"] = internals.fingerprint
    if race and race.mode == "probabilistic":
        fingerprints["race"] = asdict(race)
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
        labeled={"given": len(known), "in_pool": n_labeled},
        calibration=calibration,
        calibration_table=calibration_table,
        groups=groups,
        fingerprints=fingerprints,
        raced=raced_pool.raced if raced_pool else None,
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
        pool_votes=pool_votes,
        calibration_votes=calibration_votes,
        raced=raced_pool.raced if raced_pool else None,
        race_history=history,
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
            n_outcomes=config.n_outcomes if votes else None,
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


def clusters_of(
    votes: Sequence[QuestionVotes],
    embeddings: NDArray[np.float32] | None,
    strategy: Strategy,
    config: SelectionConfig,
    n_picks: int,
    store: ClusteringStore | None = None,
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
    labels, distances = cluster(embeddings, uids, n, config.seed, in_given_order=in_given_order, store=store)
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


def barred_reasons(
    pool: Sequence[QuestionVotes],
    calibration: Sequence[QuestionVotes],
    given: Mapping[str, str],
    labeled: Collection[str],
    config: SelectionConfig,
) -> dict[str, str]:
    """Return a reason code for every question that must not be picked, whatever its answers are."""
    from selector.rows import question_uid

    sealed = {question_uid(question.text, question.choices) for question in calibration if question.text}
    first_uid: dict[str, str] = {}
    reasons = {}
    for question in pool:
        identity = question_uid(question.text, question.choices) if question.text and config.exclude_repeats else ""
        if question.uid in given:
            reasons[question.uid] = given[question.uid]
        elif question.uid in labeled:
            reasons[question.uid] = "already_labeled"
        elif identity and identity in sealed:
            reasons[question.uid] = "in_calibration_set"
        elif identity and first_uid.setdefault(identity, question.uid) != question.uid:
            reasons[question.uid] = "repeats_another"
    return reasons


def ineligible_reasons(
    table: VoteTable, n_readable: NDArray[np.int64], barred: Mapping[str, str], config: SelectionConfig
) -> dict[str, str]:
    """Return a reason code for every question that must not be picked: those barred, and too few readable answers."""
    fewest = config.min_readable * table.codes.shape[1]
    too_few = {uid for uid, n in zip(table.uids, n_readable.tolist(), strict=True) if n < fewest}
    return {uid: barred.get(uid, "too_few_readable") for uid in table.uids if uid in barred or uid in too_few}
