"""Who may do what.

``can_…`` answers, ``check_…`` raises NotAllowed. A user of None is the operator of the machine, at the command line:
they may manage, but never answer in anybody's name.
"""

from django.db.models import CharField
from django.utils.translation import gettext as _

from labeling.errors import NotAllowed
from labeling.models import CalibrationSet, Membership, Pool, Role, Slot, User
from labeling.prepared import Parameter, Prepared

_MEMBERSHIPS = Prepared(
    lambda: Membership.objects.filter(
        user=Parameter("user"), pool=Parameter("pool"), role=Parameter("role", CharField())
    ).values_list("pk")
)


def has_role(pool: Pool, user: User | None, role: Role) -> bool:
    """Whether the user has this very role in the pool."""
    if user is None or not user.is_active:
        return False
    return bool(_MEMBERSHIPS.rows(user=user.pk, pool=pool.pk, role=Role(role).value))


def can_manage(pool: Pool, user: User | None) -> bool:
    """Managers of the pool, superusers and the machine's operator."""
    return user is None or (user.is_active and user.is_superuser) or has_role(pool, user, Role.MANAGER)


def can_annotate(pool: Pool, user: User | None) -> bool:
    """Annotators of the pool, and nobody else: a manager has seen what the model answers."""
    return has_role(pool, user, Role.ANNOTATOR)


def can_adjudicate(pool: Pool, user: User | None) -> bool:
    """Adjudicators of the pool."""
    return has_role(pool, user, Role.ADJUDICATOR)


def can_manage_shared(user: User | None) -> bool:
    """Staff, and whoever manages some pool: they may set up models and calibration sets that pools share."""
    if user is None:
        return True
    return user.is_active and (user.is_staff or user.is_superuser or Membership.objects.of(user, Role.MANAGER).exists())


def can_change_set(calibration_set: CalibrationSet, user: User | None) -> bool:
    """Managers of the set's pool; a set that all pools share changes by whoever made it, staff and the operator."""
    if calibration_set.pool is not None:
        return can_manage(calibration_set.pool, user)
    return can_manage_shared(user) and (
        user is None or user.is_staff or user.is_superuser or calibration_set.created_by_id == user.pk
    )


def can_create_pool(user: User | None) -> bool:
    """The same people may start a pool."""
    return can_manage_shared(user)


def check_can_manage(pool: Pool, user: User | None) -> None:
    if not can_manage(pool, user):
        raise NotAllowed(
            _("Only a manager of %(pool)s may do this. Ask one to do it or to invite you.") % {"pool": pool}
        )


def check_can_annotate(pool: Pool, user: User | None) -> None:
    if not can_annotate(pool, user):
        raise NotAllowed(
            _("Only annotators of %(pool)s answer its questions. Ask a manager for an invitation.") % {"pool": pool}
        )


def check_can_adjudicate(pool: Pool, user: User | None) -> None:
    if not can_adjudicate(pool, user):
        raise NotAllowed(
            _("Only adjudicators of %(pool)s decide disagreements. Ask a manager for an invitation.") % {"pool": pool}
        )


def check_can_work(pool: Pool, user: User | None, purpose: str) -> None:
    """Refuse who may not do this part of labeling: answer, or decide."""
    if purpose == Slot.Purpose.ADJUDICATION:
        check_can_adjudicate(pool, user)
    else:
        check_can_annotate(pool, user)


def check_can_manage_shared(user: User | None) -> None:
    if not can_manage_shared(user):
        raise NotAllowed(_("Only managers may set up models and calibration sets. Ask a manager to do it."))


def check_can_change_set(calibration_set: CalibrationSet, user: User | None) -> None:
    if can_change_set(calibration_set, user):
        return
    if calibration_set.pool is not None:
        check_can_manage(calibration_set.pool, user)
    check_can_manage_shared(user)
    raise NotAllowed(
        _(
            "The calibration set “%(calibration_set)s” is used by every pool; only who made it and staff "
            "change it. Import under another name, or ask them."
        )
        % {"calibration_set": calibration_set}
    )


def check_can_create_pool(user: User | None) -> None:
    if not can_create_pool(user):
        raise NotAllowed(_("Only managers may create a pool. Ask a manager to create it and to invite you."))
