"""Selection runs: asking for one, watching it, and reading what it picked and why."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling.actions import runs as actions
from labeling.actions.runs import MOST_ANSWERS, MOST_QUESTIONS
from labeling.api.access import managed, managed_pool
from labeling.api.endpoint import Endpoint
from labeling.api.fields import AnyJSON, Id, Number
from labeling.api.schema import ANY_OBJECT, operation
from labeling.engine.selection import MOST_SEED, presets, strategies, strategy_card
from labeling.errors import Conflict
from labeling.models import PolicyModel, SelectionRun
from labeling.queries.run_results import ranked_picks
from labeling.queries.runs import recorded_settings_of, run_progress, runs_of, runs_to_go_on_from
from labeling.queries.shared import calibration_sets_for

DECIMAL = r"^\s*[0-9]*\.?[0-9]+\s*$"


class NewRunSerializer(Serializer):
    """What is left out is as the preset has it."""

    budget = serializers.IntegerField(min_value=1, max_value=MOST_QUESTIONS, help_text="Questions to pick.")
    policy_model = Id(required=False, allow_null=True, default=None)
    generation_fingerprint = serializers.CharField(
        max_length=64, required=False, default="", allow_blank=True, help_text="Of recorded votes, in place of a model."
    )
    calibration_set = Id(required=False, allow_null=True, default=None)
    continues = Id(
        required=False, allow_null=True, default=None, help_text="A finished run, whose picks count as labeled."
    )
    question_limit = serializers.IntegerField(
        min_value=1, max_value=MOST_QUESTIONS, required=False, allow_null=True, default=None
    )
    race = serializers.ChoiceField(
        SelectionRun.Race.choices,
        required=False,
        allow_null=True,
        default=None,
        help_text="Whether a model is asked for full answers only where the picks depend on them; by default it is.",
    )
    embedder = serializers.CharField(
        max_length=300, required=False, allow_blank=True, default=actions.DEFAULT_EMBEDDER, help_text="Empty: none."
    )
    preset = serializers.ChoiceField(list(presets()), required=False)
    strategy = serializers.ChoiceField(list(strategies()), required=False)
    alpha = serializers.CharField(max_length=40, required=False, help_text="A decimal, such as 0.1.")
    lam = Number(min_value=0, max_value=1e6, required=False)
    n_outcomes = serializers.IntegerField(min_value=0, max_value=MOST_ANSWERS, required=False)
    n_probes = serializers.IntegerField(min_value=0, max_value=MOST_ANSWERS, required=False)
    n_clusters = serializers.IntegerField(min_value=1, max_value=MOST_QUESTIONS, required=False, allow_null=True)
    per_cluster = serializers.IntegerField(min_value=1, max_value=MOST_QUESTIONS, required=False, allow_null=True)
    control_share = serializers.CharField(max_length=40, required=False, help_text="From 0 to 1, drawn at random.")
    min_readable = Number(min_value=0, max_value=1, required=False, allow_null=True)
    seed = serializers.IntegerField(min_value=0, max_value=MOST_SEED, required=False)

    def validate_policy_model(self, given: int | None) -> Any:
        return _one_of(PolicyModel.objects.exclude(engine=PolicyModel.EngineKind.SCRIPTED), given)

    def validate_calibration_set(self, given: int | None) -> Any:
        known = calibration_sets_for(self.context["request"].user)
        return _one_of(known, given)

    def validate_continues(self, given: int | None) -> Any:
        return _one_of(runs_to_go_on_from(self.context["pool"]), given)


class RunSerializer(Serializer):
    id = serializers.IntegerField()
    pool = serializers.CharField(source="pool.slug")
    status = serializers.ChoiceField(SelectionRun.Status.choices)
    policy_model = serializers.CharField(allow_null=True, source="policy_model.name", default=None)
    calibration_set = serializers.CharField(allow_null=True, source="calibration_set.name", default=None)
    generation_fingerprint = serializers.CharField()
    embedder = serializers.CharField()
    config = serializers.DictField()
    question_limit = serializers.IntegerField(allow_null=True)
    race = serializers.ChoiceField(SelectionRun.Race.choices)
    continues = serializers.IntegerField(source="continues_id", allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class StageSerializer(Serializer):
    name = serializers.CharField()
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    seconds = serializers.FloatField()
    is_current = serializers.BooleanField()
    is_done = serializers.BooleanField()
    rate = serializers.FloatField(allow_null=True)
    seconds_left = serializers.FloatField(allow_null=True)


class ProgressSerializer(Serializer):
    status = serializers.CharField()
    is_live = serializers.BooleanField(help_text="It may still change by itself: ask again.")
    is_stopping = serializers.BooleanField()
    needs_worker = serializers.BooleanField(help_text="It has waited for a while and no worker took it.")
    stages = StageSerializer(many=True)
    seconds = serializers.FloatField()
    error_code = serializers.CharField()
    error = serializers.CharField()


class RunDetailSerializer(RunSerializer):
    q_hat = serializers.FloatField(allow_null=True)
    q_hat_infinite = serializers.BooleanField()
    progress = ProgressSerializer()
    rounds = serializers.ListField(child=serializers.IntegerField())


class PickSerializer(Serializer):
    rank = serializers.IntegerField()
    uid = serializers.CharField(source="question.uid")
    text = serializers.CharField(source="question.text")
    cluster = serializers.IntegerField(allow_null=True)
    set_size = serializers.IntegerField()
    acquisition_score = serializers.FloatField()
    prediction_set = AnyJSON()
    tied_with = serializers.IntegerField(allow_null=True)
    tie_break = serializers.CharField()
    taken_by = serializers.CharField()
    inclusion_probability = serializers.FloatField(allow_null=True)


class ScoreSerializer(Serializer):
    uid = serializers.CharField(source="question.uid")
    set_size = serializers.IntegerField(help_text="After a race, what it is at least.")
    set_size_at_most = serializers.IntegerField(allow_null=True, help_text="After a race.")
    n_drawn = serializers.IntegerField(allow_null=True, help_text="Full answers that a race asked for.")
    acquisition_score = serializers.FloatField()
    entropy = serializers.FloatField()
    n_readable = serializers.IntegerField()
    n_distinct = serializers.IntegerField()
    cluster = serializers.IntegerField(allow_null=True)
    eligible = serializers.BooleanField()
    ineligible_reason = serializers.CharField()
    x = serializers.FloatField(allow_null=True, help_text="Place on the map of the pool.")
    y = serializers.FloatField(allow_null=True)


class StrategySerializer(Serializer):
    key = serializers.CharField()
    title = serializers.CharField()
    is_reconstruction = serializers.BooleanField(help_text="Rebuilt from a description, since no formula is public.")
    needs = serializers.ListField(child=serializers.CharField())
    cost = serializers.CharField(help_text="Of one question.")
    needs_calibration = serializers.BooleanField()
    needs_answers = serializers.BooleanField()


class RecordedVotesSerializer(Serializer):
    generation_fingerprint = serializers.CharField()
    n_questions = serializers.IntegerField()


class Runs(Endpoint):
    tag = "runs"

    @operation(pages=RunSerializer)
    def get(self, request: Request, pool_slug: str) -> Response:
        """List the pool's runs, newest first."""
        runs = runs_of(managed_pool(request, pool_slug)).select_related("pool", "policy_model", "calibration_set")
        return self.paged(runs.order_by("-created_at", "-id"), RunSerializer)

    @operation(takes=NewRunSerializer, gives=RunSerializer, status=201)
    def post(self, request: Request, pool_slug: str) -> Response:
        """Ask for a run. Everything is checked before a model is asked anything; a worker takes it up."""
        pool = managed_pool(request, pool_slug)
        run = actions.create_run(pool=pool, by=request.user, **self.asked(NewRunSerializer, pool=pool))
        return Response(RunSerializer(run).data, status=201)


class RunEndpoint(Endpoint):
    """An address below one run."""

    tag = "runs"
    is_repeatable = True

    def run(self, request: Request, run_id: int) -> SelectionRun:
        rows = SelectionRun.objects.select_related("calibration_set", "policy_model")
        return managed(request, rows, run_id, pool="pool")

    def answer(self, run: SelectionRun) -> Response:
        more = {
            "q_hat": run.q_hat,
            "q_hat_infinite": run.q_hat_infinite,
            "progress": ProgressSerializer(run_progress(run)).data,
            "rounds": list(run.rounds.order_by("id").values_list("pk", flat=True)),
        }
        return Response({**RunSerializer(run).data, **more})


class RunDetail(RunEndpoint):
    @operation(gives=RunDetailSerializer)
    def get(self, request: Request, run_id: int) -> Response:
        """Show a run and how far it is, stage by stage."""
        return self.answer(self.run(request, run_id))


class RunPicks(RunEndpoint):
    @operation(pages=PickSerializer)
    def get(self, request: Request, run_id: int) -> Response:
        """List what a finished run picked, best first."""
        return self.paged(ranked_picks(self.run(request, run_id)), PickSerializer)


class RunScores(RunEndpoint):
    @operation(pages=ScoreSerializer)
    def get(self, request: Request, run_id: int) -> Response:
        """List every question that a finished run looked at, with its scores and its place on the map."""
        run = self.run(request, run_id)
        return self.paged(run.scores.select_related("question").order_by("id"), ScoreSerializer)


class RunReport(RunEndpoint):
    @operation(gives=ANY_OBJECT)
    def get(self, request: Request, run_id: int) -> Response:
        """Show the whole report of a finished run: calibration, checks, warnings, histogram."""
        run = self.run(request, run_id)
        if run.report is None:
            raise Conflict(f"{run} is {run.get_status_display().lower()}; it has no report yet.", code="not_finished")
        return Response(run.report)


class RunCancel(RunEndpoint):
    @operation(gives=RunDetailSerializer)
    def post(self, request: Request, run_id: int) -> Response:
        """Stop a run after the answers in flight; all it has is kept."""
        return self.answer(actions.cancel_run(self.run(request, run_id), by=request.user))


class RunRetry(RunEndpoint):
    @operation(gives=RunDetailSerializer)
    def post(self, request: Request, run_id: int) -> Response:
        """Queue a failed or cancelled run again; it goes on from the stored answers."""
        return self.answer(actions.retry_run(self.run(request, run_id), by=request.user))


class RunComplete(RunEndpoint):
    @operation(gives=RunDetailSerializer)
    def post(self, request: Request, run_id: int) -> Response:
        """Start a run with a raced one's settings and all answers; only those that the race left out are asked."""
        return self.answer(actions.complete_run(self.run(request, run_id), by=request.user))


class Strategies(Endpoint):
    tag = "runs"

    @operation(gives=StrategySerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the strategies by key."""
        cards = [strategy_card(key) for key in strategies()]
        return Response(StrategySerializer(cards, many=True).data)


class RecordedVotesList(Endpoint):
    tag = "runs"

    @operation(gives=RecordedVotesSerializer(many=True))
    def get(self, request: Request, pool_slug: str) -> Response:
        """List the generation settings under which votes are recorded for the pool's questions."""
        rows = recorded_settings_of(managed_pool(request, pool_slug))
        return Response([{"generation_fingerprint": fingerprint, "n_questions": n} for fingerprint, n in rows])


def _one_of(rows: Any, pk: int | None) -> Any:
    if pk is None:
        return None
    row = rows.filter(pk=pk).first()
    if row is None:
        raise serializers.ValidationError(f"There is none with the id {pk} here.", code="does_not_exist")
    return row
