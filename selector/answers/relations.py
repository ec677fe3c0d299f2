"""Chains of relations: an equation, a bound on a variable, a value with its name."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from selector.answers import regions, ring
from selector.answers.exact import exact_value
from selector.answers.names import name_of, renamed, variables_of
from selector.answers.split import at_top
from selector.answers.syntax import Node
from selector.answers.tokens import Unreadable
from selector.answers.values import read_expression, read_scalar
from selector.answers.views import Assigned, Region, Relation, Scalar, Several, System, View

RELATIONS = {
    "=": "=",
    "<": "<",
    ">": ">",
    "\\le": "<=",
    "\\ge": ">=",
    "\\ne": "!=",
    "\\equiv": "=",
}


def read_relations(text: str, kind: str | None, read_part: Callable[[str], list[View]]) -> list[View]:
    """Read a chain of relations: an equation, a bound, a value with its name. ``read_part`` reads what is named.

    Raises Unreadable.
    """
    marks = at_top(text, set(RELATIONS))
    sides, start = [], 0
    for position, mark in marks:
        sides.append(text[start:position].strip())
        start = position + len(mark)
    sides.append(text[start:].strip())
    ops = [RELATIONS[mark] for _, mark in marks]
    if len(ops) > 12 or not all(sides):
        raise Unreadable("relation")
    if set(ops) == {"="}:
        return _equation(sides, kind, read_part)
    return _inequality([read_expression(side) for side in sides], ops)


def _equation(sides: list[str], kind: str | None, read_part: Callable[[str], list[View]]) -> list[View]:
    views: list[View] = []
    name = name_of(sides[0])
    value_text = sides[-1]
    if not name and len(sides) == 2 and name_of(sides[1]) and _is_constant(sides[0]):
        name, value_text = name_of(sides[1]), sides[0]
    if name and _all_equal(sides[1:]):
        for view in read_part(value_text):
            mentions = isinstance(view, Scalar) and name in variables_of(view.node)
            is_pair_as_interval = isinstance(view, Region) and name.startswith("(")
            if not mentions and not is_pair_as_interval and (name.find(":") < 0 or _is_constant(value_text)):
                views.append(renamed(view, name))
                if isinstance(view, Several) and view.style == "tuple" and name.startswith("("):
                    names = name[1:-1].split(",")
                    if len(names) == len(view.items) == len(set(names)):
                        views.append(Assigned(tuple(sorted(zip(names, view.items, strict=True)))))
    try:
        nodes = [read_expression(side) for side in sides]
    except Unreadable:
        if not views:
            raise
        return views
    if not name and _all_equal(sides):
        views.append(read_scalar(sides[-1], kind))
    pairs = pairwise(nodes)
    views.append(System(tuple(Relation(Node("add", (left, Node("neg", (right,)))), "=") for left, right in pairs)))
    return views


def _all_equal(sides: list[str]) -> bool:
    """Tell whether all sides of a chain have the same exact value, as in ``256 + 37 = 293``."""
    if len(sides) == 1:
        return True
    first, *others = [exact_value(read_expression(side)) for side in sides]
    return first is not None and all(other is not None and ring.equal(first, other) for other in others)


def _is_constant(text: str) -> bool:
    try:
        return not variables_of(read_expression(text))
    except Unreadable:
        return False


def _inequality(nodes: list[Node], ops: list[str]) -> list[View]:
    region = None
    pairs = list(zip(nodes, ops, nodes[1:], strict=False))
    bounds = [regions.bound(left, op, right) for left, op, right in pairs]
    if all(bounds) and len({found[0] for found in bounds if found}) == 1:
        region = regions.intersection([found[1] for found in bounds if found])
        region = Region(region.pieces, next(found[0] for found in bounds if found))
    relations = []
    for left, op, right in pairs:
        if op in (">", ">="):
            left, right, op = right, left, {">": "<", ">=": "<="}[op]
        relations.append(Relation(Node("add", (left, Node("neg", (right,)))), op))
    return [*([region] if region is not None else []), System(tuple(relations))]
