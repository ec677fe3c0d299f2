"""When a person's calibration checks are due among their questions: decided by the run's seed, foreseen by nobody."""

import hashlib
import math
from datetime import datetime

from django.db.models import Count

from labeling.models import Draft, Round, Slot, User


def seed_of(round: Round) -> str:
    """Return what the round's checks and practice are drawn by."""
    return f"{round.run.config.get('seed', 0)}:{round.pk}"


def n_checks_before(*, round: Round, user: User, n_questions: int, now: datetime) -> int:
    """Return how many checks the person will be shown along with so many more questions, so that a count of what is
    free for them goes down by one with each, check or question."""
    if not round.check_rate or not n_questions:
        return 0
    shown = shown_so_far(round, user)
    last, n = shown["questions"] + n_questions - 1, shown["checks"]
    while place_of_check(round, user, n) <= last:
        n += 1
    checks = Slot.objects.filter(round=round, purpose=Slot.Purpose.CHECK).open_at(now).checks_unseen_by(user)
    return min(n - shown["checks"], checks.values("calibration_item__fingerprint").distinct().count())


def shown_so_far(round: Round, user: User) -> dict[str, int]:
    """How many questions and how many checks the person has been shown in the round."""
    return Draft.objects.filter(author=user, round=round).aggregate(
        questions=Count("question"), checks=Count("calibration_item")
    )


def place_of_check(round: Round, user: User, number: int) -> int:
    """Return after how many questions the person's check of that number is due."""
    drawn = hashlib.sha256(f"{seed_of(round)}\n{user.pk}\n{number}".encode()).digest()
    return math.floor((number + int.from_bytes(drawn[:6], "big") / 2**48) / round.check_rate)
