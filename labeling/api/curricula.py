"""What a running trainer asks: which questions next, and here is what they earned."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling.actions import curricula as actions
from labeling.actions.exports import create_snapshot
from labeling.api.access import managed, managed_pool
from labeling.api.endpoint import Endpoint, Scope
from labeling.api.fields import JSONObject
from labeling.api.schema import operation
from labeling.engine.curricula import curriculum_kinds
from labeling.errors import LabelingError
from labeling.models import Curriculum
from labeling.queries.curricula import curricula_of

MOST_EVENTS = 5000  # in one request
MOST_REWARDS = 4096  # of one event


class NothingTaken(LabelingError):
    """Every event of a report was rejected; details say why."""

    code = "no_event_taken"
    status = 422


class ProposeSerializer(Serializer):
    k = serializers.IntegerField(min_value=1, max_value=1_000_000)
    idempotency_key = serializers.CharField(max_length=100, required=False, default="", allow_blank=True)


class EventSerializer(Serializer):
    id = serializers.CharField(max_length=64)
    uid = serializers.CharField(max_length=200)
    rewards = serializers.ListField(
        child=serializers.FloatField(allow_null=True), min_length=1, max_length=MOST_REWARDS
    )
    step = serializers.IntegerField(min_value=0, max_value=2**53, required=False, allow_null=True, default=None)


@extend_schema_field(EventSerializer(many=True))
class EventsField(serializers.ListField):
    """Each event is read by itself, so that a bad one does not cost the others."""


class RewardsSerializer(Serializer):
    events = EventsField(min_length=1, max_length=MOST_EVENTS)


class NewCurriculumSerializer(Serializer):
    name = serializers.CharField(max_length=120, help_text="Of the training run.")
    kind = serializers.ChoiceField([kind.key for kind in curriculum_kinds()])
    seed = serializers.IntegerField(min_value=0, max_value=2**31 - 1, required=False, default=0)
    options = JSONObject(required=False, default=dict)
    uses_stored_rollouts = serializers.BooleanField(required=False, default=True)


class CurriculumRowSerializer(Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    kind = serializers.CharField()
    n_questions = serializers.IntegerField(source="snapshot.n_rows")
    created_at = serializers.DateTimeField()


class CurriculumSerializer(Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    kind = serializers.CharField()
    seed = serializers.IntegerField()
    options = serializers.DictField()
    n_questions = serializers.IntegerField()
    n_events = serializers.IntegerField()
    n_proposals = serializers.IntegerField()


class ProposalSerializer(Serializer):
    uids = serializers.ListField(child=serializers.CharField())


class RefillSerializer(Serializer):
    uids = serializers.ListField(child=serializers.CharField())
    kept = serializers.ListField(child=serializers.CharField())


class RejectedEventSerializer(Serializer):
    position = serializers.IntegerField()
    code = serializers.CharField()
    message = serializers.CharField()


class ReceivedSerializer(Serializer):
    accepted = serializers.IntegerField()
    repeated = serializers.IntegerField()
    rejected = RejectedEventSerializer(many=True)


class Curricula(Endpoint):
    tag = "curricula"

    @operation(pages=CurriculumRowSerializer)
    def get(self, request: Request, pool_slug: str) -> Response:
        """List the pool's curricula, newest first."""
        return self.paged(curricula_of(managed_pool(request, pool_slug)), CurriculumRowSerializer)

    @operation(takes=NewCurriculumSerializer, gives=CurriculumRowSerializer, status=201)
    def post(self, request: Request, pool_slug: str) -> Response:
        """Freeze the gold answers and make a curriculum over their questions."""
        pool = managed_pool(request, pool_slug)
        asked = self.asked(NewCurriculumSerializer)
        snapshot = create_snapshot(pool=pool, by=request.user)
        curriculum = actions.create_curriculum(pool=pool, snapshot=snapshot, by=request.user, **asked)
        return Response(CurriculumRowSerializer(curriculum).data, status=201)


class CurriculumView(Endpoint):
    """An address below one curriculum."""

    tag = "curricula"
    scopes = {"GET": Scope.CURRICULUM, "POST": Scope.CURRICULUM}
    is_repeatable = True  # a proposal has a key of its own, a report the ids of its events

    def curriculum(self, request: Request, curriculum_id: int) -> Curriculum:
        """Load it without what is large: who changes it loads that under a lock."""
        rows = Curriculum.objects.defer("state", "prior", "snapshot__rows").select_related("snapshot")
        return managed(request, rows, curriculum_id, pool="pool")


class CurriculumDetail(CurriculumView):
    @operation(gives=CurriculumSerializer)
    def get(self, request: Request, curriculum_id: int) -> Response:
        """What the curriculum is and where it stands."""
        curriculum = self.curriculum(request, curriculum_id)
        return Response(
            {
                "id": curriculum.pk,
                "name": curriculum.name,
                "kind": curriculum.kind,
                "seed": curriculum.seed,
                "options": curriculum.options,
                "n_questions": curriculum.snapshot.n_rows,
                "n_events": curriculum.events.count(),
                "n_proposals": curriculum.proposals.count(),
            }
        )


class Propose(CurriculumView):
    takes_key = True

    @operation(takes=ProposeSerializer, gives=ProposalSerializer)
    def post(self, request: Request, curriculum_id: int) -> Response:
        """Return k different questions to roll out now."""
        curriculum = self.curriculum(request, curriculum_id)
        asked = self.asked(ProposeSerializer)
        proposal = actions.propose(
            curriculum=curriculum,
            k=asked["k"],
            by=request.user,
            idempotency_key=asked["idempotency_key"] or request.headers.get("Idempotency-Key", "")[:100],
        )
        return Response({"uids": proposal.uids})


class Refill(CurriculumView):
    @operation(gives=RefillSerializer)
    def post(self, request: Request, curriculum_id: int) -> Response:
        """Return questions to roll out in place of dropped ones, and those of the batch to train on."""
        more, kept = actions.refill(curriculum=self.curriculum(request, curriculum_id), by=request.user)
        return Response({"uids": more, "kept": kept})


class Rewards(CurriculumView):
    @operation(takes=RewardsSerializer, gives=ReceivedSerializer)
    def post(self, request: Request, curriculum_id: int) -> Response:
        """Take in rewards; what cannot be taken is named, and the rest counts."""
        curriculum = self.curriculum(request, curriculum_id)
        events = self.asked(RewardsSerializer)["events"]
        reports, rejected, positions = [], [], []
        for position, event in enumerate(events):
            serializer = EventSerializer(data=event)
            if serializer.is_valid():
                found = serializer.validated_data
                reports.append(actions.RewardReport(found["id"], found["uid"], found["rewards"], found["step"]))
                positions.append(position)
            else:
                rejected.append({"position": position, "code": "invalid", "message": _in_words(serializer.errors)})
        received = actions.observe(curriculum=curriculum, reports=reports, by=request.user)
        rejected += [
            {"position": positions[position], "code": code, "message": message}
            for position, code, message in received.rejected
        ]
        rejected.sort(key=lambda each: int(str(each["position"])))
        answer = {"accepted": received.n_accepted, "repeated": received.n_repeated, "rejected": rejected}
        if received.n_accepted + received.n_repeated == 0:
            message = f"None of the {len(events)} events can be taken. {rejected[0]['message']}"
            raise NothingTaken(message, code=None, **answer)
        return Response(answer)


def _in_words(errors: Any) -> str:
    if isinstance(errors, dict):
        return "; ".join(f"{name}: {_in_words(found)}" for name, found in errors.items())
    if isinstance(errors, list):
        return " ".join(_in_words(found) for found in errors)
    return str(errors)
