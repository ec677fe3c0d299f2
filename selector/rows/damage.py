r"""LaTeX commands that JSON ate: ``"\frac"`` written with one backslash is read as a form feed and ``rac``.

JSON knows ``\b``, ``\f``, ``\n``, ``\r`` and ``\t`` as escapes, so a command that begins with one of these letters
disappears without any error. What is left is a control character before the rest of a known command.
"""

from __future__ import annotations

import re

_LETTERS = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_NAMES = {"\b": "backspace", "\f": "form feed", "\n": "line break", "\r": "carriage return", "\t": "tab"}
# What is left of these commands begins no ordinary line or cell.
_ANYWHERE = {
    "\b": "",  # any letter: a backspace has no meaning of its own in a text
    "\f": "allingdotseq box lat ootnotesize orall rac rak ramebox rown",
    "\r": "brace brack ceil ho ight ightarrow ightharpoonup ightleftharpoons ightrightarrows moustache times vert Vert",
    "\t": "anh binom ext extbf extcirc extcolor extdegree extit extmd extnormal extrm extsc extsf extstyle extsubscript"
    " extsuperscript exttt extup frac herefore heta hetasym hickapprox hicksim ilde imes riangle riangledown "
    "riangleleft rianglelefteq riangleright rianglerighteq woheadrightarrow",
}
# What is left of these might be a word, so only inside maths.
_INSIDE_MATHS = {
    "\n": "abla eg eq ewline exists geq leftarrow leq mid onumber ot otin parallel prec rightarrow sim subseteq",
    "\r": "angle floor m",
    "\t": "an au iny o",
}


def _pattern(rests: dict[str, str]) -> re.Pattern[str]:
    return re.compile(
        "|".join(f"{control}(?:{'|'.join(names.split())})(?![a-z])" for control, names in rests.items()).replace(
            "\b(?:)(?![a-z])", "\b(?=[a-zA-Z])"
        )
    )


_SURE, _IN_MATHS = _pattern(_ANYWHERE), _pattern(_INSIDE_MATHS)


def _positions(text: str, is_maths: bool) -> list[int]:
    sure = [found.start() for found in _SURE.finditer(text)]
    likely = [found.start() for found in _IN_MATHS.finditer(text) if is_maths or _is_inside_maths(text, found.start())]
    return sorted({*sure, *likely})


def _is_inside_maths(text: str, position: int) -> bool:
    return text.count("$", 0, position) % 2 == 1 or any(
        text.count(opening, 0, position) > text.count(closing, 0, position)
        for opening, closing in ((r"\(", r"\)"), (r"\[", r"\]"))
    )


def find_damage(text: str, *, is_maths: bool = False) -> str:
    """Return the control character that stands where a LaTeX command began, by name; "" where none does.

    ``is_maths`` says that the whole text is maths, as an answer is; otherwise dollars and brackets tell.
    """
    positions = _positions(text, is_maths)
    return f"U+{ord(text[positions[0]]):04X} ({_NAMES[text[positions[0]]]})" if positions else ""


def repair_damage(text: str, *, is_maths: bool = False) -> str:
    """Return the text with each such control character written as the backslash and letter it was."""
    characters = list(text)
    for position in _positions(text, is_maths):
        characters[position] = "\\" + _LETTERS[text[position]]
    return "".join(characters)
