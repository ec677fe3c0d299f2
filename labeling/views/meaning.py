"""The answers to one question in groups of one meaning, which managers and adjudicators merge and split."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from labeling import policies
from labeling.actions import meaning as actions
from labeling.actions.drafts import save_draft
from labeling.actions.extra_answers import buy_answer
from labeling.errors import LabelingError
from labeling.forms.quality import OneMoreForm
from labeling.models import GoldAnswer, Question, Round, Slot
from labeling.queries.adjudication import AnswerGroup, Disagreement, answers_to, key_of
from labeling.queries.meaning import answer_form
from labeling.views.access import round_or_404, shown_dispute
from labeling.views.respond import HtmxHttpRequest, redirect, say

TYPED = ("decision", "answer", "reason", "note")


def _question(round: Round, question_id: int) -> Question:
    return get_object_or_404(Question.objects.filter(slots__round=round).distinct(), pk=question_id)


@require_safe
@never_cache
def question_answers(request: HtmxHttpRequest, round_id: int, question_id: int) -> HttpResponse:
    """For managers: what people answered, without names, and which answers mean the same."""
    round = round_or_404(request.user, round_id)
    policies.check_can_manage(round.pool, request.user)
    question = _question(round, question_id)
    found = answers_to(round=round, question=question)
    context = {
        "pool": round.pool,
        "round": round,
        "question": question,
        "found": found,
        "gold": GoldAnswer.objects.filter(round=round, question=question).first(),
        "has_answered": round.slots.filter(question=question, annotations__annotator=request.user).exists(),
    }
    return render(request, "labeling/question_answers.html", context)


@require_POST
def meaning(request: HtmxHttpRequest, round_id: int, question_id: int) -> HttpResponse:
    """Merge the chosen groups, or split an answer off; a decision that is half typed is kept as the draft."""
    round = round_or_404(request.user, round_id)
    dispute = _dispute(request, round, question_id)
    question = _question(round, question_id)
    if dispute is not None:
        typed = {name: request.POST.get(name, "")[:20_000] for name in TYPED}
        save_draft(slot=dispute, draft=typed, by=request.user)
    found = answers_to(round=round, question=question)
    here = _address(dispute, round, question)
    try:
        said = _judge(request, round, found)
    except LabelingError as error:
        if error.status not in {400, 409}:
            raise
        messages.error(request, error.message)
        return redirect(request, here)
    say(request, said)
    if dispute is not None and Slot.objects.filter(pk=dispute.pk, state=Slot.State.VOID).exists():
        return redirect(request, "round", round_id=round.pk)
    return redirect(request, here)


def _dispute(request: HtmxHttpRequest, round: Round, question_id: int) -> Slot | None:
    """The adjudication that the person comes from; None for a manager, who needs none."""
    slot_id = request.POST.get("slot", "")
    if slot_id.isascii() and slot_id.isdigit():
        slot = shown_dispute(request.user, int(slot_id[:18]))
        if (slot.round_id, slot.question_id) != (round.pk, question_id):
            raise Http404
        return slot
    policies.check_can_manage(round.pool, request.user)
    return None


def _address(dispute: Slot | None, round: Round, question: Question) -> str:
    if dispute is not None:
        return reverse("adjudication", args=[dispute.pk])
    return reverse("question-answers", args=[round.pk, question.pk])


def _judge(request: HtmxHttpRequest, round: Round, found: Disagreement) -> str:
    """Do what the button says; return what to tell the person."""
    question, by = found.question, request.user
    if key := request.POST.get("split", ""):
        group, form = _answer(found, key)
        actions.split_answer(round=round, question=question, form=form, others=group.forms, by=by)
        return _("Split: this answer stands apart now.")
    by_key = {group.key: group for group in found.groups if not group.is_unanswerable}
    chosen = [by_key[key] for key in request.POST.getlist("merge") if key in by_key]
    if len(chosen) < len(set(request.POST.getlist("merge"))):
        raise _changed()
    actions.merge_answers(round=round, question=question, groups=[group.forms for group in chosen], by=by)
    if GoldAnswer.objects.filter(round=round, question=found.question).exists():
        return _("Merged: one meaning is left, so the question is settled, and no adjudication is spent.")
    return _("Merged.")


def _answer(found: Disagreement, key: str) -> tuple[AnswerGroup, str]:
    for group in found.groups:
        for answer in group.answers:
            if key_of([answer_form(answer)]) == key:
                return group, answer_form(answer)
    raise _changed()


def _changed() -> LabelingError:
    return LabelingError(
        _("The answers have changed since this page was made. Look at them again."), code="answers_changed"
    )


@require_POST
def answer_buy(request: HtmxHttpRequest, round_id: int) -> HttpResponse:
    """One more person is asked a question whose label is in doubt."""
    round = round_or_404(request.user, round_id)
    policies.check_can_manage(round.pool, request.user)
    form = OneMoreForm(request.POST)
    if not form.is_valid():
        raise LabelingError(_("Say which question gets one more answer."), code="question_missing")
    question = _question(round, form.cleaned_data["question"])
    try:
        buy_answer(round=round, question=question, asked_before=form.cleaned_data["asked_before"], by=request.user)
    except LabelingError as error:
        if error.status not in {400, 409}:
            raise
        messages.error(request, error.message)
        return redirect(request, "round", round_id=round.pk)
    say(request, _("One more person is asked. More than half of the answers settle the question."))
    return redirect(request, "round", round_id=round.pk)
