"""Practice before a person's first question of a round: questions with known answers, which are shown afterwards.

Practice items are a part of the calibration set of their own: no check is ever taken from it. Practice is disclosed as
such, costs no unit and counts for nothing; what was answered is on record.
"""

import hashlib

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling import policies
from labeling.actions.answers import check_answer, check_reason
from labeling.actions.checks import is_for_practice, means_the_same
from labeling.actions.claiming import lock_person
from labeling.audit import record_event
from labeling.engine.answers import policy_of
from labeling.errors import Conflict, LabelingError
from labeling.models import CalibrationItem, Draft, PracticeAnswer, Question, Round, User
from labeling.queries.check_schedule import seed_of


def next_practice(*, round: Round, user: User) -> CalibrationItem | None:
    """Return what the person is to practise on next before the round's questions; None when they may start.

    Everybody gets the same items in the same order, except those they have practised on in an earlier round.
    """
    if not round.n_practice or round.calibration_set_id is None:
        return None
    mine = PracticeAnswer.objects.filter(annotator=user)
    if mine.filter(round=round).count() >= round.n_practice:
        return None
    asked = Question.objects.filter(picks__run=round.run_id).values("fingerprint")
    seen = Draft.objects.filter(author=user, question__isnull=False).values("question__fingerprint")
    items = (
        CalibrationItem.objects.filter(calibration_set=round.calibration_set_id)
        .exclude(fingerprint__in=mine.values("item__fingerprint"))
        .exclude(fingerprint__in=asked)
        .exclude(fingerprint__in=seen)
        .values_list("fingerprint", "pk")
    )
    ours = [(_place(round, fingerprint), pk) for fingerprint, pk in items if is_for_practice(fingerprint)]
    return CalibrationItem.objects.get(pk=min(ours)[1]) if ours else None


def _place(round: Round, fingerprint: str) -> str:
    return hashlib.sha256(f"{seed_of(round)}\npractice\n{fingerprint}".encode()).hexdigest()


def answer_practice(
    *,
    round: Round,
    item_id: int,
    by: User,
    answer: str = "",
    reason: str = "",
    skip: bool = False,
    confirm_unreadable: bool = False,
) -> PracticeAnswer:
    """Record an answer to a practice question, a reason why it has none, or that it is skipped; the first one stands.

    Raises LabelingError as submit_annotation does, and practice_not_skippable; Conflict practice_changed when the
    question is not the person's next.
    """
    policies.check_can_annotate(round.pool, by)
    if earlier := _given(round, item_id, by):
        return earlier
    item = next_practice(round=round, user=by)
    if item is None or item.pk != item_id:
        raise Conflict(
            _("This practice question is not your next. Go on from the round's page."), code="practice_changed"
        )
    given = PracticeAnswer(round=round, item=item, annotator=by, against=item.answer)
    policy = policy_of(round.pool)
    if skip:
        if not round.practice_may_be_skipped:
            raise LabelingError(
                _("Practice cannot be skipped in this round. Answer as well as you can: it counts for nothing."),
                code="practice_not_skippable",
            )
        given.is_skipped = True
    elif reason:
        given.unanswerable_reason = check_reason(reason)
    else:
        read = check_answer(item, round.pool, answer, confirm_unreadable=confirm_unreadable)
        given.answer, given.read_as = answer.strip(), read.text if read.readable else ""
        given.is_right = means_the_same(item, given.answer, policy)
    with transaction.atomic():
        lock_person(by)
        if earlier := _given(round, item_id, by):
            return earlier
        given.save()
        record_event("practice.answered", target=given, by=by, pool=round.pool, right=given.is_right, skipped=skip)
    return given


def _given(round: Round, item_id: int, by: User) -> PracticeAnswer | None:
    return PracticeAnswer.objects.filter(round=round, item=item_id, annotator=by).first()


def check_practised(*, round: Round, user: User) -> None:
    """Refuse questions of the round to whoever has practice before them."""
    if next_practice(round=round, user=user) is not None:
        raise Conflict(
            ngettext(
                "%(round)s begins with %(n)s practice question. Answer them first.",
                "%(round)s begins with %(n)s practice questions. Answer them first.",
                round.n_practice,
            )
            % {"round": round, "n": round.n_practice},
            code="practice_due",
        )
