"""Where a curriculum stands: beliefs over time, and which questions are done, stuck or forgotten."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

from django.core.cache import cache
from django.db.models import Count, Max, QuerySet
from django.utils.translation import gettext as _

from labeling.engine.curricula import (
    CurriculumKind,
    QuestionStanding,
    Standing,
    Story,
    StoryReader,
    curriculum_kinds,
    steps_a_moment,
)
from labeling.models import Curriculum, Pool

SECONDS_PER_LOOK = 0.8  # of reading reports while somebody waits for the page; the page then shows how far it is
EVENTS_PER_QUERY = 2000
EVIDENCE_BOUNDS = (0, 8, 16, 32, 64, 128)  # rollouts of a question: the classes of the histogram


@dataclass(frozen=True)
class QuestionLine:
    """One question with its words and where it stands."""

    text: str
    question: QuestionStanding


@dataclass(frozen=True)
class StoryOrProgress:
    """The story, or while reports are still to be read, how far that is."""

    story: Story | None
    n_read: int
    n_left: int


def curricula_of(pool: Pool) -> QuerySet[Curriculum]:
    """The pool's curricula, newest first, without their states."""
    return (
        Curriculum.objects.filter(pool=pool)
        .select_related("snapshot", "created_by")
        .defer("state", "prior", "snapshot__rows")
        .annotate(n_events=Count("events"))
        .order_by("-created_at", "-id")
    )


def kind_of(curriculum: Curriculum) -> CurriculumKind:
    """What the curriculum's kind is, in words."""
    return next(kind for kind in curriculum_kinds() if kind.key == curriculum.kind)


def story_of(curriculum: Curriculum, *, seconds: float | None = SECONDS_PER_LOOK) -> StoryOrProgress:
    """How the training went so far. Only reports that came in since the last look are read, for about ``seconds``."""
    found = curriculum.events.aggregate(n=Count("id"), step=Max("step"))
    every = steps_a_moment(found["step"] or 0)
    key = f"curriculum-reader-{curriculum.pk}-{curriculum.created_at.timestamp()}-{every}"
    reader: StoryReader = cache.get(key) or StoryReader(curriculum, every=every)
    until, n_before = None if seconds is None else time.monotonic() + seconds, reader.n_read
    events = curriculum.events.order_by("id").values_list("id", "question_uid", "rewards", "step")
    while reader.n_read < found["n"]:
        reader.read(events.filter(id__gt=reader.last_id)[:EVENTS_PER_QUERY], until=until)
        if until is not None and time.monotonic() >= until:
            break
    if reader.n_read > n_before:
        cache.set(key, reader)
    n_left = max(0, found["n"] - reader.n_read)
    return StoryOrProgress(None if n_left else reader.story(), reader.n_read, n_left)


def evidence_histogram(story: Story) -> list[tuple[str, int]]:
    """How many questions have had how many rollouts."""
    counts = [0] * (len(EVIDENCE_BOUNDS) + 1)
    for question in story.questions:
        counts[sum(question.n_rollouts > bound for bound in EVIDENCE_BOUNDS)] += 1
    over = _("over %(n)s") % {"n": EVIDENCE_BOUNDS[-1]}
    labels = ["0", *(f"{low + 1}–{high}" for low, high in pairwise(EVIDENCE_BOUNDS)), over]
    return list(zip(labels, counts, strict=True))


def standing_counts(story: Story) -> list[tuple[Standing, int]]:
    """How many questions stand where, in the order untried to forgotten."""
    standings = [question.standing for question in story.questions]
    return [(standing, standings.count(standing)) for standing in Standing]


def question_lines(curriculum: Curriculum, story: Story, standing: str = "") -> list[QuestionLine]:
    """Return the questions with their words, those of most evidence first; of one standing or of all."""
    texts = {row["uid"]: row["question"] for row in curriculum.snapshot.rows}
    wanted = [each for each in story.questions if not standing or each.standing == standing]
    wanted.sort(key=lambda each: (-each.n_rollouts, each.uid))
    return [QuestionLine(texts[each.uid], each) for each in wanted]
