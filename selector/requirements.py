"""Whether the evidence that a strategy needs is there, and whether all of it goes together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from selector.config import SelectionConfig
from selector.errors import FingerprintMismatch, InvalidConfig, MissingEvidence
from selector.strategies import Need, Strategy
from selector.strategies.contract import HOW_TO_GET, INTERNAL_NEEDS
from selector.votes import QuestionVotes

if TYPE_CHECKING:
    from selector.internals import Internals


def check_fit(
    pool_votes: Sequence[QuestionVotes],
    calibration_votes: Sequence[QuestionVotes],
    embeddings: NDArray[np.float32] | None,
    config: SelectionConfig,
    *,
    is_raced: bool = False,
    is_calibration_raced: bool = False,
) -> str | None:
    """Return the generation fingerprint that all votes share, None where none says.

    In a race questions may lack outcomes, and calibration questions in one for the threshold. Raises InvalidConfig and
    FingerprintMismatch where they do not go together.
    """
    _check_embeddings(embeddings, len(pool_votes))
    raced = [*(["pool"] if is_raced else []), *(["calibration"] if is_calibration_raced else [])]
    _check_counts(pool_votes, calibration_votes, config, may_lack_outcomes=raced)
    return _check_fingerprints(pool_votes, calibration_votes)


def available_evidence(
    pool: Sequence[QuestionVotes],
    calibration: Sequence[QuestionVotes],
    strategy: Strategy | type[Strategy],
    embeddings: NDArray[np.float32] | None,
    internals: Internals | None,
) -> set[Need]:
    """Return the kinds of evidence that are there for the strategy, of the kind of answers it reads."""
    found = set()
    if calibration:
        found.add(Need.CALIBRATION)
    first = pool[0] if pool else QuestionVotes("", (), ())
    if (first.outcome_answers and strategy.votes != "probes") or (first.probe_answers and strategy.votes != "outcomes"):
        found |= {Need.VOTES, Need.COMPLETE_VOTES}
    if embeddings is not None or (strategy.uses_clusters and first.cluster is not None):
        found.add(Need.EMBEDDINGS)
    return found | INTERNAL_NEEDS if internals is not None else found


def check_evidence(strategy: Strategy | type[Strategy], found: Collection[Need]) -> None:
    """Raise MissingEvidence for the first kind of evidence that the strategy needs and does not find."""
    for need in Need:
        if need in strategy.needs and need not in found:
            raise MissingEvidence(strategy=strategy.key, need=str(need), how_to_get=HOW_TO_GET[need])


def fit_empty_votes(
    pool: Sequence[QuestionVotes], calibration: Sequence[QuestionVotes], strategy: Strategy, config: SelectionConfig
) -> SelectionConfig:
    """Return settings that say no answers were asked for, where a strategy that reads none was given none."""
    if strategy.needs_votes() or calibration or any(each.outcome_answers or each.probe_answers for each in pool):
        return config
    return config.replace(n_outcomes=0, n_probes=0)


def _check_embeddings(embeddings: NDArray[np.float32] | None, n_questions: int) -> None:
    if embeddings is None:
        return
    if embeddings.ndim != 2 or len(embeddings) != n_questions:
        raise InvalidConfig(
            "embeddings", f"an array of shape {embeddings.shape}", f"{n_questions} rows, one a question"
        )
    if not np.isfinite(embeddings).all():
        raise InvalidConfig("embeddings", "an array with NaN or infinity", "finite numbers")


def _check_counts(
    pool: Sequence[QuestionVotes],
    calibration: Sequence[QuestionVotes],
    config: SelectionConfig,
    *,
    may_lack_outcomes: Collection[str] = (),
) -> None:
    """Raise InvalidConfig unless every question has the configured numbers of answers."""
    for where, votes in (("pool", pool), ("calibration", calibration)):
        for question in votes:
            found = len(question.outcome_answers), len(question.probe_answers)
            if where in may_lack_outcomes:
                found = max(found[0], config.n_outcomes), found[1]
            if found != (config.n_outcomes, config.n_probes):
                raise InvalidConfig(
                    "the number of answers",
                    f"{found[0]} outcomes and {found[1]} probes for {where} question {question.uid}",
                    f"{config.n_outcomes} and {config.n_probes}",
                )


def _check_fingerprints(pool: Sequence[QuestionVotes], calibration: Sequence[QuestionVotes]) -> str | None:
    """Return the generation fingerprint all share, None where none says. Raises FingerprintMismatch."""
    of_pool = sorted({question.fingerprint or "unknown" for question in pool})
    of_calibration = sorted({question.fingerprint or "unknown" for question in calibration})
    if len(of_pool) > 1 or (calibration and of_pool != of_calibration):
        raise FingerprintMismatch(pool=", ".join(of_pool), calibration=", ".join(of_calibration))
    return None if of_pool == ["unknown"] else of_pool[0]
