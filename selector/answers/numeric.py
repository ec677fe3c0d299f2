"""Values of trees to sixty digits at fixed points: enough to tell two expressions apart, never to call them equal."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from mpmath.ctx_mp import MPContext

from selector.answers.syntax import Node
from selector.errors import SelectorError

_PRECISIONS = (200, 420)  # bits; a value counts where both agree to 1e-25
_MAX_LOG2 = 10**12  # magnitude of a number still worked with
_N_POINTS = 4
_PROVABLE_LOG2 = 4000  # larger numbers would be written out by whoever tries to prove something about them
_local = threading.local()


class NoValue(SelectorError):
    """The expression has no usable value at the point."""


def are_apart(left: Node, right: Node) -> bool:
    """Tell whether two trees certainly differ: at some point their values are further apart than 1e-20, relatively."""
    return any(abs(a - b) > 1e-20 * max(abs(a), abs(b)) for a, b in _common_values(left, right))


def agree_somewhere(left: Node, right: Node) -> bool:
    """Tell whether two trees have trustworthy values of moderate size at a common point, and nowhere differ."""
    mag = _context(_PRECISIONS[0]).mag
    is_moderate = any(not a or abs(mag(a)) < _PROVABLE_LOG2 for a, _ in _common_values(left, right))
    return is_moderate and not are_apart(left, right)


def _common_values(left: Node, right: Node) -> Iterator[tuple[Any, Any]]:
    """Yield both values at each point where both are trustworthy, and real unless i is mentioned."""
    may_be_complex = _mentions_i(left) or _mentions_i(right)
    for point in range(_N_POINTS):
        a, b = value_at(left, point), value_at(right, point)
        if a is not None and b is not None and (may_be_complex or not (a.imag or b.imag)):
            yield a, b


def difference(left: Node, right: Node) -> Decimal | None:
    """Return the distance of two constants relative to the first one, as a decimal; None where there is none."""
    a, b = value_at(left, 0), value_at(right, 0)
    if a is None or b is None or not a:
        return None
    return Decimal(_context(_PRECISIONS[0]).nstr(abs(a - b) / abs(a), 25))


def constant_ratio(left: Node, right: Node) -> float | None:
    """Return left/right where it is the same real number at every point; None where it is not, or nowhere known."""
    found = [a / b for a, b in _common_values(left, right) if a and b]
    if not found or any(abs(ratio - found[0]) > 1e-20 * abs(found[0]) or ratio.imag for ratio in found):
        return None
    return float(found[0].real)


def approximate(node: Node) -> float | None:
    """Return the real value of a tree without variables, for sorting; None where there is none."""
    value = value_at(node, 0)
    if value is None or value.imag:
        return None
    try:
        return float(value.real)
    except OverflowError:
        return float("inf") if value.real > 0 else float("-inf")


def log2_of(node: Node) -> int | None:
    """Return the size of a tree's value as a power of two, at the first point where it has one; None if at none."""
    values = (value_at(node, point) for point in range(_N_POINTS))
    value = next((value for value in values if value is not None), None)
    return None if value is None else int(_context(_PRECISIONS[0]).mag(value)) if value else 0


def mentions_infinity(node: Node) -> bool:
    return node.op == "inf" or any(map(mentions_infinity, node.args))


def _mentions_i(node: Node) -> bool:
    return node.op == "i" or any(_mentions_i(part) for part in node.args)


@lru_cache(maxsize=16384)
def value_at(node: Node, point: int) -> Any:
    """Return the value of a tree at one of the points as an mpc; None where it has no trustworthy one.

    Variables take values that depend on their names alone: in (1/2, 2) at the first two points, whole numbers at the
    third, negative ones at the last.
    """
    try:
        coarse, fine = (_Evaluation(bits, point).value(node) for bits in _PRECISIONS)
        agrees = abs(coarse - fine) <= abs(fine) * 1e-25
    except (NoValue, ArithmeticError, ValueError, OverflowError, TypeError, KeyError):
        return None
    return fine if agrees else None


def _context(bits: int) -> MPContext:
    contexts = _local.__dict__.setdefault("contexts", {})
    if bits not in contexts:
        contexts[bits] = MPContext()
        contexts[bits].prec = bits
    return contexts[bits]


class _Evaluation:
    def __init__(self, bits: int, point: int) -> None:
        self.mp = _context(bits)
        self.point = point

    def value(self, node: Node) -> Any:
        """Return an mpc. Raises NoValue where a number gets too large to hold."""
        mp = self.mp
        if node.op == "num":
            value = node.value or Fraction(0)
            return mp.mpc(mp.mpf(value.numerator) / value.denominator)
        if node.op == "sym":
            return mp.mpc(self.variable(node.name))
        if node.op == "call":
            inner = self.value(node.args[0])
            return self.variable(node.name) * inner + self.variable(node.name + "()") * inner * inner
        if node.op in ("pi", "e"):
            return mp.mpc(mp.pi if node.op == "pi" else mp.e)
        if node.op == "i":
            return mp.mpc(0, 1)
        if node.op == "inf":
            raise NoValue
        result = getattr(self, "_" + node.op, None)
        values = [self.value(part) for part in node.args]
        answer = result(*values) if result else self.function(node.op, values[0])
        if not mp.isfinite(answer) or (answer and abs(mp.mag(answer)) > _MAX_LOG2):
            raise NoValue
        return answer

    def variable(self, name: str) -> Any:
        digest = hashlib.sha256(f"{self.point}:{name}".encode()).digest()
        if self.point == 2:
            return self.mp.mpf(2 + int.from_bytes(digest[:2], "big") % 37)
        value = self.mp.mpf(int.from_bytes(digest[:6], "big")) / 2**48 * 3 / 2 + self.mp.mpf(1) / 2
        return -value if self.point == 3 else value

    def function(self, name: str, argument: Any) -> Any:
        functions: dict[str, Callable[[Any], Any]] = {
            "ln": self.mp.log,
            "lg": self.mp.log10,
            "arcsin": self.mp.asin,
            "arccos": self.mp.acos,
            "arctan": self.mp.atan,
            "arccot": self.mp.acot,
        }
        if argument and self.mp.mag(argument) > 2000 and name not in ("ln", "lg"):
            raise NoValue
        return functions[name](argument) if name in functions else getattr(self.mp, name)(argument)

    def _add(self, *values: Any) -> Any:
        total = self.mp.mpc(0)
        for value in values:
            total += value
        return total

    def _neg(self, value: Any) -> Any:
        return -value

    def _mul(self, left: Any, right: Any) -> Any:
        return left * right

    def _div(self, top: Any, bottom: Any) -> Any:
        return top / bottom

    def _pow(self, base: Any, exponent: Any) -> Any:
        mp = self.mp
        if base and exponent:
            size = abs(mp.log(base)) * abs(exponent)
            if size > _MAX_LOG2:
                raise NoValue
        if not exponent.imag and exponent.real == mp.floor(exponent.real) and abs(exponent.real) < 10**6:
            return base ** int(exponent.real)
        return mp.power(base, exponent)

    def _root(self, value: Any, degree: Any) -> Any:
        mp = self.mp
        n = degree.real
        if not value.imag and value.real < 0 and n == mp.floor(n) and int(n) % 2:
            return -mp.power(-value, 1 / degree)
        return mp.sqrt(value) if n == 2 else mp.power(value, 1 / degree)

    def _deg(self, value: Any) -> Any:
        return value * self.mp.pi / 180

    def _abs(self, value: Any) -> Any:
        return self.mp.mpc(abs(value))

    def _floor(self, value: Any) -> Any:
        return self._step(value, self.mp.floor)

    def _ceil(self, value: Any) -> Any:
        return self._step(value, self.mp.ceil)

    def _step(self, value: Any, rounding: Callable[[Any], Any]) -> Any:
        nearest = self.mp.nint(value.real)
        if value.imag or (value.real != nearest and abs(value.real - nearest) < 1e-20):
            raise NoValue
        return self.mp.mpc(rounding(value.real))

    def _factorial(self, value: Any) -> Any:
        if value.imag or abs(value) > 10**9:
            raise NoValue
        return self.mp.gamma(value + 1)

    def _binom(self, top: Any, bottom: Any) -> Any:
        if abs(top) > 10**9 or abs(bottom) > 10**9:
            raise NoValue
        return self.mp.binomial(top, bottom)

    def _logb(self, value: Any, base: Any) -> Any:
        return self.mp.log(value) / self.mp.log(base)

    def _log(self, value: Any) -> Any:
        return self.mp.log(value) * self.variable("log-unit")
