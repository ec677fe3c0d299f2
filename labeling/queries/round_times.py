"""How long answers take in a round: by question and by person, from opening a question to submitting its answer."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from django.utils.translation import gettext as _

from labeling.models import Annotation, Round
from labeling.queries.pictures import Picture

MOST_SHOWN = 20  # questions in the picture, the slowest


@dataclass(frozen=True)
class PersonTimes:
    """What one person's answers took; breaks while a question is open count, so the median is what to look at."""

    name: str
    n_answers: int
    median_seconds: float
    last_at: datetime


@dataclass(frozen=True)
class RoundTimes:
    """Over all answers that count and have a time."""

    n_answers: int
    median_seconds: float
    total_seconds: float
    people: list[PersonTimes]
    picture: Picture


def times_of(round: Round) -> RoundTimes | None:
    """Return the times; None before the first answer. One query."""
    rows = list(
        Annotation.objects.counting()
        .filter(slot__round=round, seconds_spent__isnull=False)
        .order_by("slot__priority", "id")
        .values_list("slot__priority", "slot__question__text", "seconds_spent", "annotator__username", "created_at")
    )
    if not rows:
        return None
    questions, people = defaultdict(list), defaultdict(list)
    for rank, text, seconds, name, at in rows:
        questions[rank, text].append(seconds)
        people[name].append((at, seconds))
    slowest = sorted(questions, key=lambda each: -median(questions[each]))[:MOST_SHOWN]
    overall = median(row[2] for row in rows)
    caption = _("From opening a question to submitting its answer, the median of its answers; breaks count.")
    if len(slowest) < len(questions):
        counts = {"n": len(slowest), "of": len(questions)}
        caption += " " + _("The %(n)s slowest of %(of)s questions.") % counts
    return RoundTimes(
        n_answers=len(rows),
        median_seconds=overall,
        total_seconds=sum(row[2] for row in rows),
        people=[
            PersonTimes(name, len(times), median(seconds for _, seconds in times), max(at for at, _ in times))
            for name, times in sorted(people.items())
        ],
        picture=Picture(
            "bars",
            _("Minutes per question"),
            caption,
            [_("Question"), _("Minutes"), _("Shortest"), _("Longest"), _("Answers")],
            [_row(rank, text, questions[rank, text]) for rank, text in sorted(slowest)],
            reference=overall / 60,
            reference_name=_("median"),
        ),
    )


def _row(rank: int, text: str, seconds: list[float]) -> list[str]:
    name = f"{rank}. {' '.join(text.split())}"
    shown = name if len(name) <= 36 else f"{name[:35]}…"
    minutes = [f"{value / 60:.1f}" for value in (median(seconds), min(seconds), max(seconds))]
    return [shown, *minutes, str(len(seconds))]
