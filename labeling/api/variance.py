"""Variance: which questions with known answers a model is sometimes right on, from answers that are stored."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling.api.access import managed_pool, managed_set, pools_of
from labeling.api.endpoint import Endpoint
from labeling.api.fields import AnyJSON, Id
from labeling.api.schema import operation
from labeling.models import SelectionRun
from labeling.queries import variance as queries


class RunChoiceSerializer(Serializer):
    run = Id(required=False, allow_null=True, default=None, help_text="By default the newest.")


class CategorySerializer(Serializer):
    key = serializers.CharField()
    words = serializers.CharField()
    n = serializers.IntegerField()
    advice = serializers.CharField()


class VarianceSerializer(Serializer):
    run = serializers.IntegerField(allow_null=True, help_text="Null where no finished run has stored rollouts.")
    n_known = serializers.IntegerField()
    n_graded = serializers.IntegerField()
    n_left = serializers.IntegerField(help_text="Still to be graded: ask again until it is 0.")
    n_without_rollouts = serializers.IntegerField()
    report = AnyJSON()
    categories = CategorySerializer(many=True)


class QuestionVarianceSerializer(Serializer):
    uid = serializers.CharField()
    n_runs = serializers.IntegerField()
    mean = serializers.FloatField()
    variance = serializers.FloatField()
    category = serializers.CharField()


class PoolVarianceSerializer(VarianceSerializer):
    questions = QuestionVarianceSerializer(many=True)


class PoolVariance(Endpoint):
    tag = "variance"

    @operation(gives=PoolVarianceSerializer, query=RunChoiceSerializer)
    def get(self, request: Request, pool_slug: str) -> Response:
        """Show how the stored answers of one of the pool's runs do on its labeled questions."""
        runs = queries.runs_with_rollouts(pool=managed_pool(request, pool_slug))
        run = _chosen(self.query(RunChoiceSerializer)["run"], runs)
        found = queries.variance_of_pool(run) if run else queries.RolloutVariance(0, 0, 0, 0)
        lines = [
            {
                "uid": line.question.uid,
                "n_runs": line.n_runs,
                "mean": line.mean,
                "variance": line.variance,
                "category": line.category,
            }
            for line in found.lines
        ]
        return Response({**_shown(run, found), "questions": lines})


class SetVariance(Endpoint):
    tag = "variance"

    @operation(gives=VarianceSerializer, query=RunChoiceSerializer)
    def get(self, request: Request, set_id: int) -> Response:
        """Show the same for a calibration set as a whole; nothing of its single questions."""
        known = managed_set(request, set_id)
        seen = set(pools_of(request).values_list("pk", flat=True))
        every = queries.runs_on_set(calibration_set=known, user=request.user)
        run = _chosen(self.query(RunChoiceSerializer)["run"], [run for run in every if run.pool_id in seen])
        found = queries.variance_of_set(run) if run else queries.RolloutVariance(0, 0, 0, 0)
        return Response(_shown(run, found))


def _chosen(asked: int | None, runs: list[SelectionRun]) -> SelectionRun | None:
    if asked is None:
        return runs[0] if runs else None
    run = next((each for each in runs if each.pk == asked), None)
    if run is None:
        raise Http404
    return run


def _shown(run: SelectionRun | None, found: queries.RolloutVariance) -> dict[str, Any]:
    return {
        "run": run and run.pk,
        "n_known": found.n_known,
        "n_graded": found.n_graded,
        "n_left": found.n_left,
        "n_without_rollouts": found.n_without_rollouts,
        "report": found.report,
        "categories": CategorySerializer(found.categories, many=True).data,
    }
