"""What people were shown of a model's answers after their own, and how often they switched."""

from collections import Counter
from dataclasses import dataclass

from labeling.engine.model_answers import with_stored_answers
from labeling.models import (
    CheckGrade,
    Question,
    Reveal,
    RevealDecision,
    Round,
    SelectionRun,
    Slot,
    User,
)
from labeling.queries.intervals import Share

Outcome = RevealDecision.Outcome


def reveal_of(*, slot: Slot, user: User) -> Reveal | None:
    """Return what the person was shown after answering the slot; None before, and where nothing is shown."""
    mine = Reveal.objects.filter(annotation__slot=slot, annotation__annotator=user)
    return mine.select_related(
        "annotation__slot__round__run__pool", "annotation__slot__question", "annotation__slot__calibration_item"
    ).first()


def decision_of(reveal: Reveal) -> RevealDecision | None:
    """Return what the person made of a reveal; None as long as they have not said."""
    return RevealDecision.objects.filter(reveal=reveal).select_related("annotation").first()


def n_with_model_answers(run: SelectionRun) -> int:
    """How many of the run's picks have answers of a model."""
    picked = Question.objects.filter(picks__run=run)
    return len(with_stored_answers(run, picked))


@dataclass(frozen=True)
class Switches:
    """What people did once they had seen the model's answers. A change that was undone counts as not decided."""

    n_shown: int
    kept: Share
    same: Share
    to_model: Share
    to_other: Share

    @property
    def n_decided(self) -> int:
        return self.kept.of


@dataclass(frozen=True)
class RevealSummary:
    """How blind a round is, and what its reveals did.

    ``n_blind``: questions to which no model has answered. ``n_control``: those of the others that stay blind.
    ``on_checks``: on sealed calibration questions, where it is known who was right: how often a right answer was given
    up for a wrong one of the model, for any wrong one, and a wrong answer for a right one.
    """

    round: Round
    n_questions: int
    n_blind: int
    n_control: int
    switches: Switches
    on_checks: Switches
    to_wrong_of_model: Share
    right_to_wrong: Share
    wrong_to_right: Share


def reveal_summary(*, round: Round) -> RevealSummary:
    """Return what the reveals of a round did. A constant number of queries."""
    questions = Question.objects.filter(slots__round=round).distinct()
    rows = list(questions.only("uid", "fingerprint"))
    answered = with_stored_answers(round.run, questions)
    known = [row for row in rows if row.fingerprint in answered]
    reveals = list(
        Reveal.objects.filter(annotation__slot__round=round).select_related(
            "annotation__slot", "decision__annotation__withdrawal"
        )
    )
    checks = [reveal for reveal in reveals if reveal.annotation.slot.is_check]
    before_and_after = _graded(round, checks)
    moves = Counter((before, after) for before, after, _ in before_and_after)
    to_models_wrong = sum(not after and outcome == Outcome.MODEL for _, after, outcome in before_and_after)
    n_right, n = sum(before for before, _, _ in before_and_after), len(before_and_after)
    return RevealSummary(
        round=round,
        n_questions=len(rows),
        n_blind=len(rows) - len(known),
        n_control=sum(round.is_control(row.uid) for row in known),
        switches=_switches([reveal for reveal in reveals if not reveal.annotation.slot.is_check]),
        on_checks=_switches(checks),
        to_wrong_of_model=Share(to_models_wrong, n),
        right_to_wrong=Share(moves[True, False], n_right),
        wrong_to_right=Share(moves[False, True], n - n_right),
    )


def _decision(reveal: Reveal) -> RevealDecision | None:
    """What was decided, and not undone since."""
    decision: RevealDecision | None = getattr(reveal, "decision", None)
    if decision is None or decision.annotation is None or not hasattr(decision.annotation, "withdrawal"):
        return decision
    return None


def _switches(reveals: list[Reveal]) -> Switches:
    counts = Counter(decision.outcome for reveal in reveals if (decision := _decision(reveal)))
    n = counts.total()
    kept, same, model, other = (Share(counts[outcome.value], n) for outcome in Outcome)
    return Switches(n_shown=len(reveals), kept=kept, same=same, to_model=model, to_other=other)


def _graded(round: Round, checks: list[Reveal]) -> list[tuple[bool, bool, str]]:
    """Return for every decided check whether the answer was right before the reveal and after it, and the outcome."""
    grades = dict(
        CheckGrade.objects.filter(annotation__slot__round=round).order_by("id").values_list("annotation", "is_right")
    )
    found = []
    for reveal in checks:
        decision = _decision(reveal)
        if decision is None or reveal.annotation_id not in grades:
            continue
        before = after = grades[reveal.annotation_id]
        if decision.annotation_id is not None:
            after = grades.get(decision.annotation_id, before)
        found.append((before, after, decision.outcome))
    return found
