"""How far a run is, written on its row: per stage done of total, and the time it took over all attempts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from django.utils import timezone

from labeling.runs.lease import Lease

SECONDS_BETWEEN_WRITES = 0.5


class StageProgress:
    """Hears ``(stage, done, total)`` and keeps the run's ``stage`` and ``stages`` fields up to date.

    A stage is a dict: name, done, total, done_before (when this attempt entered it), started_at (ISO time of that)
    and seconds (over all attempts). ``listener`` hears the same, for a display on a terminal.
    Raises LeaseLost when the run is no longer ours.
    """

    def __init__(
        self,
        lease: Lease,
        stages: Sequence[dict[str, Any]],
        listener: Callable[[str, int, int], None] = lambda stage, done, total: None,
    ) -> None:
        self._lease, self._listener = lease, listener
        self._stages = {stage["name"]: dict(stage) for stage in stages}
        self._current: dict[str, Any] | None = None
        self._measured_at = self._written_at = time.monotonic()

    def __call__(self, stage: str, done: int, total: int) -> None:
        self._measure()
        current = self._stages.setdefault(stage, {"name": stage, "seconds": 0.0})
        is_new = current is not self._current
        if is_new:
            current.update(done_before=done, started_at=timezone.now().isoformat())
            self._current = current
        current.update(done=done, total=total)
        self._listener(stage, done, total)
        if is_new or done >= total or time.monotonic() - self._written_at >= SECONDS_BETWEEN_WRITES:
            self.write()

    def write(self) -> None:
        """Write the row now, with the time that the stage has taken until now."""
        self._measure()
        if self._current:
            self._lease.update(stage=self._current["name"], stages=self.as_json())
        self._written_at = time.monotonic()

    def as_json(self) -> list[dict[str, Any]]:
        """The stages in the order they were first entered; seconds rounded to the millisecond."""
        return [{**stage, "seconds": round(stage["seconds"], 3)} for stage in self._stages.values()]

    def seconds(self) -> dict[str, float]:
        """Seconds per stage, over all attempts."""
        self._measure()
        return {stage["name"]: stage["seconds"] for stage in self.as_json()}

    def _measure(self) -> None:
        now = time.monotonic()
        if self._current:
            self._current["seconds"] += now - self._measured_at
        self._measured_at = now
