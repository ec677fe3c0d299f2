"""Curricula as the application runs them: opened from a row, moved by rewards, saved back, told as a story."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labeling.engine.errors import translated_errors
from labeling.models import Curriculum
from selector.curriculum import CURRICULA, RewardEvent
from selector.curriculum.history import Moment, Standing, TrainingHistory

__all__ = [
    "CurriculumKind",
    "Moment",
    "OpenCurriculum",
    "QuestionStanding",
    "Standing",
    "Story",
    "StoryReader",
    "curriculum_kinds",
    "fresh_curriculum",
    "open_curriculum",
    "steps_a_moment",
]

MOST_MOMENTS = 200  # points of a curve


@dataclass(frozen=True)
class CurriculumKind:
    """A way to order questions during training, in words."""

    key: str
    title: str
    source: str
    provenance: str


@dataclass(frozen=True)
class QuestionStanding:
    """One question after its rewards: where it stands, and the belief Beta(a, b) of its success rate."""

    uid: str
    standing: Standing
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


@dataclass(frozen=True)
class Story:
    """How a training went: beliefs over time, and every question as it stands now."""

    moments: list[Moment]
    questions: list[QuestionStanding]


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

    def history(self) -> TrainingHistory:
        """Return what events are told to; the curriculum must be fresh and learns from them."""
        return TrainingHistory(self._curriculum)


class StoryReader:
    """Reads a training's events from the first to the newest, as far as there is time; pickled, it goes on later.

    ``last_id`` and ``n_read`` say how far it is; a moment is told whenever ``every`` steps are over.
    """

    def __init__(self, row: Curriculum, *, every: int) -> None:
        self.last_id = self.n_read = 0
        self._every = every
        self._history = fresh_curriculum(row).history()
        self._told: list[Moment] = []

    def read(self, events: Iterable[tuple[int, str, Sequence[float | None], int]], *, until: float | None) -> None:
        """Read (pk, uid, rewards, step) of events in the order of their pk, until a time of the monotonic clock."""
        for pk, uid, rewards, step in events:
            newest = self._history.newest_step
            if newest is not None and step // self._every > newest // self._every:
                self._told.append(self._history.moment())
            self._history.add(RewardEvent(uid, tuple(rewards), step, str(pk)))
            self.last_id, self.n_read = pk, self.n_read + 1
            if until is not None and time.monotonic() >= until:
                return

    def story(self) -> Story:
        """Tell what was read so far."""
        beliefs, standings = self._history.curriculum.beliefs, self._history.standings()
        columns = (beliefs.a.tolist(), beliefs.b.tolist(), beliefs.n_rollouts.tolist(), beliefs.last_step.tolist())
        questions = [
            QuestionStanding(uid, standings[uid], a, b, n, last_step if last_step >= 0 else None)
            for uid, a, b, n, last_step in zip(beliefs.uids, *columns, strict=True)
        ]
        return Story([*self._told, *([self._history.moment(is_over=False)] if self.n_read else [])], questions)


def steps_a_moment(newest_step: int) -> int:
    """Return after how many steps a moment is told: so many that few enough are, and seldom another number."""
    every = 1
    while newest_step // every >= MOST_MOMENTS:
        every *= 2
    return every


def open_curriculum(row: Curriculum) -> OpenCurriculum:
    """Return the row's curriculum in memory, with every reward that was taken in."""
    return _in_memory(row, row.state)


def fresh_curriculum(row: Curriculum) -> OpenCurriculum:
    """Return the row's curriculum as it was before any reward."""
    return _in_memory(row, None)


def _in_memory(row: Curriculum, state: Mapping[str, Any] | None) -> OpenCurriculum:
    uids = [question["uid"] for question in row.snapshot.rows]
    return OpenCurriculum(row.kind, uids, seed=row.seed, options=row.options, prior=row.prior, state=state)
