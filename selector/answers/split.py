"""Cutting cleaned text at its top level: outside brackets, braces and words."""

from __future__ import annotations

import re
from collections.abc import Iterator

_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d])(?!,\d)")
_PIECE = re.compile(r"\\[{}]|\\[A-Za-z]+|[()\[\]{}]|.", re.DOTALL)
_OPENING = {"(", "[", "{", "\\{", "\\lfloor", "\\lceil", "\\begin"}
_CLOSING = {")", "]", "}", "\\}", "\\rfloor", "\\rceil", "\\end"}
_AND_OR = re.compile(r"(?:,\s*)?\b(?:and|or)\b\s*|[,;&]\s*", re.IGNORECASE)


def pieces(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield (position, piece, depth) of every command, bracket and character; a bracket has its inside's depth."""
    depth = 0
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece in _OPENING:
            depth += 1
        yield match.start(), piece, depth
        if piece in _CLOSING:
            depth -= 1


def is_balanced(text: str) -> bool:
    """Tell whether every bracket closes; half-open intervals may mix round and square ones."""
    depth = 0
    for _, piece, _ in pieces(text):
        depth += (piece in _OPENING) - (piece in _CLOSING)
        if depth < 0:
            return False
    return depth == 0


def nesting(text: str) -> int:
    """Return how deep brackets nest."""
    return max((depth for _, _, depth in pieces(text)), default=0)


def at_top(text: str, wanted: set[str]) -> list[tuple[int, str]]:
    """Return the positions of the wanted pieces that stand outside all brackets."""
    return [(position, piece) for position, piece, depth in pieces(text) if depth == 0 and piece in wanted]


def cut(text: str, wanted: set[str]) -> list[str]:
    """Return the parts between the wanted pieces at the top level, stripped."""
    parts, start = [], 0
    for position, piece in at_top(text, wanted):
        parts.append(text[start:position].strip())
        start = position + len(piece)
    return [*parts, text[start:].strip()]


def cut_list(text: str, separator: re.Pattern[str] = _AND_OR) -> list[str]:
    """Return the parts between commas, semicolons, "and" and "or" at the top level, stripped, empty ones left out."""
    if not separator.search(text):
        return [text.strip()]
    masked = "".join(
        piece if depth == 0 and not piece.startswith("\\") else "\x00" * len(piece) for _, piece, depth in pieces(text)
    )
    parts, start = [], 0
    for match in separator.finditer(masked):
        parts.append(text[start : match.start()].strip())
        start = match.end()
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def without_thousands(text: str) -> str:
    """Drop the commas of numbers such as 1,234. Inside brackets ``(1,234)`` is a pair, unless its commas that part
    things are followed by a space: ``(1,234, 5)``.
    """
    if "," not in text:
        return text
    depths = {position: depth for position, _, depth in pieces(text)}
    spaced_inside = bool(re.search(r"[(\[{][^()\[\]{}]*,\s", text))
    in_brackets = re.search(r"[(\[]|\\\{", text) is not None

    def joined(match: re.Match[str]) -> str:
        if in_brackets and depths.get(match.start(), 0) > 0 and not spaced_inside:
            return match[0]
        return match[0].replace(",", "")

    return _THOUSANDS.sub(joined, text)


def enclosed(text: str) -> tuple[str, str, str] | None:
    """Return (opening, inside, closing) where one pair of brackets encloses the whole text."""
    openings = ("\\{", "(", "[", "{")
    opening = next((mark for mark in openings if text.startswith(mark)), None)
    if opening is None or len(text) < 2:
        return None
    for position, piece, depth in pieces(text):
        if piece in _CLOSING and depth == 1:
            if position + len(piece) != len(text):
                return None
            return opening, text[len(opening) : position].strip(), piece
    return None
