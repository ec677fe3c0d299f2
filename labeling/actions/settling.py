"""Settling a question once all its answers are in: a gold answer, or a disagreement for an adjudicator.

Comparing answers may take seconds, so it is done outside any transaction; what came of it is then written in a short
one that looks again first. Settling is safe to repeat, so a sweep picks up whatever a crash left between the two.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, QuerySet

from labeling.actions.checks import grade_checks
from labeling.audit import record_event
from labeling.engine.answers import answer_clusters, gold_form, policy_of
from labeling.models import Annotation, Budget, GoldAnswer, Question, Round, Slot, User


@dataclass(frozen=True)
class Outcome:
    """What the answers to a question come to: ``gold`` is "" where there is none."""

    gold: str = ""
    disagreement: bool = False


def settle_slot(slot: Slot) -> None:
    """Make what an answer to the slot comes to: the question settled, or the calibration check graded."""
    if slot.is_check:
        grade_checks(slot.round)
    else:
        settle_question(round=slot.round, question=slot.asked)


def settle_question(*, round: Round, question: Question) -> None:
    """Write down what the answers to a question come to, once all are in; again, or too early, it changes nothing."""
    done = Slot.objects.filter(round=round, question=question, purpose=Slot.Purpose.LABEL, state=Slot.State.DONE)
    if done.count() < round.overlap or _is_settled(round, question):
        return
    annotations = counted_annotations(round, question)
    if len(annotations) < round.overlap:
        return
    outcome = _outcome(round, question, annotations)
    with transaction.atomic():
        live_round = lock_round(round)
        if _is_settled(round, question) or counted_annotations(round, question) != annotations:
            return  # whoever changed an answer meanwhile settles what it comes to
        if outcome.gold:
            _settle_gold(round, question, annotations, outcome.gold)
        elif outcome.disagreement and live_round.status != Round.Status.CLOSED:
            _open_adjudication(round, question)


def unsettle_question(*, round: Round, question: Question, by: User) -> bool:
    """Take back what the answers to a question came to, inside a transaction that changes one of them.

    A gold answer that rests on the annotators' agreement goes, and a disagreement that no adjudicator has taken yet;
    its unit is free again. False, and nothing is changed, where an adjudicator has taken or decided it.
    """
    lock_round(round)
    adjudications = _adjudication_slots(round).filter(question=question)
    if adjudications.exclude(state=Slot.State.OPEN).exists():
        return False
    for slot in adjudications:
        adjudications.filter(pk=slot.pk).update(state=Slot.State.VOID)
        record_event("adjudication.withdrawn", target=slot, by=by, pool=round.pool, question=question.uid)
    for gold in GoldAnswer.objects.filter(round=round, question=question):
        record_event("gold_answer.withdrawn", target=gold, by=by, pool=round.pool, answer=gold.answer)
        gold.delete()
    return True


def lock_round(round: Round) -> Round:
    """Return the round as it is now; until the transaction ends nobody else settles its questions."""
    found = Round.objects.select_for_update(no_key=True).get(pk=round.pk)
    Budget.objects.select_for_update(no_key=True).get(pk=found.budget_id)
    return found


def settle_round(*, round: Round) -> None:
    """Settle every question of the round that is ready."""
    for question in _ready_questions(round):
        settle_question(round=round, question=question)


def settle_waiting(*, budget: Budget) -> None:
    """Settle what waited for a free unit of the budget."""
    for round in budget.rounds.exclude(status=Round.Status.CLOSED).select_related("run__pool"):
        settle_round(round=round)


def sweep_rounds() -> None:
    """Settle whatever a crash between an answer and its settling left behind; the worker calls it now and then."""
    for round in Round.objects.exclude(status=Round.Status.CLOSED).select_related("run__pool"):
        settle_round(round=round)
        grade_checks(round)


def counted_annotations(round: Round, question: Question) -> list[Annotation]:
    """Return the answers to a question that count, first come first."""
    return list(Annotation.objects.counting().filter(slot__round=round, slot__question=question).order_by("id"))


def _ready_questions(round: Round) -> QuerySet[Question]:
    done = round.slots.filter(purpose=Slot.Purpose.LABEL, state=Slot.State.DONE)
    complete = done.values("question").annotate(n=Count("id")).filter(n__gte=round.overlap).values("question")
    return Question.objects.filter(
        ~Exists(GoldAnswer.objects.filter(question=OuterRef("pk"))),
        ~Exists(_adjudication_slots(round).filter(question=OuterRef("pk"))),
        pk__in=complete,
    ).order_by("id")


def _adjudication_slots(round: Round) -> QuerySet[Slot]:
    return Slot.objects.filter(round=round, purpose=Slot.Purpose.ADJUDICATION).exclude(state=Slot.State.VOID)


def _is_settled(round: Round, question: Question) -> bool:
    return (
        GoldAnswer.objects.filter(question=question).exists()
        or _adjudication_slots(round).filter(question=question).exists()
    )


def _outcome(round: Round, question: Question, annotations: Sequence[Annotation]) -> Outcome:
    answers = [annotation.answer for annotation in annotations if annotation.answer]
    if not answers:
        return Outcome()
    policy = policy_of(round.pool)
    if (
        len(answers) < len(annotations)
        or len(set(answer_clusters(answers, kind=question.answer_kind, policy=policy))) > 1
    ):
        return Outcome(disagreement=True)
    return Outcome(gold=gold_form(answers[0], kind=question.answer_kind, policy=policy))


def _settle_gold(round: Round, question: Question, annotations: Sequence[Annotation], answer: str) -> None:
    gold, is_new = GoldAnswer.objects.get_or_create(
        question=question,
        defaults={
            "round": round,
            "answer": answer,
            "answer_kind": question.answer_kind or annotations[0].answer_kind,
            "source": GoldAnswer.Source.AGREEMENT if len(annotations) > 1 else GoldAnswer.Source.SINGLE,
        },
    )
    if not is_new:
        return
    record_event("gold_answer.settled", target=gold, by=None, pool=round.pool, source=gold.source, answer=answer)


def _open_adjudication(round: Round, question: Question) -> None:
    unit = round.budget.units.free().order_by("number").first()
    if unit is None:  # the question waits until units are added
        return
    label = round.slots.filter(question=question, purpose=Slot.Purpose.LABEL).first()
    slot = Slot.objects.create(
        round=round,
        unit=unit,
        question=question,
        purpose=Slot.Purpose.ADJUDICATION,
        priority=label.priority if label else 0,
    )
    record_event("adjudication.opened", target=slot, by=None, pool=round.pool, question=question.uid)
