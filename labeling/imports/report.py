"""What an import found: counts of everything, and the rows that somebody should look at."""

from __future__ import annotations

from dataclasses import dataclass, field

from labeling.engine.rows import QuestionRow, RejectedRow

MAX_LISTED = 10_000  # rows listed one by one, of each kind; every row is counted
MAX_SAMPLE = 5
MAX_SAMPLE_CHARACTERS = 2_000


@dataclass
class Notices:
    """Rows with something to say about each: all are counted, the first MAX_LISTED are kept."""

    total: int = 0
    listed: list[dict[str, object]] = field(default_factory=list)

    def add(self, line: int, code: str, message: str, **details: object) -> None:
        self.total += 1
        if len(self.listed) < MAX_LISTED:
            self.listed.append({"line": line, "code": code, "message": message, **details})


@dataclass
class ImportReport:
    """The outcome of a preview or of an import: new + unchanged + changed + duplicates + rejected = rows read."""

    columns: dict[str, str] = field(default_factory=dict)  # field -> column in use
    names: list[str] = field(default_factory=list)  # all columns of the file
    new: int = 0
    unchanged: int = 0
    changed: int = 0
    duplicates: Notices = field(default_factory=Notices)
    rejected: Notices = field(default_factory=Notices)
    warnings: Notices = field(default_factory=Notices)
    sample: list[dict[str, object]] = field(default_factory=list)
    details: dict[str, object] = field(default_factory=dict)  # of imports of votes and picks

    @property
    def accepted(self) -> int:
        """Rows that are, or now will be, in the pool as the file has them."""
        return self.new + self.changed + self.unchanged

    def reject(self, row: RejectedRow) -> None:
        self.rejected.add(row.line, row.code, row.message, found=row.found)

    def show(self, row: QuestionRow, *, with_answer: bool) -> None:
        """Keep the first rows, as they were read, for people to look at before they commit."""
        if len(self.sample) < MAX_SAMPLE:
            shown = {"line": row.line, "uid": row.uid, "text": row.text[:MAX_SAMPLE_CHARACTERS]}
            shown |= {"choices": list(row.choices)} if row.choices else {}
            shown |= {"answer": row.answer[:MAX_SAMPLE_CHARACTERS]} if with_answer else {}
            shown |= {"kind": row.answer_kind} if row.answer_kind else {}
            self.sample.append(shown)

    def counts(self) -> dict[str, int]:
        return {
            "new": self.new,
            "unchanged": self.unchanged,
            "changed": self.changed,
            "duplicates": self.duplicates.total,
            "rejected": self.rejected.total,
            "warnings": self.warnings.total,
        }

    def to_json(self) -> dict[str, object]:
        """The counts by name, but the rejected rows themselves; what else is known comes after."""
        return {
            **self.counts(),
            "rejected": self.rejected.listed,
            "rejected_count": self.rejected.total,
            "duplicate_rows": self.duplicates.listed,
            "warnings": self.warnings.listed,
            "columns": self.columns,
            **self.details,
        }
