"""How far rounds are: per round, per question, and who holds what."""

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from django.db.models import Count, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling.models import (
    Annotation,
    BudgetUnit,
    GoldAnswer,
    Membership,
    Pool,
    Question,
    QuestionScore,
    Role,
    Round,
    Slot,
    User,
)
from labeling.queries.pools import BudgetRow, budget_row


class QuestionState(StrEnum):
    """Where a question of a round stands; computed, never stored."""

    ANSWERING = "answering"  # answers are missing
    SETTLING = "settling"  # all answers are in and being compared
    WAITING_FOR_UNIT = "waiting_for_unit"  # a disagreement, but no unit of the budget is free for an adjudicator
    ADJUDICATING = "adjudicating"
    GOLD = "gold"
    UNANSWERABLE = "unanswerable"
    ENDED = "ended"  # the round was closed before the question was settled


FINAL = {QuestionState.GOLD, QuestionState.UNANSWERABLE, QuestionState.ENDED}


@dataclass(frozen=True)
class Hold:
    """Who holds a slot, and until when."""

    slot: Slot
    user: User
    until: datetime
    has_lapsed: bool


@dataclass(frozen=True)
class QuestionProgress:
    """How far one question of a round is."""

    question: Question
    rank: int
    state: QuestionState
    n_answers: int
    overlap: int
    holds: tuple[Hold, ...]
    gold: GoldAnswer | None
    n_surplus: int
    replaced_by: Question | None = None
    replaces: Question | None = None
    waits_for_replacement: bool = False


@dataclass(frozen=True)
class RoundProgress:
    """How far a round is."""

    round: Round
    questions: tuple[QuestionProgress, ...]
    n_slots: int
    n_slots_done: int
    budget: BudgetRow
    warnings: tuple[str, ...]

    @property
    def n_questions(self) -> int:
        return len(self.questions)

    def count(self, state: QuestionState) -> int:
        """Return how many questions are in a state."""
        return sum(question.state == state for question in self.questions)

    @property
    def n_gold(self) -> int:
        return self.count(QuestionState.GOLD)

    @property
    def n_unanswerable(self) -> int:
        return self.count(QuestionState.UNANSWERABLE)

    @property
    def n_waiting_for_unit(self) -> int:
        return self.count(QuestionState.WAITING_FOR_UNIT)

    @property
    def holds(self) -> tuple[Hold, ...]:
        return tuple(hold for question in self.questions for hold in question.holds)

    @property
    def is_finished(self) -> bool:
        """Whether every question is settled."""
        return all(question.state in FINAL for question in self.questions)


def round_progress(*, round: Round) -> RoundProgress:
    """Return how far a round is, question by question in the order of the picks. A constant number of queries."""
    now = timezone.now()
    round = Round.objects.select_related("run__pool", "budget", "guideline").get(pk=round.pk)
    slots = defaultdict(list)
    for slot in (
        Slot.objects.filter(round=round, question__isnull=False)
        .select_related("question", "holder", "adjudication")
        .order_by("priority", "id")
    ):
        slots[slot.asked.pk].append(slot)
    annotations = defaultdict(list)
    said = Annotation.objects.standing().filter(slot__round=round, slot__question__isnull=False)
    for annotation in said.select_related("slot").order_by("id"):
        annotations[annotation.slot.question_id].append(annotation)
    golds = {gold.question_id: gold for gold in GoldAnswer.objects.filter(round=round)}
    budget = budget_row(budget=round.budget)
    n_units = BudgetUnit.objects.usable_by(round).count()
    questions = _with_replacements(
        round,
        [
            _question_progress(round, of_question, annotations[question_id], golds.get(question_id), n_units, now)
            for question_id, of_question in slots.items()
        ],
    )
    live_slots = [slot for of_question in slots.values() for slot in of_question if slot.state != Slot.State.VOID]
    return RoundProgress(
        round=round,
        questions=questions,
        n_slots=len(live_slots),
        n_slots_done=sum(slot.state == Slot.State.DONE for slot in live_slots),
        budget=budget,
        warnings=tuple(_warnings(round, questions)),
    )


def _with_replacements(round: Round, questions: list[QuestionProgress]) -> tuple[QuestionProgress, ...]:
    """Say of each question what it was replaced by, what it replaces, and whether it waits to be replaced."""
    replacements = list(round.replacements.select_related("replaced", "replacement"))
    replaced_by = {each.replaced_id: each.replacement for each in replacements}
    replaces = {each.replacement_id: each.replaced for each in replacements}
    waiting = {
        row.question.pk
        for row in questions
        if row.state == QuestionState.UNANSWERABLE and row.question.pk not in replaced_by
    }
    if round.status == Round.Status.CLOSED or not QuestionScore.objects.left_for(round).exists():
        waiting = set()
    return tuple(
        replace(
            row,
            replaced_by=replaced_by.get(row.question.pk),
            replaces=replaces.get(row.question.pk),
            waits_for_replacement=row.question.pk in waiting,
        )
        for row in questions
    )


def _question_progress(
    round: Round,
    slots: list[Slot],
    annotations: list[Annotation],
    gold: GoldAnswer | None,
    n_free_units: int,
    now: datetime,
) -> QuestionProgress:
    counted = [annotation for annotation in annotations if not annotation.surplus]
    return QuestionProgress(
        question=slots[0].asked,
        rank=slots[0].priority,
        state=_state(round, slots, counted, gold, n_free_units),
        n_answers=len(counted),
        overlap=_wanted(round, slots),
        holds=tuple(
            Hold(slot=slot, user=slot.holder, until=slot.lease_until, has_lapsed=slot.lease_until <= now)
            for slot in slots
            if slot.state == Slot.State.LEASED and slot.holder is not None and slot.lease_until is not None
        ),
        gold=gold,
        n_surplus=len(annotations) - len(counted),
    )


def _wanted(round: Round, slots: list[Slot]) -> int:
    """How many answers the question wants: what the round asks of everybody, or more where some were bought since."""
    asked = sum(slot.purpose == Slot.Purpose.LABEL and slot.state != Slot.State.VOID for slot in slots)
    return max(round.overlap, asked)


def _state(
    round: Round, slots: list[Slot], counted: list[Annotation], gold: GoldAnswer | None, n_free_units: int
) -> QuestionState:
    if gold is not None:
        return QuestionState.GOLD
    adjudication = next((slot for slot in slots if slot.is_adjudication and slot.state != Slot.State.VOID), None)
    if adjudication is not None and adjudication.state == Slot.State.DONE:
        return QuestionState.UNANSWERABLE
    is_complete = len(counted) >= _wanted(round, slots)
    if is_complete and not any(annotation.answer for annotation in counted):
        return QuestionState.UNANSWERABLE
    if round.status == Round.Status.CLOSED:
        return QuestionState.ENDED
    if adjudication is not None:
        return QuestionState.ADJUDICATING
    if not is_complete:
        return QuestionState.ANSWERING
    return QuestionState.SETTLING if n_free_units else QuestionState.WAITING_FOR_UNIT


def _warnings(round: Round, questions: tuple[QuestionProgress, ...]) -> list[str]:
    if round.status == Round.Status.CLOSED:
        return []
    people = dict(
        Membership.objects.filter(pool=round.run.pool_id, user__is_active=True)
        .order_by()
        .values_list("role")
        .annotate(n=Count("user"))
    )
    found = []
    waiting = sum(question.state == QuestionState.WAITING_FOR_UNIT for question in questions)
    if waiting:
        found.append(
            ngettext(
                "%(n)s disagreement waits for an adjudicator, who takes a unit each: %(budget)s has none free. "
                "Add %(n)s unit.",
                "%(n)s disagreements wait for an adjudicator, who takes a unit each: %(budget)s has none free. "
                "Add %(n)s units.",
                waiting,
            )
            % {"n": waiting, "budget": round.budget}
        )
    if n := sum(question.waits_for_replacement for question in questions):
        units = ngettext("%(n)s unit", "%(n)s units", round.overlap) % {"n": round.overlap}
        found.append(
            ngettext(
                "%(n)s question that cannot be answered waits to be replaced by the next of the run’s order, which "
                "takes %(units)s each. %(budget)s has too few beside what disagreements may need: add some, or go on "
                "with fewer questions.",
                "%(n)s questions that cannot be answered wait to be replaced by the next of the run’s order, which "
                "takes %(units)s each. %(budget)s has too few beside what disagreements may need: add some, or go on "
                "with fewer questions.",
                n,
            )
            % {"n": n, "units": units, "budget": round.budget}
        )
    if (n := people.get(Role.ANNOTATOR, 0)) < round.overlap:
        found.append(
            ngettext(
                "Each question wants %(n)s annotator; the pool has %(has)s. Invite more people.",
                "Each question wants %(n)s annotators; the pool has %(has)s. Invite more people.",
                round.overlap,
            )
            % {"n": round.overlap, "has": n}
        )
    if round.overlap > 1 and not people.get(Role.ADJUDICATOR, 0):
        found.append(_("Nobody can decide disagreements: the pool has no adjudicator. Invite one."))
    return found


IS_NO_CHECK = ~Q(slots__purpose=Slot.Purpose.CHECK)


@dataclass(frozen=True)
class RoundRow:
    """A round in a list."""

    round: Round
    n_questions: int
    n_slots: int
    n_slots_done: int
    n_gold: int


def rounds_of(*, pool: Pool) -> list[RoundRow]:
    """Return the pool's rounds, newest first. A constant number of queries."""
    rounds = (
        Round.objects.in_pool(pool)
        .select_related("run__pool", "budget")
        .order_by("-created_at", "-id")
        .annotate(
            n_questions=Count("slots__question", distinct=True),
            n_slots=Count("slots", filter=~Q(slots__state=Slot.State.VOID) & IS_NO_CHECK, distinct=True),
            n_slots_done=Count("slots", filter=Q(slots__state=Slot.State.DONE) & IS_NO_CHECK, distinct=True),
        )
    )
    golds = dict(GoldAnswer.objects.filter(round__in=rounds).order_by().values_list("round").annotate(n=Count("pk")))
    return [
        RoundRow(
            round=round,
            n_questions=round.n_questions,
            n_slots=round.n_slots,
            n_slots_done=round.n_slots_done,
            n_gold=golds.get(round.pk, 0),
        )
        for round in rounds
    ]
