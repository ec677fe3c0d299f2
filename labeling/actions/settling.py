"""Settling a question once all its answers are in: a gold answer, or a disagreement for an adjudicator.

Comparing answers may take seconds, so it is done outside any transaction; what came of it is then written in a short
one that looks again first. Settling is safe to repeat, so a sweep picks up whatever a crash left between the two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from labeling.actions.checks import grade_checks
from labeling.actions.replacing import replace_question, waiting_to_be_replaced, withdraw_replacement
from labeling.audit import record_event
from labeling.engine.answers import gold_form, policy_of
from labeling.models import Annotation, Budget, GoldAnswer, Question, Round, Slot, User
from labeling.prepared import Parameter, Prepared
from labeling.queries.meaning import Pair, clusters_of, verdicts_on
from labeling.queries.units import usable_units

IS_DONE = Q(state=Slot.State.DONE)
IS_PENDING = Q(state__in=[Slot.State.OPEN, Slot.State.LEASED])


_IN_ROUND = {"round": Parameter("round"), "question": Parameter("question")}
_LABEL_STATES = Prepared(
    lambda: Slot.objects.filter(purpose=Slot.Purpose.LABEL, **_IN_ROUND).order_by().values_list("state")
)
_PRIORITIES = Prepared(
    lambda: (
        Slot.objects.filter(purpose=Slot.Purpose.LABEL, **_IN_ROUND).order_by("priority").values_list("priority")[:1]
    )
)
_SAID = Prepared(
    lambda: Annotation.objects.filter(
        surplus=False,
        withdrawal=None,
        slot__purpose=Slot.Purpose.LABEL,
        slot__state=Slot.State.DONE,
        **{f"slot__{name}": value for name, value in _IN_ROUND.items()},
    ).order_by("version")
)
_GOLD = Prepared(lambda: GoldAnswer.objects.filter(question=Parameter("question")).values_list("pk"))
_ADJUDICATED = Prepared(
    lambda: (
        Slot.objects.filter(purpose=Slot.Purpose.ADJUDICATION, **_IN_ROUND)
        .exclude(state=Slot.State.VOID)
        .order_by()
        .values_list("pk")
    )
)
_LOCKED_ROUND = Prepared(lambda: Round.objects.select_for_update(no_key=True).filter(pk=Parameter("round")).order_by())
_LOCKED_BUDGET = Prepared(
    lambda: Budget.objects.select_for_update(no_key=True).filter(pk=Parameter("budget")).order_by()
)


@dataclass(frozen=True)
class Outcome:
    """What the answers to a question come to: ``gold`` is "" where there is none, else ``source`` says why it is."""

    gold: str = ""
    source: str = ""
    disagreement: bool = False


def settle_slot(slot: Slot) -> None:
    """Make what an answer to the slot comes to: the question settled, or the calibration check graded."""
    if slot.is_check:
        grade_checks(slot.round)
    else:
        settle_question(round=slot.round, question=slot.asked)


def settle_question(*, round: Round, question: Question) -> None:
    """Write down what the answers to a question come to, once all are in; again, or too early, it changes nothing."""
    if not is_complete(round, question) or _is_settled(round, question):
        return
    annotations = counted_annotations(round, question)
    if len(annotations) < round.overlap:
        return
    outcome = outcome_of(round, question, annotations)
    with transaction.atomic():
        live_round = lock_round(round)
        if _is_settled(round, question) or not is_complete(round, question):
            return
        if counted_annotations(round, question) != annotations:
            return  # whoever changed an answer meanwhile settles what it comes to
        write_outcome(live_round, question, annotations, outcome)


def write_outcome(round: Round, question: Question, annotations: Sequence[Annotation], outcome: Outcome) -> None:
    """Write down what the answers come to, inside a transaction that holds the round's lock."""
    if outcome.gold:
        _settle_gold(round, question, annotations, outcome)
    elif outcome.disagreement and round.status != Round.Status.CLOSED:
        _open_adjudication(round, question)
    elif not any(annotation.answer for annotation in annotations):
        replace_question(round, question)


def is_complete(round: Round, question: Question) -> bool:
    """Whether all answers to a question are in: as many as the round wants, and those bought since."""
    states = [state for (state,) in _LABEL_STATES.rows(round=round.pk, question=question.pk)]
    n_pending = states.count(Slot.State.OPEN) + states.count(Slot.State.LEASED)
    return states.count(Slot.State.DONE) >= round.overlap and not n_pending


def unsettle_question(*, round: Round, question: Question, by: User | None) -> bool:
    """Take back what the answers to a question came to, inside a transaction that changes one of them.

    A gold answer that rests on the annotators' agreement goes, and a disagreement that no adjudicator has taken yet;
    its unit is free again. False, and nothing is changed, where an adjudicator has taken or decided it.
    """
    lock_round(round)
    adjudications = adjudication_slots(round).filter(question=question)
    if adjudications.exclude(state=Slot.State.OPEN).exists():
        return False
    for slot in adjudications:
        adjudications.filter(pk=slot.pk).update(state=Slot.State.VOID)
        record_event(
            "adjudication.withdrawn",
            target=slot,
            by=by,
            pool=round.pool,
            budget=round.budget_id,
            units=1,
            question=question.uid,
        )
    withdraw_replacement(round, question, by=by)
    for gold in GoldAnswer.objects.filter(round=round, question=question):
        record_event("gold_answer.withdrawn", target=gold, by=by, pool=round.pool, answer=gold.answer)
        gold.delete()
    return True


def lock_round(round: Round) -> Round:
    """Return the round as it is now; until the transaction ends nobody else settles its questions."""
    (found,) = _LOCKED_ROUND.rows(round=round.pk)
    found.run = round.run  # which never changes, and is loaded
    if connection.features.has_select_for_update:
        _LOCKED_BUDGET.rows(budget=found.budget_id)
    return found


def settle_round(*, round: Round) -> None:
    """Settle every question of the round that is ready."""
    for question in _ready_questions(round):
        settle_question(round=round, question=question)
    for question in waiting_to_be_replaced(round):
        with transaction.atomic():
            replace_question(lock_round(round), question)


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
    latest: dict[tuple[int, int], Annotation] = {}  # as Annotation.objects.counting(), found faster for one question
    for annotation in _SAID.rows(round=round.pk, question=question.pk):
        latest[annotation.slot_id, annotation.annotator_id] = annotation
    return sorted(latest.values(), key=lambda annotation: annotation.pk)


def _ready_questions(round: Round) -> QuerySet[Question]:
    labels = round.slots.filter(purpose=Slot.Purpose.LABEL).order_by().values("question")
    counted = labels.annotate(done=Count("pk", filter=IS_DONE), pending=Count("pk", filter=IS_PENDING))
    complete = counted.filter(done__gte=round.overlap, pending=0).values("question")
    return Question.objects.filter(
        ~Exists(GoldAnswer.objects.filter(question=OuterRef("pk"))),
        ~Exists(adjudication_slots(round).filter(question=OuterRef("pk"))),
        pk__in=complete,
    ).order_by("id")


def adjudication_slots(round: Round) -> QuerySet[Slot]:
    """Return the adjudications of the round that stand, open, held or decided."""
    return Slot.objects.filter(round=round, purpose=Slot.Purpose.ADJUDICATION).exclude(state=Slot.State.VOID)


def _is_settled(round: Round, question: Question) -> bool:
    return bool(_GOLD.rows(question=question.pk) or _ADJUDICATED.rows(round=round.pk, question=question.pk))


def outcome_of(
    round: Round, question: Question, annotations: Sequence[Annotation], verdicts: Mapping[Pair, bool] | None = None
) -> Outcome:
    """Return what the answers come to: the one meaning they have, or a disagreement.

    ``verdicts``: what people said of their meaning, by default what is on record. Where answers were bought beyond
    those that the round asked of everybody, the meaning of more than half of them is believed.
    """
    answers = [annotation.answer for annotation in annotations if annotation.answer]
    if not answers:
        return Outcome()
    policy, kind = policy_of(round.pool), question.answer_kind
    said = verdicts_on(question) if verdicts is None else verdicts
    clusters = clusters_of(answers, kind=kind, policy=policy, verdicts=said)
    groups = [clusters.members(number) for number in range(clusters.n)]
    most = max(range(clusters.n), key=lambda number: len(groups[number]))
    if len(annotations) == 1:
        source = GoldAnswer.Source.SINGLE
    elif len(groups[most]) == len(annotations):
        source = GoldAnswer.Source.MERGED if most in clusters.merged else GoldAnswer.Source.AGREEMENT
    elif len(annotations) > round.overlap and 2 * len(groups[most]) > len(annotations):
        source = GoldAnswer.Source.MAJORITY
    else:
        return Outcome(disagreement=True)
    return Outcome(gold_form(answers[groups[most][0]], kind=kind, policy=policy), source)


def _settle_gold(round: Round, question: Question, annotations: Sequence[Annotation], outcome: Outcome) -> None:
    gold, is_new = GoldAnswer.objects.get_or_create(
        question=question,
        defaults={
            "round": round,
            "answer": outcome.gold,
            "answer_kind": question.answer_kind or annotations[0].answer_kind,
            "source": outcome.source,
        },
    )
    if not is_new:
        return
    record_event("gold_answer.settled", target=gold, by=None, pool=round.pool, source=gold.source, answer=outcome.gold)


def _open_adjudication(round: Round, question: Question) -> None:
    units = usable_units(round, held_first=True)
    if not units:  # the question waits until units are added
        return
    priority = _PRIORITIES.first(round=round.pk, question=question.pk)
    slot = Slot.objects.create(
        round=round,
        unit=units[0],
        question=question,
        purpose=Slot.Purpose.ADJUDICATION,
        priority=priority[0] if priority else 0,
    )
    record_event(
        "adjudication.opened",
        target=slot,
        by=None,
        pool=round.pool,
        budget=round.budget_id,
        units=1,
        question=question.uid,
    )
