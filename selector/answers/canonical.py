"""Kinds and exact forms of answers."""

from __future__ import annotations

from functools import lru_cache

from selector.answers import ring
from selector.answers.comparing import EQUIVALENT, Comparison, has_variables
from selector.answers.contract import AnswerPolicy, Verdict
from selector.answers.exact import exact_value
from selector.answers.readings import read
from selector.answers.spelling import clean
from selector.answers.syntax import Node
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
    View,
    Words,
)

_DEFAULT = AnswerPolicy()


@lru_cache(maxsize=16384)
def infer_kind(answer: str) -> str:
    """Return the kind an answer looks to be of; "text" for an empty one."""
    views = read(clean(answer))
    for view in views:
        if isinstance(view, Choice) and not any(isinstance(other, System | Region) for other in views):
            return "choice"
    return next((_kind_of(view) for view in views), "text")


def _kind_of(view: View) -> str:
    if isinstance(view, Scalar):
        if view.percent:
            return "percent"
        if view.currency:
            return "currency"
        return "expression" if has_variables(view.node) else "number"
    if isinstance(view, Several):
        return {"tuple": "tuple", "matrix": "expression", "determinant": "expression"}.get(view.style, "set")
    if isinstance(view, Region):
        return "interval"
    if isinstance(view, System | Assigned):
        return "equation"
    if isinstance(view, Ratio | Clock):
        return "number"
    return "text" if isinstance(view, Words) else "expression"


@lru_cache(maxsize=16384)
def canonical_form(answer: str, kind: str | None = None, policy: AnswerPolicy = _DEFAULT) -> str:
    """Return the exact form of an answer, as text; "" for an empty one.

    Two answers with equal forms are equivalent under the policy. Different forms may still be equivalent: a form is
    exact, not complete.
    """
    views = read(clean(answer), kind)
    return _form(views[0], policy) if views else ""


def exact_verdict(gold: str, answer: str, kind: str | None = None, policy: AnswerPolicy = _DEFAULT) -> Verdict:
    """Compare two answers by exact arithmetic and numeric values alone, without a worker.

    ``undecided`` where only symbols could tell, or where the answers are too large to look into. An empty answer is
    different from everything, itself included.
    """
    return compare_exactly(gold, answer, kind, policy)[0]


@lru_cache(maxsize=65536)
def compare_exactly(gold: str, answer: str, kind: str | None, policy: AnswerPolicy) -> tuple[Verdict, bool]:
    """Return the exact verdict, and whether a proof could still decide an undecided one."""
    comparison = Comparison(policy)
    return comparison.answers(clean(gold), clean(answer), kind), comparison.is_open


def equivalent_exactly(gold: str, answer: str, kind: str | None = None, policy: AnswerPolicy = _DEFAULT) -> bool:
    """Tell whether two answers are equivalent by exact forms alone."""
    return compare_exactly(gold, answer, kind, policy)[0] is EQUIVALENT


def _form(view: View, policy: AnswerPolicy) -> str:
    if isinstance(view, Scalar):
        carried = [view.name, "%" if view.percent else "", view.currency, view.unit, "deg" if view.degree else ""]
        label = " ".join(part for part in carried if part)
        return f"{_node_form(view.node)} [{label}]" if label else _node_form(view.node)
    if isinstance(view, Several):
        items = [_reading_form(item, policy) for item in view.items]
        if view.style in ("bag", "set"):
            items = sorted(set(items)) if view.style == "set" else sorted(items)
        return f"{view.style}({'; '.join(items)})" + (f" [{view.name}]" if view.name else "")
    if isinstance(view, Region):
        pieces = " u ".join(_piece_form(piece) for piece in view.pieces)
        return f"region {pieces or 'empty'}" + (f" [{view.name}]" if view.name else "")
    if isinstance(view, System):
        return "system " + "; ".join(sorted(f"{_node_form(rel.node)} {rel.op} 0" for rel in view.relations))
    if isinstance(view, Assigned):
        return "; ".join(f"{name} = {_reading_form(value, policy)}" for name, value in view.values)
    if isinstance(view, Ratio):
        return "ratio " + " : ".join(_node_form(part) for part in view.parts)
    if isinstance(view, Clock):
        return f"clock {view.seconds}{view.half}"
    if isinstance(view, Choice):
        letters = "".join(sorted(view.letters))
        return letters if policy.case == "keep" else letters.upper()
    text = view.text.casefold() if isinstance(view, Words) and policy.case == "ignore" else view.text
    return f"text {text}" if isinstance(view, Words) else "unparsed " + "".join(text.split())


def _reading_form(reading: Reading, policy: AnswerPolicy) -> str:
    return _form(reading[0], policy) if reading else ""


def _piece_form(piece: Piece) -> str:
    low = "-inf" if piece.low is None else _node_form(piece.low)
    high = "inf" if piece.high is None else _node_form(piece.high)
    return f"{'[' if piece.low_closed else '('}{low}, {high}{']' if piece.high_closed else ')'}"


def _node_form(node: Node) -> str:
    value = exact_value(node)
    if value is not None:
        return ring.key_of(value).replace("v:", "").replace("#", "")
    return _structure_form(node)


def _structure_form(node: Node) -> str:
    if node.op == "num":
        return (
            str(node.value)
            if node.value is None or node.value.denominator.bit_length() < 4000
            else hex(node.value.numerator)
        )
    inside = ", ".join(_structure_form(part) for part in node.args)
    return f"{node.op}:{node.name}({inside})"
