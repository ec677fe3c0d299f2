"""Names of values: what stands before ``=`` or ``\\in``."""

from __future__ import annotations

import re

from selector.answers import ring
from selector.answers.exact import exact_value
from selector.answers.split import cut, cut_list, enclosed
from selector.answers.syntax import Node, parse
from selector.answers.tokens import Unreadable, tokenize
from selector.answers.views import Region, Scalar, Several, View
from selector.answers.wording import is_prose, plain_words

_CALL = re.compile(r"(?:\\[A-Za-z]+|[A-Za-z])(?:_(?:\{[^{}]*\}|\w))?'*\s*\([^()=]*\)")


def renamed(view: View, name: str) -> View:
    if isinstance(view, Scalar):
        return Scalar(**{**view.__dict__, "name": name})
    if isinstance(view, Several):
        return Several(view.style, view.items, name)
    if isinstance(view, Region):
        return Region(view.pieces, name)
    return view


def name_of(text: str) -> str:
    """Return the name a side of an equation is, "" for anything else: x, a_n, f(x), AB, |AB|, (x, y), \\cos\\alpha."""
    brackets = enclosed(text)
    if brackets and brackets[0] == "(" and len(parts := cut_list(brackets[1])) > 1:
        names = [name_of(part) for part in parts]
        return f"({','.join(names)})" if all(names) else ""
    if _CALL.fullmatch(text) and not text.startswith(("\\sin", "\\cos", "\\tan", "\\ln", "\\log")):
        return re.sub(r"\s", "", text)
    sides = cut(text, {":"})
    if len(sides) == 2 and all(sides):
        names = [name_of(side) for side in sides]
        return ":".join(names) if all(names) else ""
    if is_prose(text):
        return plain_words(text).casefold() if len(text) <= 80 and not re.search(r"[\d\\]", text) else ""
    try:
        node = parse(tokenize(text))
    except Unreadable:
        return ""
    return node_name(node)


def node_name(node: Node) -> str:
    if node.op in ("sym", "call"):
        return node.name + (f"({node_name(node.args[0])})" if node.op == "call" else "")
    if node.op in ("e", "i"):
        return node.op
    if node.op == "mul" and all(part.op in ("sym", "mul") and node_name(part).isupper() for part in node.args):
        return "".join(node_name(part) for part in node.args)
    if node.op == "abs" and (inner := node_name(node.args[0])).isupper():
        return f"|{inner}|"  # a length; |x| = 3 is an equation
    if node.op in ("sin", "cos", "tan", "cot") and (value := exact_value(node)) and ring.has_variables(value):
        return f"{node.op}:{ring.key_of(value)}"
    return ""


def view_name(view: View) -> str:
    return view.name if isinstance(view, Scalar | Several | Region) else ""


def variables_of(node: Node) -> set[str]:
    own = {node.name} if node.op in ("sym", "call") else {node.op} & {"e", "i"} and set()
    return set(own).union(*(variables_of(part) for part in node.args))
