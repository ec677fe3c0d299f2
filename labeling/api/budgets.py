"""Budgets, counted in human answers."""

from __future__ import annotations

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling.actions.budgets import MOST_UNITS, add_units, grant_budget
from labeling.api.access import managed, managed_pool
from labeling.api.endpoint import Endpoint
from labeling.api.schema import operation
from labeling.models import Budget
from labeling.queries.pools import budget_row, budgets_of


class NewBudgetSerializer(Serializer):
    name = serializers.CharField(max_length=120)
    units = serializers.IntegerField(min_value=1, max_value=MOST_UNITS)


class MoreUnitsSerializer(Serializer):
    units = serializers.IntegerField(min_value=1, max_value=MOST_UNITS)
    granted_before = serializers.IntegerField(
        min_value=0,
        max_value=MOST_UNITS * 1000,
        required=False,
        allow_null=True,
        default=None,
        help_text="The size you saw; refused if it has changed.",
    )


class BudgetSerializer(Serializer):
    id = serializers.IntegerField(source="budget.pk")
    name = serializers.CharField(source="budget.name")
    granted = serializers.IntegerField()
    spent = serializers.IntegerField()
    reserved = serializers.IntegerField()
    free = serializers.IntegerField()


class Budgets(Endpoint):
    tag = "budgets"

    @operation(pages=BudgetSerializer)
    def get(self, request: Request, pool_slug: str) -> Response:
        """List the pool's budgets, newest first."""
        return self.paged(budgets_of(pool=managed_pool(request, pool_slug)), BudgetSerializer)

    @operation(takes=NewBudgetSerializer, gives=BudgetSerializer, status=201)
    def post(self, request: Request, pool_slug: str) -> Response:
        """Grant a budget of so many human answers."""
        pool = managed_pool(request, pool_slug)
        budget = grant_budget(pool=pool, by=request.user, **self.asked(NewBudgetSerializer))
        return Response(BudgetSerializer(budget_row(budget=budget)).data, status=201)


class BudgetDetail(Endpoint):
    tag = "budgets"

    @operation(gives=BudgetSerializer)
    def get(self, request: Request, budget_id: int) -> Response:
        """Show where the units of a budget are."""
        budget = managed(request, Budget.objects.all(), budget_id, pool="pool")
        return Response(BudgetSerializer(budget_row(budget=budget)).data)


class BudgetUnits(Endpoint):
    tag = "budgets"

    @operation(takes=MoreUnitsSerializer, gives=BudgetSerializer, status=201)
    def post(self, request: Request, budget_id: int) -> Response:
        """Add units; disagreements that waited for one go to an adjudicator."""
        budget = managed(request, Budget.objects.all(), budget_id, pool="pool")
        add_units(budget=budget, by=request.user, **self.asked(MoreUnitsSerializer))
        return Response(BudgetSerializer(budget_row(budget=budget)).data, status=201)
