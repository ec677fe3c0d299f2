"""An annotator's work: take a question, answer it blind, change one's mind.

An answer holds the question and the person's own words, and nothing else: no model answers before they have answered,
no scores, no gold, no one else's answers, and nothing by which a check could be told from a question.
"""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling.actions import annotation as actions
from labeling.actions import revising
from labeling.actions.answers import MOST_ANSWER_CHARACTERS, MOST_NOTE_CHARACTERS
from labeling.actions.flags import flag_question
from labeling.actions.reveals import answers_shown_first
from labeling.api.access import found, pools_of, shown_slot
from labeling.api.endpoint import MOST_KEY_CHARACTERS, Endpoint, Scope
from labeling.api.schema import operation
from labeling.errors import LabelingError
from labeling.models import Annotation, AnswerKind, Pool, Round, Slot, UnanswerableReason
from labeling.queries.own_answers import own_annotation, own_draft, state_for
from labeling.queries.queue import empty_queue, read_answer, recent_annotations, work_for


class WorkRowSerializer(Serializer):
    round = serializers.IntegerField(source="round.pk")
    pool = serializers.CharField(source="round.run.pool.slug")
    role = serializers.CharField()
    n_free = serializers.IntegerField(help_text="Questions, or disagreements, that you could take.")
    n_done = serializers.IntegerField()
    held = serializers.IntegerField(source="held.pk", default=None, allow_null=True, help_text="The slot you hold.")


class AskedSerializer(Serializer):
    """A question as whoever answers it sees it."""

    text = serializers.CharField()
    text_format = serializers.ChoiceField(Pool.TextFormat.choices)
    choices = serializers.ListField(child=serializers.CharField(), help_text="Answer with a letter: A is the first.")
    answer_kind = serializers.ChoiceField([("", "Read off the answer"), *AnswerKind.choices])


class DraftSerializer(Serializer):
    answer = serializers.CharField(
        max_length=MOST_ANSWER_CHARACTERS, required=False, default="", allow_blank=True, trim_whitespace=False
    )
    unsure = serializers.BooleanField(required=False, default=False)
    note = serializers.CharField(
        max_length=MOST_NOTE_CHARACTERS, required=False, default="", allow_blank=True, trim_whitespace=False
    )


class SavedDraftSerializer(Serializer):
    draft = DraftSerializer()
    saved_at = serializers.DateTimeField(allow_null=True)
    lease_until = serializers.DateTimeField(allow_null=True)


class AnnotationSerializer(Serializer):
    id = serializers.IntegerField()
    slot = serializers.IntegerField(source="slot_id")
    version = serializers.IntegerField()
    answer = serializers.CharField()
    read_as = serializers.CharField(help_text="What a trainer's grader reads; empty where it reads nothing.")
    unanswerable_reason = serializers.ChoiceField([("", "It has an answer"), *UnanswerableReason.choices])
    confident = serializers.BooleanField()
    note = serializers.CharField()
    surplus = serializers.BooleanField(help_text="It came after the slot had gone to somebody else: kept, not counted.")
    created_at = serializers.DateTimeField()


class OwnAnswerSerializer(AnnotationSerializer):
    round = serializers.IntegerField(source="slot.round_id")
    question = serializers.CharField(source="slot.asked.text")


class SlotSerializer(Serializer):
    id = serializers.IntegerField()
    round = serializers.IntegerField()
    pool = serializers.CharField()
    state = serializers.ChoiceField(["held", "lost", "answered", "given_back"])
    lease_until = serializers.DateTimeField(allow_null=True)
    question = AskedSerializer()
    guideline = serializers.CharField(allow_blank=True)
    shown_first = serializers.ListField(
        child=serializers.CharField(), help_text="Answers of the model, in a round that shows them first; else none."
    )
    draft = DraftSerializer()
    annotation = AnnotationSerializer(allow_null=True, help_text="Your answer, once there is one.")


class ClaimSerializer(Serializer):
    slot = SlotSerializer(allow_null=True)
    code = serializers.CharField(help_text="Why there is none: held, seen, paused, all_done, …; empty where there is.")
    message = serializers.CharField()
    next_free_at = serializers.DateTimeField(allow_null=True)


class AnswerSerializer(Serializer):
    answer = serializers.CharField(max_length=MOST_ANSWER_CHARACTERS)
    confident = serializers.BooleanField(required=False, default=True)
    note = serializers.CharField(max_length=MOST_NOTE_CHARACTERS, required=False, default="", allow_blank=True)
    confirm_unreadable = serializers.BooleanField(
        required=False, default=False, help_text="Submit an answer that no trainer's grader can read."
    )


class ReasonSerializer(Serializer):
    reason = serializers.ChoiceField(UnanswerableReason.choices)
    note = serializers.CharField(max_length=MOST_NOTE_CHARACTERS, required=False, default="", allow_blank=True)


class RevisionSerializer(Serializer):
    """Either another answer, or a reason why there is none."""

    answer = serializers.CharField(max_length=MOST_ANSWER_CHARACTERS, required=False, default="", allow_blank=True)
    reason = serializers.ChoiceField(UnanswerableReason.choices, required=False, default="", allow_blank=True)
    confident = serializers.BooleanField(required=False, default=True)
    note = serializers.CharField(max_length=MOST_NOTE_CHARACTERS, required=False, default="", allow_blank=True)
    why = serializers.CharField(max_length=MOST_NOTE_CHARACTERS, required=False, default="", allow_blank=True)
    confirm_unreadable = serializers.BooleanField(required=False, default=False)


class FlagSerializer(Serializer):
    note = serializers.CharField(max_length=MOST_NOTE_CHARACTERS)


class FlaggedSerializer(Serializer):
    note = serializers.CharField()
    created_at = serializers.DateTimeField()


class TypedSerializer(Serializer):
    answer = serializers.CharField(max_length=20_000, allow_blank=True, trim_whitespace=False)


class ReadAsSerializer(Serializer):
    readable = serializers.BooleanField()
    text = serializers.CharField(help_text="What a trainer's grader reads.")
    kind = serializers.CharField()
    warnings = serializers.ListField(child=serializers.CharField())


class LabelEndpoint(Endpoint):
    """An address of whoever labels. Submitting keeps its key with the answer, and everything else may be repeated."""

    tag = "work"
    scopes = {"GET": Scope.LABEL, "POST": Scope.LABEL}
    is_repeatable = True


class Work(LabelEndpoint):
    @operation(gives=WorkRowSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the live rounds in which you may answer or decide."""
        seen = set(pools_of(request).values_list("pk", flat=True))
        rows = [row for row in work_for(user=request.user) if row.round.run.pool_id in seen]
        return Response(WorkRowSerializer(rows, many=True).data)


class RecentAnswers(LabelEndpoint):
    @operation(gives=OwnAnswerSerializer(many=True))
    def get(self, request: Request, round_id: int) -> Response:
        """List your last answers in the round's pool, newest first."""
        round = found(request, Round.objects.all(), round_id, pool="run__pool")
        answers = recent_annotations(user=request.user, pool=round.pool)
        return Response(OwnAnswerSerializer(answers, many=True).data)


class RoundClaim(LabelEndpoint):
    @operation(gives=ClaimSerializer)
    def post(self, request: Request, round_id: int) -> Response:
        """Take the next question of the round; whoever holds one is given the same again."""
        round = found(request, Round.objects.all(), round_id, pool="run__pool")
        slot = actions.claim_slot(round=round, user=request.user)
        if slot is not None:
            return Response({"slot": shown(slot, request), "code": "", "message": "", "next_free_at": None})
        why = empty_queue(user=request.user, round=round)
        return Response({"slot": None, "code": why.code, "message": why.message, "next_free_at": why.next_free_at})


class SlotDetail(LabelEndpoint):
    @operation(gives=SlotSerializer)
    def get(self, request: Request, slot_id: int) -> Response:
        """Show a question that you were given, with your draft or answer."""
        return Response(shown(shown_slot(request, slot_id), request))


class SlotDraft(LabelEndpoint):
    @operation(takes=DraftSerializer, gives=SavedDraftSerializer)
    def post(self, request: Request, slot_id: int) -> Response:
        """Save what has been typed so far, and keep the question for another while."""
        slot = shown_slot(request, slot_id)
        saved = actions.save_draft(slot=slot, draft=self.asked(DraftSerializer), by=request.user)
        slot.refresh_from_db(fields=["holder", "state", "lease_until"])
        until = slot.lease_until if slot.holder_id == request.user.pk else None
        return Response({"draft": saved.content, "saved_at": saved.saved_at, "lease_until": until})


class SlotReadAs(LabelEndpoint):
    @operation(takes=TypedSerializer, gives=ReadAsSerializer)
    def post(self, request: Request, slot_id: int) -> Response:
        """Say how a trainer's grader would read an answer; changes nothing."""
        slot = shown_slot(request, slot_id)
        return Response(ReadAsSerializer(read_answer(slot=slot, **self.asked(TypedSerializer))).data)


class Submitting(LabelEndpoint):
    """An address that records an answer, once for each key."""

    takes_key = True

    def key(self, request: Request) -> UUID:
        """The request's key as the answer keeps it."""
        given = request.headers.get("Idempotency-Key", "")
        if len(given) > MOST_KEY_CHARACTERS:
            raise LabelingError(f"A key has at most {MOST_KEY_CHARACTERS} characters.", code="invalid")
        try:
            return UUID(given) if given else uuid4()
        except ValueError:
            return uuid5(NAMESPACE_URL, given)

    def recorded(self, annotation: Annotation) -> Response:
        return Response(AnnotationSerializer(annotation).data, status=201)


class SlotSubmit(Submitting):
    @operation(takes=AnswerSerializer, gives=AnnotationSerializer, status=201)
    def post(self, request: Request, slot_id: int) -> Response:
        """Record your answer. One that no grader can read is refused until it is confirmed."""
        slot = shown_slot(request, slot_id)
        key = self.key(request)
        asked = self.asked(AnswerSerializer)
        return self.recorded(actions.submit_annotation(slot=slot, by=request.user, idempotency_key=key, **asked))


class SlotUnanswerable(Submitting):
    @operation(takes=ReasonSerializer, gives=AnnotationSerializer, status=201)
    def post(self, request: Request, slot_id: int) -> Response:
        """Record that the question has no single verifiable answer, and why; it counts like an answer."""
        slot = shown_slot(request, slot_id)
        key = self.key(request)
        asked = self.asked(ReasonSerializer)
        return self.recorded(actions.mark_unanswerable(slot=slot, by=request.user, idempotency_key=key, **asked))


class SlotRevise(Submitting):
    @operation(takes=RevisionSerializer, gives=AnnotationSerializer, status=201)
    def post(self, request: Request, slot_id: int) -> Response:
        """Record another answer as the next version of yours; what you said first stays on record."""
        slot = shown_slot(request, slot_id)
        key = self.key(request)
        asked = self.asked(RevisionSerializer)
        return self.recorded(revising.revise(slot=slot, by=request.user, idempotency_key=key, **asked))


class SlotFlag(Submitting):
    @operation(takes=FlagSerializer, gives=FlaggedSerializer, status=201)
    def post(self, request: Request, slot_id: int) -> Response:
        """Tell the managers that something about the question is odd; it stays yours."""
        slot = shown_slot(request, slot_id)
        key = self.key(request)
        flag = flag_question(slot=slot, by=request.user, idempotency_key=key, **self.asked(FlagSerializer))
        return Response(FlaggedSerializer(flag).data, status=201)


class SlotUndo(LabelEndpoint):
    @operation(gives=SlotSerializer)
    def post(self, request: Request, slot_id: int) -> Response:
        """Take back what you have just submitted; the question is yours again, with your text as the draft."""
        return Response(shown(revising.undo(slot=shown_slot(request, slot_id), by=request.user), request))


class SlotSkip(LabelEndpoint):
    @operation(gives=SlotSerializer)
    def post(self, request: Request, slot_id: int) -> Response:
        """'Not me': the question goes to somebody else and is not offered to you again."""
        slot = shown_slot(request, slot_id)
        actions.skip_slot(slot=slot, by=request.user)
        return Response(shown(shown_slot(request, slot_id), request))


class SlotRelease(LabelEndpoint):
    @operation(gives=SlotSerializer)
    def post(self, request: Request, slot_id: int) -> Response:
        """Give the question back for now; what you typed is kept."""
        actions.release_slot(slot=shown_slot(request, slot_id), by=request.user)
        return Response(shown(shown_slot(request, slot_id), request))


class SlotExtend(LabelEndpoint):
    @operation(gives=SlotSerializer)
    def post(self, request: Request, slot_id: int) -> Response:
        """Keep the question for another full period."""
        return Response(shown(actions.extend_lease(slot=shown_slot(request, slot_id), by=request.user), request))


def shown(slot: Slot, request: Request) -> dict[str, Any]:
    """A slot as the person may see it."""
    draft, annotation = own_draft(slot, request.user), own_annotation(slot, request.user)
    is_mine = slot.holder_id == request.user.pk and slot.state == Slot.State.LEASED
    guideline = slot.round.guideline
    return {
        "id": slot.pk,
        "round": slot.round_id,
        "pool": slot.pool.slug,
        "state": state_for(slot, request.user),
        "lease_until": slot.lease_until if is_mine else None,
        "question": asked_of(slot),
        "guideline": guideline.text if guideline else "",
        "shown_first": answers_shown_first(slot),
        "draft": {"answer": "", "unsure": False, "note": "", **(draft.content if draft else {})},
        "annotation": None if annotation is None else AnnotationSerializer(annotation).data,
    }


def asked_of(slot: Slot) -> dict[str, Any]:
    """What is asked: the question, or unmarked the check in its place."""
    asked = slot.asked
    return {
        "text": asked.text,
        "text_format": slot.pool.text_format,
        "choices": asked.choices,
        "answer_kind": asked.answer_kind,
    }
