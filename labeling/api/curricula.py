"""What a running trainer asks: which questions next, and here is what they earned."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from labeling.actions import curricula as actions
from labeling.api.access import managed
from labeling.api.endpoint import Endpoint, Scope
from labeling.models import Curriculum

MOST_EVENTS = 5000  # in one request
MOST_REWARDS = 4096  # of one event


class ProposeSerializer(serializers.Serializer[Any]):
    k = serializers.IntegerField(min_value=1, max_value=1_000_000)
    idempotency_key = serializers.CharField(max_length=100, required=False, default="", allow_blank=True)


class EventSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(max_length=64)
    uid = serializers.CharField(max_length=200)
    rewards = serializers.ListField(
        child=serializers.FloatField(allow_null=True), min_length=1, max_length=MOST_REWARDS
    )
    step = serializers.IntegerField(min_value=0, max_value=2**53, required=False, allow_null=True, default=None)


class RewardsSerializer(serializers.Serializer[Any]):
    events = serializers.ListField(min_length=1, max_length=MOST_EVENTS)


class CurriculumView(Endpoint):
    """An address below one curriculum."""

    scopes = {"GET": Scope.CURRICULUM, "POST": Scope.CURRICULUM}
    is_repeatable = True  # a proposal has a key of its own, a report the ids of its events

    def curriculum(self, request: Request, curriculum_id: int) -> Curriculum:
        """Load it without what is large: who changes it loads that under a lock."""
        rows = Curriculum.objects.defer("state", "prior", "snapshot__rows").select_related("snapshot")
        return managed(request, rows, curriculum_id, pool="pool")


class CurriculumDetail(CurriculumView):
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
    def post(self, request: Request, curriculum_id: int) -> Response:
        """Return k different questions to roll out now."""
        asked = self.asked(ProposeSerializer)
        proposal = actions.propose(
            curriculum=self.curriculum(request, curriculum_id),
            k=asked["k"],
            by=request.user,
            idempotency_key=asked["idempotency_key"] or request.headers.get("Idempotency-Key", "")[:100],
        )
        return Response({"uids": proposal.uids})


class Refill(CurriculumView):
    def post(self, request: Request, curriculum_id: int) -> Response:
        """Return questions to roll out in place of dropped ones, and those of the batch to train on."""
        more, kept = actions.refill(curriculum=self.curriculum(request, curriculum_id), by=request.user)
        return Response({"uids": more, "kept": kept})


class Rewards(CurriculumView):
    def post(self, request: Request, curriculum_id: int) -> Response:
        """Take in rewards; what cannot be taken is named, and the rest counts."""
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
        received = actions.observe(curriculum=self.curriculum(request, curriculum_id), reports=reports, by=request.user)
        rejected += [
            {"position": positions[position], "code": code, "message": message}
            for position, code, message in received.rejected
        ]
        rejected.sort(key=lambda each: int(str(each["position"])))
        answer = {"accepted": received.n_accepted, "repeated": received.n_repeated, "rejected": rejected}
        nothing_was_good = received.n_accepted + received.n_repeated == 0
        return Response(answer, status=422 if nothing_was_good else 200)


def _in_words(errors: Any) -> str:
    if isinstance(errors, dict):
        return "; ".join(f"{name}: {_in_words(found)}" for name, found in errors.items())
    if isinstance(errors, list):
        return " ".join(_in_words(found) for found in errors)
    return str(errors)
