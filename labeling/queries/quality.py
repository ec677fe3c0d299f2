"""How often annotators are right: in practice, and on the sealed checks of a round."""

import math
from dataclasses import dataclass
from statistics import NormalDist

from django.db.models import Count, F, Q, QuerySet

from labeling.engine.answers import ReadAs, policy_of, read_as
from labeling.models import Annotation, CheckGrade, Pool, PracticeAnswer, Round, Slot, User

CONFIDENCE = 0.95
FEW = 20  # checks; with fewer the interval is wider than 40 percentage points, whatever was found


def wilson_interval(n_right: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the Wilson score interval of a share (E. B. Wilson 1927), (0, 1) where nothing was counted."""
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share, spread = n_right / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    return (0.0 if n_right == 0 else centre - half), (1.0 if n_right == n else centre + half)


@dataclass(frozen=True)
class Accuracy:
    """How many of ``n`` checks somebody answered rightly."""

    n_right: int
    n: int

    @property
    def share(self) -> float:
        return self.n_right / self.n if self.n else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return wilson_interval(self.n_right, self.n)

    @property
    def is_small(self) -> bool:
        return self.n < FEW

    @property
    def in_words(self) -> str:
        """Say it with its interval, and that little is known where that is so."""
        if not self.n:
            return "no check answered yet"
        low, high = (round(100 * bound) for bound in self.interval)
        says = ": says little; " if self.is_small else ", "
        return f"{self.n_right} of {self.n}{says}between {low}% and {high}%"


@dataclass(frozen=True)
class AnnotatorAccuracy:
    """One annotator's checks."""

    user: User
    accuracy: Accuracy


@dataclass(frozen=True)
class RoundChecks:
    """A round's checks: units of their own (``n_slots``), how many are answered, and how often rightly by whom."""

    n_slots: int
    n_done: int
    n_waiting: int  # answered, not compared yet
    overall: Accuracy
    annotators: tuple[AnnotatorAccuracy, ...]


def round_checks(*, round: Round) -> RoundChecks:
    """Return how the round's checks stand. A constant number of queries."""
    slots = Slot.objects.filter(round=round, purpose=Slot.Purpose.CHECK).exclude(state=Slot.State.VOID)
    counted = slots.aggregate(n=Count("pk"), done=Count("pk", filter=Q(state=Slot.State.DONE)))
    people = _accuracies(_graded().filter(annotation__slot__round=round))
    n_right, n = (sum(getattr(each.accuracy, name) for each in people) for name in ("n_right", "n"))
    return RoundChecks(
        n_slots=counted["n"],
        n_done=counted["done"],
        n_waiting=counted["done"] - n,
        overall=Accuracy(n_right, n),
        annotators=people,
    )


def accuracies_in(*, pool: Pool) -> dict[int, Accuracy]:
    """Return each person's accuracy on all checks of the pool's rounds, by their id; who had none is left out."""
    people = _accuracies(_graded().filter(annotation__slot__round__run__pool=pool))
    return {each.user.pk: each.accuracy for each in people}


def _graded() -> QuerySet[CheckGrade]:
    """Grades of what people say now, against the answers known now."""
    standing = Annotation.objects.standing().filter(surplus=False, slot__state=Slot.State.DONE)
    return CheckGrade.objects.filter(
        against=F("annotation__slot__calibration_item__answer"), annotation__in=standing.values("pk")
    )


def _accuracies(grades: QuerySet[CheckGrade]) -> tuple[AnnotatorAccuracy, ...]:
    rows = (
        grades.order_by()
        .values("annotation__annotator")
        .annotate(n=Count("pk"), n_right=Count("pk", filter=Q(is_right=True)))
    )
    counts = {row["annotation__annotator"]: Accuracy(row["n_right"], row["n"]) for row in rows}
    people = User.objects.filter(pk__in=counts).order_by("username")
    return tuple(AnnotatorAccuracy(user=user, accuracy=counts[user.pk]) for user in people)


@dataclass(frozen=True)
class PracticeSoFar:
    """How far somebody is in the practice of a round."""

    n_done: int
    n_right: int


def practice_so_far(*, round: Round, user: User) -> PracticeSoFar:
    mine = PracticeAnswer.objects.filter(round=round, annotator=user)
    found = mine.aggregate(done=Count("pk"), right=Count("pk", filter=Q(is_right=True)))
    return PracticeSoFar(n_done=found["done"], n_right=found["right"])


def right_answer_read(given: PracticeAnswer) -> ReadAs:
    """Return how a trainer's grader reads the right answer of a practice question."""
    return read_as(given.against, kind=given.item.answer_kind, policy=policy_of(given.round.pool))
