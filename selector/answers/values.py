"""Read one value: an expression with its percent sign, currency, unit or degree sign."""

from __future__ import annotations

import re

from selector.answers.syntax import Node, number, parse
from selector.answers.tokens import Unreadable, tokenize
from selector.answers.units import split_currency, split_multiplier, split_unit
from selector.answers.views import Scalar
from selector.answers.wording import is_prose

_DECIMAL = re.compile(r"[-+]?(\d*)\.(\d+)")
_TEMPERATURE = re.compile(
    r"(.*\S)\s*(?:\^\s*\\circ|\^\s*\{\s*\\circ\s*\}|\bdegrees?)\s*([CF])(?:elsius|ahrenheit)?", re.IGNORECASE
)
_IN_BASE = re.compile(
    r"\(?([0-9A-Fa-f]*\d[0-9A-Fa-f]*|[A-F]+)\)?\s*"
    r"(?:_\s*\{?\s*(?:\(\s*)?(\d{1,2})\s*\)?\s*\}?|(?:in\s+)?base\s*(\d{1,2}))"
)
_FUNCTION = re.compile(r"sin|cos|tan|cot|sec|csc")


def read_scalar(text: str, kind: str | None) -> Scalar:
    """Read one value with what it carries. Raises Unreadable."""
    text, currency = split_currency(text)
    if not currency:
        percent_text = re.sub(r"\s*(?:\\%|%|\b(?:percent|per cent|pct)\b)$", "", text)
    else:
        percent_text = text
    percent, text = percent_text != text, percent_text.strip()
    unit, degree = "", False
    if len(text) <= 80 and (temperature := _TEMPERATURE.fullmatch(text)):
        return Scalar(read_expression(temperature[1]), unit="°" + temperature[2].upper())
    bare = re.sub(r"\s*(?:\^\s*\\circ|\^\s*\{\s*\\circ\s*\}|\b(?:degrees|degree|deg)\b)$", "", text)
    if bare != text and "\\circ" not in bare and bare and not _FUNCTION.search(bare):
        degree, text = True, bare
    else:
        text, factor = split_multiplier(text)
        if factor == 1:
            text, unit = split_unit(text, single_letters=kind != "expression")
            text, currency_after = split_currency(text) if unit and not currency else (text, currency)
            currency = currency or currency_after
            text, factor = split_multiplier(text)
        if factor != 1:
            return Scalar(
                Node("mul", (read_expression(text), number(factor))), percent=percent, currency=currency, unit=unit
            )
    decimal = _DECIMAL.fullmatch(text)
    places = len(decimal[2]) if decimal else -1
    significant = len((decimal[1] + decimal[2]).lstrip("0")) if decimal else 0
    return Scalar(
        read_expression(text),
        percent=percent,
        currency=currency,
        unit=unit,
        degree=degree,
        decimal_places=places,
        significant_digits=significant,
    )


def read_expression(text: str) -> Node:
    """Read one expression. Raises Unreadable, for words too."""
    if len(text) <= 80 and (based := _IN_BASE.fullmatch(text)):
        return number(_in_base(based[1], int(based[2] or based[3])))
    if is_prose(text):
        raise Unreadable(text[:20])
    return parse(tokenize(text))


def _in_base(digits: str, base: int) -> int:
    if not 2 <= base <= 36:
        raise Unreadable(digits)
    try:
        return int(digits, base)
    except ValueError:
        raise Unreadable(digits) from None
