"""What an adjudicator or a manager sees of a question's answers: in groups of one meaning, without names."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from labeling.engine.answers import policy_of
from labeling.models import Annotation, Question, Round, Slot
from labeling.queries.meaning import answer_form, clusters_of, verdicts_on


@dataclass(frozen=True)
class Version:
    """What a person said at one time: an answer, or a reason why there is none."""

    answer: str
    reason: str
    origin: str
    is_after_reveal: bool


@dataclass(frozen=True)
class Said:
    """What one person says of a question now. ``earlier``: what they said before, first first."""

    now: Version
    earlier: tuple[Version, ...]
    is_confident: bool
    note: str
    why: str
    is_surplus: bool


@dataclass(frozen=True)
class AnswerGroup:
    """Answers that mean the same, or all the statements that there is none (``is_unanswerable``).

    ``key`` names the group by what is written in it. ``is_merged``: a person holds it together; ``is_split``: a person
    took it out of a group that the grader holds together.
    """

    letter: str
    key: str
    said: tuple[Said, ...]
    is_unanswerable: bool
    is_merged: bool = False
    is_split: bool = False

    @property
    def answers(self) -> tuple[str, ...]:
        """What is written, each once."""
        return tuple(dict.fromkeys(each.now.answer for each in self.said if each.now.answer))

    @property
    def forms(self) -> set[str]:
        return {answer_form(answer) for answer in self.answers}

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.now.reason for each in self.said if each.now.reason))

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(each.note for each in self.said if each.note)

    @property
    def n_answers(self) -> int:
        return len(self.said)

    @property
    def n_surplus(self) -> int:
        return sum(each.is_surplus for each in self.said)


@dataclass(frozen=True)
class Disagreement:
    """A question and what people answered."""

    question: Question
    groups: tuple[AnswerGroup, ...]

    @property
    def can_merge(self) -> bool:
        """Whether there are two groups of answers."""
        return sum(not group.is_unanswerable for group in self.groups) > 1

    @property
    def can_split(self) -> bool:
        """Whether some group holds answers that are written differently."""
        return any(len(group.forms) > 1 for group in self.groups)


def disagreement(*, slot: Slot) -> Disagreement:
    """Return the answers to the slot's question, as ``answers_to`` does."""
    return answers_to(round=slot.round, question=slot.asked)


def answers_to(*, round: Round, question: Question) -> Disagreement:
    """Return the answers to a question in a round, surplus ones included, grouped by meaning as A, B, C.

    The order says nothing about who answered first. Comparing may take seconds where a verdict is not stored yet.
    """
    versions = list(
        Annotation.objects.filter(slot__round=round, slot__question=question, withdrawal=None).order_by("version", "id")
    )
    by_person: dict[tuple[int, int], list[Annotation]] = {}
    for annotation in versions:
        by_person.setdefault((annotation.slot_id, annotation.annotator_id), []).append(annotation)
    people = sorted(by_person.values(), key=lambda said: (said[-1].surplus, said[-1].pk))
    answered = [said for said in people if said[-1].answer]
    clusters = clusters_of(
        [said[-1].answer for said in answered],
        kind=question.answer_kind,
        policy=policy_of(round.pool),
        verdicts=verdicts_on(question),
    )
    groups = [
        (
            [answered[place] for place in clusters.members(number)],
            {"is_merged": number in clusters.merged, "is_split": number in clusters.split},
        )
        for number in range(clusters.n)
    ]
    if unanswerable := [said for said in people if not said[-1].answer]:
        groups.append((unanswerable, {}))
    groups.sort(key=lambda group: _order(question, group[0][0][-1]))
    return Disagreement(
        question=question,
        groups=tuple(_group(chr(ord("A") + i % 26), said, marks) for i, (said, marks) in enumerate(groups)),
    )


def key_of(forms: Iterable[str]) -> str:
    """Return a short name of a group or an answer, from how it is written."""
    return hashlib.sha256("\n".join(sorted(forms)).encode()).hexdigest()[:16]


def _order(question: Question, first: Annotation) -> bytes:
    return hashlib.sha256(f"{question.uid}\n{first.answer}".encode()).digest()


def _group(letter: str, people: list[list[Annotation]], marks: dict[str, bool]) -> AnswerGroup:
    said = tuple(
        Said(
            now=_version(versions[-1]),
            earlier=tuple(_version(version) for version in versions[:-1]),
            is_confident=versions[-1].confident,
            note=versions[-1].note,
            why=versions[-1].why,
            is_surplus=versions[-1].surplus,
        )
        for versions in people
    )
    forms = {answer_form(each.now.answer) for each in said}
    return AnswerGroup(letter, key_of(forms), said, is_unanswerable=not said[0].now.answer, **marks)


def _version(annotation: Annotation) -> Version:
    reason = annotation.get_unanswerable_reason_display() if annotation.unanswerable_reason else ""
    return Version(
        answer=annotation.answer,
        reason=reason,
        origin=annotation.get_origin_display(),
        is_after_reveal=annotation.origin == Annotation.Origin.AFTER_REVEAL,
    )
