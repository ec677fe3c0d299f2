"""Exact values of trees: what can be decided without a numeric or symbolic guess."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil, comb, factorial, floor

from selector.answers import ring
from selector.answers.powers import factor_integer, power
from selector.answers.ring import Atom, Quotient, TooLarge, Undefined
from selector.answers.syntax import Node

MAX_FACTORIAL = 3000


@lru_cache(maxsize=16384)
def exact_value(node: Node) -> Quotient | None:
    """Return the value of a tree in exact arithmetic; None where it is undefined, infinite or too large."""
    try:
        return _value(node)
    except (TooLarge, Undefined, OverflowError):
        return None


def _value(node: Node) -> Quotient:
    op = node.op
    if op == "num":
        return ring.constant(node.value or 0)
    if op == "sym":
        return ring.atom(Atom(f"v:{node.name}"))
    if op in ("pi", "e", "i"):
        return ring.atom(Atom(op))
    if op == "inf":
        raise Undefined("infinity")
    values = [_value(part) for part in node.args]
    if op == "call":
        return _opaque(f"v:{node.name}", values)
    return _RULES[op](*values) if op in _RULES else _function(op, *values)


def _sum(*values: Quotient) -> Quotient:
    total = values[0]
    for value in values[1:]:
        total = ring.add(total, value)
    return total


def _root(value: Quotient, degree: Quotient) -> Quotient:
    return power(value, ring.invert(degree))


def _opaque(name: str, values: list[Quotient]) -> Quotient:
    return ring.atom(Atom(f"{name}({','.join(ring.key_of(value) for value in values)})"))


def _absolute(value: Quotient) -> Quotient:
    rational = ring.as_rational(value)
    if rational is not None:
        return ring.constant(abs(rational))
    return min((_opaque("abs", [value]), _opaque("abs", [ring.negate(value)])), key=ring.key_of)


def _factorial(value: Quotient) -> Quotient:
    n = ring.as_rational(value)
    if n is None:
        return _opaque("factorial", [value])
    if n.denominator != 1 or n < 0:
        raise Undefined("factorial")
    if n > MAX_FACTORIAL:
        raise TooLarge("factorial")
    return ring.constant(factorial(int(n)))


def _binomial(top: Quotient, bottom: Quotient) -> Quotient:
    k = ring.as_rational(bottom)
    n = ring.as_rational(top)
    if k is None or (n is None and not (k.denominator == 1 and 0 <= k <= 8)):
        return _opaque("binom", [top, bottom])
    if k.denominator != 1 or k < 0:
        raise Undefined("binomial")
    if n is not None and n.denominator == 1 and n >= 0:
        if n > 20_000:
            raise TooLarge("binomial")
        return ring.constant(comb(int(n), int(k)))
    if k > 200:
        raise TooLarge("binomial")
    result = ring.constant(1)
    for step in range(int(k)):
        result = ring.multiply(result, ring.add(top, ring.constant(-step)))
    return ring.multiply(result, ring.constant(Fraction(1, factorial(int(k)))))


def _rounded(which: Callable[[Fraction], int], name: str) -> Callable[[Quotient], Quotient]:
    def rounded(value: Quotient) -> Quotient:
        rational = ring.as_rational(value)
        return _opaque(name, [value]) if rational is None else ring.constant(which(rational))

    return rounded


def _logarithm(value: Quotient) -> Quotient:
    """Return ln: of positive rationals by their primes, of powers of e by their exponents."""
    if value.bottom == ring.ONE and len(value.top) == 1:
        ((monomial, factor),) = value.top.items()
        simple = all(base.key == "e" or base.key[0] == "#" for base, _ in monomial)
        if factor > 0 and simple:
            total = ring.constant(0)
            for prime, n in factor_integer(factor.numerator):
                total = ring.add(total, ring.multiply(ring.constant(n), _ln_atom(prime)))
            for prime, n in factor_integer(factor.denominator):
                total = ring.add(total, ring.multiply(ring.constant(-n), _ln_atom(prime)))
            for base, exponent in monomial:
                one = ring.constant(1) if base.key == "e" else _ln_atom(int(base.key[1:]))
                total = ring.add(total, ring.multiply(ring.constant(exponent), one))
            return total
    if not value.top:
        raise Undefined("logarithm of zero")
    return _opaque("ln", [value])


def _ln_atom(prime: int) -> Quotient:
    return ring.atom(Atom(f"ln(#{prime})"))


def _log_base(value: Quotient, base: Quotient) -> Quotient:
    return ring.multiply(_logarithm(value), ring.invert(_logarithm(base)))


def _log_unknown(value: Quotient) -> Quotient:
    """Return ``log`` without a base: ten or e, nobody says which, so only its own multiples are known."""
    return ring.multiply(_logarithm(value), ring.atom(Atom("log-unit")))


_QUARTER_SINES: dict[Fraction, tuple[tuple[int | Fraction, int], ...]] = {  # sin(r pi) for r in [0, 1/2]
    Fraction(0): ((0, 1),),
    Fraction(1, 6): ((Fraction(1, 2), 1),),
    Fraction(1, 4): ((Fraction(1, 2), 2),),
    Fraction(1, 3): ((Fraction(1, 2), 3),),
    Fraction(1, 2): ((1, 1),),
    Fraction(1, 12): ((Fraction(1, 4), 6), (Fraction(-1, 4), 2)),
    Fraction(5, 12): ((Fraction(1, 4), 6), (Fraction(1, 4), 2)),
    Fraction(1, 10): ((Fraction(1, 4), 5), (Fraction(-1, 4), 1)),
    Fraction(3, 10): ((Fraction(1, 4), 5), (Fraction(1, 4), 1)),
}


def _sine(value: Quotient) -> Quotient:
    turns = _multiple_of_pi(value)
    if turns is not None:
        return _sine_of_turns(turns)
    negated = ring.negate(value)
    if ring.key_of(negated) < ring.key_of(value):
        return ring.negate(_opaque("sin", [negated]))
    return _opaque("sin", [value])


def _cosine(value: Quotient) -> Quotient:
    turns = _multiple_of_pi(value)
    if turns is not None:
        return _sine_of_turns(Fraction(1, 2) - turns)
    negated = ring.negate(value)
    return _opaque("cos", [min(value, negated, key=ring.key_of)])


def _multiple_of_pi(value: Quotient) -> Fraction | None:
    return ring.as_rational(ring.multiply(value, ring.atom(ring.PI, -1)))


def _sine_of_turns(turns: Fraction) -> Quotient:
    turns %= 2
    if turns >= 1:
        return ring.negate(_sine_of_turns(turns - 1))
    if turns > Fraction(1, 2):
        turns = 1 - turns
    if turns not in _QUARTER_SINES:
        return ring.atom(Atom(f"sinpi({turns})"))
    return _sum(
        *(
            ring.multiply(ring.constant(factor), power(ring.constant(radicand), ring.constant(Fraction(1, 2))))
            for factor, radicand in _QUARTER_SINES[turns]
        )
    )


def _function(name: str, *values: Quotient) -> Quotient:
    return _opaque(name, list(values))


_RULES: dict[str, Callable[..., Quotient]] = {
    "add": _sum,
    "neg": ring.negate,
    "mul": ring.multiply,
    "div": lambda top, bottom: ring.multiply(top, ring.invert(bottom)),
    "pow": power,
    "root": _root,
    "deg": lambda value: ring.multiply(value, ring.multiply(ring.atom(ring.PI), ring.constant(Fraction(1, 180)))),
    "abs": _absolute,
    "factorial": _factorial,
    "binom": _binomial,
    "floor": _rounded(floor, "floor"),
    "ceil": _rounded(ceil, "ceil"),
    "ln": _logarithm,
    "log": _log_unknown,
    "lg": lambda value: _log_base(value, ring.constant(10)),
    "logb": _log_base,
    "sin": _sine,
    "cos": _cosine,
    "tan": lambda value: ring.multiply(_sine(value), ring.invert(_cosine(value))),
    "cot": lambda value: ring.multiply(_cosine(value), ring.invert(_sine(value))),
    "sec": lambda value: ring.invert(_cosine(value)),
    "csc": lambda value: ring.invert(_sine(value)),
}
