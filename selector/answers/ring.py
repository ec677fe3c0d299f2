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
from functools import lru_cache
from math import comb, gcd, isqrt
from typing import NamedTuple

MAX_TERMS = 250
MAX_PRODUCTS = 12_000
MAX_BITS = 40_000  # of a coefficient; 2004! has 19,000
_MOVED_BITS = 20_000  # of a prime's power that is written out

Exponent = int | Fraction
Monomial = tuple[tuple["Atom", Exponent], ...]
Poly = dict[Monomial, Fraction]


class TooLarge(Exception):
    """Exact arithmetic would take too long; the expression stays undecided here."""


class Undefined(Exception):
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
    return Quotient(_settled({which: exponent}, Fraction(1)), ONE)


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
        return _quotient(_sum(left.top, right.top), left.bottom)
    top = _sum(_product(left.top, right.bottom), _product(right.top, left.bottom))
    return _quotient(top, _product(left.bottom, right.bottom))


def negate(value: Quotient) -> Quotient:
    """Return minus the value."""
    return Quotient({monomial: -factor for monomial, factor in value.top.items()}, value.bottom)


def multiply(left: Quotient, right: Quotient) -> Quotient:
    """Return the product."""
    return _quotient(_product(left.top, right.top), _product(left.bottom, right.bottom))


def invert(value: Quotient) -> Quotient:
    """Return one over the value. Raises Undefined for zero."""
    if not value.top:
        raise Undefined("division by zero")
    return _quotient(value.bottom, value.top)


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
    return "+".join(sorted(_term_key(monomial, factor) for monomial, factor in poly.items())) or "0"


def _term_key(monomial: Monomial, factor: Fraction) -> str:
    parts = [base.key if exponent == 1 else f"{base.key}^({exponent})" for base, exponent in monomial]
    number = _digits(factor)
    return "*".join([number, *parts]) if parts and number != "1" else "*".join(parts) or number


def _digits(factor: Fraction) -> str:
    large = max(abs(factor.numerator), factor.denominator).bit_length() > 12_000
    return f"{factor.numerator:#x}/{factor.denominator:#x}" if large else str(factor)


def power(base: Quotient, exponent: Quotient) -> Quotient:
    """Return base to the exponent. Raises Undefined for 0^0 and 0 to a negative power, TooLarge past the bounds."""
    rational = as_rational(exponent)
    if rational is None:
        return _symbolic_power(base, exponent)
    if not base.top:
        if rational > 0:
            return constant(0)
        raise Undefined("zero to a power that is not positive")
    if rational.denominator == 1:
        return _integer_power(base, rational.numerator)
    return _rational_power(base, rational)


def _integer_power(base: Quotient, exponent: int) -> Quotient:
    if exponent < 0:
        base, exponent = invert(base), -exponent
    if base.bottom == ONE and len(base.top) == 1:
        ((monomial, factor),) = base.top.items()
        powers = {which: old * exponent for which, old in monomial}
        small = max(abs(factor.numerator), factor.denominator).bit_length() * exponent <= _MOVED_BITS
        if small or abs(factor) == 1:
            return Quotient(_settled(powers, factor ** (exponent if abs(factor) != 1 else exponent % 2 or 2)), ONE)
        sign = -1 if factor < 0 and exponent % 2 else 1
        for prime, n in _factors(abs(factor)).items():
            powers[prime] = powers.get(prime, 0) + n * exponent
        return Quotient(_settled(powers, Fraction(sign)), ONE)
    if exponent > 60 or comb(exponent + max(len(base.top), len(base.bottom)) - 1, exponent) > MAX_TERMS:
        raise TooLarge("power of a sum")
    top, bottom = ONE, ONE
    for _ in range(exponent):
        top, bottom = _product(top, base.top), _product(bottom, base.bottom)
    return _quotient(top, bottom)


def _rational_power(base: Quotient, exponent: Fraction) -> Quotient:
    if base.bottom != ONE:
        bottom = _rational_power(Quotient(base.bottom, ONE), exponent)
        return multiply(_rational_power(Quotient(base.top, ONE), exponent), invert(bottom))
    content, rest = _content(base.top)
    powers: dict[Atom, Exponent] = {prime: n * exponent for prime, n in _factors(content).items()}
    sign = Fraction(1)
    if len(rest) == 1:
        ((monomial, factor),) = rest.items()
        constants = {which: n for which, n in monomial if which.key in ("pi", "e") or which.key[0] == "#"}
        others = [(which, n) for which, n in monomial if which not in constants]
        for which, n in constants.items():
            powers[which] = powers.get(which, 0) + n * exponent
        if factor < 0 and not others:
            if exponent.denominator % 2:
                sign = Fraction(-1) if exponent.numerator % 2 else Fraction(1)
            elif exponent.denominator == 2:
                powers[I_UNIT] = powers.get(I_UNIT, 0) + exponent.numerator
            else:
                raise TooLarge("root of a negative number")
            return Quotient(_settled(powers, sign), ONE)
        if not others:
            return Quotient(_settled(powers, sign), ONE)
        if factor > 0 and len(others) == 1 and others[0][1] == 1 and others[0][0].key.startswith("v:"):
            powers[others[0][0]] = exponent
            return Quotient(_settled(powers, sign), ONE)
        rest = _settled(dict(others), factor)
    root = Atom(f"root({poly_key(rest)})", tuple(sorted(rest.items(), key=lambda term: _term_key(*term))))
    return multiply(Quotient(_settled(powers, sign), ONE), atom(root, exponent))


def _symbolic_power(base: Quotient, exponent: Quotient) -> Quotient:
    """Return base^(c1 m1 + c2 m2 + ...) as the product of (base^m1)^c1, ...; whole constants are written out."""
    if exponent.bottom != ONE or len(exponent.top) > 12:
        raise TooLarge("exponent")
    rational = as_rational(base)
    if rational is not None and rational > 0:
        bases: dict[Atom, Exponent] = dict(_factors(rational))
        sign = 1
    elif base.bottom == ONE and len(base.top) == 1 and all(n == 1 for n in base.top.values()):
        ((monomial, _),) = base.top.items()
        if len(monomial) != 1 or not (monomial[0][0].key in ("e", "pi") or monomial[0][0].key.startswith("v:")):
            raise TooLarge("base")
        bases, sign = {monomial[0][0]: monomial[0][1]}, 1
    elif rational == -1:
        bases, sign = {}, -1
    else:
        raise TooLarge("base")
    result = constant(1)
    for monomial, factor in exponent.top.items():
        if not monomial:
            result = multiply(result, power(base, constant(factor)))
            continue
        label = poly_key({monomial: Fraction(1)})
        powers: dict[Atom, Exponent] = {Atom(f"({which.key})^[{label}]"): n * factor for which, n in bases.items()}
        if sign < 0:
            powers[Atom(f"(-1)^[{label}]")] = factor
        result = multiply(result, Quotient(_settled(powers, Fraction(1)), ONE))
    return result


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


def _product(left: Poly, right: Poly) -> Poly:
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
                term = _settled(powers, factor)
            result = _sum(result, term)
    return result


def _settled(powers: Mapping[Atom, Exponent], factor: Fraction) -> Poly:
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
            if whole and abs(whole) * prime.bit_length() <= _MOVED_BITS:
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
        result = _product(result, poly)
    return result


def _quotient(top: Poly, bottom: Poly) -> Quotient:
    if not bottom:
        raise Undefined("division by zero")
    if not top:
        return Quotient({}, ONE)
    if len(bottom) == 1:
        ((monomial, factor),) = bottom.items()
        if not monomial and factor == 1:
            return Quotient(top, ONE)
        inverse = _settled({which: -exponent for which, exponent in monomial}, 1 / factor)
        return Quotient(_product(top, inverse), ONE)
    lead = bottom[min(bottom, key=lambda monomial: _term_key(monomial, Fraction(1)))]
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
    lift: Monomial = tuple(sorted((which, -(exponent.numerator // exponent.denominator)) for which, exponent in lowest.items()))
    result: Poly = {}
    for monomial, factor in poly.items():
        powers: dict[Atom, Exponent] = dict(monomial)
        for which, exponent in lift:
            powers[which] = powers.get(which, 0) + exponent
        result = _sum(result, _settled(powers, factor))
    return result


def _is_independent(which: Atom, exponent: Exponent) -> bool:
    key = which.key
    if key[0] == "#":  # a large base was not factored to the end, a large power was not written out
        return 0 < exponent < 1 and int(key[1:]) < 4_000_000
    return key in ("i", "pi", "e") or key.startswith("v:") or ("^[" in key and key.startswith("(v:"))


def _has(value: Quotient, which: Atom) -> bool:
    return any(base == which for poly in (value.top, value.bottom) for monomial in poly for base, _ in monomial)


def _content(poly: Poly) -> tuple[Fraction, Poly]:
    """Split off the positive rational factor that leaves whole coefficients without a common divisor."""
    top, bottom = 0, 1
    for factor in poly.values():
        top = gcd(top, factor.numerator)
        bottom = bottom * factor.denominator // gcd(bottom, factor.denominator)
        if bottom.bit_length() > MAX_BITS:
            raise TooLarge("coefficient")
    content = Fraction(top, bottom)
    return content, {monomial: factor / content for monomial, factor in poly.items()}


def _factors(value: Fraction) -> dict[Atom, int]:
    """Return the prime factors of a positive rational with their exponents."""
    factors = {Atom(f"#{prime}"): n for prime, n in factor_integer(value.numerator)}
    for prime, n in factor_integer(value.denominator):
        factors[Atom(f"#{prime}")] = -n
    return factors


@lru_cache(maxsize=4096)
def factor_integer(value: int) -> tuple[tuple[int, int], ...]:
    """Return prime factors with exponents; what trial division to 2000 leaves is kept whole (or as a root of it).

    Raises TooLarge past 2048 bits.
    """
    if value.bit_length() > 2048:
        raise TooLarge("factors")
    factors: list[tuple[int, int]] = []
    divisor = 2
    while divisor <= 2000 and divisor * divisor <= value:
        n = 0
        while value % divisor == 0:
            value //= divisor
            n += 1
        if n:
            factors.append((divisor, n))
        divisor += 1 if divisor == 2 else 2
    if value > 1:
        root = isqrt(value)
        factors.append((root, 2) if root * root == value else (value, 1))
    return tuple(factors)
