"""What an answer can be read as. An answer may have several views: ``(0, 1)`` is a pair and an interval."""

from __future__ import annotations

from dataclasses import dataclass

from selector.answers.syntax import Node


@dataclass(frozen=True)
class Scalar:
    """One value, with what it carried: a percent sign, a currency, a unit, a degree sign, the name before ``=``."""

    node: Node
    percent: bool = False
    currency: str = ""
    unit: str = ""
    degree: bool = False
    name: str = ""
    decimal_places: int = -1  # of a literal decimal; -1 for anything else
    significant_digits: int = 0


@dataclass(frozen=True)
class Several:
    """Several answers. ``style``: bag (a bare list), set, tuple, brackets (``[a, b, c]``) or matrix."""

    style: str
    items: tuple[Reading, ...]
    name: str = ""


@dataclass(frozen=True)
class Piece:
    """One stretch of the number line; an end that is None is infinite."""

    low: Node | None
    high: Node | None
    low_closed: bool
    high_closed: bool


@dataclass(frozen=True)
class Region:
    """A union of stretches of the number line, in order where their ends are numbers."""

    pieces: tuple[Piece, ...]
    name: str = ""


@dataclass(frozen=True)
class Relation:
    """``node`` compared with zero: ``op`` is one of ``=``, ``<``, ``<=``, ``!=``."""

    node: Node
    op: str


@dataclass(frozen=True)
class System:
    """Relations that hold together."""

    relations: tuple[Relation, ...]


@dataclass(frozen=True)
class Assigned:
    """Values by name: ``x = 1, y = 2``. ``in_order`` says that the names came in alphabetical order."""

    values: tuple[tuple[str, Reading], ...]


@dataclass(frozen=True)
class Ratio:
    """``a : b : c``; ``is_clock`` marks one that may be a time of day."""

    parts: tuple[Node, ...]
    is_clock: bool = False


@dataclass(frozen=True)
class Clock:
    """A time of day or a duration in seconds; ``half`` is am, pm or nothing."""

    seconds: int
    half: str = ""


@dataclass(frozen=True)
class Choice:
    """Letters of a multiple-choice question, with the text that followed a single letter."""

    letters: frozenset[str]
    rest: str = ""


@dataclass(frozen=True)
class Words:
    """Text, with white space and punctuation normalised; case is kept."""

    text: str


@dataclass(frozen=True)
class Unparsed:
    """Mathematics outside the grammar, as cleaned text."""

    text: str


View = Scalar | Several | Region | System | Assigned | Ratio | Clock | Choice | Words | Unparsed
Reading = tuple[View, ...]
