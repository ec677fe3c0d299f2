"""Which answers to a question mean the same: as the grader compares them, corrected by what people said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import CharField

from labeling.engine.answers import AnswerPolicy, answer_clusters
from labeling.models import MeaningVerdict, Question
from labeling.prepared import Parameter, Prepared

_VERDICTS = Prepared(
    lambda: (
        MeaningVerdict.objects.filter(question=Parameter("question"), answer_kind=Parameter("kind", CharField()))
        .order_by("id")
        .values_list("left", "right", "same")
    )
)


class Pair(NamedTuple):
    """Two different forms of answers, in order."""

    left: str
    right: str


def answer_form(answer: str) -> str:
    """Return what people judge an answer by: how it is written, spaces aside. So they may part even 0.5 from 50%."""
    return " ".join(answer.split())


def pair_of(form: str, other: str) -> Pair:
    return Pair(*sorted((form, other)))


@dataclass(frozen=True)
class Clusters:
    """Answers in groups of one meaning.

    ``numbers``: the group of each answer, numbered by first appearance. ``forms``: how each answer is written.
    ``merged``: groups in which a person holds together what the grader keeps apart; ``split``: groups that a person
    took out of one that the grader holds together.
    """

    numbers: tuple[int, ...]
    forms: tuple[str, ...]
    merged: frozenset[int]
    split: frozenset[int]

    @property
    def n(self) -> int:
        return len(set(self.numbers))

    def members(self, number: int) -> list[int]:
        """Return the places of a group's answers."""
        return [place for place, each in enumerate(self.numbers) if each == number]

    def forms_of(self, number: int) -> set[str]:
        return {self.forms[place] for place in self.members(number)}


def verdicts_on(question: Question) -> dict[Pair, bool]:
    """Return what people said of the question's answers: same or not; of several words on a pair the latest."""
    said = _VERDICTS.rows(question=question.pk, kind=question.answer_kind)
    return {Pair(left, right): same for left, right, same in said}


def clusters_of(answers: Sequence[str], *, kind: str, policy: AnswerPolicy, verdicts: Mapping[Pair, bool]) -> Clusters:
    """Group answers by the grader, then by people: who said that two mean the same, or do not, is believed.

    What people hold together comes first. The grader's classes then join what they hold together, save where that would
    bring together two answers of which a person said that they differ.
    """
    forms = [answer_form(answer) for answer in answers]
    classes = answer_clusters(answers, kind=kind, policy=policy)
    groups: list[set[int]] = [{place} for place in range(len(answers))]

    def join(place: int, other: int) -> None:
        ours, theirs = groups[place], groups[other]
        if ours is not theirs:
            ours |= theirs
            for each in theirs:
                groups[each] = ours

    def may_join(place: int, other: int) -> bool:
        return not any(verdicts.get(pair_of(forms[a], forms[b])) is False for a in groups[place] for b in groups[other])

    places = range(len(answers))
    pairs = [(other, place) for place in places for other in range(place)]
    for other, place in pairs:
        if verdicts.get(pair_of(forms[other], forms[place])):
            join(other, place)
    for other, place in pairs:
        if classes[other] == classes[place] and may_join(other, place):
            join(other, place)
    first = {id(group): min(group) for group in groups}
    order = sorted(set(first.values()))
    numbers = tuple(order.index(first[id(groups[place])]) for place in places)
    held = {number: {classes[place] for place in places if numbers[place] == number} for number in set(numbers)}
    apart = {each: {numbers[place] for place in places if classes[place] == each} for each in set(classes)}
    return Clusters(
        numbers=numbers,
        forms=tuple(forms),
        merged=frozenset(number for number, of_grader in held.items() if len(of_grader) > 1),
        split=frozenset(number for parts in apart.values() if len(parts) > 1 for number in parts),
    )
