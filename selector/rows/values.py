"""Cells into what a question is made of: texts, choices, and chat messages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from selector.rows.jsonl import WrittenFloat
from selector.rows.text import excerpt

_PYTHON_LIST = re.compile(r"\s*\[\s*(?:'|\{\s*')")


class UnusableValue(ValueError):
    """A cell that does not hold what its column should; ``code`` is stable, the text is for people."""

    def __init__(self, code: str, message: str, found: object = "") -> None:
        self.code, self.found = code, excerpt(found, 200)
        super().__init__(message)


def as_text(value: object, column: str) -> str:
    """Return a text as it is and a number as it was written; None is "".

    Raises UnusableValue for true and false, objects, lists (one of one value is that value) and Python lists.
    """
    if isinstance(value, str):
        if _PYTHON_LIST.match(value):
            raise _python_list(value, column)
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        word = str(value).lower()
        raise UnusableValue(
            "boolean_value",
            f"Column “{excerpt(column)}” is {word} without quotes. If that is the text, write it in quotes: “{word}”.",
            word,
        )
    if isinstance(value, WrittenFloat):
        return value.written
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list) and len(value) == 1:
        return as_text(value[0], column)
    kind = f"a list of {len(value)} values" if isinstance(value, list) else "an object"
    raise UnusableValue(
        "nested_value",
        f"Column “{excerpt(column)}” holds {kind}: {excerpt(value, 60)}. One text or number is wanted; "
        "map another column, or an entry of this one as COLUMN.ENTRY.",
        value,
    )


def as_choices(value: object, column: str) -> tuple[str, ...]:
    """Return the choices of a question, from a list, a JSON list in a cell, or an object of letters and texts.

    Raises UnusableValue for anything else, Python lists included, and for a single choice.
    """
    if isinstance(value, str):
        value = _json_list(value, column) if value.strip() else None
    if isinstance(value, dict):
        value = value["text"] if isinstance(value.get("text"), list) else list(value.values())
    if value is None or value == []:
        return ()
    if not isinstance(value, list):
        raise UnusableValue(
            "bad_choices",
            f'Column “{excerpt(column)}” is {excerpt(value, 60)}; a list such as ["one", "two"] is wanted.',
            value,
        )
    choices = tuple(as_text(choice, column) for choice in value)
    if len(choices) < 2 or not all(choice.strip() for choice in choices):
        raise UnusableValue(
            "bad_choices",
            f"Column “{excerpt(column)}” has {len(choices)} choices or an empty one: {excerpt(value, 60)}. "
            "At least two are wanted, none empty.",
            value,
        )
    return choices


def as_messages(value: object) -> list[Mapping[str, object]] | None:
    """Return a chat (a list of messages with a role or "from"), also from JSON in a cell; None where it is none."""
    if isinstance(value, str) and value.lstrip()[:1] == "[" and ('"role"' in value or '"from"' in value):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, list) and value and all(isinstance(item, dict) and _role(item) for item in value):
        return value
    return None


def question_of_chat(messages: list[Mapping[str, object]], column: str) -> tuple[str, str, list[Mapping[str, object]]]:
    """Return (the last user message, the assistant's message after it or "", the messages before).

    Raises UnusableValue where no user speaks or where a message is more than text.
    """
    users = [index for index, message in enumerate(messages) if _role(message) in ("user", "human")]
    if not users:
        raise UnusableValue(
            "no_user_message",
            f"The chat in column “{excerpt(column)}” has no message of the role user: {excerpt(messages, 60)}.",
            messages,
        )
    last = users[-1]
    after = [_content(message, column) for message in messages[last + 1 :] if _role(message) in ("assistant", "gpt")]
    return _content(messages[last], column), after[-1] if after else "", messages[:last]


def _role(message: Mapping[str, object]) -> str:
    return str(message.get("role") or message.get("from") or "")


def _content(message: Mapping[str, object], column: str) -> str:
    content = message.get("content", message.get("value"))
    if not isinstance(content, list):
        return as_text(content, column)
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type", "text") == "text"]
    if len(texts) != len(content):
        raise UnusableValue(
            "not_only_text",
            f"A message in column “{excerpt(column)}” has a part that is no text (an image?): {excerpt(content, 60)}. "
            "Only text can be asked.",
            content,
        )
    return "\n".join(as_text(text, column) for text in texts)


def _json_list(cell: str, column: str) -> object:
    if _PYTHON_LIST.match(cell):
        raise _python_list(cell, column)
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell


def _python_list(cell: str, column: str) -> UnusableValue:
    return UnusableValue(
        "python_list",
        f"Column “{excerpt(column)}” holds a list as Python prints it: {excerpt(cell, 60)}. "
        'Write it as JSON, with double quotes: ["A", "C"].',
        cell,
    )
