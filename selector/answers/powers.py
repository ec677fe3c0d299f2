"""Powers and roots in exact arithmetic, and the prime factors they are written by."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import comb, gcd, isqrt

from selector.answers.ring import (
    I_UNIT,
    MAX_BITS,
    MAX_TERMS,
    MOVED_BITS,
    ONE,
    Atom,
    Exponent,
    Poly,
    Quotient,
    TooLarge,
    Undefined,
    as_rational,
    atom,
    constant,
    invert,
    multiply,
    poly_key,
    product,
    quotient,
    settled,
    term_key,
)


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
        small = max(abs(factor.numerator), factor.denominator).bit_length() * exponent <= MOVED_BITS
        if small or abs(factor) == 1:
            return Quotient(settled(powers, factor ** (exponent if abs(factor) != 1 else exponent % 2 or 2)), ONE)
        sign = -1 if factor < 0 and exponent % 2 else 1
        for prime, n in _factors(abs(factor)).items():
            powers[prime] = powers.get(prime, 0) + n * exponent
        return Quotient(settled(powers, Fraction(sign)), ONE)
    if exponent > 60 or comb(exponent + max(len(base.top), len(base.bottom)) - 1, exponent) > MAX_TERMS:
        raise TooLarge("power of a sum")
    top, bottom = ONE, ONE
    for _ in range(exponent):
        top, bottom = product(top, base.top), product(bottom, base.bottom)
    return quotient(top, bottom)


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
            return Quotient(settled(powers, sign), ONE)
        if not others:
            return Quotient(settled(powers, sign), ONE)
        if factor > 0 and len(others) == 1 and others[0][1] == 1 and others[0][0].key.startswith("v:"):
            powers[others[0][0]] = exponent
            return Quotient(settled(powers, sign), ONE)
        rest = settled(dict(others), factor)
    root = Atom(f"root({poly_key(rest)})", tuple(sorted(rest.items(), key=lambda term: term_key(*term))))
    return multiply(Quotient(settled(powers, sign), ONE), atom(root, exponent))


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
        result = multiply(result, Quotient(settled(powers, Fraction(1)), ONE))
    return result


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
