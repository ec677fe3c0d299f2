"""After a person's own answer: what the model answers, without counts or names, and what they make of it."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from labeling.actions import reveals as actions
from labeling.actions.annotation import claim_slot
from labeling.errors import Conflict, LabelingError
from labeling.forms import RevealForm
from labeling.models import Reveal, Slot
from labeling.queries.own_answers import own_annotation
from labeling.queries.reveals import decision_of, reveal_of
from labeling.rendering import lettered
from labeling.views.access import shown_slot
from labeling.views.respond import HtmxHttpRequest, redirect, refused, say


@dataclass(frozen=True)
class ShownAnswer:
    """One of the model's answers on a page. ``text``: the choice that a letter stands for; ``key``: what picks it."""

    position: int
    answer: str
    text: str
    key: str


@require_http_methods(["GET", "POST"])
@never_cache
def reveal(request: HtmxHttpRequest, slot_id: int) -> HttpResponse:
    """The model's answers beside the person's own, and the decision; no such page before they have answered."""
    slot = shown_slot(request.user, slot_id)
    found = reveal_of(slot=slot, user=request.user)
    if found is None:
        raise Http404
    first = found.annotation
    given: dict[str, Any] = {"n_shown": len(found.answers), "own": found.own}
    if request.method != "POST":
        initial = {"choice": "keep", "unsure": not first.confident, "idempotency_key": uuid4()}
        return _page(request, slot, found, RevealForm(**given, initial=initial))
    form = RevealForm(request.POST, **given)
    if not form.is_valid():
        return _page(request, slot, found, form, status=422)
    try:
        _decide(request, found, form)
    except Conflict as error:
        next_address = reverse("annotate", args=[slot.round_id])
        return refused(request, error, next=next_address, typed=form.cleaned_data["answer"])
    except LabelingError as error:
        if error.status != 400:
            raise
        asks = error.code == "answer_unreadable"
        return _page(request, slot, found, form, status=422, refusal=error.message, ask_confirmation=asks)
    following = claim_slot(round=slot.round, user=request.user)
    if following is None:
        return redirect(request, "round", round_id=slot.round_id)
    return redirect(request, "slot", slot_id=following.pk)


def _decide(request: HtmxHttpRequest, found: Reveal, form: RevealForm) -> None:
    if form.keeps:
        actions.keep_answer(reveal=found, by=request.user)
        say(request, _("Kept: your answer stands."))
        return
    data = form.cleaned_data
    actions.change_answer(
        reveal=found,
        chosen=form.chosen,
        answer=data["answer"],
        why=data["why"],
        confident=not data["unsure"],
        confirm_unreadable=data["confirm_unreadable"],
        idempotency_key=data["idempotency_key"],
        by=request.user,
    )
    say(request, _("Changed. Both answers and your reason are on record; the new one counts."))


def _page(
    request: HtmxHttpRequest, slot: Slot, found: Reveal, form: RevealForm, *, status: int = 200, **more: Any
) -> HttpResponse:
    question, first = slot.asked, found.annotation
    decision = decision_of(found)
    standing = own_annotation(slot, request.user)
    context = {
        "slot": slot,
        "pool": slot.pool,
        "question": question,
        "choices": lettered(question.choices),
        "first": first,
        "standing": standing,
        "decision": decision,
        "is_open": decision is None and standing is not None and standing.pk == first.pk,
        "own": found.own,
        "own_is_shown": found.own is not None,
        "others": shown_answers(found.answers, question.choices, but=found.own),
        "shown": shown_answers(found.answers, question.choices),
        "form": form,
        **more,
    }
    part = "#form" if request.htmx and status == 422 else ""
    return render(request, f"labeling/reveal.html{part}", context, status=status)


def shown_answers(answers: list[str], choices: list[str], *, but: int | None = None) -> list[ShownAnswer]:
    """Number the model's answers, without the one at position ``but``; a letter comes with the choice it stands for."""
    texts = {choice["value"]: choice["text"] for choice in lettered(choices)}
    kept = [(position, answer) for position, answer in enumerate(answers) if position != but]
    return [
        ShownAnswer(position, answer, texts.get(answer.strip("() .").upper(), ""), str(number) if number < 10 else "")
        for number, (position, answer) in enumerate(kept, start=1)
    ]
