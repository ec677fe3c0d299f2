"""Who in a round is waiting for whom: what people have in hand, and which questions wait for somebody to come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling.models import Annotation, Membership, Question, Role, Skip, Slot
from labeling.queries.rounds import FINAL, QuestionProgress, QuestionState, RoundProgress


@dataclass(frozen=True)
class WaitingLine:
    """One thing that a question waits for.

    ``for_what``: answer (the first), another (answer), decision, or unit (of the budget, for a decision).
    ``held_by`` has it in hand; else ``could`` take it, by name, and nobody where that is empty (``is_blocked``).
    ``has_lapsed``: the holder's time is over, so others could take it too.
    """

    question: Question
    rank: int
    for_what: str
    n: int
    since: datetime
    held_by: str
    has_lapsed: bool
    could: tuple[str, ...]

    @property
    def is_blocked(self) -> bool:
        return not self.could and (not self.held_by or self.has_lapsed)


@dataclass(frozen=True)
class RoundWaiting:
    """The questions that somebody has begun, by what they wait for; of the untouched ones only those that none of the
    annotators could answer are named, and ``n_untouched`` counts the others."""

    lines: tuple[WaitingLine, ...]
    n_untouched: int

    @property
    def n_blocked(self) -> int:
        return sum(line.is_blocked for line in self.lines)


def waiting_in(progress: RoundProgress) -> RoundWaiting:
    """Say what each unsettled question of the round waits for. Four queries, however many questions there are."""
    open_questions = [each for each in progress.questions if each.state not in FINAL]
    people = _People(progress)
    lines: list[WaitingLine] = []
    n_untouched = 0
    for each in open_questions:
        found = list(_lines(each, people, progress.round.created_at))
        is_blocked = people.of_role[Role.ANNOTATOR] and any(line.is_blocked for line in found)
        if not each.n_answers and not each.holds and not is_blocked:
            n_untouched += 1
        else:
            lines += found
    lines.sort(key=lambda line: (not line.is_blocked, line.since, line.rank))
    return RoundWaiting(tuple(lines), n_untouched)


class _People:
    """Who may answer or decide, who has seen which question, and when its last answer came."""

    def __init__(self, progress: RoundProgress) -> None:
        round = progress.round
        self.names: dict[int, str] = {}
        self.of_role: dict[str, list[int]] = defaultdict(list)
        members = Membership.objects.filter(pool=round.run.pool_id, user__is_active=True).select_related("user")
        for member in members.exclude(role=Role.MANAGER).order_by("user__username"):
            self.names[member.user_id] = str(member.user)
            self.of_role[member.role].append(member.user_id)
        self.seen: dict[int, set[int]] = defaultdict(set)
        self.last_answer: dict[int, datetime] = {}
        questions = [each.question.pk for each in progress.questions]
        answered = Annotation.objects.filter(slot__question__in=questions).order_by("id")
        for question, user, at, where in answered.values_list(
            "slot__question", "annotator", "created_at", "slot__round"
        ):
            self.seen[question].add(user)
            if where == round.pk:
                self.last_answer[question] = at
        held = Slot.objects.filter(question__in=questions, holder__isnull=False).exclude(state=Slot.State.VOID)
        skipped = Skip.objects.filter(round=round)
        for rows in (held.values_list("question", "holder"), skipped.values_list("question", "user")):
            for question, user in rows:
                self.seen[question].add(user)

    def could(self, role: str, question: Question) -> tuple[str, ...]:
        return tuple(self.names[user] for user in self.of_role[role] if user not in self.seen[question.pk])


def _lines(each: QuestionProgress, people: _People, opened_at: datetime) -> list[WaitingLine]:
    since = people.last_answer.get(each.question.pk, opened_at)
    if each.state == QuestionState.WAITING_FOR_UNIT:
        return [WaitingLine(each.question, each.rank, "unit", 1, since, "", False, ())]
    is_decision = each.state == QuestionState.ADJUDICATING
    role, what = (
        (Role.ADJUDICATOR, "decision") if is_decision else (Role.ANNOTATOR, "another" if each.n_answers else "answer")
    )
    could = people.could(role, each.question)
    holds = [hold for hold in each.holds if hold.slot.is_adjudication == is_decision]
    lines = [
        WaitingLine(
            each.question, each.rank, what, 1, hold.slot.claimed_at or since, str(hold.user), hold.has_lapsed, could
        )
        for hold in holds
    ]
    missing = 1 - len(holds) if is_decision else each.overlap - each.n_answers - len(holds)
    if missing > 0 and each.state != QuestionState.SETTLING:
        lines.append(WaitingLine(each.question, each.rank, what, missing, since, "", False, could))
    return lines


def names_in_words(names: Sequence[str], most: int = 4) -> str:
    """``ana, ben or 3 others``."""
    if len(names) > most:
        others = len(names) - most
        words = ngettext("%(names)s or %(n)s other", "%(names)s or %(n)s others", others)
        return words % {"names": ", ".join(names[:most]), "n": others}
    if len(names) > 1:
        return _("%(names)s or %(last)s") % {"names": ", ".join(names[:-1]), "last": names[-1]}
    return "".join(names)
