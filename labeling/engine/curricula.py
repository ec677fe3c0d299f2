"""Curricula as the application runs them: opened from a row, moved by rewards, saved back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labeling.engine.errors import translated_errors
from selector.curriculum import CURRICULA

QUANTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class CurriculumKind:
    """A way to order questions during training, in words."""

    key: str
    title: str
    source: str
    provenance: str


@dataclass(frozen=True)
class BeliefSummary:
    """What is believed of all questions together; quantiles at 10, 50 and 90 %."""

    n_rollouts: int
    mean: float
    variance: float
    rate_quantiles: list[float]
    evidence_quantiles: list[float]


@dataclass(frozen=True)
class Belief:
    """Beta(a, b) of one question's success rate; ``last_step`` None before its first reward in training."""

    uid: str
    a: float
    b: float
    n_rollouts: int
    last_step: int | None

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def deviation(self) -> float:
        """Standard deviation of the belief."""
        n = self.a + self.b
        return float((self.a * self.b / (n * n * (n + 1))) ** 0.5)


def curriculum_kinds() -> list[CurriculumKind]:
    """Return all curricula, in the registry's order."""
    return [CurriculumKind(key, kind.title, kind.source, kind.provenance) for key, kind in CURRICULA.items()]


class OpenCurriculum:
    """A curriculum in memory, where its row left off. Raises EngineFailure for what cannot be."""

    def __init__(
        self,
        kind: str,
        uids: Sequence[str],
        *,
        seed: int,
        options: Mapping[str, Any],
        prior: Mapping[str, Sequence[float]],
        state: Mapping[str, Any] | None,
    ) -> None:
        with translated_errors():
            successes_and_failures = {uid: (float(counts[0]), float(counts[1])) for uid, counts in prior.items()}
            self._curriculum = CURRICULA[kind](uids, seed=seed, prior=successes_and_failures, **options)
            if state is not None:
                self._curriculum.load_state_dict(state)

    def propose(self, k: int) -> list[str]:
        """Return the uids of k different questions to roll out now."""
        with translated_errors():
            return self._curriculum.propose(k)

    def refill(self) -> tuple[list[str], list[str]]:
        """Return the uids to roll out in place of dropped ones, and those of the batch to train on so far."""
        with translated_errors():
            return self._curriculum.refill(), self._curriculum.kept()

    def observe(self, uid: str, rewards: Sequence[float | None], step: int) -> None:
        """Learn from the rewards of one question's rollouts."""
        with translated_errors():
            self._curriculum.observe(uid, rewards, step)

    def state(self) -> dict[str, Any]:
        """Return what ``state=`` goes on from."""
        return self._curriculum.state_dict()

    def summary(self) -> BeliefSummary:
        """Return what is believed of all questions together."""
        beliefs = self._curriculum.beliefs
        n = beliefs.a + beliefs.b
        return BeliefSummary(
            n_rollouts=int(beliefs.n_rollouts.sum()),
            mean=float(beliefs.mean.mean()),
            variance=float((beliefs.a * beliefs.b / (n * n * (n + 1))).mean()),
            rate_quantiles=np.quantile(beliefs.mean, QUANTILES).tolist(),
            evidence_quantiles=np.quantile(beliefs.n_rollouts, QUANTILES).tolist(),
        )

    def beliefs(self) -> list[Belief]:
        """Return what is believed of each question."""
        beliefs = self._curriculum.beliefs
        columns = (beliefs.a.tolist(), beliefs.b.tolist(), beliefs.n_rollouts.tolist(), beliefs.last_step.tolist())
        return [
            Belief(uid, a, b, n, step if step >= 0 else None)
            for uid, a, b, n, step in zip(beliefs.uids, *columns, strict=True)
        ]
