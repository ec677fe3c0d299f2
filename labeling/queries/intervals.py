"""Shares of small samples, with how far they can be trusted."""

from dataclasses import dataclass
from math import sqrt

FEW = 20
Z = 1.959964  # of a two-sided 95 % interval


@dataclass(frozen=True)
class Share:
    """``n`` of ``of``. ``low`` and ``high``: its 95 % interval (Wilson), from 0 to 1 where there is nothing yet."""

    n: int
    of: int

    @property
    def is_small(self) -> bool:
        """Whether so few say little."""
        return self.of < FEW

    @property
    def low(self) -> float:
        return self._interval[0]

    @property
    def high(self) -> float:
        return self._interval[1]

    @property
    def _interval(self) -> tuple[float, float]:
        if not self.of:
            return 0.0, 1.0
        share, squared = self.n / self.of, Z * Z
        middle = share + squared / (2 * self.of)
        width = Z * sqrt(share * (1 - share) / self.of + squared / (4 * self.of**2))
        scale = 1 + squared / self.of
        return max(0.0, (middle - width) / scale), min(1.0, (middle + width) / scale)
