"""The models that will be trained, and how each is reached."""

from __future__ import annotations

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling import policies
from labeling.actions.policy_models import MOST_TOKENS, create_policy_model
from labeling.api.access import check_unbound
from labeling.api.endpoint import Endpoint
from labeling.api.fields import JSONObject, Number
from labeling.api.schema import operation
from labeling.models import PolicyModel
from labeling.queries.shared import policy_models

ENGINES = [choice for choice in PolicyModel.EngineKind.choices if choice[0] != PolicyModel.EngineKind.SCRIPTED]


class NewModelSerializer(Serializer):
    name = serializers.CharField(max_length=120)
    engine = serializers.ChoiceField(ENGINES)
    model = serializers.CharField(max_length=300, help_text="A hub name or a path, as the engine knows it.")
    base_url = serializers.CharField(
        max_length=2000, required=False, default="", allow_blank=True, help_text="Several servers with commas."
    )
    api_key_env = serializers.CharField(
        max_length=100, required=False, default="", allow_blank=True, help_text="Name of a variable; never the key."
    )
    temperature = Number(min_value=0, max_value=5, required=False, allow_null=True, default=None)
    top_p = Number(min_value=0, max_value=1, required=False, allow_null=True, default=None)
    max_tokens = serializers.IntegerField(min_value=1, max_value=MOST_TOKENS, required=False, default=2048)
    probe_max_tokens = serializers.IntegerField(min_value=1, max_value=MOST_TOKENS, required=False, default=64)
    keep = serializers.ChoiceField(
        PolicyModel.Keep.choices,
        required=False,
        default=PolicyModel.Keep.COMPLETIONS,
        help_text="Of full answers: all that the model writes, or the answers alone.",
    )
    options = JSONObject(required=False, default=dict, help_text="Of the engine, such as batch_size or dtype.")
    check = serializers.BooleanField(required=False, default=False, help_text="Try to reach the model now.")


class ModelSerializer(Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    engine = serializers.ChoiceField(PolicyModel.EngineKind.choices)
    model = serializers.CharField()
    base_url = serializers.CharField()
    api_key_env = serializers.CharField()
    temperature = serializers.FloatField(allow_null=True)
    top_p = serializers.FloatField(allow_null=True)
    max_tokens = serializers.IntegerField()
    probe_max_tokens = serializers.IntegerField()
    keep = serializers.ChoiceField(PolicyModel.Keep.choices)
    options = serializers.DictField()
    created_at = serializers.DateTimeField()


class PolicyModels(Endpoint):
    tag = "models"

    @operation(pages=ModelSerializer)
    def get(self, request: Request) -> Response:
        """List the policy models by name."""
        policies.check_can_manage_shared(request.user)
        return self.paged(policy_models(), ModelSerializer)

    @operation(takes=NewModelSerializer, gives=ModelSerializer, status=201)
    def post(self, request: Request) -> Response:
        """Add a policy model; with ``check`` it is opened first, which may take a minute."""
        check_unbound(request)
        policies.check_can_manage_shared(request.user)
        model = create_policy_model(by=request.user, **self.asked(NewModelSerializer))
        return Response(ModelSerializer(model).data, status=201)
