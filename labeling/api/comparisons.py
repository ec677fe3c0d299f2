"""Comparisons of strategies on the answers of a finished run."""

from __future__ import annotations

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling.actions import comparisons as actions
from labeling.actions.runs import MOST_QUESTIONS
from labeling.api.access import managed, managed_pool
from labeling.api.endpoint import Endpoint
from labeling.api.runs import ProgressSerializer
from labeling.api.schema import ANY_OBJECT, operation
from labeling.engine.selection import strategies
from labeling.errors import Conflict
from labeling.models import Comparison, SelectionRun
from labeling.queries.comparisons import comparison_progress, comparisons_of

MOST_RESAMPLINGS = 2000


class NewComparisonSerializer(Serializer):
    strategies = serializers.ListField(
        child=serializers.ChoiceField(list(strategies())), min_length=1, max_length=len(strategies())
    )
    budget = serializers.IntegerField(min_value=1, max_value=MOST_QUESTIONS, help_text="That each strategy picks.")
    n_bootstrap = serializers.IntegerField(min_value=0, max_value=MOST_RESAMPLINGS, default=100)


class ComparisonSerializer(Serializer):
    id = serializers.IntegerField()
    run = serializers.IntegerField(source="run_id")
    status = serializers.ChoiceField(Comparison.Status.choices)
    strategies = serializers.ListField(child=serializers.CharField())
    budget = serializers.IntegerField()
    n_bootstrap = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class ComparisonDetailSerializer(ComparisonSerializer):
    progress = ProgressSerializer()


class Comparisons(Endpoint):
    tag = "comparisons"

    @operation(pages=ComparisonSerializer)
    def get(self, request: Request, pool_slug: str) -> Response:
        """List the pool's comparisons, newest first."""
        found = comparisons_of(managed_pool(request, pool_slug))
        return self.paged(found.order_by("-created_at", "-id"), ComparisonSerializer)


class RunComparisons(Endpoint):
    tag = "comparisons"

    @operation(takes=NewComparisonSerializer, gives=ComparisonSerializer, status=201)
    def post(self, request: Request, run_id: int) -> Response:
        """Compare strategies on the run's stored answers; a worker does it, and no model is asked."""
        run = managed(request, SelectionRun.objects.all(), run_id, pool="pool")
        comparison = actions.create_comparison(run=run, by=request.user, **self.asked(NewComparisonSerializer))
        return Response(ComparisonSerializer(comparison).data, status=201)


class ComparisonEndpoint(Endpoint):
    """An address below one comparison."""

    tag = "comparisons"
    is_repeatable = True

    def comparison(self, request: Request, comparison_id: int) -> Comparison:
        rows = Comparison.objects.select_related("run").defer("traceback", "run__report", "run__traceback")
        return managed(request, rows, comparison_id, pool="run__pool")

    def answer(self, comparison: Comparison) -> Response:
        progress = ProgressSerializer(comparison_progress(comparison)).data
        return Response({**ComparisonSerializer(comparison).data, "progress": progress})


class ComparisonDetail(ComparisonEndpoint):
    @operation(gives=ComparisonDetailSerializer)
    def get(self, request: Request, comparison_id: int) -> Response:
        """Show a comparison and how far it is."""
        return self.answer(self.comparison(request, comparison_id))


class ComparisonResult(ComparisonEndpoint):
    @operation(gives=ANY_OBJECT)
    def get(self, request: Request, comparison_id: int) -> Response:
        """Show the whole result of a finished comparison."""
        comparison = self.comparison(request, comparison_id)
        if comparison.result is None:
            status = comparison.get_status_display().lower()
            raise Conflict(f"The comparison is {status}; there is no result yet.", code="not_finished")
        return Response(comparison.result)


class ComparisonCancel(ComparisonEndpoint):
    @operation(gives=ComparisonDetailSerializer)
    def post(self, request: Request, comparison_id: int) -> Response:
        """Stop a comparison, or take it out of the queue."""
        return self.answer(actions.cancel_comparison(self.comparison(request, comparison_id), by=request.user))


class ComparisonRetry(ComparisonEndpoint):
    @operation(gives=ComparisonDetailSerializer)
    def post(self, request: Request, comparison_id: int) -> Response:
        """Queue a failed or cancelled comparison again."""
        return self.answer(actions.retry_comparison(self.comparison(request, comparison_id), by=request.user))
