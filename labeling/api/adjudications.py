"""Adjudicating: people's answers side by side, without names, and one decision."""

from __future__ import annotations

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling.actions import adjudication as actions
from labeling.actions.answers import MOST_ANSWER_CHARACTERS, MOST_NOTE_CHARACTERS
from labeling.api.access import found, shown_dispute
from labeling.api.schema import operation
from labeling.api.work import AskedSerializer, LabelEndpoint, Submitting, asked_of
from labeling.models import Adjudication, Round, Slot, UnanswerableReason
from labeling.queries.adjudication import disagreement
from labeling.queries.queue import empty_queue


class AnswerGroupSerializer(Serializer):
    """Answers that mean the same, or all the statements that there is none."""

    letter = serializers.CharField()
    key = serializers.CharField(help_text="Names the group where it is merged; another once its answers change.")
    answers = serializers.ListField(child=serializers.CharField())
    reasons = serializers.ListField(child=serializers.CharField())
    notes = serializers.ListField(child=serializers.CharField())
    n_answers = serializers.IntegerField()
    n_surplus = serializers.IntegerField()
    is_unanswerable = serializers.BooleanField()


class DecisionSerializer(Serializer):
    """Either an answer, or a reason why there is none."""

    answer = serializers.CharField(max_length=MOST_ANSWER_CHARACTERS, required=False, default="", allow_blank=True)
    unanswerable_reason = serializers.ChoiceField(
        UnanswerableReason.choices, required=False, default="", allow_blank=True
    )
    note = serializers.CharField(max_length=MOST_NOTE_CHARACTERS, required=False, default="", allow_blank=True)
    confirm_unreadable = serializers.BooleanField(required=False, default=False)


class DecidedSerializer(Serializer):
    slot = serializers.IntegerField(source="slot_id")
    answer = serializers.CharField()
    unanswerable_reason = serializers.ChoiceField([("", "It has an answer"), *UnanswerableReason.choices])
    note = serializers.CharField()
    created_at = serializers.DateTimeField()


class DisputeSerializer(Serializer):
    id = serializers.IntegerField()
    round = serializers.IntegerField()
    pool = serializers.CharField()
    lease_until = serializers.DateTimeField(allow_null=True)
    question = AskedSerializer()
    groups = AnswerGroupSerializer(many=True)
    decision = DecidedSerializer(allow_null=True)


class ClaimedDisputeSerializer(Serializer):
    adjudication = DisputeSerializer(allow_null=True)
    code = serializers.CharField(help_text="Why there is none; empty where there is.")
    message = serializers.CharField()


class AdjudicationClaim(LabelEndpoint):
    tag = "adjudication"

    @operation(gives=ClaimedDisputeSerializer)
    def post(self, request: Request, round_id: int) -> Response:
        """Take the next disagreement of the round; never one on a question you answered yourself."""
        round = found(request, Round.objects.all(), round_id, pool="run__pool")
        slot = actions.claim_adjudication(round=round, user=request.user)
        if slot is not None:
            return Response({"adjudication": shown(slot), "code": "", "message": ""})
        why = empty_queue(user=request.user, round=round, purpose=Slot.Purpose.ADJUDICATION)
        return Response({"adjudication": None, "code": why.code, "message": why.message})


class AdjudicationDetail(LabelEndpoint):
    tag = "adjudication"

    @operation(gives=DisputeSerializer)
    def get(self, request: Request, slot_id: int) -> Response:
        """Show a disagreement that you were given: the answers in groups, without names."""
        return Response(shown(shown_dispute(request, slot_id)))


class AdjudicationDecide(Submitting):
    tag = "adjudication"

    @operation(takes=DecisionSerializer, gives=DecidedSerializer, status=201)
    def post(self, request: Request, slot_id: int) -> Response:
        """Decide: the answer becomes the question's gold answer."""
        slot = shown_dispute(request, slot_id)
        key = self.key(request)
        decided = actions.decide(slot=slot, by=request.user, idempotency_key=key, **self.asked(DecisionSerializer))
        return Response(DecidedSerializer(decided).data, status=201)


def shown(slot: Slot) -> dict[str, object]:
    """A disagreement as its adjudicator may see it."""
    decision = Adjudication.objects.filter(slot=slot).first()
    return {
        "id": slot.pk,
        "round": slot.round_id,
        "pool": slot.pool.slug,
        "lease_until": slot.lease_until if slot.state == Slot.State.LEASED else None,
        "question": asked_of(slot),
        "groups": AnswerGroupSerializer(disagreement(slot=slot).groups, many=True).data,
        "decision": None if decision is None else DecidedSerializer(decision).data,
    }
