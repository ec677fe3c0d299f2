"""Compare strategies on one pool: every one chooses from the same recorded answers, and the choices are measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf, isnan
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selector.backtest import GROUP_SIZE, N_RANDOM, backtest, judge
from selector.comparing.costs import COST_MODEL, describe_cost, lengths_of
from selector.comparing.measures import (
    PROFILE_BINS,
    evenly,
    expected_clusters,
    expected_jaccard,
    kendall_matrix,
    mean_pairwise_distance,
    overlap_matrix,
    share_profile,
    spearman_matrix,
)
from selector.comparing.shared import Choice, SharedPool, with_truths
from selector.comparing.stability import stability
from selector.config import SelectionConfig
from selector.conformal import Floats, count_votes
from selector.errors import CalibrationSetTooSmall, InvalidConfig, MissingEvidence, PoolTooSmall, SelectorError
from selector.pipeline import Progress
from selector.report import describe_calibration, describe_pool, describe_strategy
from selector.strategies import STRATEGIES, Need, Strategy
from selector.votes import QuestionVotes

if TYPE_CHECKING:
    from selector.answers import AnswerPolicy, Grader
    from selector.internals import Internals

N_BOOTSTRAP = 100
CANNOT_RUN = (MissingEvidence, PoolTooSmall, CalibrationSetTooSmall, InvalidConfig)


def compare_strategies(
    pool_votes: Sequence[QuestionVotes],
    calibration_votes: Sequence[QuestionVotes],
    *,
    strategies: Sequence[str],
    config: SelectionConfig,
    embeddings: NDArray[np.float32] | None = None,
    internals: Internals | None = None,
    truths: Mapping[str, str | None] | None = None,
    grader: Grader | None = None,
    policy: AnswerPolicy | None = None,
    ineligible: Mapping[str, str] = MappingProxyType({}),
    n_bootstrap: int = N_BOOTSTRAP,
    group_size: int = GROUP_SIZE,
    n_random: int = N_RANDOM,
    progress: Progress = lambda stage, done, total: None,
) -> dict[str, Any]:
    """Return how the strategies differ on this pool, as plain JSON values.

    Answers are grouped once, and every strategy picks what `run_selection` would pick with the same ``config`` (whose
    own strategy does not matter). A strategy that takes more than the budget lists no ``picks``, only their number.
    ``embeddings`` [N, D] are aligned with ``pool_votes``. ``truths`` holds the right answers that are known, by uid
    (None: no answer given is right); where there are any, and recorded answers to hold against them, the picks are
    judged by them (``backtest``). A strategy that cannot run here is listed under ``not_run`` with the reason. The
    result is the same whatever order the rows are in. Raises InvalidConfig for a strategy that does not exist and
    FingerprintMismatch; where no strategy can run, what stopped the first.
    """
    check_strategies(strategies)
    if not any(question.outcome_answers or question.probe_answers for question in pool_votes):
        truths = None
    if n_bootstrap < 0:
        raise InvalidConfig("bootstrap", n_bootstrap, "a whole number from 0")
    pool = SharedPool(
        with_truths(pool_votes, truths),
        calibration_votes,
        config=config,
        embeddings=embeddings,
        internals=internals,
        grader=grader,
        policy=policy,
        ineligible=ineligible,
        progress=progress,
    )
    choices, not_run = _choices(pool, list(dict.fromkeys(strategies)), progress)
    progress("comparing", 0, 1)
    rows_of = {choice.strategy.key: choice.rows for choice in choices}
    known = np.array([uid in (truths or {}) for uid in pool.uids], bool)
    found: dict[str, Any] = {
        "budget": config.budget,
        "seed": config.seed,
        "settings": {name: value for name, value in config.to_json().items() if name != "strategy"},
        "pool": {**describe_pool(pool.scores(), pool.reasons()), "n_truths": int(np.count_nonzero(known))},
        "calibration": _calibration(pool),
        "strategies": [
            {
                **describe_strategy(choice.strategy, config.replace(strategy=choice.strategy.key)),
                "n_picks": len(choice.rows),
                "picks": [pool.uids[row] for row in choice.rows] if len(choice.rows) <= config.budget else None,
            }
            for choice in choices
        ],
        "not_run": not_run,
        "questions": _questions(pool, choices, known),
        "overlap": _overlap(pool, choices),
        "rank_correlation": _rank_correlation(pool, choices),
        "profiles": _profiles(pool, rows_of, known),
        "diversity": _diversity(pool, choices),
        "cost": _cost(pool, choices),
        "backtest": backtest(
            judge(pool.table, group_size),
            rows_of,
            is_known=known,
            is_eligible=pool.is_eligible(),
            budget=config.budget,
            seed=config.seed,
            n_random=n_random,
        )
        if known.any()
        else None,
    }
    progress("comparing", 1, 1)
    found["stability"] = stability(pool, choices, n_bootstrap=n_bootstrap, seed=config.seed, progress=progress)
    n_eligible = int(np.count_nonzero(pool.is_eligible()))
    n_picks = min(config.budget, n_eligible)
    found["stability"]["expected"] = expected_jaccard(n_eligible, n_picks, n_picks)
    return found


def check_strategies(keys: Sequence[str]) -> None:
    """Raise InvalidConfig unless there is at least one and all exist."""
    unknown = [key for key in keys if key not in STRATEGIES]
    if unknown or not keys:
        raise InvalidConfig("strategies", unknown[0] if unknown else None, f"some of {', '.join(STRATEGIES)}, or all")


def _choices(pool: SharedPool, keys: Sequence[str], progress: Progress) -> tuple[list[Choice], list[dict[str, Any]]]:
    choices: list[Choice] = []
    not_run: list[dict[str, Any]] = []
    first_error: SelectorError | None = None
    for done, key in enumerate(keys):
        progress("choosing", done, len(keys))
        try:
            choices.append(pool.choose(key))
        except CANNOT_RUN as error:
            first_error = first_error or error
            strategy = STRATEGIES[key]
            not_run.append(_identity(strategy) | {"code": error.code, "reason": str(error)})
    progress("choosing", len(keys), len(keys))
    if not choices and first_error is not None:
        raise first_error
    return choices, not_run


def _identity(strategy: type[Strategy]) -> dict[str, Any]:
    needs = [str(need) for need in Need if need in strategy.needs]
    return {"key": strategy.key, "title": strategy.title, "provenance": strategy.provenance, "needs": needs}


def _calibration(pool: SharedPool) -> dict[str, Any] | None:
    calibration = pool.calibration("all")
    if calibration is None:
        return None
    infinite = isinf(calibration.q_hat)
    described = describe_calibration(calibration, pool.scores(), pool.is_eligible(), pool.config)
    names = ("n", "n_absent", "smallest_attainable_alpha", "degenerate", "smallest_useful_alpha")
    return {
        "q_hat": None if infinite else calibration.q_hat,
        "q_hat_infinite": infinite,
        **{name: described[name] for name in names},
    }


def _majority_share(pool: SharedPool) -> Floats:
    """Share of a question's rollouts (probes where there are none) that gave its most frequent readable answer [N]."""
    table = pool.table
    source = table.of("outcomes") if table.codes.shape[1] > table.n_probes else table
    counts = count_votes(source.codes, unread="dropped").counts
    return np.asarray(counts.max(axis=1, initial=0) / max(source.codes.shape[1], 1), np.float64)


def _questions(pool: SharedPool, choices: Sequence[Choice], known: NDArray[np.bool_]) -> dict[str, dict[str, Any]]:
    """What is known of every question that a strategy picked, by uid; those that take everything do not count."""
    scores, shares = pool.scores(), _majority_share(pool)
    pass_rates = judge(pool.table).pass_rate
    chosen = [choice.rows for choice in choices if len(choice.rows) <= pool.config.budget]
    picked = sorted({int(row) for rows in chosen for row in rows}, key=lambda row: pool.uids[row])
    return {
        pool.uids[row]: {
            "set_size": int(scores.set_size[row]),
            "n_distinct": int(scores.n_distinct[row]),
            "majority_share": float(shares[row]),
            "pass_rate": float(pass_rates[row]) if known[row] else None,
        }
        for row in picked
    }


def _overlap(pool: SharedPool, choices: Sequence[Choice]) -> dict[str, Any]:
    is_picked = np.zeros((len(choices), len(pool)), bool)
    for i, choice in enumerate(choices):
        is_picked[i, choice.rows] = True
    sizes, n = is_picked.sum(axis=1).tolist(), int(pool.is_eligible().sum())
    n = max([n, *sizes])
    return {
        "keys": [choice.strategy.key for choice in choices],
        "jaccard": overlap_matrix(is_picked).tolist(),
        "expected": [[expected_jaccard(n, size, other) for other in sizes] for size in sizes],
    }


def _rank_correlation(pool: SharedPool, choices: Sequence[Choice]) -> dict[str, Any]:
    is_eligible = pool.is_eligible()
    scores = np.stack([choice.acquisition_scores[is_eligible] for choice in choices])
    return {
        "keys": [choice.strategy.key for choice in choices],
        "n": int(np.count_nonzero(is_eligible)),
        "spearman": _rows(spearman_matrix(scores)),
        "kendall": _rows(kendall_matrix(scores)),
    }


def _profiles(pool: SharedPool, rows_of: Mapping[str, NDArray[np.intp]], known: NDArray[np.bool_]) -> dict[str, Any]:
    eligible = np.flatnonzero(pool.is_eligible())
    groups = {"pool": eligible, **rows_of}
    set_size = None
    if pool.calibration_votes:
        sizes = pool.scores().set_size
        largest = int(sizes[eligible].max(initial=0))
        counts = {key: np.bincount(sizes[rows], minlength=largest + 1).tolist() for key, rows in groups.items()}
        longest = max(map(len, counts.values()))
        counts = {key: found + [0] * (longest - len(found)) for key, found in counts.items()}
        means = {key: float(np.mean(sizes[rows])) for key, rows in groups.items()}
        set_size = {"sizes": list(range(longest)), "counts": counts, "means": means}
    has_truths = bool(known.all())
    shares = judge(pool.table).pass_rate if has_truths else _majority_share(pool)
    return {
        "set_size": set_size,
        "share": {
            "kind": "pass_rate" if has_truths else "majority_share",
            "bins": list(PROFILE_BINS),
            "counts": {key: share_profile(shares[rows]) for key, rows in groups.items()},
            "means": {key: float(np.mean(shares[rows])) for key, rows in groups.items()},
        },
    }


def _diversity(pool: SharedPool, choices: Sequence[Choice]) -> dict[str, Any] | None:
    """Distances of embeddings and clusters covered, by clusters for CONST at this budget; None without embeddings."""
    has_clusters = any(question.cluster is not None for question in pool.pool_votes)
    if pool.embeddings is None and not has_clusters:
        return None
    labels, _, clusters = pool.clusters(STRATEGIES["const"](), pool.config.budget)
    eligible, vectors = np.flatnonzero(pool.is_eligible()), pool.embeddings
    sizes = np.bincount(labels[eligible])
    return {
        "n_clusters": clusters["n"],
        "cluster_source": clusters["source"],
        "pool_mean_distance": None if vectors is None else _mean_distance(vectors[eligible[evenly(len(eligible))]]),
        "expected_clusters": expected_clusters(sizes, pool.config.budget),
        "strategies": {
            choice.strategy.key: {
                "mean_distance": None if vectors is None else _mean_distance(vectors[choice.rows]),
                "n_clusters": len(np.unique(labels[choice.rows])),
            }
            for choice in choices
        },
    }


def _cost(pool: SharedPool, choices: Sequence[Choice]) -> dict[str, Any]:
    of_pool = lengths_of(pool.pool_votes)
    of_calibration = lengths_of(pool.calibration_votes) if pool.calibration_votes else None
    config, costs = pool.config, {}
    for choice in choices:
        cost = choice.strategy.cost(config.n_outcomes, config.n_probes)
        is_calibrated = Need.CALIBRATION in choice.strategy.needs
        costs[choice.strategy.key] = describe_cost(cost, of_pool, of_calibration if is_calibrated else None)
    sources = {"pool": of_pool.sources} | ({"calibration": of_calibration.sources} if of_calibration else {})
    return {"model": COST_MODEL, "lengths": sources, "strategies": costs}


def _mean_distance(vectors: NDArray[np.float32]) -> float | None:
    return _number(mean_pairwise_distance(vectors))


def _rows(matrix: Floats) -> list[list[float | None]]:
    return [[_number(value) for value in row] for row in matrix.tolist()]


def _number(value: float) -> float | None:
    return None if isnan(value) else value
