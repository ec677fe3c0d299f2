"""Which column holds what: recognised by name, whatever the case, or as the user says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from selector.errors import SelectorError
from selector.rows.text import excerpt

# By field, the likeliest name first. "a.b" is the entry b of an object in column a.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "problem", "prompt", "messages", "conversation", "conversations", "query", "text"),
    "answer": (
        "answer",
        "final_answer",
        "ground_truth_answer",
        "ground_truth",
        "reward_model.ground_truth",
        "reward_spec.ground_truth",
        "gold_answer",
        "gold",
        "expected_answer",
        "reference_answer",
        "correct_answer",
        "solution",
        "target",
        "label",
    ),
    "uid": ("uid", "id", "question_id", "unique_id", "extra_info.uid"),
    "choices": ("choices", "options"),
    "kind": ("kind", "answer_kind", "answer_type"),
}


class UnknownColumn(SelectorError):
    """A mapping names a field or a column that is not there."""

    code = "unknown_column"

    def __init__(self, *, field_name: str, column: str, wanted: Iterable[str], what: str) -> None:
        self.field_name, self.column, self.wanted = field_name, column, tuple(wanted)
        super().__init__(
            f"{field_name}={column}: there is no {what}. Use one of: {', '.join(map(excerpt, self.wanted)) or 'none'}."
        )


@dataclass(frozen=True)
class Columns:
    """The column of each field, "" where there is none, and the other columns that could have been meant."""

    question: str = ""
    answer: str = ""
    uid: str = ""
    choices: str = ""
    kind: str = ""
    ambiguous: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def mapping(self) -> dict[str, str]:
        """Return field -> column for the fields that have one."""
        return {name: column for name in FIELDS if (column := getattr(self, name))}


def column_names(data: Mapping[str, object]) -> list[str]:
    """Return the names in a row, those inside objects as ``column.entry``."""
    inside = [f"{name}.{entry}" for name, value in data.items() if isinstance(value, dict) for entry in value]
    return [*data, *inside]


def recognise_columns(names: Iterable[str], mapping: Mapping[str, str] | None = None) -> Columns:
    """Return which column holds which field; ``mapping`` (field -> column, "" for none) goes before recognition.

    Where several names fit a field, the likeliest is taken and the others are named in ``ambiguous``.
    Raises UnknownColumn where the mapping names a field that does not exist or a column that the file has not.
    """
    names = list(dict.fromkeys(names))
    mapping = dict(mapping or {})
    for name, column in mapping.items():
        if name not in FIELDS:
            raise UnknownColumn(field_name=name, column=column, wanted=FIELDS, what=f"field “{excerpt(name)}”")
        if column and column not in names:
            raise UnknownColumn(field_name=name, column=column, wanted=names, what=f"column “{excerpt(column)}”")
    found = dict(mapping)
    ambiguous = {}
    for name, known in FIELDS.items():
        if name in mapping:
            continue
        fitting = sorted(
            (column for column in names if _plain(column) in known and column not in mapping.values()),
            key=lambda column: (known.index(_plain(column)), column != _plain(column)),
        )
        if fitting:
            found[name] = fitting[0]
        if len(fitting) > 1:
            ambiguous[name] = tuple(fitting[1:])
    return Columns(**found, ambiguous=ambiguous)


def look_up(data: Mapping[str, object], column: str) -> object:
    """Return the value of a column, or of an entry of an object in a column; None where there is none."""
    if column in data:
        return data[column]
    outer, _, entry = column.partition(".")
    inside = data.get(outer)
    return inside.get(entry) if isinstance(inside, dict) else None


def _plain(name: str) -> str:
    return name.strip().casefold().replace(" ", "_").replace("-", "_")
