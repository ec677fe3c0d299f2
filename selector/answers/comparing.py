"""Compare two readings, view by view: exactly where arithmetic decides, by a proof where only symbols can tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction

from selector.answers import ring
from selector.answers.contract import AnswerPolicy, Verdict
from selector.answers.equations import same_relation
from selector.answers.exact import exact_value
from selector.answers.numeric import agree_somewhere, are_apart, difference
from selector.answers.readings import read
from selector.answers.split import is_balanced, nesting
from selector.answers.syntax import Node, number
from selector.answers.units import conversion
from selector.answers.views import (
    Assigned,
    Choice,
    Clock,
    Piece,
    Ratio,
    Reading,
    Region,
    Scalar,
    Several,
    System,
    Unparsed,
    View,
    Words,
)

EQUIVALENT, DIFFERENT, UNDECIDED = Verdict.EQUIVALENT, Verdict.DIFFERENT, Verdict.UNDECIDED
PRINTED_DIGITS = 12  # a decimal with as many significant digits is a machine's print of a fraction

# what math-verify knows and our grammar does not
_KNOWN_OUTSIDE = re.compile(
    r"\\(?:int|iint|oint|sum|prod|lim|max|min|gcd|lcm|det|partial|pmod|bmod|mod|nabla)(?![A-Za-z])"
)

Prove = Callable[[Node, Node], bool]  # True only where the two are proved equal
Ask = Callable[[str, str], bool]  # the same for mathematics outside the grammar


def nothing_proved(left: object, right: object) -> bool:
    """Stand in for a prover where there is none."""
    return False


class Comparison:
    """One comparison under one policy; the provers are asked last, and only about values that agree numerically."""

    def __init__(self, policy: AnswerPolicy, prove: Prove = nothing_proved, ask: Ask = nothing_proved) -> None:
        self.policy, self.prove, self.ask = policy, prove, ask
        self.texts = ("", "")
        self.is_open = False  # set where a prover could still decide what arithmetic could not

    def answers(self, gold: str, answer: str, kind: str | None) -> Verdict:
        """Compare two cleaned answers."""
        if not gold or not answer:
            return DIFFERENT
        if gold == answer:
            return EQUIVALENT
        self.texts = gold, answer
        return self.readings(read(gold, kind), read(answer, kind))

    def readings(self, gold: Reading, answer: Reading) -> Verdict:
        """Return the best verdict over all pairs of views of the same sort; an empty reading equals nothing."""
        if not gold or not answer:
            return DIFFERENT
        verdicts = [self.views(left, right) for left in gold for right in answer]
        return best(verdicts)

    def views(self, left: View, right: View) -> Verdict:
        """Compare two views; views of different sorts are different."""
        if isinstance(left, Unparsed) or isinstance(right, Unparsed):
            return self.unparsed(left, right)
        if type(left) is not type(right) and not (isinstance(left, Scalar) and isinstance(right, Ratio)):
            return DIFFERENT
        for sort, compare in self._comparers:
            if isinstance(left, sort) and isinstance(right, sort):
                return compare(self, left, right)
        return DIFFERENT

    def scalars(self, left: Scalar, right: Scalar) -> Verdict:
        """Compare two values with what they carry."""
        if left.name and right.name and left.name != right.name:
            return DIFFERENT
        factor = self._unit_factor(left, right)
        if factor is None:
            return DIFFERENT
        if left.percent != right.percent:
            return self._percent_against_number(left, right)
        if factor != 1:
            return self.values(Node("mul", (left.node, number(factor))), right.node)
        verdicts = [self._decimals(left, right) or self.values(left.node, right.node)]
        if left.degree != right.degree:
            degrees, plain = (left, right) if left.degree else (right, left)
            if plain.unit or plain.currency or plain.percent:
                return DIFFERENT
            if _mentions_pi(plain.node):
                verdicts.append(self.values(Node("deg", (degrees.node,)), plain.node))
            elif self.policy.units == "required":
                return DIFFERENT
        return best(verdicts)

    def _unit_factor(self, left: Scalar, right: Scalar) -> Fraction | None:
        for own, other in ((left.currency, right.currency), (left.unit, right.unit)):
            if own and other and own != other and (own == left.currency or conversion(own, other) is None):
                return None
            if bool(own) != bool(other) and self.policy.units == "required":
                return None
        if (left.unit or left.currency) and (right.unit or right.currency):
            if left.unit and right.currency and not right.unit and not left.currency:
                return None
            if right.unit and left.currency and not left.unit and not right.currency:
                return None
        if left.unit and right.unit:
            return conversion(left.unit, right.unit)
        return Fraction(1)

    def _percent_against_number(self, left: Scalar, right: Scalar) -> Verdict:
        percent, plain = (left, right) if left.percent else (right, left)
        verdicts = [DIFFERENT]
        if self.policy.percent in ("either", "number"):
            verdicts.append(self.values(percent.node, plain.node))
        if self.policy.percent in ("either", "fraction"):
            verdicts.append(self.values(Node("div", (percent.node, number(100))), plain.node))
        return best(verdicts)

    def _decimals(self, left: Scalar, right: Scalar) -> Verdict | None:
        """Accept a decimal of twelve or more digits for the fraction that it is the rounding or cutting of."""
        for decimal, other in ((left, right), (right, left)):
            if decimal.significant_digits < PRINTED_DIGITS or other.decimal_places >= 0:
                continue
            printed, exact = exact_value(decimal.node), exact_value(other.node)
            given = printed and ring.as_rational(printed)
            wanted = exact and ring.as_rational(exact)
            if given is not None and wanted is not None and wanted.denominator != 1:
                last_place = Fraction(1, 10**decimal.decimal_places)
                if abs(given - wanted) < last_place:
                    return EQUIVALENT
        return None

    def values(self, left: Node, right: Node) -> Verdict:
        """Compare two expressions: exactly, then numerically to tell them apart, then by proof."""
        if left == right:
            return EQUIVALENT
        infinities = _infinity(left), _infinity(right)
        if any(infinities):
            return EQUIVALENT if infinities[0] == infinities[1] else DIFFERENT
        exact = exact_value(left), exact_value(right)
        if exact[0] is not None and exact[1] is not None:
            try:
                if ring.equal(exact[0], exact[1]):
                    return EQUIVALENT
                decisive = ring.is_decisive(exact[0]) and ring.is_decisive(exact[1])
            except (ring.TooLarge, ring.Undefined):
                decisive = False
            if decisive and self.policy.tolerance == "0":
                return DIFFERENT
        if self._is_within_tolerance(left, right):
            return EQUIVALENT
        if exact[0] is not None and exact[1] is not None and decisive:
            return DIFFERENT
        if are_apart(left, right):
            return DIFFERENT
        if not agree_somewhere(left, right):
            return UNDECIDED
        self.is_open = True
        return EQUIVALENT if self.prove(left, right) else UNDECIDED

    def _is_within_tolerance(self, left: Node, right: Node) -> bool:
        tolerance = Decimal(self.policy.tolerance)
        if not tolerance or has_variables(left) or has_variables(right):
            return False
        relative = difference(left, right)
        return relative is not None and relative <= tolerance * (1 + Decimal("1e-15"))

    def several(self, left: Several, right: Several) -> Verdict:
        """Compare several answers: in order for tuples, in any order for sets and bare lists."""
        if left.name and right.name and left.name != right.name:
            return DIFFERENT
        styles = {left.style, right.style}
        ordered = "tuple" in styles or "matrix" in styles or "determinant" in styles or styles == {"brackets"}
        if len(styles) == 2:
            pairable = styles in (
                {"bag", "set"},
                {"bag", "tuple"},
                {"bag", "brackets"} if max(len(left.items), len(right.items)) != 2 else set(),
                {"set", "brackets"} if max(len(left.items), len(right.items)) != 2 else set(),
            )
            if not pairable:
                return DIFFERENT
        left_items, right_items = left.items, right.items
        if "set" in styles:
            left_items, right_items = self.distinct(left_items), self.distinct(right_items)
        if len(left_items) != len(right_items):
            return DIFFERENT
        if ordered:
            return worst([self.readings(*pair) for pair in zip(left_items, right_items, strict=True)])
        return self.any_order(left_items, right_items)

    def distinct(self, items: Sequence[Reading]) -> tuple[Reading, ...]:
        """Return the items without later ones that equal an earlier one."""
        kept: list[Reading] = []
        for item in items:
            if not any(self.readings(item, other) is EQUIVALENT for other in kept):
                kept.append(item)
        return tuple(kept)

    def any_order(self, left: Sequence[Reading], right: Sequence[Reading]) -> Verdict:
        """Match every item with another one of the other side."""
        remaining = list(right)
        verdict = EQUIVALENT
        for item in left:
            verdicts = [self.readings(item, other) for other in remaining]
            if EQUIVALENT in verdicts:
                remaining.pop(verdicts.index(EQUIVALENT))
            elif UNDECIDED in verdicts:
                verdict = UNDECIDED
            else:
                return DIFFERENT
        return verdict

    def regions(self, left: Region, right: Region) -> Verdict:
        """Compare unions of intervals piece by piece; a bound on x and one on y stay undecided."""
        if len(left.pieces) != len(right.pieces):
            return DIFFERENT
        verdict = worst([self.pieces(*pair) for pair in zip(left.pieces, right.pieces, strict=True)])
        if left.name and right.name and left.name != right.name and verdict is EQUIVALENT:
            return UNDECIDED
        return verdict

    def pieces(self, left: Piece, right: Piece) -> Verdict:
        """Compare two intervals: closed ends, then their values."""
        if (left.low_closed, left.high_closed) != (right.low_closed, right.high_closed):
            return DIFFERENT
        verdicts = [EQUIVALENT]
        for own, other in ((left.low, right.low), (left.high, right.high)):
            if own is not None and other is not None:
                verdicts.append(self.values(own, other))
            elif own is not other:
                verdicts.append(DIFFERENT)
        return worst(verdicts)

    def systems(self, left: System, right: System) -> Verdict:
        """Compare systems of relations, in any order."""
        if len(left.relations) != len(right.relations):
            return DIFFERENT
        remaining = list(right.relations)
        verdict = EQUIVALENT
        for relation in left.relations:
            verdicts = [same_relation(relation, other, self.values) for other in remaining]
            if EQUIVALENT in verdicts:
                remaining.pop(verdicts.index(EQUIVALENT))
            elif UNDECIDED in verdicts:
                verdict = UNDECIDED
            else:
                return DIFFERENT
        return verdict

    def assigned(self, left: Assigned, right: Assigned) -> Verdict:
        """Compare values by name."""
        if [name for name, _ in left.values] != [name for name, _ in right.values]:
            return DIFFERENT
        pairs = zip(left.values, right.values, strict=True)
        return worst([self.readings(own[1], other[1]) for own, other in pairs])

    def ratios(self, left: Ratio, right: Ratio) -> Verdict:
        """Compare ratios up to a common factor; two that may be times of day are not ratios."""
        if len(left.parts) != len(right.parts) or (left.is_clock and right.is_clock):
            return DIFFERENT
        verdicts = []
        for own, other in zip(left.parts[1:], right.parts[1:], strict=True):
            crossed = Node("mul", (left.parts[0], other)), Node("mul", (right.parts[0], own))
            verdicts.append(self.values(*crossed))
        return worst(verdicts)

    def clocks(self, left: Clock, right: Clock) -> Verdict:
        """Compare times; where only one says am or pm the other may be on either half of the day."""
        if left.seconds == right.seconds:
            return EQUIVALENT
        if bool(left.half) != bool(right.half) and left.seconds % 43_200 == right.seconds % 43_200:
            return UNDECIDED
        return DIFFERENT

    def choices(self, left: Choice, right: Choice) -> Verdict:
        """Compare letters; where both sides go on after the letter they must not say different things."""
        keep = self.policy.case == "keep"
        own, other = ({letter if keep else letter.upper() for letter in choice.letters} for choice in (left, right))
        if own != other:
            return DIFFERENT
        if left.rest and right.rest and left.rest.casefold() != right.rest.casefold():
            return UNDECIDED
        return EQUIVALENT

    def words(self, left: Words, right: Words) -> Verdict:
        """Compare text."""
        own, other = left.text, right.text
        if self.policy.case == "ignore":
            own, other = own.casefold(), other.casefold()
        return EQUIVALENT if own and own == other else DIFFERENT

    def unparsed(self, left: View, right: View) -> Verdict:
        """Compare mathematics outside the grammar, of which a whole answer consists: by its text, then by a proof."""
        if isinstance(left, Words | Choice) or isinstance(right, Words | Choice):
            return DIFFERENT
        if isinstance(left, Unparsed) and isinstance(right, Unparsed) and _squeezed(left) == _squeezed(right):
            return EQUIVALENT
        if not all(map(_is_worth_asking, self.texts)) or not any(map(may_be_known_outside, self.texts)):
            return UNDECIDED
        self.is_open = True
        return EQUIVALENT if self.ask(*self.texts) else UNDECIDED

    _comparers: Sequence[tuple[type, Callable[..., Verdict]]] = (
        (Scalar, scalars),
        (Several, several),
        (Region, regions),
        (System, systems),
        (Assigned, assigned),
        (Ratio, ratios),
        (Clock, clocks),
        (Choice, choices),
        (Words, words),
    )


def _is_worth_asking(text: str) -> bool:
    """Tell whether text is short and plain enough for the parser of math-verify."""
    return len(text) <= 400 and text.isascii() and text.isprintable() and is_balanced(text) and nesting(text) <= 12


def may_be_known_outside(text: str) -> bool:
    """Tell whether text has a sum, an integral or the like, which math-verify knows and our grammar does not."""
    return _KNOWN_OUTSIDE.search(text) is not None


def _squeezed(view: Unparsed) -> str:
    return "".join(view.text.split())


def best(verdicts: Sequence[Verdict]) -> Verdict:
    """Return equivalent where any is, else undecided where any is, else different."""
    return EQUIVALENT if EQUIVALENT in verdicts else UNDECIDED if UNDECIDED in verdicts else DIFFERENT


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return different where any is, else undecided where any is, else equivalent."""
    return DIFFERENT if DIFFERENT in verdicts else UNDECIDED if UNDECIDED in verdicts else EQUIVALENT


def has_variables(node: Node) -> bool:
    """Tell whether a variable stands in the tree."""
    return node.op in ("sym", "call") or any(has_variables(part) for part in node.args)


def _infinity(node: Node) -> int:
    if node.op == "inf":
        return 1
    return -_infinity(node.args[0]) if node.op == "neg" else 0


def _mentions_pi(node: Node) -> bool:
    return node.op == "pi" or any(_mentions_pi(part) for part in node.args)
