"""After answering, and beside it: take back, revise, flag a question, and say that a guideline was read."""

from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from labeling.actions import revising
from labeling.actions.flags import flag_question
from labeling.actions.guideline_readings import record_reading
from labeling.actions.skips import recent_skip, unskip_slot
from labeling.errors import Conflict, LabelingError
from labeling.forms import FlagForm, RevisionForm, UnanswerableForm
from labeling.models import Slot
from labeling.queries import own_answers
from labeling.views import annotate
from labeling.views.access import round_or_404, shown_slot
from labeling.views.respond import HtmxHttpRequest, redirect, refused


@require_POST
def undo(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """Take back the answer just submitted, or the skip; what stands in the form of the next question is kept too."""
    slot = shown_slot(request.user, slot_id)
    if (open_slot := request.POST.get("slot", "")).isdigit() and int(open_slot) != slot.pk:
        annotate.keep_typed(request, shown_slot(request.user, int(open_slot)))
    try:
        if recent_skip(slot=slot, by=request.user) is not None:
            back = unskip_slot(slot=slot, by=request.user)
        else:
            back = revising.undo(slot=slot, by=request.user)
    except Conflict as error:
        return refused(request, error, next=reverse("annotate", args=[slot.round_id]))
    return annotate.show(request, shown_slot(request.user, back.pk))


@never_cache
@require_http_methods(["GET", "POST"])
def revise(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """Give another answer, with the reason; what was said before stays on record."""
    slot = shown_slot(request.user, slot_id)
    standing = own_answers.own_annotation(slot, request.user)
    if standing is None or standing.surplus:
        return redirect(request, "slot", slot_id=slot.pk)
    if request.method == "POST":
        return _revised(request, slot)
    draft = own_answers.own_draft(slot, request.user)
    typed: dict[str, Any] = {
        "answer": standing.answer,
        "unsure": not standing.confident,
        "note": standing.note,
        "reason": standing.unanswerable_reason,
    }
    if draft is not None and draft.saved_at is not None and draft.saved_at > standing.created_at:
        typed = {**typed, **draft.content}
    form = RevisionForm(initial={**typed, "idempotency_key": uuid4()}, kind=slot.asked.answer_kind)
    reading = annotate.reading_of(slot, typed["answer"])
    return annotate.answering_page(request, slot, form, standing=standing, typed=typed, **reading)


def _revised(request: HtmxHttpRequest, slot: Slot) -> HttpResponse:
    standing = own_answers.own_annotation(slot, request.user)
    gives_reason = request.POST.get("give") == "reason"
    form = RevisionForm(request.POST, kind=slot.asked.answer_kind)
    reasons = UnanswerableForm(request.POST)
    if gives_reason:
        form.fields["answer"].required = False
    if not form.is_valid() or (gives_reason and not reasons.is_valid()):
        more = {"unanswerable_form": reasons} if gives_reason else {}
        return annotate.answering_page(request, slot, form, status=422, standing=standing, **more)
    data = form.cleaned_data
    if not gives_reason and (surprise := annotate.unseen_warnings(slot, form)):
        return annotate.answering_page(request, slot, form, status=422, standing=standing, **surprise)
    try:
        revising.revise(
            slot=slot,
            by=request.user,
            answer="" if gives_reason else data["answer"],
            reason=reasons.cleaned_data["reason"] if gives_reason else "",
            note=reasons.cleaned_data["problem"] if gives_reason else data["note"],
            confident=not data["unsure"],
            why=data["why"],
            confirm_unreadable=data["confirm_unreadable"],
            idempotency_key=data["idempotency_key"],
        )
    except Conflict as error:
        return refused(request, error, next=reverse("annotate", args=[slot.round_id]), typed=data["answer"])
    except LabelingError as error:
        return annotate.not_taken(request, slot, form, error, standing=standing)
    return annotate.show(request, shown_slot(request.user, slot.pk))


@require_POST
def flag(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """Tell the managers that something about the question is odd; the answer being typed stays as it is."""
    slot = shown_slot(request.user, slot_id)
    annotate.keep_typed(request, slot)
    form = FlagForm(request.POST)
    if not form.is_valid():
        raise LabelingError(_("Say what the manager should look at, then send the flag again."), code="flag_empty")
    data = form.cleaned_data
    flag_question(slot=slot, note=data["flag_note"], idempotency_key=data["flag_key"], by=request.user)
    _forget_flag(slot, request)
    messages.success(request, _("Flagged. The pool’s managers see it on the round’s page."))
    return annotate.show(request, shown_slot(request.user, slot.pk))


def _forget_flag(slot: Slot, request: HtmxHttpRequest) -> None:
    typed = annotate.typed_in(slot, request.user)
    if "flag_note" in typed:
        draft = {name: value for name, value in typed.items() if name != "flag_note"}
        annotate.actions.save_draft(slot=slot, draft=draft, by=request.user)


@require_POST
def slot_guideline(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """Record that the person has read the guideline that stands beside the question."""
    slot = shown_slot(request.user, slot_id)
    annotate.keep_typed(request, slot)
    if slot.round.guideline is not None:
        record_reading(guideline=slot.round.guideline, by=request.user)
    return annotate.show(request, slot)


@require_POST
def round_guideline(request: HtmxHttpRequest, round_id: int) -> HttpResponse:
    """Record that the person has read the round's guideline."""
    round = round_or_404(request.user, round_id)
    if round.guideline is not None:
        record_reading(guideline=round.guideline, by=request.user)
    return redirect(request, "round", round_id=round.pk)
