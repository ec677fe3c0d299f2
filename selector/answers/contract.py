"""What the rest of the program says and hears about answers: kinds, a pool's policy, verdicts and their keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Protocol

from selector.errors import InvalidConfig

KINDS = (
    "number",
    "expression",
    "set",
    "tuple",
    "interval",
    "equation",
    "choice",
    "percent",
    "currency",
    "text",
)

GRADER_VERSION = "1"  # part of every stored verdict's key: raise it whenever a verdict could change


class Verdict(StrEnum):
    """What comparing two answers came to."""

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    UNDECIDED = "undecided"


_CHOICES = {
    "percent": ("either", "number", "fraction", "sign"),
    "units": ("optional", "required"),
    "case": ("ignore", "keep"),
}


@dataclass(frozen=True)
class AnswerPolicy:
    """The verdicts that a pool decides for itself.

    ``percent``: what ``28%`` equals when the other answer has no percent sign: 28 or 0.28 (``either``), 28
    (``number``), 0.28 (``fraction``), or nothing (``sign``). 28 never equals 0.28.
    ``units``: whether a unit that one side carries and the other leaves out may be ignored (``optional``). Two
    different units are different under either.
    ``tolerance``: relative tolerance between numbers, as a decimal; ``"0"`` is exact. A decimal of at least twelve
    significant digits still equals the fraction it is the rounding of: that is a machine's way to print it.
    ``case``: whether letters of text and choices differ by case.
    """

    percent: str = "either"
    units: str = "optional"
    tolerance: str = "0"
    case: str = "ignore"

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise InvalidConfig(name, getattr(self, name), "one of " + ", ".join(allowed))
        try:
            usable = 0 <= Decimal(self.tolerance) < 1
        except (InvalidOperation, TypeError):
            usable = False
        if not usable:
            raise InvalidConfig("tolerance", self.tolerance, "a decimal in [0, 1), as text")

    def to_json(self) -> dict[str, str]:
        """Return the policy as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, str]) -> AnswerPolicy:
        """Read what ``to_json`` wrote. Raises InvalidConfig for a setting or value that does not exist."""
        for name in data:
            if name not in cls.__dataclass_fields__:
                raise InvalidConfig(name, data[name], "left out: a policy has percent, units, tolerance and case")
        return cls(**data)


@dataclass(frozen=True)
class ReadAs:
    """What a trainer's grader would make of an answer."""

    text: str
    kind: str
    readable: bool
    warnings: tuple[str, ...] = ()


class VerdictStore(Protocol):
    """Keeps verdicts that took a worker, so that asking again, on any machine under any load, says the same."""

    def get(self, key: str) -> Verdict | None: ...

    def put(self, key: str, verdict: Verdict) -> None: ...


def verdict_key(gold: str, answer: str, kind: str, policy: AnswerPolicy) -> str:
    """Return the key of a verdict: a hash of both forms, the kind, the policy and the grader's version."""
    parts = json.dumps([gold, answer, kind, policy.to_json(), GRADER_VERSION], sort_keys=True)
    return hashlib.sha256(parts.encode("ascii")).hexdigest()
