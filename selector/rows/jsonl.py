"""One JSON object a line (or a JSON list of objects) into rows; each kind of bad line has its own message."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator

from selector.rows.contract import Limits, RejectedRow, Row
from selector.rows.lines import RawRow
from selector.rows.text import depth, excerpt, unstorable_character

_BAD_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])|\\', re.DOTALL)
_MAX_DIGITS = 4_000  # Python refuses to read longer whole numbers
_TYPES = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "true or false", type(None): "null"}


class WrittenFloat(float):
    """A number with a decimal point or exponent that remembers how it was written."""

    written: str

    def __new__(cls, written: str) -> WrittenFloat:
        number = super().__new__(cls, written)
        number.written = written
        return number


class _DuplicateKey(ValueError):
    """A JSON object names the same key twice."""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    data = dict(pairs)
    if len(data) != len(pairs):
        names = [name for name, _ in pairs]
        raise _DuplicateKey(next(name for name in names if names.count(name) > 1))
    return data


def _whole_number(written: str) -> int | str:
    return int(written) if len(written) <= _MAX_DIGITS else written


def _not_json(written: str) -> object:
    raise ValueError(written)


def _number(written: str) -> WrittenFloat | str:
    number = WrittenFloat(written)
    return number if math.isfinite(number) else written  # 1e999 is JSON, but no number that JSON could hold again


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_int=_whole_number, parse_constant=_not_json
)


def read_json_rows(raw_rows: Iterable[RawRow], *, limits: Limits, repair: bool) -> Iterator[Row | RejectedRow]:
    """Yield a Row or a RejectedRow for every line that is not blank.

    With ``repair``, a backslash that JSON does not know (``"\\sqrt"``) is read as a backslash.
    """
    for raw in raw_rows:
        if raw.too_long:
            yield too_long(raw, limits)
        elif raw.content.strip():
            yield _read_object(raw, limits, repair)


def too_long(raw: RawRow, limits: Limits) -> RejectedRow:
    """Say that a row is longer than the limit."""
    return RejectedRow(
        raw.line,
        "line_too_long",
        f"This row has {raw.size:,} bytes; at most {limits.max_line_bytes:,} are read. It was skipped and the reading "
        "went on after it. Check for a missing line break, or shorten the row.",
        f"{raw.size:,} bytes",
    )


def not_utf8(line: int, content: bytes, error: UnicodeDecodeError) -> RejectedRow:
    """Say which byte is not UTF-8 and what it would be in Latin-1."""
    around = content[max(0, error.start - 20) : error.start + 20].decode("cp1252", errors="replace")
    return RejectedRow(
        line,
        "not_utf8",
        f"Byte 0x{content[error.start]:02x} is not UTF-8; read as Latin-1 it says “{excerpt(around)}”. "
        "Save the file as UTF-8 (for instance `iconv -f latin1 -t utf-8 OLD > NEW`) and import it again.",
        around,
    )


def unstorable(line: int, path: str, character: str) -> RejectedRow:
    """Say that a row holds a character that cannot be stored."""
    if character == "\x00":
        return RejectedRow(
            line, "nul_character", f"Column “{excerpt(path)}” contains a NUL character (U+0000). Remove it.", "\\u0000"
        )
    code_point = f"\\u{ord(character):04x}"
    return RejectedRow(
        line,
        "lone_surrogate",
        f"Column “{excerpt(path)}” contains {code_point}, half of a character (a lone surrogate). "
        "The text was cut or encoded wrongly; write the whole character.",
        code_point,
    )


def _read_object(raw: RawRow, limits: Limits, repair: bool) -> Row | RejectedRow:
    try:
        text = raw.content.decode("utf-8")
    except UnicodeDecodeError as error:
        return not_utf8(raw.line, raw.content, error)
    if repair:
        text = _repair_escapes(text)
    try:
        data = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        return _bad_json(raw.line, text, error)
    except _DuplicateKey as error:
        return RejectedRow(
            raw.line,
            "duplicate_key",
            f"The key “{excerpt(str(error))}” appears twice in this object. Keep one of the two.",
            str(error),
        )
    except ValueError as error:
        return RejectedRow(
            raw.line,
            "not_json_number",
            f"{excerpt(str(error))} is not JSON. Write null where there is no value.",
            str(error),
        )
    except RecursionError:
        return _too_deep(raw.line, limits)
    if not isinstance(data, dict):
        return RejectedRow(
            raw.line,
            "not_an_object",
            f"Found {_TYPES.get(type(data), 'a value')}: {excerpt(text, 60)}. "
            'Each row must be an object such as {"question": "…"}.',
            excerpt(text, 200),
        )
    if depth(data) > limits.max_depth:
        return _too_deep(raw.line, limits)
    if "\\u" in text and (found := unstorable_character(data)):
        return unstorable(raw.line, *found)
    return Row(raw.line, data)


def _repair_escapes(text: str) -> str:
    return _BAD_ESCAPE.sub(lambda match: match.group() if len(match.group()) > 1 else "\\\\", text)


def _too_deep(line: int, limits: Limits) -> RejectedRow:
    return RejectedRow(
        line,
        "too_deep",
        f"Lists and objects are nested more than {limits.max_depth} deep in this row. Flatten it or leave that "
        "column out.",
    )


def _bad_json(line: int, text: str, error: json.JSONDecodeError) -> RejectedRow:
    near = excerpt(text[max(0, error.pos - 15) : error.pos + 25])
    at = f"at character {error.pos + 1}"
    rest = text[error.pos :].lstrip()
    before = text[: error.pos].rstrip()
    if error.msg.startswith("Invalid \\"):
        code = "invalid_escape"
        message = (
            f"JSON does not know the escape {at}: “{near}”. In JSON a backslash is written twice "
            "(\\\\sqrt for \\sqrt). Write it twice, or import with repair."
        )
    elif error.msg.startswith("Invalid control character"):
        code = "control_character"
        message = (
            f"A raw control character (U+{ord(text[error.pos]):04X}) stands inside a text {at}: “{near}”. "
            "Write it as an escape (\\n, \\t) or remove it."
        )
    elif error.msg.startswith("Illegal trailing comma") or (before.endswith(",") and rest[:1] in ("}", "]")):
        code, message = "trailing_comma", f"A comma stands before the closing bracket {at}: “{near}”. Remove it."
    elif error.msg == "Extra data":
        code = "extra_data"
        message = f"A second value begins {at}: “{near}”. Put each object on a line of its own."
    elif rest[:1] == "'" or re.match(r"(None|True|False)\b", rest):
        code = "python_repr"
        message = f"This is Python, not JSON, {at}: “{near}”. Write the file with json.dumps."
    elif error.msg.startswith("Unterminated string") or not rest:
        code, message = "cut_off", f"The row ends in the middle of a value: “{excerpt(text[-40:])}”. Complete the row."
    else:
        code, message = "invalid_json", f"Not JSON {at} ({error.msg}): “{near}”. Correct this row."
    return RejectedRow(line, code, message, excerpt(text, 200))
