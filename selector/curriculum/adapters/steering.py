"""Where a trainer's next questions come from: a curriculum in this process that follows a reward log, or a server's."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from selector.curriculum.contract import Curriculum
from selector.curriculum.following import LogFollower
from selector.curriculum.log import RewardLog
from selector.errors import NoRewardsHeard

PATIENCE = 3  # proposals without a single reward before that is an error


class Steering(Protocol):
    """What an adapter asks. Of several processes of a trainer one asks and tells the others.

    ``hears_at_once``: rewards are known here as soon as the reward function has returned, so that ``refill`` may be
    asked right after it.
    """

    hears_at_once: bool

    def propose(self, k: int) -> list[str]:
        """Return the uids of k different questions to roll out now."""

    def refill(self) -> list[str]:
        """Return the uids to roll out in place of those that the curriculum dropped from this batch."""

    def kept(self) -> list[str]:
        """Return the uids of this batch that are to be trained on."""

    def save(self, path: Path) -> None:
        """Write what is needed to go on from here into a file."""

    def load(self, path: Path) -> None:
        """Go on from where a file was saved. Raises FileNotFoundError."""


class LogSteering:
    """A curriculum of this process, fed by the log that the reward functions of a training write.

    The log is this training's: what another one left in the file would count, too. Raises NoRewardsHeard at a proposal
    when the curriculum has heard of no reward although there were ``patience`` proposals before.
    """

    hears_at_once = True

    def __init__(self, curriculum: Curriculum, log: str | Path, *, patience: int = PATIENCE) -> None:
        self.follower = LogFollower(curriculum, RewardLog(log))
        self.patience, self._n_proposed = patience, 0

    @property
    def curriculum(self) -> Curriculum:
        """The curriculum, as of the last time it was asked."""
        return self.follower.curriculum

    def propose(self, k: int) -> list[str]:
        """Learn from everything the log holds by now, and return the uids of k different questions."""
        self.follower.catch_up()
        if self._n_proposed >= self.patience and not self.follower.n_counted:
            raise NoRewardsHeard(
                path=str(self.follower.log.path), n_proposed=self._n_proposed, n_unknown=self.follower.n_unknown
            )
        self._n_proposed += 1
        return self.curriculum.propose(k)

    def refill(self) -> list[str]:
        """Learn from the log, and return the uids to roll out in place of dropped ones."""
        self.follower.catch_up()
        return self.curriculum.refill()

    def kept(self) -> list[str]:
        """Return the uids of this batch that are to be trained on."""
        return self.curriculum.kept()

    def save(self, path: Path) -> None:
        """Write the curriculum's state and the place in the log."""
        self.follower.checkpoint = path
        self.follower.save()

    def load(self, path: Path) -> None:
        """Go on from a saved state. Raises FileNotFoundError, CurriculumMismatch and RewardLogChanged."""
        if not path.exists():
            raise FileNotFoundError(f"There is no {path}: the checkpoint was saved without a curriculum.")
        self.follower = LogFollower(self.curriculum, self.follower.log, path)
