"""People say that answers mean the same, or do not, where the grader was wrong: merging and splitting.

What they say is kept beside what the grader says, never in its place, and applies to that question alone; a later word
on the same answers undoes it.
"""

from itertools import product

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from labeling import policies
from labeling.actions.settling import (
    adjudication_slots,
    counted_annotations,
    is_complete,
    lock_round,
    outcome_of,
    write_outcome,
)
from labeling.audit import record_event
from labeling.errors import Conflict, LabelingError, NotAllowed
from labeling.models import Annotation, GoldAnswer, MeaningVerdict, Question, Round, Slot, User
from labeling.queries.meaning import Pair, answer_form, pair_of, verdicts_on


def merge_answers(*, round: Round, question: Question, groups: list[set[str]], by: User | None) -> None:
    """Say that the answers of these groups, given by their forms, mean the same.

    Where that leaves one meaning, the question is settled by it and its adjudication is withdrawn, so that it costs no
    unit. Saying it again changes nothing.
    """
    if len(groups) < 2:
        raise LabelingError(_("Choose at least two groups that mean the same."), code="merge_needs_two")
    pairs = {
        pair_of(form, other)
        for i, group in enumerate(groups)
        for earlier in groups[:i]
        for form, other in product(group, earlier)
        if form != other
    }
    _say(round, question, pairs, same=True, by=by)


def split_answer(*, round: Round, question: Question, form: str, others: set[str], by: User | None) -> None:
    """Say that an answer, given by its form, means something else than the others of its group.

    A gold answer that rested on their agreement is withdrawn, and the question goes to an adjudicator.
    """
    pairs = {pair_of(form, other) for other in others if other != form}
    if not pairs:
        raise LabelingError(_("This answer stands alone already."), code="split_needs_two")
    _say(round, question, pairs, same=False, by=by)


def _say(round: Round, question: Question, pairs: set[Pair], *, same: bool, by: User | None) -> None:
    _check_may(round, question, by)
    annotations = counted_annotations(round, question)
    before = verdicts_on(question)
    fresh = sorted(pair for pair in pairs if before.get(pair) is not same)
    if not fresh:
        return
    _check_given(round, question, fresh)
    after = before | dict.fromkeys(fresh, same)
    complete = is_complete(round, question)
    outcome = outcome_of(round, question, annotations, after) if complete else None
    with transaction.atomic():
        live_round = lock_round(round)
        if counted_annotations(round, question) != annotations or verdicts_on(question) != before:
            raise Conflict(_("Somebody has changed an answer meanwhile. Look at them again."), code="answers_changed")
        _refuse_taken(live_round, question, by)
        MeaningVerdict.objects.bulk_create(
            MeaningVerdict(
                question=question,
                round=round,
                answer_kind=question.answer_kind,
                left=pair.left,
                right=pair.right,
                same=same,
                by=by,
            )
            for pair in fresh
        )
        record_event(
            "answers.merged" if same else "answers.split",
            target=question,
            by=by,
            pool=round.pool,
            round=round.pk,
            question=question.uid,
            pairs=[list(pair) for pair in fresh],
        )
        if outcome is None:
            return
        standing = GoldAnswer.objects.filter(round=round, question=question).first()
        adjudications = adjudication_slots(round).filter(question=question)
        if standing is not None and (standing.answer, standing.source) != (outcome.gold, outcome.source):
            record_event("gold_answer.withdrawn", target=standing, by=by, pool=round.pool, answer=standing.answer)
            standing.delete()
        if outcome.gold:
            for slot in adjudications:
                adjudications.filter(pk=slot.pk).update(state=Slot.State.VOID)
                record_event("adjudication.withdrawn", target=slot, by=by, pool=round.pool, question=question.uid)
        if outcome.gold or not adjudications.exists():
            write_outcome(live_round, question, annotations, outcome)


def _check_may(round: Round, question: Question, by: User | None) -> None:
    """Managers and adjudicators of the pool, unless they have answered the question themselves."""
    if not policies.can_manage(round.pool, by):
        policies.check_can_adjudicate(round.pool, by)
    answered = Annotation.objects.filter(annotator=by, slot__round=round, slot__question=question)
    if by is not None and answered.exists():
        raise NotAllowed(_("You have answered this question yourself, so somebody else judges its answers."))


def _check_given(round: Round, question: Question, pairs: list[Pair]) -> None:
    """Refuse forms that nobody's answer has: the page was made before an answer changed."""
    said = Annotation.objects.standing().filter(slot__round=round, slot__question=question).exclude(answer="")
    forms = {answer_form(answer) for answer in said.values_list("answer", flat=True)}
    if not forms.issuperset(form for pair in pairs for form in pair):
        raise Conflict(
            _("The answers have changed since this page was made. Look at them again."), code="answers_changed"
        )


def _refuse_taken(round: Round, question: Question, by: User | None) -> None:
    taken = adjudication_slots(round).filter(question=question).exclude(state=Slot.State.OPEN)
    for slot in taken:
        if slot.state == Slot.State.DONE:
            raise Conflict(_("An adjudicator has decided this question. The decision stands."), code="question_decided")
        held = slot.lease_until is not None and slot.lease_until > timezone.now()
        if slot.holder != by and held:
            raise Conflict(
                _(
                    "%(holder)s is deciding this question, until %(lease_until)s UTC. They can merge and split its "
                    "answers themselves."
                )
                % {"holder": slot.holder, "lease_until": f"{slot.lease_until:%H:%M}"},
                code="question_held",
            )
