"""What every attempt at long work has in common: it tells how far it is, and stops where it must."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from labeling.errors import LabelingError
from labeling.models.work import Work
from labeling.runs.lease import Lease, LeaseLost
from labeling.runs.progress import StageProgress

SECONDS_BETWEEN_CHECKS = 0.5


class WorkStopped(LabelingError):
    """The work was cancelled, or its worker is shutting down; what was finished is kept."""

    code = "run_stopped"

    def __init__(self, *, is_cancelled: bool) -> None:
        self.is_cancelled = is_cancelled
        super().__init__("It was cancelled." if is_cancelled else "Its worker is shutting down.")


class Attempt(ABC):
    """One attempt at one row. ``progress`` is called after every chunk, and is where an attempt stops when it must."""

    def __init__(
        self,
        work: Work,
        lease: Lease,
        *,
        should_stop: Callable[[], bool],
        listener: Callable[[str, int, int], None],
    ) -> None:
        self._lease, self._should_stop = lease, should_stop
        self._progress = StageProgress(lease, work.stages, listener)
        self._checked_at = 0.0

    @abstractmethod
    def execute(self) -> None:
        """Go through all stages and save the results. Raises LeaseLost, WorkStopped or LabelingError."""

    def progress(self, stage: str, done: int, total: int) -> None:
        """Write how far the stage is. Raises WorkStopped or LeaseLost when the attempt must stop here."""
        self._progress(stage, done, total)
        self.check()

    def check(self) -> None:
        """Raise WorkStopped or LeaseLost when the attempt must stop here."""
        if self._lease.is_lost:
            raise LeaseLost(str(self._lease))
        if self._should_stop():
            self._progress.write()
            raise WorkStopped(is_cancelled=False)
        if time.monotonic() - self._checked_at >= SECONDS_BETWEEN_CHECKS:
            if self._lease.is_cancelled():
                self._progress.write()
                raise WorkStopped(is_cancelled=True)
            self._checked_at = time.monotonic()
