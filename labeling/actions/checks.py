"""Sealed calibration checks: questions with known answers among the others of a round, unmarked.

They have units of their own, are never settled, exported or counted in agreement, and tell how often each annotator is
right.
"""

import hashlib
import math
import random
from collections.abc import Iterable
from datetime import datetime
from itertools import cycle, islice

from django.db.models import F
from django.utils.translation import gettext as _

from labeling.audit import record_event
from labeling.engine.answers import AnswerPolicy, answer_clusters, policy_of
from labeling.errors import Conflict
from labeling.models import (
    Annotation,
    Budget,
    BudgetUnit,
    CalibrationItem,
    CalibrationSet,
    CheckGrade,
    Round,
    Slot,
    User,
)
from labeling.queries.check_schedule import place_of_check, seed_of, shown_so_far

PRACTICE_SHARE = 4  # one item in so many is for practice, the others for checks


def is_for_practice(fingerprint: str) -> bool:
    """Whether a calibration item belongs to the part that practice shows with its answer; no check is taken there."""
    return hashlib.sha256(f"practice\n{fingerprint}".encode()).digest()[0] % PRACTICE_SHARE == 0


def items_in_order(items: Iterable[CalibrationItem], *, seed: str) -> list[CalibrationItem]:
    """Return the items in an order that the seed decides, one of each text."""
    once = {item.fingerprint: item for item in items}
    return sorted(once.values(), key=lambda item: hashlib.sha256(f"{seed}\n{item.fingerprint}".encode()).digest())


def n_checks_for(*, n_slots: int, rate: float) -> int:
    """Return how many checks go with so many answers."""
    return math.ceil(round(n_slots * rate, 9))


def add_checks(*, round: Round, slots: list[Slot], by: User | None) -> list[Slot]:
    """Return a new round's slots, not stored yet, with its checks among them, in an order whose ids tell nothing.

    Raises Conflict checks_missing where the calibration set has nothing to check with.
    """
    n_checks = n_checks_for(n_slots=len(slots), rate=round.check_rate)
    if not n_checks or round.calibration_set is None:
        return slots
    asked = {slot.question.fingerprint for slot in slots if slot.question is not None}
    items = [item for item in usable_items(round.calibration_set, asked) if not is_for_practice(item.fingerprint)]
    if not items:
        raise Conflict(
            _(
                "The calibration set %(calibration_set)s has no question left for checks. Choose another set, or "
                "a rate of 0."
            )
            % {"calibration_set": round.calibration_set},
            code="checks_missing",
        )
    budget = Budget.objects.create(
        pool=round.pool, name=f"Checks of round {round.pk}", purpose=Budget.Purpose.CHECKS, created_by=by
    )
    units = BudgetUnit.objects.bulk_create(
        (BudgetUnit(budget=budget, number=number) for number in range(1, n_checks + 1)), batch_size=1000
    )
    record_event("budget.granted", target=budget, by=by, pool=round.pool, units=n_checks)
    chosen = islice(cycle(items_in_order(items, seed=seed_of(round))), n_checks)
    checks = [
        Slot(round=round, unit=unit, calibration_item=item, purpose=Slot.Purpose.CHECK, priority=number)
        for number, (unit, item) in enumerate(zip(units, chosen, strict=True), start=1)
    ]
    together = [*slots, *checks]
    random.Random(seed_of(round)).shuffle(together)  # noqa: S311 (not a secret: nobody is shown the order)
    return together


def check_practice(*, round: Round, asked: set[str]) -> None:
    """Refuse a round that asks for more practice than the practice part of its calibration set has."""
    if not round.n_practice or round.calibration_set is None:
        return
    n = sum(is_for_practice(item.fingerprint) for item in usable_items(round.calibration_set, asked))
    if n < round.n_practice:
        raise Conflict(
            _(
                "The part of the calibration set %(calibration_set)s that is kept for practice has %(n)s "
                "questions, not %(n_practice)s. Ask for %(n)s, or add questions to the set."
            )
            % {"calibration_set": round.calibration_set, "n": n, "n_practice": round.n_practice},
            code="practice_missing",
            found=n,
        )


def usable_items(calibration_set: CalibrationSet, asked: set[str]) -> list[CalibrationItem]:
    """Return the items of a set that are none of the questions asked, given by their fingerprints."""
    return [item for item in calibration_set.items.defer("metadata") if item.fingerprint not in asked]


def parts_of(calibration_set: CalibrationSet | None) -> tuple[int, int]:
    """Return how many questions of a set are for checks, and how many for practice."""
    if calibration_set is None:
        return 0, 0
    found = set(calibration_set.items.values_list("fingerprint", flat=True))
    n_practice = sum(is_for_practice(fingerprint) for fingerprint in found)
    return len(found) - n_practice, n_practice


def due_check(round: Round, user: User, now: datetime) -> Slot | None:
    """Return a free check for the person if the next thing they are shown should be one, else None.

    In the long run one comes for every 1 / rate questions, each at a place of its stretch that nobody can foresee.
    """
    if not round.check_rate:
        return None
    shown = shown_so_far(round, user)
    if shown["questions"] < place_of_check(round, user, shown["checks"]):
        return None
    checks = Slot.objects.filter(round=round, purpose=Slot.Purpose.CHECK).open_at(now).checks_unseen_by(user)
    return checks.select_related("round__run__pool").order_by("priority", "id").first()


def grade_checks(round: Round) -> None:
    """Compare every answer to the round's checks that has not been, with the known answer; safe to repeat."""
    known = F("annotation__slot__calibration_item__answer")
    graded = CheckGrade.objects.filter(annotation__slot__round=round, against=known).values("annotation")
    waiting = (
        Annotation.objects.standing()
        .filter(slot__round=round, slot__purpose=Slot.Purpose.CHECK, surplus=False)
        .exclude(pk__in=graded)
        .select_related("slot__calibration_item")
    )
    policy = policy_of(round.pool)
    for annotation in waiting:
        item = annotation.slot.calibration_item
        is_right = bool(annotation.answer) and means_the_same(item, annotation.answer, policy)
        CheckGrade.objects.bulk_create(
            [CheckGrade(annotation=annotation, against=item.answer, is_right=is_right)], ignore_conflicts=True
        )


def means_the_same(item: CalibrationItem, answer: str, policy: AnswerPolicy) -> bool:
    """Whether an answer means what the item's known answer means."""
    known, given = answer_clusters([item.answer, answer], kind=item.answer_kind, policy=policy)
    return known == given
