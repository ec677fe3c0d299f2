"""What a curriculum is: during training it says which questions to roll out next, and learns from their rewards."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from selector.curriculum.beliefs import Beliefs, is_whole
from selector.errors import CurriculumMismatch, InvalidConfig
from selector.seeds import question_rng

STATE_VERSION = 1
CACHE_LIMIT = 100_000  # scores kept by (a, b)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every curriculum can be told; subclasses add their own.

    ``lam`` in [0, 1]: how much of earlier evidence is kept at each new step of a question (1 forgets nothing);
    ``prior_weight`` >= 0: what a stored rollout counts for, against one of the training; ``success_at``: a reward of
    at least this is a success. Raises InvalidConfig.
    """

    lam: float = 1.0
    prior_weight: float = 1.0
    success_at: float = 1.0

    def __post_init__(self) -> None:
        self.check_number("lam", low=0, high=1)
        self.check_number("prior_weight", low=0)
        self.check_number("success_at")

    def check_number(self, name: str, *, low: float = -math.inf, high: float = math.inf) -> None:
        """Raise InvalidConfig unless the setting is a finite number in [low, high]."""
        value: object = getattr(self, name)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not low <= value <= high
            or abs(value) == math.inf
        ):
            raise InvalidConfig(name, value, f"a number{_between(low, high)}")

    def check_whole(self, name: str, *, low: int) -> None:
        """Raise InvalidConfig unless the setting is a whole number of at least ``low``."""
        value = getattr(self, name)
        if not is_whole(value, low=low):
            raise InvalidConfig(name, value, f"a whole number of at least {low}")


@dataclass(frozen=True, kw_only=True)
class CandidateSettings(Settings):
    """Settings of curricula that look at a uniform draw of the questions: ``candidate_ratio`` times as many as asked
    for, or all of them where it is None.
    """

    candidate_ratio: int | None = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidate_ratio is not None:
            self.check_whole("candidate_ratio", low=1)


class Curriculum(ABC):
    """Questions to roll out at each step of a training, chosen by what earlier rollouts showed.

    ``uids``: the questions, in any order; ``seed`` and the calls made decide everything that is random; ``prior``:
    stored rollouts, (successes, failures) by uid; the rest are the fields of ``Settings``. Raises InvalidConfig and
    UnknownQuestion. The loop of a trainer, the same for all::

        batch = curriculum.propose(k)
        while batch:
            for uid in batch:
                curriculum.observe(uid, rewards_of_its_rollouts, step)
            batch = curriculum.refill()
        train_on(curriculum.kept())
    """

    key: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    provenance: ClassVar[str] = "published"
    settings_class: ClassVar[type[Settings]] = Settings

    def __init__(
        self,
        uids: Iterable[str],
        *,
        seed: int = 0,
        prior: Mapping[str, tuple[float, float]] | None = None,
        **settings: Any,
    ) -> None:
        names = [field.name for field in fields(self.settings_class)]
        for name in settings:
            if name not in names:
                raise InvalidConfig(f"a setting of {self.key}", name, f"one of {', '.join(names)}")
        self.settings = self.settings_class(**settings)
        self.beliefs = Beliefs(list(uids))
        self.beliefs.start_from(prior or {}, self.settings.prior_weight)
        self.rng = question_rng(seed, f"curriculum {self.key}")
        self._batch: list[str] = []

    @abstractmethod
    def choose(self, k: int) -> NDArray[np.intp]:
        """Return the rows of k different questions."""

    def propose(self, k: int) -> list[str]:
        """Return the uids of k different questions to roll out now: a new batch.

        Raises InvalidConfig unless 1 <= k <= number of questions.
        """
        n = len(self.beliefs.uids)
        if not is_whole(k, low=1) or k > n:
            raise InvalidConfig("the number of questions to propose", k, f"a whole number from 1 to {n}")
        self._batch = [self.beliefs.uids[row] for row in self.choose(int(k)).tolist()]
        return list(self._batch)

    def observe(self, uid: str, rewards: Sequence[float | None], step: int) -> None:
        """Learn from the rewards of a question's rollouts at a step; any number of calls, any question at any time.

        A missing reward (None or NaN) is left out and counted. Raises UnknownQuestion and InvalidConfig.
        """
        settings = self.settings
        self.beliefs.observe(uid, rewards, step, lam=settings.lam, success_at=settings.success_at)

    def refill(self) -> list[str]:
        """Return the uids to roll out in place of questions that the curriculum dropped from the batch: here none."""
        return []

    def kept(self) -> list[str]:
        """Return the uids of the current batch that are to be trained on: here all."""
        return list(self._batch)

    @property
    def rollouts_spent(self) -> int:
        """Rewards reported since the start, with those that were missing and those of questions dropped again."""
        return int(self.beliefs.n_rollouts.sum()) + self.beliefs.n_missing

    def draw_candidates(self, k: int) -> NDArray[np.intp]:
        """Return rows in a uniformly random order, so that a stable sort decides ties at random."""
        ratio = getattr(self.settings, "candidate_ratio", None)
        return self.rng.permutation(len(self.beliefs.uids))[: None if ratio is None else ratio * k]

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next calls depend on, as plain JSON values."""
        return {
            "version": STATE_VERSION,
            "curriculum": self.key,
            "settings": asdict(self.settings),
            "generator": _to_text(self.rng.bit_generator.state),
            "batch": list(self._batch),
            "beliefs": self.beliefs.to_json(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state as if nothing had happened; questions added since then start blank or from their
        prior. Raises CurriculumMismatch for the state of another curriculum, other settings or other questions.
        """
        wanted = {"version": STATE_VERSION, "curriculum": self.key, "settings": asdict(self.settings)}
        differences = [
            f"{name} {state.get(name)!r}, here {value!r}" for name, value in wanted.items() if state.get(name) != value
        ]
        if differences:
            raise CurriculumMismatch(differences="; ".join(differences))
        self.beliefs.load_json(state["beliefs"])
        self.rng.bit_generator.state = _from_text(state["generator"])
        self._batch = list(state["batch"])


class ScoredCurriculum(Curriculum):
    """A curriculum that takes the best of a uniform draw of candidates, by a score of each belief; ties at random.

    Scores are kept, by question and by (a, b); only those of questions with new rewards are computed again.
    """

    settings_class = CandidateSettings

    def __init__(
        self,
        uids: Iterable[str],
        *,
        seed: int = 0,
        prior: Mapping[str, tuple[float, float]] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(uids, seed=seed, prior=prior, **settings)
        self._scores = np.zeros(len(self.beliefs.uids))
        self._stale = set(range(len(self.beliefs.uids)))
        self._known: dict[tuple[float, float], float] = {}

    @abstractmethod
    def score(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what rolling out a question of belief Beta(a, b) is worth, higher first; [U] to [U]."""

    def scores(self) -> NDArray[np.float64]:
        """Return the score of every question [N], in the order of ``beliefs.uids``."""
        rows = sorted(self._stale)
        pairs = list(zip(self.beliefs.a[rows].tolist(), self.beliefs.b[rows].tolist(), strict=True))
        if len(self._known) > CACHE_LIMIT:
            self._known.clear()
        if new := [pair for pair in dict.fromkeys(pairs) if pair not in self._known]:
            columns = np.array(new).T
            self._known.update(zip(new, self.score(columns[0], columns[1]).tolist(), strict=True))
        self._scores[rows] = [self._known[pair] for pair in pairs]
        self._stale.clear()
        return self._scores

    def observe(self, uid: str, rewards: Sequence[float | None], step: int) -> None:
        """Learn from rewards; see ``Curriculum.observe``. The question's score is computed again at the next choice."""
        super().observe(uid, rewards, step)
        self._stale.add(self.beliefs.row(uid))

    def choose(self, k: int) -> NDArray[np.intp]:
        """Return the k rows of highest score among the candidates, best first."""
        candidates = self.draw_candidates(k)
        return candidates[best_first(self.scores()[candidates], k)]

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state; see ``Curriculum.load_state_dict``."""
        super().load_state_dict(state)
        self._stale = set(range(len(self.beliefs.uids)))


def best_first(scores: NDArray[np.float64], k: int) -> NDArray[np.intp]:
    """Return the places of the k highest scores, highest first; among equals, the earlier place first.

    The first k of a stable sort, without sorting all; the same on every machine.
    """
    bar = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = np.flatnonzero(scores > bar)
    at_bar = np.flatnonzero(scores == bar)[: k - len(above)]
    return np.concatenate([above[np.argsort(-scores[above], kind="stable")], at_bar])


def _between(low: float, high: float) -> str:
    if math.isfinite(high):
        return f" from {low:g} to {high:g}"
    return f" of at least {low:g}" if math.isfinite(low) else ""


def _to_text(state: Any) -> Any:
    """Return a generator's state with its whole numbers as text: they are longer than other languages' numbers."""
    if isinstance(state, Mapping):
        return {name: _to_text(value) for name, value in state.items()}
    return str(state) if isinstance(state, int) else state


def _from_text(state: Any) -> Any:
    if isinstance(state, Mapping):
        return {name: value if name == "bit_generator" else _from_text(value) for name, value in state.items()}
    return int(state)
