"""In place of a question that nobody can answer, the next one of its run's own order.

What people have answered is paid for and stays spent; the units of answers that nobody has begun come back. The
replacement takes units of its own: free ones of the budget, and of those that the round holds back only as many as no
disagreement can need any more. Where there are too few it waits until units are added.
"""

from django.db.models import Exists, OuterRef, Q, QuerySet

from labeling.audit import record_event
from labeling.engine.selection import control_order
from labeling.models import Draft, GoldAnswer, Pick, Question, QuestionScore, Replacement, Round, Slot, User
from labeling.queries.units import usable_units

PENDING = [Slot.State.OPEN, Slot.State.LEASED]


def replace_question(round: Round, question: Question) -> Replacement | None:
    """Ask the next question in place of an unanswerable one, inside a transaction that holds the round's lock.

    None, and nothing new is asked, where the round is closed, the question was replaced before, units are missing, or
    the run's order has no question left.
    """
    if round.status == Round.Status.CLOSED:
        return None
    _give_back(round, question)
    if Replacement.objects.filter(round=round, replaced=question).exists() or n_usable(round, question) < round.overlap:
        return None
    found = _following(round, question)
    if found is None:
        return None
    score, taken_by = found
    labels = Slot.objects.filter(round=round, question=question, purpose=Slot.Purpose.LABEL)
    units = usable_units(round, round.overlap, held_first=False)
    priority = labels.values_list("priority", flat=True)[0]
    Slot.objects.bulk_create(Slot(round=round, unit=unit, question=score.question, priority=priority) for unit in units)
    replacement = Replacement.objects.create(
        round=round, replaced=question, replacement=score.question, taken_by=taken_by, place=score.place
    )
    record_event(
        "question.replaced",
        target=replacement,
        by=None,
        pool=round.pool,
        budget=round.budget_id,
        units=round.overlap,
        question=question.uid,
        replacement=score.question.uid,
        taken_by=taken_by,
        place=score.place,
        set_size=score.set_size,
        acquisition_score=score.acquisition_score,
    )
    return replacement


def withdraw_replacement(round: Round, question: Question, *, by: User | None) -> None:
    """Take back what replaces a question that is answerable after all, as long as nobody has been shown it."""
    for replacement in Replacement.objects.filter(round=round, replaced=question).select_related("replacement"):
        asked = Slot.objects.filter(round=round, question=replacement.replacement)
        is_shown = Draft.objects.filter(round=round, question=replacement.replacement).exists()
        if is_shown or asked.exclude(state__in=[Slot.State.OPEN, Slot.State.VOID]).exists():
            continue  # somebody is at work on it: both are labeled
        n = asked.filter(state=Slot.State.OPEN).update(state=Slot.State.VOID)
        record_event(
            "replacement.withdrawn",
            target=replacement,
            by=by,
            pool=round.pool,
            budget=round.budget_id,
            units=n,
            question=question.uid,
            replacement=replacement.replacement.uid,
        )
        replacement.delete()


def n_usable(round: Round, question: Question) -> int:
    """How many units a replacement may take: the free ones, and the held ones that no disagreement can need."""
    units = round.budget.units
    held = units.untaken().filter(held_for=round).count()
    return units.free().count() + max(0, held - _n_that_may_disagree(round, question))


def _n_that_may_disagree(round: Round, replaced: Question) -> int:
    """How many questions may still need an adjudicator, the replacement of this one among them."""
    if round.overlap == 1:
        return 0
    same = {"round": round, "question": OuterRef("question")}
    decided = Slot.objects.filter(**same, purpose=Slot.Purpose.ADJUDICATION).exclude(state=Slot.State.VOID)
    unsettled = Slot.objects.filter(
        ~Exists(decided),
        ~Exists(GoldAnswer.objects.filter(question=OuterRef("question"))),
        ~Exists(Replacement.objects.filter(round=round, replaced=OuterRef("question"))),
        round=round,
        purpose=Slot.Purpose.LABEL,
    )
    others = unsettled.exclude(state=Slot.State.VOID).exclude(question=replaced)
    return 1 + others.values("question").distinct().count()


def _give_back(round: Round, question: Question) -> None:
    pending = Slot.objects.filter(round=round, question=question, state__in=PENDING)
    if n := pending.update(state=Slot.State.VOID, lease_until=None):
        record_event(
            "question.refunded",
            target=question,
            by=None,
            pool=round.pool,
            budget=round.budget_id,
            units=n,
            question=question.uid,
        )


def _following(round: Round, question: Question) -> tuple[QuestionScore, str] | None:
    """Return the next question as the strategy would have it, and what it was taken by; None where there is none.

    The next of the same cluster for the best of a cluster, else the next of all; for a control the next of the draw.
    """
    taken_by, cluster = _taken_by(round, question)
    left = QuestionScore.objects.left_for(round).select_related("question")
    if taken_by == "control":
        uids = dict(left.values_list("question__uid", "pk"))
        drawn = control_order(list(uids), int(round.run.config.get("seed", 0)))[:1]
        return (left.get(pk=uids[drawn[0]]), "control") if drawn else None
    if taken_by == "cluster" and cluster is not None and (score := left.filter(cluster=cluster).first()):
        return score, "cluster"
    score = left.first()
    return None if score is None else (score, "global_order")


def _taken_by(round: Round, question: Question) -> tuple[str, int | None]:
    if pick := Pick.objects.filter(run=round.run_id, question=question).first():
        return pick.taken_by, pick.cluster
    replacement = Replacement.objects.get(round=round, replacement=question)
    return replacement.taken_by, QuestionScore.objects.get(run=round.run_id, question=question).cluster


def waiting_to_be_replaced(round: Round) -> QuerySet[Question]:
    """Questions that an adjudicator found unanswerable and that nothing replaces yet."""
    decided = Slot.objects.filter(
        ~Q(adjudication__unanswerable_reason=""), round=round, state=Slot.State.DONE, adjudication__isnull=False
    )
    return Question.objects.filter(
        ~Exists(GoldAnswer.objects.filter(question=OuterRef("pk"))),
        ~Exists(Replacement.objects.filter(round=round, replaced=OuterRef("pk"))),
        pk__in=decided.values("question"),
    ).order_by("pk")
