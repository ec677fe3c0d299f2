"""What is believed of each question's success rate: one Beta distribution a question, moved by rewards."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selector.errors import CurriculumMismatch, InvalidConfig, UnknownQuestion

MOST_STEP = 2**63 - 1
BLANK = (1.0, 1.0)  # the Beta distribution of a question nobody has tried: every success rate is as likely


class Beliefs:
    """Beta(a, b) of N questions, in canonical order (sha256 of the uid), whatever order the uids came in.

    ``a``, ``b`` [N] float64: pseudo-counts of successes and failures; ``n_rollouts`` [N]: rewards counted since the
    start; ``last_step`` [N]: the newest step with a reward, -1 without; ``n_missing``: rewards that were None or not
    finite, which are not counted. Raises InvalidConfig when there are no uids or one comes twice.
    """

    def __init__(self, uids: Sequence[str]) -> None:
        self.uids = tuple(sorted(uids, key=lambda uid: (hashlib.sha256(uid.encode()).digest(), uid)))
        self.rows = {uid: row for row, uid in enumerate(self.uids)}
        if not self.uids:
            raise InvalidConfig("uids", [], "the uids of at least one question")
        if len(self.rows) < len(self.uids):
            twice = next(uid for uid, following in zip(self.uids, self.uids[1:], strict=False) if uid == following)
            raise InvalidConfig("uids", twice, "a list in which each question comes once")
        n = len(self.uids)
        self.a, self.b = np.full(n, BLANK[0]), np.full(n, BLANK[1])
        self.n_rollouts, self.last_step = np.zeros(n, np.int64), np.full(n, -1, np.int64)
        self.n_missing = 0

    @property
    def mean(self) -> NDArray[np.float64]:
        """Expected success rates a / (a + b) [N]."""
        return np.asarray(self.a / (self.a + self.b))

    def row(self, uid: str) -> int:
        """Return the row of a question. Raises UnknownQuestion."""
        try:
            return self.rows[uid]
        except KeyError:
            raise UnknownQuestion(uid=uid, n_questions=len(self.uids)) from None

    def start_from(self, prior: Mapping[str, tuple[float, float]], weight: float) -> None:
        """Add stored rollouts, (successes, failures) by uid, each counted as ``weight`` rollouts of the training.

        Raises UnknownQuestion, and InvalidConfig for counts that are negative or not finite.
        """
        for uid, counts in prior.items():
            row = self.row(uid)
            if len(counts) != 2 or not all(math.isfinite(count) and count >= 0 for count in counts):
                raise InvalidConfig(f"prior of {uid!r}", counts, "a number of successes and a number of failures")
            self.a[row] += weight * counts[0]
            self.b[row] += weight * counts[1]

    def observe(self, uid: str, rewards: Sequence[float | None], step: int, *, lam: float, success_at: float) -> int:
        """Count rewards of one question and return its row.

        a <- lam a + (1 - lam) + S and b <- lam b + (1 - lam) + F for S rewards of at least ``success_at`` and F below.
        The fading happens once for each new step of a question, so it does not matter in how many calls the rewards of
        one step arrive; rewards of an older step are added to what is there. None and non-finite rewards are left out
        and counted in ``n_missing``. Raises UnknownQuestion, and InvalidConfig for what is no reward or no step.
        """
        row = self.row(uid)
        if not is_whole(step, low=0) or step > MOST_STEP:
            raise InvalidConfig("step", step, f"a whole number from 0 to {MOST_STEP}")
        numbers = [_number(reward) for reward in rewards]
        successes = [number >= success_at for number in numbers if math.isfinite(number)]
        self.n_missing += len(numbers) - len(successes)
        if not successes:
            return row
        if step > self.last_step[row]:
            self.a[row] = lam * self.a[row] + (1 - lam) * BLANK[0]
            self.b[row] = lam * self.b[row] + (1 - lam) * BLANK[1]
            self.last_step[row] = step
        self.a[row] += sum(successes)
        self.b[row] += len(successes) - sum(successes)
        self.n_rollouts[row] += len(successes)
        return row

    def to_json(self) -> dict[str, Any]:
        """Return what is known, by uid: [a, b, rollouts, last step]; questions nobody has tried are left out."""
        known = np.flatnonzero((self.n_rollouts > 0) | (self.a != BLANK[0]) | (self.b != BLANK[1]))
        columns = (self.a, self.b, self.n_rollouts, self.last_step)
        names = [self.uids[row] for row in known]
        values = zip(*(column[known].tolist() for column in columns), strict=True)
        return {"n_missing": self.n_missing, "questions": dict(zip(names, map(list, values), strict=True))}

    def load_json(self, saved: Mapping[str, Any]) -> None:
        """Take up what ``to_json`` returned, exactly; it may know fewer questions. Raises CurriculumMismatch."""
        fresh = Beliefs(self.uids)
        fresh.n_missing = int(saved["n_missing"])
        for uid, (a, b, n_rollouts, last_step) in saved["questions"].items():
            if uid not in self.rows:
                raise CurriculumMismatch(differences=f"it knows a question {uid!r} that is not here")
            row = self.rows[uid]
            fresh.a[row], fresh.b[row], fresh.n_rollouts[row], fresh.last_step[row] = a, b, n_rollouts, last_step
        self.__dict__.update(fresh.__dict__)


def is_whole(value: object, *, low: int) -> bool:
    """Say whether a value is a whole number of at least ``low``."""
    if isinstance(value, bool):
        return False
    return isinstance(value, Integral) and int(value) >= low


def _number(reward: float | None) -> float:
    if reward is None:
        return math.nan
    try:
        return float(reward)
    except (TypeError, ValueError, OverflowError):
        raise InvalidConfig("a reward", reward, "a number or None") from None
