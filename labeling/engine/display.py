"""Progress of long work on a terminal, and stopping it there; the engine's own command shows the same."""

from selector.progress import StageProgress as StageDisplay
from selector.progress import StopOnSignal

__all__ = ["StageDisplay", "StopOnSignal"]
