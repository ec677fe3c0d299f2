"""What reading a file gives: rows, questions and rejected rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Limits:
    """What a file may ask of the reader's memory. A row past a limit is named and skipped; the rest is read."""

    max_line_bytes: int = 1 << 20  # of one row, in any format
    max_depth: int = 64  # of lists and objects inside one row
    max_columns: int = 500
    max_uncompressed_bytes: int = 8 << 30  # of a whole Parquet file, as it declares
    max_row_group_bytes: int = 1 << 30  # of one Parquet row group, as it declares


@dataclass(frozen=True)
class Row:
    """One row as the file has it. ``line`` is the line it begins on, from 1; of Parquet and of a JSON list on one line
    it is the row's number, and ``is_item`` says so of the list."""

    line: int
    data: dict[str, object]
    is_item: bool = False


@dataclass(frozen=True)
class RejectedRow:
    """A row that cannot be used: a stable code, a sentence for people, and the text that was found."""

    line: int
    code: str
    message: str
    found: str = ""

    def as_item(self) -> RejectedRow:
        """Say in the message that ``line`` counts the items of a list."""
        return replace(self, message=f"Item {self.line:,} of the list: {self.message}")


@dataclass(frozen=True)
class QuestionRow:
    """One question of a pool or of a calibration set. ``answer`` is "" where the row has none."""

    line: int
    uid: str
    text: str
    choices: tuple[str, ...] = ()
    answer: str = ""
    answer_kind: str = ""
    metadata: dict[str, object] = field(default_factory=dict)
    uid_given: bool = False
    warnings: tuple[str, ...] = ()
