"""Answers to one question in groups of one meaning, which managers and adjudicators merge and split."""

from __future__ import annotations

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling.actions import meaning as actions
from labeling.actions.answers import MOST_ANSWER_CHARACTERS
from labeling.api.access import shown_dispute
from labeling.api.adjudications import AnswerGroupSerializer
from labeling.api.rounds import RoundEndpoint
from labeling.api.schema import operation
from labeling.api.work import LabelEndpoint
from labeling.errors import Conflict
from labeling.models import GoldAnswer, Question, Round, User
from labeling.queries.adjudication import answers_to
from labeling.queries.meaning import answer_form

MOST_KEY_CHARACTERS = 100


class UidSerializer(Serializer):
    uid = serializers.CharField(max_length=200, help_text="Of the question.")


class MergeSerializer(Serializer):
    groups = serializers.ListField(
        child=serializers.CharField(max_length=MOST_KEY_CHARACTERS),
        min_length=2,
        max_length=100,
        help_text="Keys of the groups whose answers mean the same.",
    )


class SplitSerializer(Serializer):
    answer = serializers.CharField(
        max_length=MOST_ANSWER_CHARACTERS, help_text="As it is written in its group; it means something else."
    )


class RoundMergeSerializer(UidSerializer, MergeSerializer):
    pass


class RoundSplitSerializer(UidSerializer, SplitSerializer):
    pass


class GroupsSerializer(Serializer):
    """What people answered. ``gold_answer`` is null as long as nothing is settled."""

    uid = serializers.CharField()
    groups = AnswerGroupSerializer(many=True)
    gold_answer = serializers.CharField(allow_null=True)


class RoundAnswers(RoundEndpoint):
    @operation(gives=GroupsSerializer, query=UidSerializer)
    def get(self, request: Request, round_id: int) -> Response:
        """Show what people answered to one question, without names, in groups of one meaning."""
        round = self.round(request, round_id)
        return _groups(round, _question(round, self.query(UidSerializer)["uid"]))


class RoundMerge(RoundEndpoint):
    @operation(takes=RoundMergeSerializer, gives=GroupsSerializer)
    def post(self, request: Request, round_id: int) -> Response:
        """Say that groups of answers mean the same; where one is left, it settles the question."""
        round = self.round(request, round_id)
        asked = self.asked(RoundMergeSerializer)
        return _merged(round, _question(round, asked["uid"]), asked["groups"], request.user)


class RoundSplit(RoundEndpoint):
    @operation(takes=RoundSplitSerializer, gives=GroupsSerializer)
    def post(self, request: Request, round_id: int) -> Response:
        """Say that an answer means something else than the others of its group."""
        round = self.round(request, round_id)
        asked = self.asked(RoundSplitSerializer)
        return _split(round, _question(round, asked["uid"]), asked["answer"], request.user)


class AdjudicationMerge(LabelEndpoint):
    tag = "adjudication"

    @operation(takes=MergeSerializer, gives=GroupsSerializer)
    def post(self, request: Request, slot_id: int) -> Response:
        """Say that groups of answers mean the same; where one is left, no adjudication is spent."""
        slot = shown_dispute(request, slot_id)
        return _merged(slot.round, slot.asked, self.asked(MergeSerializer)["groups"], request.user)


class AdjudicationSplit(LabelEndpoint):
    tag = "adjudication"

    @operation(takes=SplitSerializer, gives=GroupsSerializer)
    def post(self, request: Request, slot_id: int) -> Response:
        """Say that an answer means something else than the others of its group."""
        slot = shown_dispute(request, slot_id)
        return _split(slot.round, slot.asked, self.asked(SplitSerializer)["answer"], request.user)


def _question(round: Round, uid: str) -> Question:
    return get_object_or_404(Question.objects.filter(slots__round=round).distinct(), uid=uid)


def _merged(round: Round, question: Question, keys: list[str], by: User) -> Response:
    by_key = {group.key: group for group in answers_to(round=round, question=question).groups}
    if not by_key.keys() >= set(keys) or any(by_key[key].is_unanswerable for key in keys):
        raise _changed()
    actions.merge_answers(round=round, question=question, groups=[by_key[key].forms for key in set(keys)], by=by)
    return _groups(round, question)


def _split(round: Round, question: Question, answer: str, by: User) -> Response:
    form = answer_form(answer)
    for group in answers_to(round=round, question=question).groups:
        if form in group.forms:
            actions.split_answer(round=round, question=question, form=form, others=group.forms, by=by)
            return _groups(round, question)
    raise _changed()


def _changed() -> Conflict:
    return Conflict("No such answers are there now. Look at the groups again.", code="answers_changed")


def _groups(round: Round, question: Question) -> Response:
    gold = GoldAnswer.objects.filter(round=round, question=question).first()
    found = {
        "uid": question.uid,
        "groups": answers_to(round=round, question=question).groups,
        "gold_answer": gold.answer if gold else None,
    }
    return Response(GroupsSerializer(found).data)
