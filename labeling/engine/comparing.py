"""From a run's votes to a comparison of strategies, through the engine; and what a comparison may be asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeling.engine.answers import grader, policy_of
from labeling.engine.errors import translated_errors
from labeling.models import Comparison
from selector.comparing.comparison import check_strategies as check_keys
from selector.comparing.comparison import compare_strategies
from selector.comparing.measures import expected_jaccard, spearman_matrix
from selector.config import SelectionConfig
from selector.internals import Internals
from selector.strategies import STRATEGIES
from selector.votes import QuestionVotes


def check_strategies(keys: Sequence[str]) -> None:
    """Raise EngineFailure unless there is at least one strategy and all exist."""
    with translated_errors():
        check_keys(keys)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's correlation of two scores of the same questions; None where one of them is constant."""
    found = float(spearman_matrix(np.array([first, second], np.float64))[0, 1])
    return None if np.isnan(found) else found


def overlap_by_chance(n_questions: int, n_first: int, n_second: int) -> float:
    """The mean Jaccard index of two random selections of these sizes."""
    return expected_jaccard(n_questions, n_first, n_second)


def listed_strategies() -> list[tuple[str, str]]:
    """Key and title of every strategy; the title says where the method is a reconstruction."""
    return [
        (key, strategy.title + (" (reconstruction)" if is_unmarked(strategy) else ""))
        for key, strategy in STRATEGIES.items()
    ]


def is_unmarked(strategy: Any) -> bool:
    """Whether a method is a reconstruction whose title does not say so."""
    return strategy.provenance == "reconstruction" and "reconstruction" not in strategy.title.lower()


def compare(
    comparison: Comparison,
    pool_votes: Sequence[QuestionVotes],
    calibration_votes: Sequence[QuestionVotes],
    *,
    embeddings: NDArray[np.float32] | None,
    internals: Internals | None,
    truths: Mapping[str, str | None],
    progress: Callable[[str, int, int], None],
) -> dict[str, Any]:
    """Compare the strategies on the questions of the comparison's run, by the run's settings. Raises EngineFailure.

    ``embeddings`` [N, D] are aligned with ``pool_votes``; ``internals`` are by uid.
    Questions that already have labels count like all others.
    """
    config = {**comparison.run.config, "budget": comparison.budget}
    with translated_errors():
        return compare_strategies(
            pool_votes,
            calibration_votes,
            strategies=comparison.strategies,
            config=SelectionConfig.from_json(config),
            embeddings=embeddings,
            internals=internals,
            truths=truths,
            grader=grader(),
            policy=policy_of(comparison.run.pool),
            n_bootstrap=comparison.n_bootstrap,
            progress=progress,
        )
