"""How a training went, read from its reward events: beliefs over time, and where each question stands."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from selector.curriculum.contract import Curriculum
from selector.curriculum.log import RewardEvent
from selector.errors import InvalidConfig

WINDOW = 16  # newest rewards of a question that its standing is judged by
DONE, STUCK, FORGOTTEN = 0.9, 0.1, 0.75


class Standing(StrEnum):
    """Where a question stands, by its newest 16 rewards (at least 8 of them, else it counts as learning).

    ``done``: at least 90 % right; ``stuck``: at most 10 %; ``forgotten``: was done, now below 75 %; ``learning``:
    anything else; ``untried``: no reward yet. The shares are this project's, to be read as signposts and not as tests.
    """

    UNTRIED = "untried"
    LEARNING = "learning"
    DONE = "done"
    STUCK = "stuck"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True)
class Moment:
    """What was believed after a step, over all N questions of the curriculum.

    ``n_rollouts``: rewards so far; ``share_tried``: of questions; ``mean``: mean believed success rate; ``spread``:
    mean standard deviation of the beliefs, which falls as evidence comes in; ``useful``: share of the groups since the
    moment before whose rewards differ (None without groups); ``evidence``: rewards a question, as minimum, quartiles
    and maximum; ``standings``: number of questions at each Standing.
    """

    step: int
    n_rollouts: int
    share_tried: float
    mean: float
    spread: float
    useful: float | None
    evidence: tuple[float, float, float, float, float]
    standings: dict[Standing, int]


class _Record:
    """The newest rewards of one question, and what they make of it."""

    def __init__(self) -> None:
        self.newest: deque[bool] = deque(maxlen=WINDOW)
        self.n_right = 0
        self.was_done = False
        self.standing = Standing.UNTRIED

    def add(self, is_right: bool) -> None:
        if len(self.newest) == WINDOW:
            self.n_right -= self.newest[0]
        self.newest.append(is_right)
        self.n_right += is_right
        self.standing = self._judged()
        self.was_done = self.was_done or self.standing is Standing.DONE

    def _judged(self) -> Standing:
        if len(self.newest) < WINDOW // 2:
            return Standing.LEARNING
        share = self.n_right / len(self.newest)
        if share >= DONE:
            return Standing.DONE
        if self.was_done and share < FORGOTTEN:
            return Standing.FORGOTTEN
        return Standing.STUCK if share <= STUCK else Standing.LEARNING


class TrainingHistory:
    """Feeds a fresh curriculum with events, and says at any time what is believed and where each question stands.

    Events of questions that the curriculum does not have, and of an id that came before, are left out.
    """

    def __init__(self, curriculum: Curriculum) -> None:
        self.curriculum = curriculum
        self.newest_step: int | None = None
        self._records = {uid: _Record() for uid in curriculum.beliefs.uids}
        self._n_standing = Counter({Standing.UNTRIED: len(self._records)})
        self._groups: dict[tuple[str, int], set[float]] = defaultdict(set)
        self._ids: set[str] = set()

    def add(self, event: RewardEvent) -> None:
        """Learn from an event."""
        if event.id in self._ids or event.uid not in self._records:
            return
        self._ids.add(event.id)
        self.curriculum.observe(event.uid, event.rewards, event.step)
        self.newest_step = max(event.step, -1 if self.newest_step is None else self.newest_step)
        record = self._records[event.uid]
        self._n_standing[record.standing] -= 1
        for reward in event.rewards:
            if reward is not None and math.isfinite(reward):
                record.add(reward >= self.curriculum.settings.success_at)
                self._groups[event.uid, event.step].add(reward)
        self._n_standing[record.standing] += 1

    def standings(self) -> dict[str, Standing]:
        """Return where each question stands, by uid."""
        return {uid: record.standing for uid, record in self._records.items()}

    def moment(self, *, is_over: bool = True) -> Moment:
        """Return what is believed now; ``useful`` is about the groups since the last moment that was over."""
        beliefs = self.curriculum.beliefs
        n = beliefs.a + beliefs.b
        low, first, median, third, high = np.quantile(beliefs.n_rollouts, (0, 0.25, 0.5, 0.75, 1)).tolist()
        useful = [len(rewards) > 1 for rewards in self._groups.values()]
        if is_over:
            self._groups.clear()
        return Moment(
            step=-1 if self.newest_step is None else self.newest_step,
            n_rollouts=int(beliefs.n_rollouts.sum()),
            share_tried=float((beliefs.n_rollouts > 0).mean()),
            mean=float(beliefs.mean.mean()),
            spread=float(np.sqrt(beliefs.a * beliefs.b / (n * n * (n + 1))).mean()),
            useful=float(np.mean(useful)) if useful else None,
            evidence=(low, first, median, third, high),
            standings={standing: self._n_standing[standing] for standing in Standing},
        )


def moments(history: TrainingHistory, events: Iterable[RewardEvent], *, every: int = 1) -> Iterator[Moment]:
    """Add events and yield a Moment whenever ``every`` steps are over, and at the end. Raises InvalidConfig."""
    if every < 1:
        raise InvalidConfig("every", every, "at least 1")
    for event in events:
        newest = history.newest_step
        if newest is not None and event.step // every > newest // every:
            yield history.moment()
        history.add(event)
    if history.newest_step is not None:
        yield history.moment()
