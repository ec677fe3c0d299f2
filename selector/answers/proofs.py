"""What runs inside a worker process: sympy proves that two trees are equal, math-verify judges what we cannot parse.

Imported by the worker alone; sympy and math-verify are slow to import and may run away on hostile input.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy
from latex2sympy2_extended import latex2sympy
from math_verify import verify
from math_verify.errors import TimeoutException

from selector.answers.syntax import Node

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": sympy.Abs,
    "factorial": sympy.factorial,
    "binom": sympy.binomial,
    "floor": sympy.floor,
    "ceil": sympy.ceiling,
    "ln": sympy.log,
    "lg": lambda value: sympy.log(value, 10),
    "logb": lambda value, base: sympy.log(value, base),
    "log": lambda value: sympy.log(value) * sympy.Symbol("log-unit"),
    "arcsin": sympy.asin,
    "arccos": sympy.acos,
    "arctan": sympy.atan,
    "arccot": sympy.acot,
    "root": lambda value, degree: sympy.real_root(value, degree) if value.is_negative else sympy.root(value, degree),
    "deg": lambda value: value * sympy.pi / 180,
    **{name: getattr(sympy, name) for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")},
}
_CONSTANTS = {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "inf": sympy.oo}


def prove_equal(left: Node, right: Node) -> bool:
    """Tell whether sympy proves two trees equal; False says nothing.

    Variables are real. Numbers without variables are proved by simplification or by their minimal polynomial, never by
    their digits.
    """
    difference = to_sympy(left) - to_sympy(right)
    if difference == 0:
        return True
    for simplify in (sympy.radsimp, sympy.trigsimp, sympy.sqrtdenest, sympy.simplify, sympy.logcombine):
        if sympy.expand(simplify(difference)) == 0:
            return True
    if sympy.simplify(sympy.expand_trig(sympy.expand_log(difference, force=False))) == 0:
        return True
    if difference.free_symbols or not difference.is_algebraic:
        return False
    unknown = sympy.Symbol("t")
    return bool(sympy.minimal_polynomial(difference, unknown) == unknown)


def judge_texts(left: str, right: str) -> bool:
    """Tell whether math-verify finds two texts equivalent, whichever of the two is the gold.

    Each text has to parse to its end, so that no answer is judged by a part of it.
    """
    try:
        gold, answer = latex2sympy(left), latex2sympy(right)
        settings = {"timeout_seconds": None, "raise_on_error": True, "strict": True}
        return bool(verify([gold], [answer], **settings)) and bool(verify([answer], [gold], **settings))
    except TimeoutException:  # subclasses BaseException, so that nobody catches it by accident
        return False


def to_sympy(node: Node) -> Any:
    """Build a sympy expression from a tree, node by node; no text is evaluated."""
    if node.op == "num":
        value = node.value or Fraction(0)
        return sympy.Rational(value.numerator, value.denominator)
    if node.op == "sym":
        return sympy.Symbol(node.name, real=True)
    if node.op in _CONSTANTS:
        return _CONSTANTS[node.op]
    parts = [to_sympy(part) for part in node.args]
    if node.op == "call":
        return sympy.Function(node.name)(*parts)
    if node.op == "add":
        return sympy.Add(*parts)
    if node.op == "neg":
        return -parts[0]
    if node.op == "mul":
        return parts[0] * parts[1]
    if node.op == "div":
        return parts[0] / parts[1]
    if node.op == "pow":
        return parts[0] ** parts[1]
    return _FUNCTIONS[node.op](*parts)
