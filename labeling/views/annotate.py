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
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from labeling.actions import annotation as actions
from labeling.actions.reveals import reveal_after
from labeling.errors import Conflict, LabelingError
from labeling.forms import AnswerForm, DraftForm, UnanswerableForm
from labeling.models import Slot, User
from labeling.queries import own_answers
from labeling.queries.queue import draft_of, read_answer
from labeling.rendering import lettered, render_answer
from labeling.views.access import round_or_404, shown_slot
from labeling.views.respond import HtmxHttpRequest, redirect, refused, say


@require_POST
def claim(request: HtmxHttpRequest, round_id: int) -> HttpResponse:
    """Take the next question of the round."""
    return _next(request, round_or_404(request.user, round_id))


@require_safe
@never_cache
def slot(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """The question, and the person's own draft or answer."""
    slot = shown_slot(request.user, slot_id)
    state = own_answers.state_for(slot, request.user)
    if state in {"answered", "given_back"}:
        context = _about(slot) | {"annotation": own_answers.own_annotation(slot, request.user)}
        return render(request, "labeling/slot_done.html", context)
    typed = _typed(slot, request.user)
    form = AnswerForm(initial={**typed, "idempotency_key": uuid4()})
    return _answering_page(request, slot, form, **_reading(slot, typed.get("answer", "")))


@require_POST
def draft(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """Save what has been typed so far; htmx calls this while the person types."""
    slot = shown_slot(request.user, slot_id)
    form = DraftForm(request.POST)
    if not form.is_valid():
        raise LabelingError("This is too long to be saved as a draft: an answer is short.", code="draft_too_long")
    draft = actions.save_draft(slot=slot, draft=form.cleaned_data, by=request.user)
    slot.refresh_from_db(fields=["holder", "state", "lease_until"])
    context = {"draft": draft, "lease_until": slot.lease_until if slot.holder_id == request.user.pk else None}
    return render(request, "labeling/slot.html#saved", context)


@require_POST
def read_as(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """How a trainer's grader would read the answer; changes nothing (POST keeps answers out of access logs)."""
    slot = shown_slot(request.user, slot_id)
    answer = request.POST.get("answer", "")[:20_000]
    return render(request, "labeling/slot.html#read-as", _reading(slot, answer))


@require_POST
def submit(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """Record the answer and take the next question; an answer that no grader can read is asked about first."""
    slot = shown_slot(request.user, slot_id)
    form = AnswerForm(request.POST)
    if not form.is_valid():
        return _answering_page(request, slot, form, status=422)
    data = form.cleaned_data
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
        if error.status != 400:
            raise
        unreadable = error.code == "answer_unreadable"
        return _answering_page(
            request,
            slot,
            form,
            status=422,
            ask_confirmation=unreadable,
            refusal=error.message,
            **_reading(slot, data["answer"]),
        )
    return _submitted(request, slot, annotation)


@require_POST
def unanswerable(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """Record that the question has no answer, and why; it counts like an answer."""
    slot = shown_slot(request.user, slot_id)
    form = UnanswerableForm(request.POST)
    if not form.is_valid():
        typed = _typed(slot, request.user)
        answering = AnswerForm(initial={**typed, "idempotency_key": uuid4()})
        return _answering_page(request, slot, answering, status=422, unanswerable_form=form)
    try:
        annotation = actions.mark_unanswerable(slot=slot, by=request.user, **form.cleaned_data)
    except Conflict as error:
        return refused(request, error, next=_next_address(slot), typed=form.cleaned_data["note"])
    return _submitted(request, slot, annotation)


@require_POST
def skip(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """'Not me': the question goes back, and the next one is taken."""
    slot = shown_slot(request.user, slot_id)
    try:
        actions.skip_slot(slot=slot, by=request.user)
    except Conflict as error:
        return refused(request, error, next=_next_address(slot))
    messages.info(request, "Skipped. The question goes to somebody else.")
    return _next(request, slot.round)


def _submitted(request: HtmxHttpRequest, slot: Slot, annotation: Any) -> HttpResponse:
    """What comes after an answer: the model's answers where the round shows them now, else the next question."""
    said = (
        "Submitted."
        if not annotation.surplus
        else ("Kept. Your time had run out and somebody else has the question; your answer is recorded beside theirs.")
    )
    say(request, said, about=f"assay-draft-{request.user.pk}-{slot.pk}")
    if reveal_after(annotation) is not None:
        return redirect(request, "slot-reveal", slot_id=annotation.slot_id)
    return _next(request, slot.round)


def _next_address(slot: Slot) -> str:
    return reverse("annotate", args=[slot.round_id])


def _next(request: HtmxHttpRequest, round: Any) -> HttpResponse:
    following = actions.claim_slot(round=round, user=request.user)
    if following is None:
        return redirect(request, "round", round_id=round.pk)
    return redirect(request, "slot", slot_id=following.pk)


def _typed(slot: Slot, user: User) -> dict[str, Any]:
    """What the person has typed so far."""
    draft = draft_of(slot=slot, user=user)
    return draft.content if draft else {}


def _reading(slot: Slot, answer: str) -> dict[str, Any]:
    """How a trainer's grader reads the answer, and the answer typeset where it is LaTeX."""
    if not answer.strip():
        return {"read_as": None}
    return {
        "read_as": read_answer(slot=slot, answer=answer),
        "preview": render_answer(answer.strip()) if "\\" in answer else "",
    }


def _about(slot: Slot) -> dict[str, Any]:
    return {"slot": slot, "question": slot.question, "pool": slot.pool, "guideline": slot.round.guideline}


def _answering_page(
    request: HtmxHttpRequest, slot: Slot, form: AnswerForm, *, status: int = 200, **more: Any
) -> HttpResponse:
    context = _about(slot) | {
        "form": form,
        "unanswerable_form": UnanswerableForm(initial={"idempotency_key": uuid4()}),
        "choices": lettered(slot.question.choices),
        "kind": slot.question.get_answer_kind_display() if slot.question.answer_kind else "",
        "state": own_answers.state_for(slot, request.user),
        "draft": draft_of(slot=slot, user=request.user),
        "lease_until": slot.lease_until if slot.holder_id == request.user.pk else None,
        "n_mine": own_answers.n_answered(slot.round, request.user),
        **more,
    }
    part = "#form" if request.htmx else ""
    return render(request, f"labeling/slot.html{part}", context, status=status)
