"""Text as it is compared: the identity of a question, near equality, and characters that cannot be stored."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence

_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NEAR_NOTHING = re.compile(r"""[\s$"'“”‘’]+|[.,;:!?]+(?=\s|$)""")


def collapse(text: str) -> str:
    """Return the text NFC-normalised, each run of white space as one space, none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def question_uid(text: str, choices: Sequence[str] = ()) -> str:
    """Return the identity of a question that came without one: 32 hex digits of SHA-256.

    It covers the collapsed text and the collapsed choices in their order; nothing else.
    """
    key = json.dumps([collapse(text), [collapse(choice) for choice in choices]], ensure_ascii=False)
    return hashlib.sha256(key.encode("utf-8")).hexdigest()[:32]


def near_key(text: str) -> str:
    """Return what nearly equal texts share: case, white space, dollars, quotes and final punctuation do not count."""
    return _NEAR_NOTHING.sub("", unicodedata.normalize("NFKC", text).casefold())


def is_blank(text: str) -> bool:
    """Whether nothing can be seen in the text."""
    return not text.strip().strip(_INVISIBLE).strip()


def excerpt(value: object, width: int = 80) -> str:
    """Return at most ``width`` characters of a value, control characters made visible."""
    text = value if isinstance(value, str) else repr(value)
    shown = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[: width + 1])
    return shown if len(text) <= width else shown[:width] + "…"


def unstorable_character(value: object, where: str = "") -> tuple[str, str] | None:
    """Return (column path, character) of the first NUL or lone surrogate in the value, or None.

    No database and no UTF-8 file can hold a lone surrogate; PostgreSQL cannot hold NUL.
    """
    for path, text in _texts(value, where):
        if found := _UNSTORABLE.search(text):
            return path, found.group()
    return None


def depth(value: object) -> int:
    """Return how deep lists and objects are nested in the value; a plain value has depth 0."""
    level, layer = 0, [value]
    while containers := [item for item in layer if isinstance(item, dict | list)]:
        level += 1
        layer = [item for box in containers for item in (box.values() if isinstance(box, dict) else box)]
    return level


def _texts(value: object, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield where, key
            yield from _texts(item, f"{where}.{key}" if where else key)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, where)
