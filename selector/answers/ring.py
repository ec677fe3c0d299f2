"""Exact arithmetic on expressions: quotients of sums of monomials with rational coefficients.

A monomial is a product of atoms with rational exponents. Atoms are primes (so that 2^(1/2) is a square root), i, pi, e,
variables, powers with a variable exponent, values of functions and roots of sums. Distinct monomials in primes, i,
variables and one of pi and e are linearly independent over the rationals, so a difference that is not zero there proves
two expressions different (``is_decisive``); other atoms may hide relations, and only a zero proves anything.

Work is bounded: sums, exponents and coefficients past fixed sizes raise ``TooLarge``.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from selector.errors import SelectorError

MAX_TERMS = 250
MAX_PRODUCTS = 12_000
MAX_BITS = 40_000  # of a coefficient; 2004! has 19,000
MOVED_BITS = 20_000  # of a prime's power that is written out

Exponent = int | Fraction
Monomial = tuple[tuple["Atom", Exponent], ...]
Poly = dict[Monomial, Fraction]


class TooLarge(SelectorError):
    """Exact arithmetic would take too long; the expression stays undecided here."""


class Undefined(SelectorError):
    """The expression has no value: a division by zero, the logarithm of zero."""


class Atom(NamedTuple):
    """What exact arithmetic does not look into; ``radicand`` is the sum of which a root is taken."""

    key: str
    radicand: tuple[tuple[Monomial, Fraction], ...] = ()


class Quotient(NamedTuple):
    """``top / bottom``; a bottom of a single term is always 1."""

    top: Poly
    bottom: Poly


ONE: Poly = {(): Fraction(1)}
I_UNIT = Atom("i")
PI = Atom("pi")
E = Atom("e")


def constant(value: int | Fraction) -> Quotient:
    """Return a rational number as a quotient."""
    return Quotient({(): Fraction(value)} if value else {}, ONE)


def atom(which: Atom, exponent: Exponent = 1) -> Quotient:
    """Return a power of one atom."""
    return Quotient(settled({which: exponent}, Fraction(1)), ONE)


def as_rational(value: Quotient) -> Fraction | None:
    """Return the value where it is a rational number."""
    if value.bottom != ONE:
        return None
    if not value.top:
        return Fraction(0)
    return value.top.get(()) if len(value.top) == 1 else None


def add(left: Quotient, right: Quotient) -> Quotient:
    """Return the sum."""
    if left.bottom == right.bottom:
        return quotient(_sum(left.top, right.top), left.bottom)
    top = _sum(product(left.top, right.bottom), product(right.top, left.bottom))
    return quotient(top, product(left.bottom, right.bottom))


def negate(value: Quotient) -> Quotient:
    """Return minus the value."""
    return Quotient({monomial: -factor for monomial, factor in value.top.items()}, value.bottom)


def multiply(left: Quotient, right: Quotient) -> Quotient:
    """Return the product."""
    return quotient(product(left.top, right.top), product(left.bottom, right.bottom))


def invert(value: Quotient) -> Quotient:
    """Return one over the value. Raises Undefined for zero."""
    if not value.top:
        raise Undefined("division by zero")
    return quotient(value.bottom, value.top)


def is_zero(value: Quotient) -> bool:
    """Tell whether the value is zero by the rules of this arithmetic; False proves nothing by itself."""
    return not _cleared(value.top)


def equal(left: Quotient, right: Quotient) -> bool:
    """Tell whether two values are equal, by cross-multiplying."""
    if left == right:
        return True
    if left.bottom == right.bottom == ONE and is_decisive(left) and is_decisive(right):
        return False
    return is_zero(add(left, negate(right)))


def is_decisive(value: Quotient) -> bool:
    """Tell whether a value of this form that is not zero here is not zero at all."""
    if value.bottom == ONE and value.top.keys() <= {()}:
        return True
    return all(
        _is_independent(base, exponent)
        for poly in (value.top, value.bottom)
        for monomial in poly
        for base, exponent in monomial
    ) and not (_has(value, PI) and _has(value, E))


def has_variables(value: Quotient) -> bool:
    """Tell whether a variable stands in the value, also inside functions and roots."""
    return any("v:" in base.key for poly in (value.top, value.bottom) for monomial in poly for base, _ in monomial)


def key_of(value: Quotient) -> str:
    """Return the value as text; equal texts are equal values."""
    top = poly_key(value.top)
    return top if value.bottom == ONE else f"({top})/({poly_key(value.bottom)})"


def poly_key(poly: Mapping[Monomial, Fraction]) -> str:
    """Return a sum as text, its terms in a fixed order."""
    return "+".join(sorted(term_key(monomial, factor) for monomial, factor in poly.items())) or "0"


def term_key(monomial: Monomial, factor: Fraction) -> str:
    parts = [base.key if exponent == 1 else f"{base.key}^({exponent})" for base, exponent in monomial]
    number = _digits(factor)
    return "*".join([number, *parts]) if parts and number != "1" else "*".join(parts) or number


def _digits(factor: Fraction) -> str:
    large = max(abs(factor.numerator), factor.denominator).bit_length() > 12_000
    return f"{factor.numerator:#x}/{factor.denominator:#x}" if large else str(factor)


def _sum(left: Poly, right: Poly) -> Poly:
    result = dict(left)
    for monomial, factor in right.items():
        total = result.get(monomial, Fraction(0)) + factor
        if total:
            result[monomial] = total
        else:
            result.pop(monomial, None)
    if len(result) > MAX_TERMS:
        raise TooLarge("sum")
    return result


def product(left: Poly, right: Poly) -> Poly:
    if right == ONE:
        return left
    if left == ONE:
        return right
    if len(left) * len(right) > MAX_PRODUCTS:
        raise TooLarge("product")
    result: Poly = {}
    for left_monomial, left_factor in left.items():
        for right_monomial, right_factor in right.items():
            factor = left_factor * right_factor
            if max(abs(factor.numerator), factor.denominator).bit_length() > MAX_BITS:
                raise TooLarge("coefficient")
            if not left_monomial or not right_monomial:
                term: Poly = {left_monomial or right_monomial: factor}
            else:
                powers: dict[Atom, Exponent] = dict(left_monomial)
                for which, exponent in right_monomial:
                    powers[which] = powers.get(which, 0) + exponent
                term = settled(powers, factor)
            result = _sum(result, term)
    return result


def settled(powers: Mapping[Atom, Exponent], factor: Fraction) -> Poly:
    """Bring one term to its normal form: whole powers of primes and roots written out, i^2 = -1, sin^2 = 1 - cos^2."""
    kept: dict[Atom, Exponent] = {}
    expanded: list[Poly] = []
    for which, exponent in powers.items():
        if not exponent:
            continue
        key = which.key
        if key == "i" and isinstance(exponent, Fraction) and exponent.denominator != 1:
            raise TooLarge("root of i")
        if key == "i":
            quarter = int(exponent) % 4
            factor = -factor if quarter >= 2 else factor
            exponent = quarter % 2
        elif key[0] == "#":
            whole = exponent.numerator // exponent.denominator
            prime = int(key[1:])
            if whole and abs(whole) * prime.bit_length() <= MOVED_BITS:
                factor *= Fraction(prime) ** whole
                exponent = exponent - whole
        elif which.radicand and (exponent >= 1 or exponent < 0):
            whole = exponent.numerator // exponent.denominator
            if 0 < whole <= 12:
                expanded.extend([dict(which.radicand)] * whole)
                exponent = exponent - whole
        elif key.startswith("sin(") and exponent >= 2 and isinstance(exponent, int):
            cosine = Atom("cos(" + key[4:])
            squared: Poly = {(): Fraction(1), ((cosine, 2),): Fraction(-1)}
            if exponent > 24:
                raise TooLarge("power of a sine")
            expanded.extend([squared] * (exponent // 2))
            exponent = exponent % 2
        if exponent:
            is_whole = isinstance(exponent, Fraction) and exponent.denominator == 1
            kept[which] = int(exponent) if is_whole else exponent
    result: Poly = {tuple(sorted(kept.items())): factor}
    for poly in expanded:
        result = product(result, poly)
    return result


def quotient(top: Poly, bottom: Poly) -> Quotient:
    if not bottom:
        raise Undefined("division by zero")
    if not top:
        return Quotient({}, ONE)
    if len(bottom) == 1:
        ((monomial, factor),) = bottom.items()
        if not monomial and factor == 1:
            return Quotient(top, ONE)
        inverse = settled({which: -exponent for which, exponent in monomial}, 1 / factor)
        return Quotient(product(top, inverse), ONE)
    lead = bottom[min(bottom, key=lambda monomial: term_key(monomial, Fraction(1)))]
    if lead != 1:
        top = {monomial: factor / lead for monomial, factor in top.items()}
        bottom = {monomial: factor / lead for monomial, factor in bottom.items()}
    ratio = _constant_ratio(top, bottom)
    return Quotient({(): ratio}, ONE) if ratio is not None else Quotient(top, bottom)


def _constant_ratio(top: Poly, bottom: Poly) -> Fraction | None:
    if top.keys() != bottom.keys():
        return None
    ratios = {top[monomial] / bottom[monomial] for monomial in top}
    return ratios.pop() if len(ratios) == 1 else None


def _cleared(poly: Poly) -> Poly:
    """Multiply away negative exponents, so that rules that look for whole powers see them."""
    lowest: dict[Atom, Exponent] = {}
    for monomial in poly:
        for which, exponent in monomial:
            if exponent < 0 and (which.radicand or which.key[:4] == "sin("):
                lowest[which] = min(lowest.get(which, 0), exponent)
    if not lowest:
        return poly
    lift: Monomial = tuple(
        sorted((which, -(exponent.numerator // exponent.denominator)) for which, exponent in lowest.items())
    )
    result: Poly = {}
    for monomial, factor in poly.items():
        powers: dict[Atom, Exponent] = dict(monomial)
        for which, exponent in lift:
            powers[which] = powers.get(which, 0) + exponent
        result = _sum(result, settled(powers, factor))
    return result


def _is_independent(which: Atom, exponent: Exponent) -> bool:
    key = which.key
    if key[0] == "#":  # a large base was not factored to the end, a large power was not written out
        return 0 < exponent < 1 and int(key[1:]) < 4_000_000
    is_variable = key.startswith("v:") and "(" not in key
    return is_variable or key in ("i", "pi", "e") or (key.startswith("(v:") and key.count("(") == 1)


def _has(value: Quotient, which: Atom) -> bool:
    return any(base == which for poly in (value.top, value.bottom) for monomial in poly for base, _ in monomial)
