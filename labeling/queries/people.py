"""Who is in a pool, who is invited, and what waits for a person."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Q, QuerySet
from django.utils import timezone

from labeling.models import Invitation, Membership, Pool, Role, User
from labeling.queries.intervals import Share
from labeling.queries.quality import accuracies_in


@dataclass(frozen=True)
class Member:
    """A person of a pool with all their roles there."""

    user: User
    roles: tuple[Role, ...]
    n_answers: int
    last_answer_at: datetime | None
    checks: Share  # of the calibration checks they have answered, how many rightly


def roles_of(*, pool: Pool, user: User) -> set[Role]:
    """Return the user's roles in the pool."""
    return {Role(role) for role in Membership.objects.of(user).filter(pool=pool).values_list("role", flat=True)}


def members_of(*, pool: Pool) -> list[Member]:
    """Return the people of a pool by name, with how much each has answered there."""
    in_pool = Q(annotations__slot__round__run__pool=pool)
    people = (
        User.objects.filter(memberships__pool=pool)
        .distinct()
        .order_by("username")
        .annotate(
            n_answers=Count("annotations__slot", filter=in_pool, distinct=True),
            last_answer_at=Max("annotations__created_at", filter=in_pool),
        )
    )
    roles: dict[int, list[Role]] = {}
    for user_id, role in Membership.objects.filter(pool=pool).order_by("id").values_list("user_id", "role"):
        roles.setdefault(user_id, []).append(Role(role))
    checks = accuracies_in(pool=pool)
    return [
        Member(
            user=user,
            roles=tuple(roles[user.pk]),
            n_answers=user.n_answers,
            last_answer_at=user.last_answer_at,
            checks=checks.get(user.pk, Share(0, 0)),
        )
        for user in people
        if user.pk in roles
    ]


def open_invitations(*, pool: Pool) -> QuerySet[Invitation]:
    """Return the invitations that can still be accepted, newest first."""
    return Invitation.objects.filter(pool=pool).open_at(timezone.now()).select_related("created_by").order_by("-id")


def invitation_of(*, token: str) -> Invitation | None:
    """Return the invitation behind a link, whatever its state; None if there is none."""
    return Invitation.objects.with_token(token).select_related("pool", "created_by").first()
