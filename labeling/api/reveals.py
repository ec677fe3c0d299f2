"""After a person's own answer: what the model answers, and what they make of it."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling.actions import reveals as actions
from labeling.actions.answers import MOST_ANSWER_CHARACTERS, MOST_NOTE_CHARACTERS
from labeling.api.access import shown_slot
from labeling.api.schema import operation
from labeling.api.work import AnnotationSerializer, LabelEndpoint, Submitting
from labeling.errors import Conflict
from labeling.models import Reveal, RevealDecision, Slot, User
from labeling.queries.own_answers import own_annotation
from labeling.queries.reveals import decision_of, reveal_of

MOST_SHOWN = 10_000


class RevealDecisionSerializer(Serializer):
    outcome = serializers.ChoiceField(RevealDecision.Outcome.choices)
    chosen = serializers.IntegerField(allow_null=True)
    annotation = AnnotationSerializer(allow_null=True)


class RevealSerializer(Serializer):
    """The model's answers in no telling order, without counts. ``own``: the one that means the same as yours."""

    answers = serializers.ListField(child=serializers.CharField())
    own = serializers.IntegerField(allow_null=True)
    first = AnnotationSerializer()
    decision = RevealDecisionSerializer(allow_null=True)


class ShownSerializer(Serializer):
    reveal = RevealSerializer(allow_null=True, help_text="Null where nothing is shown: a blind round, or a control.")


class ChangeSerializer(Serializer):
    """One of the answers shown, by its position, or one of your own; and why."""

    chosen = serializers.IntegerField(min_value=0, max_value=MOST_SHOWN, required=False, allow_null=True, default=None)
    answer = serializers.CharField(max_length=MOST_ANSWER_CHARACTERS, required=False, default="", allow_blank=True)
    why = serializers.CharField(max_length=MOST_NOTE_CHARACTERS, required=False, default="", allow_blank=True)
    confident = serializers.BooleanField(required=False, default=True)
    confirm_unreadable = serializers.BooleanField(required=False, default=False)


class SlotReveal(LabelEndpoint):
    @operation(gives=ShownSerializer)
    def get(self, request: Request, slot_id: int) -> Response:
        """Show again what you were shown after answering; not found before."""
        return Response(shown(_reveal(shown_slot(request, slot_id), request.user)))

    @operation(gives=ShownSerializer)
    def post(self, request: Request, slot_id: int) -> Response:
        """Ask to be shown what the model answers, once your own answer is stored; that you were is recorded."""
        slot = shown_slot(request, slot_id)
        annotation = own_annotation(slot, request.user)
        if annotation is None:
            raise Conflict("Answer the question first: what the model says is shown afterwards.", code="not_answered")
        return Response(shown(reveal_of(slot=slot, user=request.user) or actions.reveal_after(annotation)))


class SlotRevealKeep(LabelEndpoint):
    @operation(gives=ShownSerializer)
    def post(self, request: Request, slot_id: int) -> Response:
        """Say that your answer stands."""
        found = _reveal(shown_slot(request, slot_id), request.user)
        actions.keep_answer(reveal=found, by=request.user)
        return Response(shown(found))


class SlotRevealChange(Submitting):
    @operation(takes=ChangeSerializer, gives=ShownSerializer)
    def post(self, request: Request, slot_id: int) -> Response:
        """Give another answer, and say why; both are on record, and the new one counts."""
        found = _reveal(shown_slot(request, slot_id), request.user)
        key = self.key(request)
        actions.change_answer(reveal=found, by=request.user, idempotency_key=key, **self.asked(ChangeSerializer))
        return Response(shown(found))


def _reveal(slot: Slot, user: User) -> Reveal:
    found = reveal_of(slot=slot, user=user)
    if found is None:
        raise Http404
    return found


def shown(reveal: Reveal | None) -> dict[str, Any]:
    """A reveal as the person may see it."""
    if reveal is None:
        return {"reveal": None}
    decision = decision_of(reveal)
    return {
        "reveal": {
            "answers": reveal.answers,
            "own": reveal.own,
            "first": AnnotationSerializer(reveal.annotation).data,
            "decision": None if decision is None else RevealDecisionSerializer(decision).data,
        }
    }
