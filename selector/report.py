"""What a selection run says about itself: the report's parts, as plain JSON values."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import isinf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selector.config import SelectionConfig
from selector.conformal import (
    check_coverage,
    compare_questions,
    is_degenerate,
    share_of_full_sets,
    smallest_useful_alpha,
)
from selector.picking import Pick, score
from selector.pipeline import Calibration
from selector.racing.selection import Raced
from selector.seeds import question_rng
from selector.strategies import Need, PoolScores, Strategy
from selector.votes import QuestionVotes, VoteTable

CHOSEN_AFTER = "chosen after seeing the data"
WEAK_SHARE = 0.25  # of calibration truths never generated, or of answers unread: from here on a warning says so


def describe_calibration(
    calibration: Calibration, scores: PoolScores | None, is_counted: NDArray[np.bool_], config: SelectionConfig
) -> dict[str, object]:
    """Return the threshold's evidence: sizes, whether it is degenerate and what would not be, the coverage check.

    Degenerate: at least half of the eligible questions with two or more answers have every answer in their set. It is
    counted over the questions of ``scores`` [N] that ``is_counted`` [N], all of whose answers are there; None: nowhere
    are there such questions. What needs all calibration answers is not available where they were raced.
    """
    found: dict[str, object] = {
        "n": calibration.n,
        "n_absent": calibration.n_absent,
        "n_dropped": calibration.n_dropped,
        "n_unread": calibration.n_unread,
        "smallest_attainable_alpha": float(calibration.smallest_attainable_alpha),
    }
    if calibration.n_drawn is not None:
        found["raced"] = True
        found |= dict.fromkeys(("n_absent", "n_unread", "smallest_attainable_alpha"))
        reason = "the calibration was raced: its questions have not all their answers"
        found["coverage_check"] = {"available": False, "reason": reason}
    else:
        found["coverage_check"] = check_coverage(
            calibration.nonconformity_scores,
            calibration.is_absent,
            config.alpha_fraction,
            quantile=config.quantile,
            rng=question_rng(config.seed, "coverage_check", ""),
        )
    found |= {"degenerate": None, "share_of_full_sets": None, "smallest_useful_alpha": None}
    if scores is None:
        return found
    is_counted = is_counted & (scores.n_distinct >= 2)
    worst, q_hat = scores.worst_score[is_counted], scores.q_hat[is_counted]
    found["degenerate"] = degenerate = is_degenerate(worst, q_hat)
    found["share_of_full_sets"] = share_of_full_sets(worst, q_hat)
    if degenerate and config.groups == "none" and calibration.n_drawn is None:
        useful = smallest_useful_alpha(
            calibration.nonconformity_scores, worst, above=config.alpha_fraction, quantile=config.quantile
        )
        found["smallest_useful_alpha"] = None if useful is None else {"alpha": useful, "note": CHOSEN_AFTER}
    return found


def describe_selection(
    strategy: Strategy,
    config: SelectionConfig,
    *,
    scores: PoolScores,
    is_eligible: NDArray[np.bool_],
    reasons: Mapping[str, str],
    picks: Sequence[Pick],
    clusters: Mapping[str, object],
    labeled: Mapping[str, int],
    calibration: Calibration | None,
    calibration_table: VoteTable,
    groups: Sequence[str] | None,
    fingerprints: Mapping[str, object],
    raced: Raced | None = None,
) -> dict[str, object]:
    """Return the report of a selection: what was chosen and how, what it rests on, and what to know before trusting it.

    ``groups`` are those of the calibration questions. Without a calibration set whatever rests on it is None. A race
    leaves answers undrawn, mostly of questions that are worth little: what would be told of the whole pool by all its
    answers is then told by the calibration questions, or by the probes.
    """
    described, comparison = None, None
    if calibration is not None:
        calibration_scores = score(calibration_table, calibration.q_hat, config)
        if raced is None:
            described = describe_calibration(calibration, scores, is_eligible, config)
            comparison = compare(scores, calibration_scores)
        else:
            everything = np.ones(len(calibration_table), bool)
            if groups is not None:
                calibration_scores = score(calibration_table, calibration.q_hats(groups), config)
            whole = calibration_scores if calibration.n_drawn is None else None
            described = {**describe_calibration(calibration, whole, everything, config), "measured_on": "calibration"}
            if scores.table.n_probes:
                probes = (score(table.of("probes"), 0.0, config) for table in (scores.table, calibration_table))
                comparison = {**compare(*probes), "measured_on": "probes"}
    q_hat_infinite = calibration is not None and isinf(calibration.q_hat)
    report: dict[str, object] = {
        "q_hat": None if calibration is None or q_hat_infinite else calibration.q_hat,
        "q_hat_infinite": q_hat_infinite,
        "alpha": float(config.alpha_fraction),
        "preset": config.preset_name,
        "strategy": describe_strategy(strategy, config),
        "calibration": described,
        "set_size_histogram": set_size_histogram(scores.set_size[slice(None) if raced is None else raced.is_complete])
        if calibration
        else {},
        "pool": describe_pool(scores, reasons, raced),
        "clusters": clusters,
        "controls": describe_controls(picks),
        "labeled": labeled,
        "comparison": comparison,
        "groups": calibration and describe_groups(calibration, groups),
        "settings": config.to_json(),
        "fingerprint": hash_of(fingerprints),
        "fingerprints": fingerprints,
    }
    report["warnings"] = warnings_of(report, calibration, config)
    return report


def describe_strategy(strategy: Strategy, config: SelectionConfig) -> dict[str, object]:
    """Return what chose the questions, whether its formula is public, what it needs, and what a question costs it."""
    return {
        "key": strategy.key,
        "title": strategy.title,
        "provenance": strategy.provenance,
        "needs": [str(need) for need in Need if need in strategy.needs],
        "cost": asdict(strategy.cost(config.n_outcomes, config.n_probes)),
    }


def describe_controls(picks: Sequence[Pick]) -> dict[str, object]:
    """Return the questions drawn at random, and the chance that every eligible question had of being drawn."""
    drawn = [pick for pick in picks if pick.taken_by == "control"]
    probability = drawn[0].inclusion_probability if drawn else None
    return {"n": len(drawn), "inclusion_probability": probability, "ids": [pick.uid for pick in drawn]}


def compare(pool: PoolScores, calibration: PoolScores) -> dict[str, object]:
    """Return the label-free comparison of pool and calibration questions."""
    names = ("max_frequency", "entropy", "unread_share")
    return compare_questions(
        {name: getattr(pool, name) for name in names}, {name: getattr(calibration, name) for name in names}
    )


def describe_groups(calibration: Calibration, groups: Sequence[str] | None) -> dict[str, object] | None:
    """Return the threshold and the size of each group, "other" for those too small for one of their own."""
    if groups is None:
        return None
    sizes = Counter(group if group in calibration.group_q_hats and group else "other" for group in groups)
    return {
        name: {
            "n": sizes[name],
            "q_hat": None if isinf(q_hat) else q_hat,
            "q_hat_infinite": isinf(q_hat),
        }
        for group, q_hat in sorted(calibration.group_q_hats.items())
        for name in [group or "other"]
    }


def set_size_histogram(set_size: NDArray[np.int64]) -> dict[str, int]:
    """Return how many questions have a set of each size, for the sizes that occur."""
    sizes, counts = np.unique(set_size, return_counts=True)
    return {str(size): count for size, count in zip(sizes.tolist(), counts.tolist(), strict=True)}


def describe_pool(scores: PoolScores, reasons: Mapping[str, str], raced: Raced | None = None) -> dict[str, object]:
    """Return the pool's size and which questions could not be picked, by reason, named and counted.

    In a race ``n_eligible`` counts those not known to be ineligible, and unread shares are of the answers drawn.
    """
    ineligible: dict[str, list[str]] = {}
    for uid, reason in sorted(reasons.items()):
        ineligible.setdefault(reason, []).append(uid)
    unread_share = float(np.mean(scores.unread_share))
    if raced is not None:
        n_drawn = int(np.sum(scores.table.n_probes + raced.n_drawn))
        unread_share = 1 - int(np.sum(scores.n_readable)) / max(n_drawn, 1)
    return {
        "n": len(scores.table),
        "n_eligible": len(scores.table) - len(reasons),
        "unread_share": unread_share,
        "ineligible": {reason: {"n": len(uids), "ids": uids} for reason, uids in sorted(ineligible.items())},
    }


def warnings_of(
    report: Mapping[str, Any], calibration: Calibration | None, config: SelectionConfig
) -> list[dict[str, str]]:
    """Return what a reader of the report must know before trusting it: a code and a sentence each."""
    found: list[dict[str, str]] = []

    def warn(code: str, message: str) -> None:
        found.append({"code": code, "message": message})

    pool = report["pool"]
    if calibration is not None:
        _warn_of_calibration(report, calibration, config, warn)
    if pool["unread_share"] >= WEAK_SHARE:
        warn(
            "many_unread",
            f"No answer could be read from {pool['unread_share']:.0%} of the pool's completions. "
            "A larger token limit or a model that boxes its answers would help.",
        )
    if calibration is not None:
        _warn_of_likeness(report, calibration, warn)
    return found


def _warn_of_calibration(
    report: Mapping[str, Any], calibration: Calibration, config: SelectionConfig, warn: Callable[[str, str], None]
) -> None:
    described = report["calibration"]
    smallest = float(calibration.smallest_attainable_alpha)
    if isinf(calibration.q_hat) and calibration.n_drawn is not None:
        warn(
            "q_hat_infinite",
            f"At alpha {config.alpha} the threshold is infinite: too many calibration truths were never generated, so "
            "the wanted coverage cannot be had. The calibration was raced, so it is not known which alpha could be.",
        )
    elif isinf(calibration.q_hat):
        warn(
            "q_hat_infinite",
            f"At alpha {config.alpha} the threshold is infinite: {calibration.n_absent} of {calibration.n} calibration "
            f"truths were never generated, so the wanted coverage cannot be had. "
            f"The smallest attainable alpha is {smallest:.4g}.",
        )
    if described["degenerate"]:
        useful = described["smallest_useful_alpha"]
        hint = f" From alpha {useful['alpha']} on it would not be ({CHOSEN_AFTER})." if useful else ""
        warn(
            "degenerate_calibration",
            f"The calibration is degenerate: {described['share_of_full_sets']:.0%} of the eligible questions with two "
            f"or more answers have every answer in their prediction set, so set size only counts distinct answers "
            f"({calibration.n_absent} absent truths, smallest attainable alpha {smallest:.4g}).{hint}",
        )
    if calibration.n_drawn is None and calibration.n_absent >= WEAK_SHARE * calibration.n:
        n_unread = calibration.n_unread
        unread = f" ({n_unread} of them without any readable answer)" if n_unread else ""
        warn(
            "weak_model",
            f"The model never gave the right answer to {calibration.n_absent} of {calibration.n} calibration "
            f"questions{unread}: it is weak for questions like these, and no alpha below {smallest:.4g} can be had.",
        )


def _warn_of_likeness(report: Mapping[str, Any], calibration: Calibration, warn: Callable[[str, str], None]) -> None:
    comparison = report["comparison"]
    if comparison is not None and not comparison["alike"]:
        warn(
            "pool_unlike_calibration",
            f"Pool and calibration do not look alike ({', '.join(comparison['unlike'])}), "
            "so the coverage of the calibration set may not carry over.",
        )
    coverage = report["calibration"]["coverage_check"]
    if coverage["available"] and coverage["below_band"] and not isinf(calibration.q_hat):
        warn(
            "coverage_below_band",
            f"Refitted on half of the calibration set, the sets cover {coverage['coverage']:.1%} of the other half; "
            f"at least {coverage['band'][0]:.1%} was to be expected.",
        )


def count_tokens(votes: Sequence[QuestionVotes]) -> dict[str, int]:
    """Return the tokens that recorded votes say they cost, by stage; empty where they do not say."""
    total: Counter[str] = Counter()
    for question in votes:
        if question.prompt_tokens is not None:
            total["prompt"] += question.prompt_tokens
        if question.trajectory_tokens is not None:
            total["trajectories"] += question.trajectory_tokens
        if question.outcome_tokens is not None:
            total["outcomes"] += sum(question.outcome_tokens)
    return dict(total)


def hash_of(parts: Mapping[str, object]) -> str:
    """Return a short stable hash of named parts."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]
