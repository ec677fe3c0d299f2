"""Equations and inequalities up to what does not change them: a factor, the order of sides, common denominators."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from selector.answers import ring
from selector.answers.contract import Verdict
from selector.answers.exact import exact_value
from selector.answers.numeric import constant_ratio
from selector.answers.ring import Exponent, Monomial, Poly, Quotient
from selector.answers.syntax import Node, number
from selector.answers.views import Relation


def same_relation(left: Relation, right: Relation, same_value: Callable[[Node, Node], Verdict]) -> Verdict:
    """Tell whether two relations say the same: one is a constant multiple of the other (a positive one for ``<``)."""
    if left.op != right.op:
        return Verdict.DIFFERENT
    is_directed = left.op in ("<", "<=")
    ratio = constant_ratio(left.node, right.node)
    if is_directed and ratio is not None and ratio <= 0:
        return Verdict.DIFFERENT
    proportional = _proportional(exact_value(left.node), exact_value(right.node), may_lift=not is_directed)
    if proportional is False:
        return Verdict.DIFFERENT
    if proportional and (ratio is not None or not is_directed):
        return Verdict.EQUIVALENT
    if ratio is None:
        return Verdict.UNDECIDED
    factor = Fraction(ratio).limit_denominator(1000)
    if not factor or abs(float(factor) - ratio) > 1e-12 * abs(ratio):
        return Verdict.UNDECIDED
    return same_value(left.node, Node("mul", (number(factor), right.node)))


def _proportional(left: Quotient | None, right: Quotient | None, *, may_lift: bool) -> bool | None:
    """Tell whether two sums, cleared of denominators, are constant multiples of each other; None if open."""
    if left is None or right is None:
        return None
    try:
        tops = [_lifted(value.top) if may_lift else value.top for value in (left, right)]
        if not may_lift and (left.bottom != ring.ONE or right.bottom != ring.ONE):
            return None
        own, other = (_by_variables(top) for top in tops)
        if not own or not other:
            return own == other
        if own.keys() != other.keys():
            return False if ring.is_decisive(left) and ring.is_decisive(right) else None
        first = max(own)
        pairs = [
            (_constant(own[key]), _constant(other[key]), _constant(own[first]), _constant(other[first])) for key in own
        ]
        if all(ring.equal(ring.multiply(a, d), ring.multiply(b, c)) for a, b, c, d in pairs):
            return True
        return False if ring.is_decisive(left) and ring.is_decisive(right) else None
    except (ring.TooLarge, ring.Undefined):
        return None


def _constant(poly: Poly) -> Quotient:
    return Quotient(poly, ring.ONE)


def _by_variables(poly: Poly) -> dict[str, Poly]:
    """Group terms by their variables; what is left of each is a constant factor."""
    groups: dict[str, Poly] = {}
    for monomial, factor in poly.items():
        variable = tuple(entry for entry in monomial if "v:" in entry[0].key)
        rest: Monomial = tuple(entry for entry in monomial if "v:" not in entry[0].key)
        groups.setdefault(ring.poly_key({variable: Fraction(1)}), {})[rest] = factor
    return groups


def _lifted(poly: Poly) -> Poly:
    """Multiply by the variables that stand in denominators."""
    lowest: dict[ring.Atom, Exponent] = {}
    for monomial in poly:
        for base, exponent in monomial:
            if "v:" in base.key and exponent < 0:
                lowest[base] = min(lowest.get(base, 0), exponent)
    if not lowest:
        return poly
    lift: Poly = {tuple(sorted((base, -exponent) for base, exponent in lowest.items())): Fraction(1)}
    return ring.multiply(Quotient(poly, ring.ONE), Quotient(lift, ring.ONE)).top
