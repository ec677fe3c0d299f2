"""What comes before a person's first question of a round: its guideline, and practice with known answers."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling import policies
from labeling.actions.answers import MOST_ANSWER_CHARACTERS
from labeling.actions.guideline_readings import record_reading
from labeling.actions.practice import answer_practice, next_practice
from labeling.api.access import found
from labeling.api.fields import Id
from labeling.api.schema import operation
from labeling.api.work import AskedSerializer, LabelEndpoint
from labeling.models import CalibrationItem, Round, UnanswerableReason
from labeling.queries.guidelines import guideline_for
from labeling.queries.quality import practice_so_far, right_answer_read


class PracticeQuestionSerializer(AskedSerializer):
    item = serializers.IntegerField()


class PracticeSerializer(Serializer):
    """How far practice is; ``question`` is null where the round's questions may be taken."""

    question = PracticeQuestionSerializer(allow_null=True)
    n_done = serializers.IntegerField()
    n_right = serializers.IntegerField()
    n_practice = serializers.IntegerField()
    may_be_skipped = serializers.BooleanField()


class PracticeAnswerSerializer(Serializer):
    """An answer, a reason why there is none, or ``skip`` where the round allows it."""

    item = Id(help_text="Of the question that practice asks next.")
    answer = serializers.CharField(max_length=MOST_ANSWER_CHARACTERS, required=False, default="", allow_blank=True)
    reason = serializers.ChoiceField(UnanswerableReason.choices, required=False, default="", allow_blank=True)
    skip = serializers.BooleanField(required=False, default=False)
    confirm_unreadable = serializers.BooleanField(required=False, default=False)


class PractisedSerializer(Serializer):
    """What was answered, and the right answer. ``is_right`` is false also where no answer was given."""

    answer = serializers.CharField()
    read_as = serializers.CharField()
    unanswerable_reason = serializers.ChoiceField([("", "It has an answer"), *UnanswerableReason.choices])
    is_skipped = serializers.BooleanField()
    is_right = serializers.BooleanField()
    right_answer = serializers.CharField(source="against")
    right_answer_read_as = serializers.SerializerMethodField()

    def get_right_answer_read_as(self, given: Any) -> str:
        return right_answer_read(given).text


class OwnGuidelineSerializer(Serializer):
    """A round's guideline. ``last_read``: the newest version that you say you have read, 0 for none."""

    version = serializers.IntegerField(source="guideline.version")
    text = serializers.CharField(source="guideline.text")
    last_read = serializers.IntegerField()
    has_changed = serializers.BooleanField(help_text="Since the version that you have read.")


class RoundToWorkIn(LabelEndpoint):
    """An address below one round, for its annotators."""

    def round(self, request: Request, round_id: int) -> Round:
        round = found(request, Round.objects.select_related("guideline"), round_id, pool="run__pool")
        policies.check_can_annotate(round.pool, request.user)
        return round


class RoundGuideline(RoundToWorkIn):
    @operation(gives=OwnGuidelineSerializer)
    def get(self, request: Request, round_id: int) -> Response:
        """Show the round's guideline; not found where it has none."""
        guideline = guideline_for(round=self.round(request, round_id), user=request.user)
        if guideline is None:
            raise Http404
        return Response(OwnGuidelineSerializer(guideline).data)


class RoundGuidelineRead(RoundToWorkIn):
    @operation(gives=OwnGuidelineSerializer)
    def post(self, request: Request, round_id: int) -> Response:
        """Say that you have read the guideline in the version that the round goes by."""
        round = self.round(request, round_id)
        if round.guideline is None:
            raise Http404
        record_reading(guideline=round.guideline, by=request.user)
        return Response(OwnGuidelineSerializer(guideline_for(round=round, user=request.user)).data)


class RoundPractice(RoundToWorkIn):
    @operation(gives=PracticeSerializer)
    def get(self, request: Request, round_id: int) -> Response:
        """Show the question that practice asks next, and how far it is."""
        round = self.round(request, round_id)
        item = next_practice(round=round, user=request.user)
        so_far = practice_so_far(round=round, user=request.user)
        shown = {
            "question": None if item is None else _asked(round, item),
            "n_done": so_far.n_done,
            "n_right": so_far.n_right,
            "n_practice": round.n_practice,
            "may_be_skipped": round.practice_may_be_skipped,
        }
        return Response(PracticeSerializer(shown).data)


class RoundPracticeAnswer(RoundToWorkIn):
    @operation(takes=PracticeAnswerSerializer, gives=PractisedSerializer)
    def post(self, request: Request, round_id: int) -> Response:
        """Answer a practice question and see the right answer; the first answer to each stands."""
        round = self.round(request, round_id)
        asked = self.asked(PracticeAnswerSerializer)
        given = answer_practice(round=round, by=request.user, item_id=asked.pop("item"), **asked)
        return Response(PractisedSerializer(given).data)


def _asked(round: Round, item: CalibrationItem) -> dict[str, Any]:
    return {
        "item": item.pk,
        "text": item.text,
        "text_format": round.pool.text_format,
        "choices": item.choices,
        "answer_kind": item.answer_kind,
    }
