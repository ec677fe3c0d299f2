"""Annotating: take a question, answer it blind, and see how the answer is read.

An annotator's page is given the question and the person's own words, and nothing else: no model answers, no scores, no
one else's answers.
"""

from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import push_url, reswap, retarget

from labeling import policies
from labeling.actions import annotation as actions
from labeling.actions.practice import next_practice
from labeling.actions.reveals import answers_shown_first, reveal_after
from labeling.errors import Conflict, LabelingError
from labeling.forms import AnswerForm, DraftForm, FlagForm, UnanswerableForm
from labeling.models import Annotation, Round, Slot, User
from labeling.queries import own_answers
from labeling.queries.answering import figures_of, next_version_of, surroundings_of
from labeling.queries.guidelines import guideline_for
from labeling.queries.queue import read_answer
from labeling.queries.reveals import reveal_of
from labeling.rendering import lettered, render_answer
from labeling.views.access import round_or_404, shown_slot
from labeling.views.respond import HtmxHttpRequest, redirect, refused
from labeling.views.reveal import shown_answers


@require_POST
def claim(request: HtmxHttpRequest, round_id: int) -> HttpResponse:
    """Take the next question of the round, after the practice that it begins with."""
    round = round_or_404(request.user, round_id)
    if policies.can_annotate(round.pool, request.user) and next_practice(round=round, user=request.user):
        return redirect(request, "practice", round_id=round.pk)
    return next_question(request, round)


@require_safe
@never_cache
def slot(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """The question, and the person's own draft or answer."""
    return _page_of(request, shown_slot(request.user, slot_id))


@require_POST
def draft(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """Save what has been typed so far; htmx calls this while the person types, and a button without JavaScript."""
    slot = shown_slot(request.user, slot_id)
    saved = keep_typed(request, slot)
    if not request.htmx:
        messages.info(request, _("Saved."))
        return redirect(request, "slot", slot_id=slot.pk)
    slot.refresh_from_db(fields=["holder", "state", "lease_until"])
    state = own_answers.state_for(slot, request.user)
    return render(request, "labeling/slot.html#saved", {"draft": saved, "slot": slot, "state": state} | _lease(slot))


@require_POST
def read_as(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """How a trainer's grader would read the answer; changes nothing (POST keeps answers out of access logs)."""
    slot = shown_slot(request.user, slot_id)
    answer = request.POST.get("answer", "")[:20_000]
    return render(request, "labeling/slot.html#read-as", {"slot": slot} | reading_of(slot, answer))


@require_POST
def submit(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """Record the answer and take the next question.

    An answer that no grader can read is asked about first, and so is one with warnings that were not on the screen.
    """
    slot = shown_slot(request.user, slot_id)
    form = AnswerForm(request.POST, kind=slot.asked.answer_kind)
    if not form.is_valid():
        return answering_page(request, slot, form, status=422)
    data = form.cleaned_data
    if surprise := unseen_warnings(slot, form):
        return answering_page(request, slot, form, status=422, **surprise)
    try:
        annotation = actions.submit_annotation(
            slot=slot,
            answer=data["answer"],
            confident=not data["unsure"],
            note=data["note"],
            confirm_unreadable=data["confirm_unreadable"],
            idempotency_key=data["idempotency_key"],
            by=request.user,
        )
    except Conflict as error:
        return refused(request, error, next=_next_address(slot), typed=data["answer"])
    except LabelingError as error:
        return not_taken(request, slot, form, error)
    return after_answer(request, slot, annotation)


@require_POST
def unanswerable(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """Record that the question has no answer, and why; it counts like an answer."""
    slot = shown_slot(request.user, slot_id)
    form = UnanswerableForm(request.POST)
    if not form.is_valid():
        return answering_page(request, slot, _as_typed(request, slot), status=422, unanswerable_form=form)
    data = form.cleaned_data
    try:
        annotation = actions.mark_unanswerable(
            slot=slot,
            by=request.user,
            reason=data["reason"],
            note=data["problem"],
            idempotency_key=data["idempotency_key"],
        )
    except Conflict as error:
        return refused(request, error, next=_next_address(slot), typed=data["problem"])
    return after_answer(request, slot, annotation)


@require_POST
def skip(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """'Not me': the question goes back, and the next one is taken."""
    slot = shown_slot(request.user, slot_id)
    keep_typed(request, slot)
    try:
        actions.skip_slot(slot=slot, by=request.user)
    except Conflict as error:
        return refused(request, error, next=_next_address(slot))
    return next_question(request, slot.round)


def after_answer(request: HtmxHttpRequest, slot: Slot, annotation: Annotation) -> HttpResponse:
    """What comes after an answer: the model's answers where the round shows them now, else the next question."""
    if annotation.surplus:
        messages.warning(
            request,
            _("Kept. Your time had run out and somebody else has the question; your answer is recorded beside theirs."),
        )
    if reveal_after(annotation) is not None:
        return redirect(request, "slot-reveal", slot_id=annotation.slot_id)
    return next_question(request, slot.round)


def next_question(request: HtmxHttpRequest, round: Round) -> HttpResponse:
    """Take the next question of the round and show it, or the round where there is none."""
    following = actions.claim_slot(round=round, user=request.user)
    if following is None:
        return redirect(request, "round", round_id=round.pk)
    return show(request, following)


def show(request: HtmxHttpRequest, slot: Slot) -> HttpResponse:
    """Bring the person to a question: by its address, or for htmx within the same answer, under its new address."""
    if not request.htmx:
        return redirect(request, "slot", slot_id=slot.pk)
    return push_url(_page_of(request, slot), reverse("slot", args=[slot.pk]))


def keep_typed(request: HtmxHttpRequest, slot: Slot) -> Any:
    """Save what stands in the answering form as the draft, whichever of its buttons was pressed; return the draft."""
    if "answer" not in request.POST and "note" not in request.POST:
        return own_answers.own_draft(slot, request.user)  # sent by something else than the answering form
    form = DraftForm(request.POST)
    if not form.is_valid():
        raise LabelingError(_("This is too long to be saved as a draft: an answer is short."), code="draft_too_long")
    return actions.save_draft(slot=slot, draft=form.cleaned_data, by=request.user)


def unseen_warnings(slot: Slot, form: AnswerForm) -> dict[str, Any]:
    """Return how the answer is read where that comes with warnings that the person has not had on the screen."""
    answer = form.cleaned_data["answer"]
    if slot.asked.choices or form.cleaned_data["warned"] == answer or form.cleaned_data["confirm_unreadable"]:
        return {}
    reading = reading_of(slot, answer)
    if not reading["read_as"].readable or not reading["read_as"].warnings:
        return {}
    return reading | {
        "refusal": _("Look at what is said below your answer. If you mean it as it stands, submit again.")
    }


def not_taken(
    request: HtmxHttpRequest, slot: Slot, form: AnswerForm, error: LabelingError, **more: Any
) -> HttpResponse:
    """Show the form again with why the answer was not taken; other refusals than of what was typed are raised."""
    if error.status != 400:
        raise error
    reading = reading_of(slot, form.cleaned_data["answer"])
    asking: dict[str, Any] = {"refusal": error.message}
    if error.code == "answer_unreadable":
        asking = {"ask_confirmation": True, "refusal": _("Write it another way, or confirm below that you mean it so.")}
    return answering_page(request, slot, form, status=422, **asking, **reading, **more)


def reading_of(slot: Slot, answer: str) -> dict[str, Any]:
    """How a trainer's grader reads the answer, and the answer typeset where it is LaTeX."""
    if not answer.strip():
        return {"read_as": None}
    return {
        "read_as": read_answer(slot=slot, answer=answer),
        "warned": answer.strip(),
        "preview": render_answer(answer.strip()) if any(sign in answer for sign in "\\^_") else "",
    }


def typed_in(slot: Slot, user: User) -> dict[str, Any]:
    """What the person has typed so far."""
    draft = own_answers.own_draft(slot, user)
    return draft.content if draft else {}


def _as_typed(request: HtmxHttpRequest, slot: Slot) -> AnswerForm:
    """The answer's part of a form that was sent for another part of it."""
    initial = {name: request.POST.get(name, "") for name in ("answer", "note", "idempotency_key")}
    kind = slot.asked.answer_kind
    return AnswerForm(initial=initial | {"unsure": "unsure" in request.POST}, kind=kind)


def _next_address(slot: Slot) -> str:
    return reverse("annotate", args=[slot.round_id])


def _lease(slot: Slot) -> dict[str, Any]:
    if slot.lease_until is None:
        return {"lease_seconds": None}
    return {"lease_seconds": max(0, round((slot.lease_until - timezone.now()).total_seconds()))}


def about(request: HtmxHttpRequest, slot: Slot) -> dict[str, Any]:
    """What every page of a slot shows beside the answer."""
    return {
        "slot": slot,
        "question": slot.asked,
        "figures": figures_of(slot.asked.metadata),
        "pool": slot.pool,
        "guide": guideline_for(round=slot.round, user=request.user),
        "around": surroundings_of(slot=slot, user=request.user),
        "choices": lettered(slot.asked.choices),
        "shown_first": shown_answers(answers_shown_first(slot), slot.asked.choices),
    }


def _page_of(request: HtmxHttpRequest, slot: Slot) -> HttpResponse:
    state = own_answers.state_for(slot, request.user)
    if state in {"answered", "given_back"}:
        context = about(request, slot) | {
            "annotation": own_answers.own_annotation(slot, request.user),
            "has_reveal": reveal_of(slot=slot, user=request.user) is not None,
        }
        return render(request, f"labeling/slot_done.html{'#work' if request.htmx else ''}", context)
    draft = own_answers.own_draft(slot, request.user)
    typed = draft.content if draft else {}
    form = AnswerForm(initial={**typed, "idempotency_key": uuid4()}, kind=slot.asked.answer_kind)
    reading = reading_of(slot, typed.get("answer", ""))
    return answering_page(request, slot, form, state=state, draft=draft, typed=typed, **reading)


def answering_page(
    request: HtmxHttpRequest, slot: Slot, form: AnswerForm, *, status: int = 200, **more: Any
) -> HttpResponse:
    """The page with the answering form; for htmx its work area, or the form alone where it has mistakes."""
    typed = more.get("typed", request.POST)
    context = about(request, slot) | {
        "form": form,
        "unanswerable_form": UnanswerableForm(
            initial={"reason": typed.get("reason", ""), "problem": typed.get("problem", "")}
        ),
        "flag_form": FlagForm(initial={"flag_note": typed.get("flag_note", ""), "flag_key": uuid4()}),
        "kind": slot.asked.get_answer_kind_display() if slot.asked.answer_kind else "",
        "state": own_answers.state_for(slot, request.user) if "state" not in more else more["state"],
        "draft": own_answers.own_draft(slot, request.user) if "draft" not in more else more["draft"],
        "version": next_version_of(slot=slot, user=request.user),
        **(_lease(slot) if slot.holder_id == request.user.pk else {"lease_seconds": None}),
        **more,
    }
    if not request.htmx:
        return render(request, "labeling/slot.html", context, status=status)
    if status == 200:
        return render(request, "labeling/slot.html#work", context)
    response = render(request, "labeling/slot.html#form", context, status=status)
    return reswap(retarget(response, "#answer-form"), "outerHTML")
