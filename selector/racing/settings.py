"""How a selection is raced."""

from __future__ import annotations

from dataclasses import dataclass

from selector.errors import InvalidConfig

FEWEST_AT_ONCE, MOST_AT_ONCE = 16, 256
MODES = ("exact", "probabilistic", "off")


@dataclass(frozen=True)
class RaceSettings:
    """``mode``: "exact" gives the picks that all answers would give, "probabilistic" may miss some, "off" draws all.

    ``error``: the share of clusters that a probabilistic race may get wrong, by its own model. ``n_audit``: how many
    questions it then completes to see what was missed. ``calibration``: whether the threshold is raced for as well.
    ``concurrency``: answers asked for at a time, by default an eighth of the pool, between 16 and 256, and of an engine
    that works in batches 256: the more at a time, the more turn out to be needless. Raises InvalidConfig.
    """

    mode: str = "exact"
    calibration: bool = False
    error: float = 0.05
    n_audit: int = 32
    concurrency: int | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidConfig("--race", self.mode, f"one of {', '.join(MODES)}")
        if not 0 < self.error < 1:
            raise InvalidConfig("--race-error", self.error, "a share between 0 and 1, such as 0.05")
        for name, value in (("--race-audit", self.n_audit + 1), ("--race-concurrency", self.concurrency)):
            if value is not None and value < 1:
                wanted = "from 1" if name == "--race-concurrency" else "from 0, which leaves the audit out"
                raise InvalidConfig(name, value - (name == "--race-audit"), f"a whole number {wanted}")
        if self.mode == "probabilistic" and self.calibration:
            wanted = "left out: the model of a probabilistic race is fitted on complete calibration answers"
            raise InvalidConfig("--race-calibration", True, wanted)

    def concurrency_for(self, n_questions: int) -> int:
        """Return how many answers are asked for at a time in a pool of so many questions."""
        return self.concurrency or min(MOST_AT_ONCE, max(FEWEST_AT_ONCE, n_questions // 8))
