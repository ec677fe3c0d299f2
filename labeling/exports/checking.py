"""What keeps rows from being exported, and what is only worth a warning."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from django.utils.translation import gettext as _

from labeling.exports.contract import CanonicalRow, ExportRefused, GoldChecks

MEDIA_TAG = re.compile(r"<(?:image|video|audio)>")


def check_rows(rows: Sequence[CanonicalRow], checks: GoldChecks) -> tuple[list[CanonicalRow], dict[str, str]]:
    """Return the rows to export, sorted by uid, and the duplicates left out with the uid that stands for each.

    Raises ExportRefused, naming every question with an empty, unreadable or conflicting gold, with text that is no
    Unicode, or with a uid that occurs twice.
    """
    if not rows:
        raise ExportRefused({_("the dataset"): _("no question has a gold answer yet; finish a round first")})
    rows = sorted(rows, key=lambda row: row.uid)
    problems = _text_problems(rows)
    golds = checks.check_golds([row.answer for row in rows], [row.answer_kind for row in rows])
    for position, problem in golds.items():
        words = _("its gold answer %(answer)s %(problem)s")
        problems.setdefault(
            rows[position].uid, words % {"answer": repr(rows[position].answer[:80]), "problem": problem}
        )
    if problems:
        raise ExportRefused(problems)
    return _without_duplicates(rows, checks)


def warnings_about(rows: Sequence[CanonicalRow]) -> tuple[str, ...]:
    """Name the rows whose text some trainer might take for something else."""
    return tuple(
        f"{row.uid}: the question contains {match.group()}, which some trainers replace by a picture or sound."
        for row in rows
        if (match := MEDIA_TAG.search(row.question))
    )


def _text_problems(rows: Sequence[CanonicalRow]) -> dict[str, str]:
    problems: dict[str, str] = {}
    seen: set[str] = set()
    for row in rows:
        texts = (row.uid, row.question, row.answer, *row.choices)
        if row.uid in seen:
            problems[row.uid] = _("its id occurs twice")
        elif not row.question.strip():
            problems[row.uid] = _("its text is empty")
        elif any(_is_broken(text) for text in texts):
            shown = row.uid.encode(errors="replace").decode()
            problems[shown] = _("its text contains half of a character (a surrogate)")
        seen.add(row.uid)
    return problems


def _is_broken(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _without_duplicates(rows: Sequence[CanonicalRow], checks: GoldChecks) -> tuple[list[CanonicalRow], dict[str, str]]:
    kept: dict[tuple[str, ...], CanonicalRow] = {}
    left_out: dict[str, str] = {}
    conflicts: dict[str, str] = {}
    for row in rows:
        asked = tuple(" ".join(unicodedata.normalize("NFC", text).split()) for text in (row.question, *row.choices))
        first = kept.setdefault(asked, row)
        if first is row:
            continue
        if first.answer == row.answer or checks.agree(first.answer, row.answer, row.answer_kind):
            left_out[row.uid] = first.uid
        else:
            words = _("same question as %(uid)s, but %(answer)s instead of %(other)s")
            conflicts[row.uid] = words % {"uid": first.uid, "answer": repr(row.answer), "other": repr(first.answer)}
    if conflicts:
        raise ExportRefused(conflicts)
    return list(kept.values()), left_out
