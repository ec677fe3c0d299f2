"""How many labels of a round are likely wrong, from what its checks and its agreement say, and where to ask once more.

Plain probability under assumptions that the page states. Annotators err on these questions
as on the checks, independently of each other; who errs together gives the same wrong answer, which is the worst case.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from numpy.typing import NDArray

from labeling.models import Annotation, GoldAnswer, Question, Round
from labeling.queries.intervals import Share
from labeling.queries.quality import RoundChecks
from labeling.queries.rounds import QuestionProgress, QuestionState, RoundProgress

N_DRAWS = 4000
SHRINKAGE = 4.0  # what is known of all annotators weighs as much as so many checks of one
UNSURE_FACTOR = 2.0  # an answer marked as unsure is taken to be wrong so many times as often; for the order only
MOST_SUGGESTED = 10
Draws = NDArray[np.float64]


class Basis(NamedTuple):
    """What a label rests on: who gave the answers that agree, and who gave others."""

    agreeing: tuple[int, ...]
    differing: int = 0  # narrowest majority: how many said something else


def error_draws(checks: Mapping[int, Share], people: Sequence[int], rng: np.random.Generator) -> dict[int, Draws]:
    """Return draws of each person's error rate given the checks, ``N_DRAWS`` each; all the same person to person.

    The rate common to all is Beta(wrong + 1/2, right + 1/2) over all checks (Jeffreys); a person's own is Beta around
    it, worth SHRINKAGE checks, updated by their checks.
    """
    right, n = sum(share.n for share in checks.values()), sum(share.of for share in checks.values())
    common = np.clip(rng.beta(n - right + 0.5, right + 0.5, N_DRAWS), 1e-6, 1 - 1e-6)
    found = {}
    for person in people:
        share = checks.get(person, Share(0, 0))
        found[person] = rng.beta(share.of - share.n + SHRINKAGE * common, share.n + SHRINKAGE * (1 - common))
    return found


def wrong_if_agreeing(errors: Sequence[Draws], against: Sequence[Draws] = ()) -> Draws:
    """Return the probability that people who agree are wrong, given each one's error rate and those who differ.

    Worst case: whoever errs gives the same wrong answer, so that P = prod(e) / (prod(e) + prod(1 - e)).
    """
    wrong = np.prod([*errors, *(1 - each for each in against)], axis=0)
    right = np.prod([*(1 - each for each in errors), *against], axis=0)
    return np.divide(wrong, wrong + right, out=np.full_like(wrong, 0.5), where=wrong + right > 0)


def error_from_agreement(agreed: Draws, overlap: int) -> Draws:
    """Return the error rate e <= 1/2 at which k = ``overlap`` people agree so often: (1 - e)^k + e^k = ``agreed``."""
    low, high = np.zeros_like(agreed), np.full_like(agreed, 0.5)
    for _step in range(40):
        middle = (low + high) / 2
        too_much = (1 - middle) ** overlap + middle**overlap > agreed
        low, high = np.where(too_much, middle, low), np.where(too_much, high, middle)
    return (low + high) / 2


@dataclass(frozen=True)
class Estimate:
    """How many of ``n_labels`` labels are wrong.

    ``expected``: the number that is as likely too low as too high (the median over what the error rates may be; their
    mean would be drawn up by the few rounds that go badly). ``low`` to ``high`` holds it in 95 of 100 such rounds.
    """

    n_labels: int
    expected: float
    low: int
    high: int


def estimate(bases: Counter[Basis], errors: Mapping[int, Draws], rng: np.random.Generator) -> Estimate:
    """Return how many of the labels, each resting on some people's answers, are wrong."""
    expected, counts = np.zeros(N_DRAWS), np.zeros(N_DRAWS, dtype=np.int64)
    mean = np.mean(list(errors.values()), axis=0)
    for basis, n in sorted(bases.items()):
        wrong = wrong_if_agreeing([errors[person] for person in basis.agreeing], [mean] * basis.differing)
        expected += n * wrong
        counts += rng.binomial(n, wrong)
    low, high = np.quantile(counts, [0.025, 0.975], method="closest_observation")
    return Estimate(bases.total(), float(np.median(expected)), int(low), int(high))


def estimate_from_agreement(
    *, n_agreed: int, n_disagreed: int, overlap: int, n_labels: int, rng: np.random.Generator
) -> Estimate:
    """Return how many of ``n_labels`` labels on which all agree are wrong, from how often people agree alone."""
    agreed = rng.beta(n_agreed + 0.5, n_disagreed + 0.5, N_DRAWS)
    wrong = wrong_if_agreeing([error_from_agreement(agreed, overlap)] * overlap)
    low, high = np.quantile(rng.binomial(n_labels, wrong), [0.025, 0.975], method="closest_observation")
    return Estimate(n_labels, float(n_labels * np.median(wrong)), int(low), int(high))


@dataclass(frozen=True)
class Candidate:
    """A question on which one more answer is worth something, and why."""

    question: Question
    rank: int
    why: str
    risk: float
    n_asked: int


@dataclass(frozen=True)
class LabelRisk:
    """What is known of the labels of a round.

    ``share_of_one``: what one wrong label is of all. ``by_checks`` is None where no check is answered, ``by_agreement``
    where nobody answered what another answered. ``n_adjudicated`` labels are in neither: nobody checks adjudicators.
    """

    n_questions: int
    n_labels: int
    n_adjudicated: int
    agreement: Share
    by_checks: Estimate | None
    by_agreement: Estimate | None
    candidates: tuple[Candidate, ...]

    @property
    def share_of_one(self) -> float:
        return 1 / self.n_questions if self.n_questions else 0.0


def label_risk(*, progress: RoundProgress, checks: RoundChecks) -> LabelRisk:
    """Return how many labels are likely wrong and where one more answer is worth most. A constant number of queries."""
    rng = np.random.default_rng([progress.round.pk, progress.n_slots_done])
    said: dict[int, list[Annotation]] = {}
    counting = Annotation.objects.counting().filter(slot__round=progress.round)
    for annotation in counting.select_related("slot").only("annotator", "confident", "slot__question").order_by("id"):
        said.setdefault(annotation.slot.question_id, []).append(annotation)
    people = sorted({annotation.annotator_id for each in said.values() for annotation in each})
    known = {each.user.pk: each.accuracy for each in checks.annotators}
    errors = error_draws(known, people, rng)
    bases = Counter(
        _basis(question, said.get(question.question.pk, []))
        for question in progress.questions
        if question.gold is not None and question.gold.source != GoldAnswer.Source.ADJUDICATION
    )
    agreement = agreement_of(progress)
    all_agree = sum(n for basis, n in bases.items() if len(basis.agreeing) > 1 and not basis.differing)
    return LabelRisk(
        n_questions=progress.n_questions,
        n_labels=progress.n_gold,
        n_adjudicated=progress.n_gold - bases.total(),
        agreement=agreement,
        by_checks=estimate(bases, errors, rng) if checks.overall.of and bases else None,
        by_agreement=estimate_from_agreement(
            n_agreed=agreement.n,
            n_disagreed=agreement.of - agreement.n,
            overlap=progress.round.overlap,
            n_labels=all_agree,
            rng=rng,
        )
        if agreement.of
        else None,
        candidates=_candidates(progress, said, errors if checks.overall.of else {}, known),
    )


def agreement_of(progress: RoundProgress) -> Share:
    """Return on how many of the questions that several people answered all answers mean the same."""
    sources = [question.gold.source for question in progress.questions if question.gold is not None]
    agreed = sum(source in {GoldAnswer.Source.AGREEMENT, GoldAnswer.Source.MERGED} for source in sources)
    disagreed = sum(source in {GoldAnswer.Source.ADJUDICATION, GoldAnswer.Source.MAJORITY} for source in sources)
    disagreed += sum(question.state in DISAGREEING for question in progress.questions)
    return Share(agreed, agreed + disagreed)


DISAGREEING = {QuestionState.ADJUDICATING, QuestionState.WAITING_FOR_UNIT}
UNKNOWN_ERROR = 0.2  # for the order alone, where there is no check


def _basis(question: QuestionProgress, annotations: Sequence[Annotation]) -> Basis:
    people = tuple(sorted(annotation.annotator_id for annotation in annotations))
    if question.gold is not None and question.gold.source == GoldAnswer.Source.MAJORITY:
        most = len(people) // 2 + 1
        return Basis(people[:most], len(people) - most)
    return Basis(people)


def _candidates(
    progress: RoundProgress,
    said: Mapping[int, Sequence[Annotation]],
    errors: Mapping[int, Draws],
    known: Mapping[int, Share],
) -> tuple[Candidate, ...]:
    """Disagreements first, then the labels that are most likely wrong."""
    if progress.round.status == Round.Status.CLOSED:
        return ()
    mean_errors = {person: float(draws.mean()) for person, draws in errors.items()}
    found = []
    for question in progress.questions:
        annotations = said.get(question.question.pk, [])
        if question.state in DISAGREEING:
            risk, why = 1.0, _("annotators disagree")
        elif question.state == QuestionState.GOLD and annotations and question.gold is not None:
            if question.gold.source == GoldAnswer.Source.ADJUDICATION:
                continue
            risk, why = _risk_in_words(annotations, mean_errors, known)
        else:
            continue
        found.append(Candidate(question.question, question.rank, why, risk, question.overlap))
    return tuple(sorted(found, key=lambda each: (-each.risk, each.rank))[:MOST_SUGGESTED])


def _risk_in_words(
    annotations: Sequence[Annotation], errors: Mapping[int, float], known: Mapping[int, Share]
) -> tuple[float, str]:
    def error(annotation: Annotation) -> float:
        rate = errors.get(annotation.annotator_id, UNKNOWN_ERROR)
        return min(0.5, rate * (1.0 if annotation.confident else UNSURE_FACTOR))

    risk = float(wrong_if_agreeing([np.array([error(annotation)]) for annotation in annotations])[0])
    unsure = sum(not annotation.confident for annotation in annotations)
    if len(annotations) == 1:
        checked = known.get(annotations[0].annotator_id)
        if checked and unsure:
            why = _("one answer, marked as unsure, right on %(n)s of %(of)s checks")
        elif checked:
            why = _("one answer, right on %(n)s of %(of)s checks")
        else:
            why = _("one answer, marked as unsure") if unsure else _("one answer")
        return risk, why % {"n": checked.n, "of": checked.of} if checked else why
    n = len(annotations)
    if unsure:
        words = ngettext(
            "%(n)s answer agrees, %(unsure)s marked as unsure",
            "%(n)s answers agree, %(unsure)s marked as unsure",
            n,
        )
    else:
        words = ngettext("%(n)s answer agrees", "%(n)s answers agree", n)
    return risk, words % {"n": n, "unsure": unsure}
