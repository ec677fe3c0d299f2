"""One more answer to a question whose label is in doubt, bought from the free units of the round's budget."""

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from labeling import policies
from labeling.actions.settling import lock_round, unsettle_question
from labeling.audit import record_event
from labeling.errors import Conflict, LabelingError
from labeling.models import Membership, Question, Role, Round, Skip, Slot, User
from labeling.models.rounds import MOST_OVERLAP
from labeling.queries.units import usable_units


@transaction.atomic
def buy_answer(*, round: Round, question: Question, asked_before: int, by: User | None) -> Slot:
    """Ask one more person the question; with all answers in, what more than half of them mean settles it.

    What the answers came to so far is taken back until then: a gold answer, and an adjudication that nobody has taken,
    whose unit pays. ``asked_before``: how many people the caller saw being asked; Conflict if that has changed, so that
    a form sent twice buys once. Raises Conflict round_closed, question_decided, units_missing and nobody_left.
    """
    policies.check_can_manage(round.pool, by)
    live_round = lock_round(round)
    if live_round.status == Round.Status.CLOSED:
        raise Conflict(_("The round is closed; its answers stand."), code="round_closed")
    labels = Slot.objects.filter(round=round, question=question, purpose=Slot.Purpose.LABEL)
    asked = labels.exclude(state=Slot.State.VOID)
    n_asked = asked.count()
    if not n_asked:
        raise LabelingError(_("Nobody is asked this question in this round."), code="question_not_in_round")
    if n_asked != asked_before:
        raise Conflict(
            _(
                "%(n_asked)s people are asked this question now, not %(asked_before)s. Look again before you ask "
                "one more."
            )
            % {"n_asked": n_asked, "asked_before": asked_before},
            code="answers_changed",
        )
    if n_asked >= MOST_OVERLAP:
        raise Conflict(
            _("A question gets at most %(most_overlap)s answers.") % {"most_overlap": MOST_OVERLAP},
            code="overlap_invalid",
        )
    if _n_free_people(round, question) <= asked.filter(state=Slot.State.OPEN).count():
        raise Conflict(
            _("No annotator of the pool is left who has not answered or skipped this question. Invite one more first."),
            code="nobody_left",
        )
    if not unsettle_question(round=round, question=question, by=by):
        raise Conflict(
            _("An adjudicator has this question already; it needs no further answer."), code="question_decided"
        )
    units = usable_units(round, held_first=False)
    if not units:
        raise Conflict(
            _("%(budget)s has no unit free for one more answer. Add units first.") % {"budget": round.budget},
            code="units_missing",
            missing=1,
        )
    slot = Slot.objects.create(round=round, unit=units[0], question=question, priority=labels[0].priority)
    record_event(
        "answer.bought",
        target=slot,
        by=by,
        pool=round.pool,
        budget=round.budget_id,
        units=1,
        question=question.uid,
        asked=n_asked + 1,
    )
    return slot


def _n_free_people(round: Round, question: Question) -> int:
    """How many annotators may still be given the question."""
    of_person = {"round": round, "question": question}
    holding = Slot.objects.filter(holder=OuterRef("user"), **of_person).exclude(state=Slot.State.VOID)
    skipped = Skip.objects.filter(user=OuterRef("user"), **of_person)
    annotators = Membership.objects.filter(pool=round.pool, role=Role.ANNOTATOR, user__is_active=True)
    return annotators.filter(~Exists(holding), ~Exists(skipped)).count()
