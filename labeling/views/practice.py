"""Practice: questions with known answers before a person's first question of a round, each explained afterwards."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from labeling import policies
from labeling.actions.practice import answer_practice, next_practice
from labeling.errors import LabelingError
from labeling.forms.quality import PracticeForm
from labeling.models import CalibrationItem, PracticeAnswer, Round
from labeling.queries.quality import practice_so_far, right_answer_read
from labeling.rendering import lettered
from labeling.views.access import round_or_404
from labeling.views.respond import HtmxHttpRequest, redirect


@require_http_methods(["GET", "POST"])
@never_cache
def practice(request: HtmxHttpRequest, round_id: int) -> HttpResponse:
    """The next practice question, and the answer to it."""
    round = round_or_404(request.user, round_id)
    policies.check_can_annotate(round.pool, request.user)
    if request.method == "POST":
        return _answered(request, round)
    item = next_practice(round=round, user=request.user)
    if item is None:
        return redirect(request, "round", round_id=round.pk)
    return _page(request, round, item, PracticeForm(initial={"item": item.pk}, kind=item.answer_kind))


def _answered(request: HtmxHttpRequest, round: Round) -> HttpResponse:
    form = PracticeForm(request.POST)
    refusal, unreadable = "", False
    if form.is_valid():
        data = form.cleaned_data
        give = data["give"] or "answer"
        try:
            given = answer_practice(
                round=round,
                item_id=data["item"],
                by=request.user,
                answer=data["answer"],
                reason=data["reason"] if give == "reason" else "",
                skip=give == "skip",
                confirm_unreadable=data["confirm_unreadable"],
            )
        except LabelingError as error:
            if error.status != 400:
                raise
            refusal, unreadable = error.message, error.code == "answer_unreadable"
        else:
            return redirect(request, "practice-answer", answer_id=given.pk)
    item = next_practice(round=round, user=request.user)
    if item is None:
        return redirect(request, "round", round_id=round.pk)
    return _page(request, round, item, form, status=422, refusal=refusal, ask_confirmation=unreadable)


def _page(
    request: HtmxHttpRequest, round: Round, item: CalibrationItem, form: PracticeForm, *, status: int = 200, **more: Any
) -> HttpResponse:
    context = {
        "pool": round.pool,
        "round": round,
        "question": item,
        "choices": lettered(item.choices),
        "kind": item.get_answer_kind_display() if item.answer_kind else "",
        "form": form,
        "n_done": practice_so_far(round=round, user=request.user).n_done,
        **more,
    }
    return render(request, "labeling/practice.html", context, status=status)


@require_safe
@never_cache
def practice_answer(request: HtmxHttpRequest, answer_id: int) -> HttpResponse:
    """What the person answered, how it was read, and the right answer."""
    given = get_object_or_404(
        PracticeAnswer.objects.select_related("round__run__pool", "item").filter(annotator=request.user), pk=answer_id
    )
    policies.check_can_annotate(given.round.pool, request.user)
    context = {
        "pool": given.round.pool,
        "round": given.round,
        "given": given,
        "question": given.item,
        "choices": lettered(given.item.choices),
        "right_read": right_answer_read(given),
        "has_more": next_practice(round=given.round, user=request.user) is not None,
        "so_far": practice_so_far(round=given.round, user=request.user),
    }
    return render(request, "labeling/practice_answer.html", context)
