"""Adjudicating: people's answers side by side, without names, and one decision."""

from typing import Any
from uuid import uuid4

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from labeling.actions import adjudication as actions
from labeling.errors import Conflict, LabelingError
from labeling.forms import DecisionForm
from labeling.models import Round, Slot, User
from labeling.queries.adjudication import Disagreement, disagreement
from labeling.queries.own_answers import own_draft
from labeling.views.access import round_or_404, shown_dispute
from labeling.views.respond import HtmxHttpRequest, redirect, refused, say


@require_POST
def claim(request: HtmxHttpRequest, round_id: int) -> HttpResponse:
    """Take the next disagreement of the round."""
    return _next(request, round_or_404(request.user, round_id))


@require_http_methods(["GET", "POST"])
@never_cache
def adjudication(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """The disagreement, and the decision."""
    slot = shown_dispute(request.user, slot_id)
    found = disagreement(slot=slot)
    typed = _typed(slot, request.user)
    form = DecisionForm(request.POST or None, initial={**typed, "idempotency_key": uuid4()})
    refusal, unreadable = "", False
    if request.method == "POST" and form.is_valid():
        try:
            actions.decide(slot=slot, by=request.user, **_decision(form.cleaned_data, found))
        except Conflict as error:
            next_address = reverse("adjudicate", args=[slot.round_id])
            return refused(request, error, next=next_address, typed=form.cleaned_data["answer"])
        except LabelingError as error:
            if error.status != 400:
                raise
            refusal, unreadable = error.message, error.code == "answer_unreadable"
        else:
            say(request, _("Decided. The answer is the question’s gold answer now."))
            return _next(request, slot.round)
    decided = slot.state == Slot.State.DONE
    context = {
        "slot": slot,
        "pool": slot.pool,
        "question": found.question,
        "groups": found.groups,
        "guideline": slot.round.guideline,
        "form": form,
        "refusal": refusal,
        "ask_confirmation": unreadable,
        "found": found,
        "is_decided": decided,
        "is_void": slot.state == Slot.State.VOID,
    }
    return render(request, "labeling/adjudication.html", context, status=422 if form.errors or refusal else 200)


def _typed(slot: Slot, user: User) -> dict[str, str]:
    """What the person has chosen and typed so far, kept when they merge answers or cannot decide just then."""
    draft = own_draft(slot, user)
    kept = draft.content if draft else {}
    return {
        "decision": kept.get("decision", ""),
        "answer": kept.get("answer", ""),
        "reason": kept.get("reason") or kept.get("unanswerable_reason", ""),
        "note": kept.get("note", ""),
    }


def _decision(data: dict[str, Any], found: Disagreement) -> dict[str, Any]:
    """Turn the form's choice (a group's key, ``other`` or ``unanswerable``) into what the action takes."""
    decision = {
        "note": data["note"],
        "idempotency_key": data["idempotency_key"],
        "confirm_unreadable": data["confirm_unreadable"],
    }
    if data["decision"] == "other":
        return decision | {"answer": data["answer"]}
    if data["decision"] == "unanswerable":
        return decision | {"unanswerable_reason": data["reason"]}
    group = next((group for group in found.groups if group.key == data["decision"]), None)
    if group is None or group.is_unanswerable:
        raise LabelingError(_("Choose one of the answers that are shown."), code="decision_unknown")
    return decision | {"answer": group.answers[0]}


def _next(request: HtmxHttpRequest, round: Round) -> HttpResponse:
    following = actions.claim_adjudication(round=round, user=request.user)
    if following is None:
        return redirect(request, "round", round_id=round.pk)
    return redirect(request, "adjudication", slot_id=following.pk)
