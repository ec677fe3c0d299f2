"""Tokens of cleaned mathematics: numbers, commands, letters and signs, with every character accounted for."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from selector.errors import SelectorError

MAX_TOKENS = 1200

_TOKEN = re.compile(
    r"(?P<sci>(?:\d+(?:\.\d*)?|\.\d+)[eE][+-]?\d+(?![\d.]))"
    r"|(?P<num>\d+(?:\.\d*)?|\.\d+)"
    r"|(?P<cmd>\\[A-Za-z]+|\\[{}%$|\\&])"
    r"|(?P<word>[A-Za-z]+)"
    r"|(?P<op><=|>=|!=|==|\*\*|[-+*/^_=<>()\[\]{}|!,;:'%&~])"
    r"|(?P<space>\s+)"
)
FUNCTIONS = {
    *("sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "arccot", "sinh", "cosh", "tanh"),
    *("ln", "log", "lg", "exp", "asin", "acos", "atan"),
}
GREEK = set(
    str.split(
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon "
        "phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell hbar"
    )
)
_WORDS = {*FUNCTIONS, *GREEK, "pi", "sqrt", "infinity", "infty", "inf", "cbrt", "abs", "choose"}


class Unreadable(SelectorError):
    """The text is not mathematics this grammar knows."""

    code = "unreadable"


class Token(NamedTuple):
    """One token: its kind (sci, num, cmd, word, op), its text, and whether white space stood before it."""

    kind: str
    text: str
    spaced: bool


def tokenize(text: str) -> list[Token]:
    """Split cleaned text into tokens. Raises Unreadable at the first character that is in none."""
    tokens: list[Token] = []
    position, spaced = 0, False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or len(tokens) > MAX_TOKENS:
            raise Unreadable(text[position : position + 20])
        position = match.end()
        kind = str(match.lastgroup)
        if kind == "space":
            spaced = True
            continue
        if kind == "word" and match[0] not in _WORDS and len(match[0]) > 1:
            tokens.extend(_letters(match[0], spaced))
        else:
            tokens.append(Token(kind, match[0], spaced))
        spaced = False
    return tokens


def _letters(word: str, spaced: bool) -> list[Token]:
    """Split a run of letters into known words and single letters: ``xsin`` is x times a sine."""
    tokens = []
    position = 0
    while position < len(word):
        known = next(
            (word[position:end] for end in range(len(word), position + 1, -1) if word[position:end] in _WORDS), None
        )
        piece = known or word[position]
        tokens.append(Token("word", piece, spaced and position == 0))
        position += len(piece)
    return tokens


def read_decimal(text: str) -> Fraction:
    """Return the exact value of digits with a point or an exponent. Raises Unreadable past 1000 powers of ten.

    Python itself refuses whole numbers past 4300 digits.
    """
    mantissa, _, exponent = text.lower().partition("e")
    if len(text) > 4200 or len(exponent) > 5 or abs(int(exponent or 0)) > 1000:
        raise Unreadable(text[:20])
    return Fraction(mantissa + "0" if mantissa.endswith(".") else mantissa) * Fraction(10) ** int(exponent or 0)
