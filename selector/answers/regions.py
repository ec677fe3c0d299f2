"""Stretches of the real line: reading bounds, joining, cutting and ordering them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cmp_to_key

from selector.answers import ring
from selector.answers.exact import exact_value
from selector.answers.numeric import approximate
from selector.answers.ring import Atom, Quotient
from selector.answers.syntax import Node, number
from selector.answers.tokens import Unreadable
from selector.answers.views import Piece, Region

ALL = Region((Piece(None, None, False, False),))
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!=", "=": "="}


def interval(low: Node, high: Node, low_closed: bool, high_closed: bool) -> Region:
    """Return the interval between two ends; no pieces where it is certainly empty (then it was a pair of numbers)."""
    low_end = None if _is_infinite(low) else low
    high_end = None if _is_infinite(high) else high
    piece = Piece(low_end, high_end, low_closed and low_end is not None, high_closed and high_end is not None)
    if _is_infinite(low) == 1 or _is_infinite(high) == -1:
        return Region(())
    if low_end is not None and high_end is not None:
        order = _compare(low_end, high_end)
        if order is not None and (order > 0 or (order == 0 and not (low_closed and high_closed))):
            return Region(())
    return Region((piece,))


def point(node: Node) -> Region:
    """Return the region of a single number."""
    return Region((Piece(node, node, True, True),))


def bound(left: Node, op: str, right: Node) -> tuple[str, Region] | None:
    """Return the variable and the region of ``x < 3`` or ``2x + 1 >= 5``; None where it is not one bound on a name."""
    for side, other, relation in ((left, right, op), (right, left, _FLIPPED[op])):
        if side.op == "sym" and not _has_variables(other):
            return side.name, _half_line(relation, other)
    value = exact_value(Node("add", (left, Node("neg", (right,)))))
    if value is None or value.bottom != ring.ONE:
        return None
    names = {base for monomial in value.top for base, _ in monomial}
    if len(names) != 1:
        return None
    variable: Atom = names.pop()
    slope = value.top.get(((variable, 1),))
    if slope is None or not value.top.keys() <= {(), ((variable, 1),)} or not variable.key.startswith("v:"):
        return None
    root = number(-value.top.get((), Fraction(0)) / slope)
    return variable.key[2:], _half_line(op if slope > 0 else _FLIPPED[op], root)


def _half_line(op: str, end: Node) -> Region:
    infinite = _is_infinite(end)
    if infinite:
        if (op in ("<", "<=") and infinite == 1) or (op in (">", ">=") and infinite == -1):
            return ALL
        raise Unreadable("bound at infinity")
    if op == "=":
        return point(end)
    if op == "!=":
        return Region((Piece(None, end, False, False), Piece(end, None, False, False)))
    if op in ("<", "<="):
        return Region((Piece(None, end, False, op == "<="),))
    return Region((Piece(end, None, op == ">=", False),))


def union(parts: Sequence[Region]) -> Region:
    """Return the union, its pieces in order and joined where they touch."""
    pieces = [piece for region in parts for piece in region.pieces]
    if any(end is not None and approximate(end) is None for piece in pieces for end in (piece.low, piece.high)):
        return Region(tuple(pieces), _common_name(parts))
    if any(_has_variables(end) for piece in pieces for end in (piece.low, piece.high) if end is not None):
        return Region(tuple(pieces), _common_name(parts))
    pieces.sort(key=cmp_to_key(_by_low_end))
    joined: list[Piece] = []
    for piece in pieces:
        if joined and _touch(joined[-1], piece):
            joined[-1] = _merged(joined[-1], piece)
        else:
            joined.append(piece)
    return Region(tuple(joined), _common_name(parts))


def intersection(parts: Sequence[Region]) -> Region:
    """Return what all regions share."""
    result = list(ALL.pieces)
    for region in parts:
        result = [both for left in result for right in region.pieces if (both := _overlap(left, right)) is not None]
    return Region(tuple(result), _common_name(parts))


def without(region: Region, removed: Region) -> Region:
    """Return the region without another."""
    for piece in removed.pieces:
        outside = []
        if piece.low is not None:
            outside.append(Region((Piece(None, piece.low, False, not piece.low_closed),)))
        if piece.high is not None:
            outside.append(Region((Piece(piece.high, None, not piece.high_closed, False),)))
        region = Region(tuple(part for side in outside for part in intersection([region, side]).pieces), region.name)
    return region


def _common_name(parts: Sequence[Region]) -> str:
    names = {region.name for region in parts}
    return names.pop() if len(names) == 1 else ""


def _is_infinite(node: Node) -> int:
    """Return 1 for infinity, -1 for minus infinity, 0 for anything else."""
    if node.op == "inf":
        return 1
    return -_is_infinite(node.args[0]) if node.op == "neg" else 0


def _has_variables(node: Node) -> bool:
    return node.op in ("sym", "call") or any(_has_variables(part) for part in node.args)


def _compare(left: Node, right: Node) -> int | None:
    """Order two numbers: -1, 0, 1; None where that cannot be told."""
    if _has_variables(left) or _has_variables(right):
        return 0 if left == right else None
    if _same(exact_value(left), exact_value(right)):
        return 0
    low, high = approximate(left), approximate(right)
    if low is None or high is None or low == high:
        return None
    return -1 if low < high else 1


def _same(left: Quotient | None, right: Quotient | None) -> bool:
    if left is None or right is None:
        return False
    try:
        return ring.equal(left, right)
    except ring.TooLarge:
        return False


def _by_low_end(left: Piece, right: Piece) -> int:
    if left.low is None or right.low is None:
        return (left.low is not None) - (right.low is not None)
    return _compare(left.low, right.low) or (right.low_closed - left.low_closed)


def _touch(left: Piece, right: Piece) -> bool:
    if left.high is None or right.low is None:
        return True
    order = _compare(left.high, right.low)
    return order == 1 or (order == 0 and (left.high_closed or right.low_closed))


def _merged(left: Piece, right: Piece) -> Piece:
    if left.high is None:
        return left
    if right.high is None:
        return Piece(left.low, None, left.low_closed, False)
    order = _compare(left.high, right.high) or 0
    if order > 0:
        return left
    closed = right.high_closed or (order == 0 and left.high_closed)
    return Piece(left.low, right.high, left.low_closed, closed)


def _overlap(left: Piece, right: Piece) -> Piece | None:
    low, low_closed = left.low, left.low_closed
    if low is None or (right.low is not None and _needed(low, right.low) < 0):
        low, low_closed = right.low, right.low_closed
    elif right.low is not None and _needed(low, right.low) == 0:
        low_closed = low_closed and right.low_closed
    high, high_closed = left.high, left.high_closed
    if high is None or (right.high is not None and _needed(high, right.high) > 0):
        high, high_closed = right.high, right.high_closed
    elif right.high is not None and _needed(high, right.high) == 0:
        high_closed = high_closed and right.high_closed
    if low is not None and high is not None:
        order = _needed(low, high)
        if order > 0 or (order == 0 and not (low_closed and high_closed)):
            return None
    return Piece(low, high, low_closed, high_closed)


def _needed(left: Node, right: Node) -> int:
    order = _compare(left, right)
    if order is None:
        raise Unreadable("ends that cannot be ordered")
    return order
