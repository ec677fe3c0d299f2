"""Write a reading back as people write answers, so that they can see how theirs was understood."""

from __future__ import annotations

from fractions import Fraction

from selector.answers import ring
from selector.answers.exact import exact_value
from selector.answers.syntax import Node
from selector.answers.views import (
    Assigned,
    Choice,
    Clock,
    Piece,
    Ratio,
    Reading,
    Region,
    Relation,
    Scalar,
    Several,
    System,
    View,
)

_BRACKETS = {"set": ("{", "}"), "tuple": ("(", ")"), "brackets": ("[", "]"), "matrix": ("[", "]"), "bag": ("", "")}
_SUM, _PRODUCT, _POWER, _ATOM = range(4)  # how tightly a written expression holds together


def render(reading: Reading) -> str:
    """Return the first view of a reading as text; "" for an empty reading."""
    return render_view(reading[0]) if reading else ""


def render_view(view: View) -> str:
    """Return one view as text: ``1/2``, ``{1, 2}``, ``[0, 1)``, ``x = 5``, ``12:30``."""
    if isinstance(view, Scalar):
        return _named(view.name, _scalar(view))
    if isinstance(view, Several):
        opening, closing = _BRACKETS.get(view.style, ("|", "|"))
        return _named(view.name, opening + ", ".join(map(render, view.items)) + closing)
    if isinstance(view, Region):
        return _named(view.name, " ∪ ".join(map(_piece, view.pieces)) or "{}", " ∈ ")
    if isinstance(view, System):
        return ", ".join(map(_relation, view.relations))
    if isinstance(view, Assigned):
        return ", ".join(f"{name} = {render(value)}" for name, value in view.values)
    if isinstance(view, Ratio):
        return ":".join(_grouped(part, _POWER) for part in view.parts)
    if isinstance(view, Clock):
        hours, rest = divmod(view.seconds, 3600)
        if view.half:
            hours = hours % 12 or 12
        half = f" {view.half}m" if view.half else ""
        return f"{hours}:{rest // 60:02}" + (f":{rest % 60:02}" if rest % 60 else "") + half
    if isinstance(view, Choice):
        return ", ".join(sorted(view.letters))
    return view.text


def _named(name: str, text: str, sign: str = " = ") -> str:
    plain = name.partition(":")[0] if "v:" in name else name
    return f"{plain.replace(chr(92), '')}{sign}{text}" if name else text


def _scalar(view: Scalar) -> str:
    value = exact_value(view.node)
    rational = None if value is None else ring.as_rational(value)
    if rational is not None and view.decimal_places > 0:
        number = f"{float(rational):.{view.decimal_places}f}" if view.significant_digits <= 15 else str(rational)
    else:
        number = write(view.node)
    if view.currency:
        number = number.replace("-", f"-{view.currency}", 1) if number.startswith("-") else view.currency + number
    return (
        number + ("%" if view.percent else "") + ("°" if view.degree else "") + (f" {view.unit}" if view.unit else "")
    )


def _piece(piece: Piece) -> str:
    if piece.low is not None and piece.low == piece.high:
        return "{" + write(piece.low) + "}"
    low = "-∞" if piece.low is None else write(piece.low)
    high = "∞" if piece.high is None else write(piece.high)
    return f"{'[' if piece.low_closed else '('}{low}, {high}{']' if piece.high_closed else ')'}"


def _relation(relation: Relation) -> str:
    left, right = relation.node.args[0], relation.node.args[1].args[0]
    return f"{write(left)} {relation.op} {write(right)}"


def write(node: Node) -> str:
    """Return a tree as plain text; a rational number as one fraction."""
    return _written(node)[0]


def _grouped(node: Node, tightness: int) -> str:
    text, own = _written(node)
    return text if own >= tightness else f"({text})"


def _written(node: Node) -> tuple[str, int]:
    value = exact_value(node)
    rational = None if value is None else ring.as_rational(value)
    if rational is not None:
        return _digits(rational), _ATOM if rational.denominator == 1 and rational >= 0 else _SUM
    op, args = node.op, node.args
    if op in ("sym", "call"):
        name = node.name.replace("\\", "")
        return (f"{name}({write(args[0])})" if op == "call" else name), _ATOM
    if not args:
        return {"pi": "π", "inf": "∞"}.get(op, op), _ATOM
    if op == "add":
        text = write(args[0])
        for part in args[1:]:
            text += f" - {_grouped(part.args[0], _PRODUCT)}" if part.op == "neg" else f" + {_grouped(part, _PRODUCT)}"
        return text, _SUM
    if op == "neg":
        return f"-{_grouped(args[0], _PRODUCT)}", _SUM
    if op == "mul":
        left, right = _grouped(args[0], _PRODUCT), _grouped(args[1], _POWER)
        return (f"{left}·{right}" if right[:1].isdigit() or left[-1:].isalpha() else left + right), _PRODUCT
    if op == "div":
        return f"{_grouped(args[0], _PRODUCT)}/{_grouped(args[1], _POWER)}", _PRODUCT
    if op == "pow":
        return f"{_grouped(args[0], _ATOM)}^{_grouped(args[1], _ATOM)}", _POWER
    if op == "factorial":
        return f"{_grouped(args[0], _ATOM)}!", _POWER
    if op == "deg":
        return f"{_grouped(args[0], _ATOM)}°", _POWER
    if op == "abs":
        return f"|{write(args[0])}|", _ATOM
    if op == "root" and args[1].value == 2:
        return f"√{_grouped(args[0], _ATOM)}", _POWER
    names = {"root": "root", "logb": "log", "floor": "floor", "ceil": "ceil", "binom": "binom"}
    return f"{names.get(op, op)}({', '.join(map(write, args))})", _ATOM


def _digits(value: Fraction) -> str:
    if max(abs(value.numerator), value.denominator).bit_length() > 400:
        return f"about 2^{value.numerator.bit_length() - value.denominator.bit_length()}"
    return str(value)
