"""Rounds: opening the picks of a run for labeling, watching them, pausing and closing them."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling.actions import rounds as actions
from labeling.actions.extra_answers import buy_answer
from labeling.api.access import found, managed, managed_pool
from labeling.api.endpoint import Endpoint
from labeling.api.fields import Id, Number
from labeling.api.schema import operation
from labeling.models import Budget, CalibrationSet, Question, Round, SelectionRun
from labeling.queries.agreement import agreement_in_words
from labeling.queries.rounds import QuestionState, RoundProgress, round_progress, rounds_of
from labeling.queries.shared import calibration_sets_for


class NewRoundSerializer(Serializer):
    """How a run's picks are labeled. ``calibration_set`` is where checks and practice come from; the run's if empty."""

    budget = Id(help_text="Id of a budget of the pool.")
    overlap = serializers.IntegerField(min_value=1, max_value=actions.MOST_OVERLAP, default=1)
    blindness = serializers.ChoiceField(Round.Blindness.choices, required=False)
    control_share = Number(min_value=0, max_value=1, required=False, help_text="Of questions that stay blind.")
    calibration_set = Id(required=False, allow_null=True, default=None)
    check_rate = Number(min_value=0, max_value=actions.MOST_CHECKS_PER_ANSWER, required=False)
    n_practice = serializers.IntegerField(min_value=0, max_value=actions.MOST_PRACTICE, required=False)
    practice_may_be_skipped = serializers.BooleanField(required=False)
    held = serializers.IntegerField(
        min_value=0,
        max_value=actions.MOST_HELD,
        required=False,
        allow_null=True,
        help_text="Units held back for disagreements; one for each question that people can disagree on, if not given.",
    )

    def validate_budget(self, given: int) -> Budget:
        budget = Budget.objects.filter(pool=self.context["pool"], pk=given).first()
        if budget is None:
            raise serializers.ValidationError(f"The pool has no budget {given}.", code="does_not_exist")
        return budget

    def validate_calibration_set(self, given: int | None) -> CalibrationSet | None:
        if given is None:
            return None
        known = calibration_sets_for(self.context["request"].user).filter(pk=given).first()
        if known is None or known.pool_id not in {None, self.context["pool"].pk}:
            raise serializers.ValidationError(f"The pool has no calibration set {given}.", code="does_not_exist")
        return known


class RoundSerializer(Serializer):
    id = serializers.IntegerField()
    pool = serializers.CharField(source="run.pool.slug")
    run = serializers.IntegerField(source="run_id")
    budget = serializers.IntegerField(source="budget_id")
    overlap = serializers.IntegerField()
    status = serializers.ChoiceField(Round.Status.choices)
    blindness = serializers.ChoiceField(Round.Blindness.choices)
    created_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)


class WorkersRoundSerializer(Serializer):
    """What everybody in the pool may know of a round."""

    id = serializers.IntegerField()
    pool = serializers.CharField(source="run.pool.slug")
    overlap = serializers.IntegerField()
    status = serializers.ChoiceField(Round.Status.choices)


class RoundRowSerializer(RoundSerializer):
    n_questions = serializers.IntegerField()
    n_slots = serializers.IntegerField()
    n_slots_done = serializers.IntegerField()
    n_gold = serializers.IntegerField()


class HoldSerializer(Serializer):
    user = serializers.CharField(source="user.username")
    until = serializers.DateTimeField()
    has_lapsed = serializers.BooleanField()


class QuestionProgressSerializer(Serializer):
    uid = serializers.CharField(source="question.uid")
    rank = serializers.IntegerField()
    state = serializers.ChoiceField([state.value for state in QuestionState])
    n_answers = serializers.IntegerField()
    n_surplus = serializers.IntegerField()
    holds = HoldSerializer(many=True)
    gold_answer = serializers.CharField(source="gold.answer", default=None, allow_null=True)
    gold_source = serializers.CharField(source="gold.source", default=None, allow_null=True)


class AskAgainSerializer(Serializer):
    uid = serializers.CharField(max_length=200)
    asked_before = serializers.IntegerField(min_value=1, max_value=1000, help_text="How many people were asked so far.")


class RoundProgressSerializer(Serializer):
    round = RoundSerializer()
    n_slots = serializers.IntegerField()
    n_slots_done = serializers.IntegerField()
    is_finished = serializers.BooleanField()
    agreement = serializers.CharField(help_text="In words; empty where nothing has been compared.")
    warnings = serializers.ListField(child=serializers.CharField())
    questions = QuestionProgressSerializer(many=True)


class Rounds(Endpoint):
    tag = "rounds"

    @operation(pages=RoundRowSerializer)
    def get(self, request: Request, pool_slug: str) -> Response:
        """List the pool's rounds, newest first."""
        rows = rounds_of(pool=managed_pool(request, pool_slug))
        return self.paged([_RoundRow(row) for row in rows], RoundRowSerializer)


class _RoundRow:
    """A row with its round's fields beside its own."""

    def __init__(self, row: Any) -> None:
        self._row = row

    def __getattr__(self, name: str) -> Any:
        return getattr(self._row, name) if hasattr(self._row, name) else getattr(self._row.round, name)


class RunRounds(Endpoint):
    tag = "rounds"

    @operation(takes=NewRoundSerializer, gives=RoundSerializer, status=201)
    def post(self, request: Request, run_id: int) -> Response:
        """Open the run's picks for labeling; refused, with the numbers, where units are missing."""
        rows = SelectionRun.objects.select_related("calibration_set")
        run = managed(request, rows, run_id, pool="pool")
        round = actions.open_round(run=run, by=request.user, **self.asked(NewRoundSerializer, pool=run.pool))
        return Response(RoundSerializer(round).data, status=201)


class RoundDetail(Endpoint):
    tag = "rounds"

    @operation(gives=WorkersRoundSerializer)
    def get(self, request: Request, round_id: int) -> Response:
        """Show a round; its progress is for managers."""
        return Response(WorkersRoundSerializer(found(request, Round.objects.all(), round_id, pool="run__pool")).data)


class RoundEndpoint(Endpoint):
    """An address below one round, for managers."""

    tag = "rounds"
    is_repeatable = True

    def round(self, request: Request, round_id: int) -> Round:
        return managed(request, Round.objects.select_related("budget"), round_id, pool="run__pool")


class RoundProgressDetail(RoundEndpoint):
    @operation(gives=RoundProgressSerializer)
    def get(self, request: Request, round_id: int) -> Response:
        """Show how far every question of a round is, and who holds what."""
        progress: RoundProgress = round_progress(round=self.round(request, round_id))
        kind = RoundProgressSerializer(_Progress(progress))
        return Response(kind.data)


class _Progress:
    def __init__(self, progress: RoundProgress) -> None:
        self._progress, self.agreement = progress, agreement_in_words(progress)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._progress, name)


class RoundPause(RoundEndpoint):
    @operation(gives=RoundSerializer)
    def post(self, request: Request, round_id: int) -> Response:
        """Stop giving out questions; whoever holds one may finish it."""
        return _answer(actions.pause_round(round=self.round(request, round_id), by=request.user))


class RoundResume(RoundEndpoint):
    @operation(gives=RoundSerializer)
    def post(self, request: Request, round_id: int) -> Response:
        """Give out questions again."""
        return _answer(actions.resume_round(round=self.round(request, round_id), by=request.user))


class RoundAskAgain(RoundEndpoint):
    @operation(takes=AskAgainSerializer, gives=RoundProgressSerializer)
    def post(self, request: Request, round_id: int) -> Response:
        """Have one more person asked a question whose label is in doubt; one unit pays."""
        round = self.round(request, round_id)
        asked = self.asked(AskAgainSerializer)
        question = get_object_or_404(Question.objects.filter(slots__round=round).distinct(), uid=asked["uid"])
        buy_answer(round=round, question=question, asked_before=asked["asked_before"], by=request.user)
        return Response(RoundProgressSerializer(_Progress(round_progress(round=round))).data)


class RoundClose(RoundEndpoint):
    @operation(gives=RoundSerializer)
    def post(self, request: Request, round_id: int) -> Response:
        """End a round for good: what is not answered gives its units back."""
        return _answer(actions.close_round(round=self.round(request, round_id), by=request.user))


def _answer(round: Round) -> Response:
    return Response(RoundSerializer(round).data)
