"""How often annotators are right: in practice, and on the sealed checks of a round."""

from dataclasses import dataclass

from django.db.models import Count, F, Q, QuerySet
from django.utils.translation import gettext as _

from labeling.engine.answers import ReadAs, policy_of, read_as
from labeling.models import Annotation, CheckGrade, Pool, PracticeAnswer, Round, Slot, User
from labeling.queries.intervals import Share


def in_words(share: Share) -> str:
    """Say how many checks were right, with the interval, and that little is known where that is so."""
    if not share.of:
        return _("no check answered yet")
    if share.is_small:
        words = _("%(n)s of %(of)s: says little; between %(low)s%% and %(high)s%%")
    else:
        words = _("%(n)s of %(of)s, between %(low)s%% and %(high)s%%")
    return words % {"n": share.n, "of": share.of, "low": f"{100 * share.low:.0f}", "high": f"{100 * share.high:.0f}"}


@dataclass(frozen=True)
class AnnotatorAccuracy:
    """One annotator's checks."""

    user: User
    accuracy: Share

    @property
    def in_words(self) -> str:
        return in_words(self.accuracy)


@dataclass(frozen=True)
class RoundChecks:
    """A round's checks: units of their own (``n_slots``), how many are answered, and how often rightly by whom."""

    n_slots: int
    n_done: int
    n_waiting: int  # answered, not compared yet
    overall: Share
    annotators: tuple[AnnotatorAccuracy, ...]

    @property
    def overall_in_words(self) -> str:
        return in_words(self.overall)


def round_checks(*, round: Round) -> RoundChecks:
    """Return how the round's checks stand. A constant number of queries."""
    slots = Slot.objects.filter(round=round, purpose=Slot.Purpose.CHECK).exclude(state=Slot.State.VOID)
    counted = slots.aggregate(n=Count("pk"), done=Count("pk", filter=Q(state=Slot.State.DONE)))
    people = _accuracies(_graded().filter(annotation__slot__round=round))
    n_right, n = sum(each.accuracy.n for each in people), sum(each.accuracy.of for each in people)
    return RoundChecks(
        n_slots=counted["n"],
        n_done=counted["done"],
        n_waiting=counted["done"] - n,
        overall=Share(n_right, n),
        annotators=people,
    )


def accuracies_in(*, pool: Pool) -> dict[int, Share]:
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
    counts = {row["annotation__annotator"]: Share(row["n_right"], row["n"]) for row in rows}
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
