"""Pools: making one, what is in it, its questions and its guideline."""

from __future__ import annotations

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling import policies
from labeling.actions.people import create_pool
from labeling.actions.pools import save_guideline
from labeling.api.access import check_unbound, managed_pool, pool_or_404, pools_of
from labeling.api.endpoint import Endpoint
from labeling.api.schema import operation
from labeling.models import AnswerKind, Pool
from labeling.queries import pools as queries
from labeling.queries.attention import noteworthy_events
from labeling.queries.people import roles_of
from labeling.queries.pool_questions import questions_of


class AnswerPolicySerializer(Serializer):
    """How two answers are compared; what is left out is as usual."""

    percent = serializers.ChoiceField(["either", "number", "fraction", "sign"], required=False)
    units = serializers.ChoiceField(["optional", "required"], required=False)
    tolerance = serializers.CharField(max_length=40, required=False)
    case = serializers.ChoiceField(["ignore", "keep"], required=False)


class NewPoolSerializer(Serializer):
    name = serializers.CharField(max_length=120)
    description = serializers.CharField(max_length=10_000, required=False, default="", allow_blank=True)
    text_format = serializers.ChoiceField(Pool.TextFormat.choices, default=Pool.TextFormat.PLAIN)
    answer_policy = AnswerPolicySerializer(required=False, default=dict)


class PoolSerializer(Serializer):
    slug = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    text_format = serializers.ChoiceField(Pool.TextFormat.choices)
    created_at = serializers.DateTimeField()


class PoolRowSerializer(Serializer):
    slug = serializers.CharField(source="pool.slug")
    name = serializers.CharField(source="pool.name")
    roles = serializers.ListField(child=serializers.CharField(), help_text="Yours.")
    n_live_rounds = serializers.IntegerField()


class PoolCountsSerializer(Serializer):
    n_questions = serializers.IntegerField()
    n_labeled = serializers.IntegerField()
    n_runs = serializers.IntegerField()
    n_rounds = serializers.IntegerField()
    n_members = serializers.IntegerField()


class PoolDetailSerializer(PoolSerializer):
    roles = serializers.ListField(child=serializers.CharField(), help_text="Yours.")
    answer_policy = serializers.DictField(child=serializers.CharField())
    counts = PoolCountsSerializer(allow_null=True, help_text="For managers only.")


class QuestionSerializer(Serializer):
    uid = serializers.CharField()
    text = serializers.CharField()
    choices = serializers.ListField(child=serializers.CharField())
    answer_kind = serializers.ChoiceField([("", "Read off the answer"), *AnswerKind.choices])
    metadata = serializers.DictField()
    is_picked = serializers.BooleanField()
    is_labeled = serializers.BooleanField()


class SearchSerializer(Serializer):
    q = serializers.CharField(required=False, default="", allow_blank=True, max_length=500, help_text="Text, or an id.")


class NewGuidelineSerializer(Serializer):
    text = serializers.CharField(max_length=50_000)


class GuidelineSerializer(Serializer):
    version = serializers.IntegerField()
    text = serializers.CharField()
    created_at = serializers.DateTimeField()


class EventSerializer(Serializer):
    id = serializers.IntegerField()
    action = serializers.CharField()
    actor = serializers.CharField(source="actor.username", default=None, allow_null=True)
    details = serializers.DictField()
    created_at = serializers.DateTimeField()


class Pools(Endpoint):
    tag = "pools"

    @operation(pages=PoolRowSerializer)
    def get(self, request: Request) -> Response:
        """List the pools in which you have a role."""
        seen = set(pools_of(request).values_list("pk", flat=True))
        rows = [row for row in queries.pools_for(user=request.user) if row.pool.pk in seen]
        return self.paged(rows, PoolRowSerializer)

    @operation(takes=NewPoolSerializer, gives=PoolSerializer, status=201)
    def post(self, request: Request) -> Response:
        """Make a pool; you manage it."""
        check_unbound(request)
        policies.check_can_create_pool(request.user)
        pool = create_pool(by=request.user, **self.asked(NewPoolSerializer))
        return Response(PoolSerializer(pool).data, status=201)


class PoolDetail(Endpoint):
    tag = "pools"

    @operation(gives=PoolDetailSerializer)
    def get(self, request: Request, pool_slug: str) -> Response:
        """Show a pool, and to its managers what is in it."""
        pool = pool_or_404(request, pool_slug)
        manages = policies.can_manage(pool, request.user)
        more = {
            "roles": sorted(roles_of(pool=pool, user=request.user)),
            "counts": PoolCountsSerializer(queries.pool_counts(pool=pool)).data if manages else None,
            "answer_policy": pool.answer_policy,
        }
        return Response({**PoolSerializer(pool).data, **more})


class Questions(Endpoint):
    tag = "pools"

    @operation(pages=QuestionSerializer, query=SearchSerializer)
    def get(self, request: Request, pool_slug: str) -> Response:
        """List the pool's questions in the order they came."""
        pool = managed_pool(request, pool_slug)
        return self.paged(questions_of(pool, search=self.query(SearchSerializer)["q"].strip()), QuestionSerializer)


class Guidelines(Endpoint):
    tag = "pools"

    @operation(pages=GuidelineSerializer)
    def get(self, request: Request, pool_slug: str) -> Response:
        """List the versions of the guideline, newest first; who only labels sees the newest."""
        pool = pool_or_404(request, pool_slug)
        versions = queries.guideline_versions(pool=pool)
        if not policies.can_manage(pool, request.user):
            newest = queries.current_guideline(pool=pool)
            return self.paged([newest] if newest else [], GuidelineSerializer)
        return self.paged(versions, GuidelineSerializer)

    @operation(takes=NewGuidelineSerializer, gives=GuidelineSerializer, status=201)
    def post(self, request: Request, pool_slug: str) -> Response:
        """Make a text the newest version; the same text again changes nothing."""
        pool = managed_pool(request, pool_slug)
        saved = save_guideline(pool=pool, by=request.user, **self.asked(NewGuidelineSerializer))
        return Response(GuidelineSerializer(saved).data, status=201)


class Events(Endpoint):
    tag = "pools"

    @operation(gives=EventSerializer(many=True))
    def get(self, request: Request, pool_slug: str) -> Response:
        """List what people did in the pool last, newest first."""
        events = noteworthy_events(managed_pool(request, pool_slug))
        return Response(EventSerializer(events, many=True).data)
