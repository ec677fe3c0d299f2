"""Pools, roles and invitations."""

import secrets
from datetime import timedelta

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.text import slugify
from django.utils.translation import gettext as _

from labeling import policies
from labeling.actions.claiming import lock_person, release_held
from labeling.audit import record_event
from labeling.engine.answers import policy_of
from labeling.errors import Conflict, LabelingError
from labeling.models import Invitation, Membership, Pool, Role, Slot, User

RESERVED_SLUGS = {"new"}
WORK_OF = {Role.ANNOTATOR: Slot.Purpose.LABEL, Role.ADJUDICATOR: Slot.Purpose.ADJUDICATION}


@transaction.atomic
def create_pool(
    *,
    name: str,
    by: User | None,
    description: str = "",
    text_format: str = Pool.TextFormat.PLAIN,
    answer_policy: dict[str, str] | None = None,
) -> Pool:
    """Create a pool; whoever creates it manages it."""
    policies.check_can_create_pool(by)
    name = " ".join(name.split())
    if not name:
        raise LabelingError(_("A pool needs a name."), code="pool_name_missing")
    if Pool.objects.filter(name__iexact=name).exists():
        raise Conflict(
            _("There is a pool named %(name)s already. Choose another name.") % {"name": name}, code="pool_exists"
        )
    pool = Pool(
        name=name,
        slug=_free_slug(name),
        description=description,
        text_format=text_format,
        answer_policy=answer_policy or {},
        created_by=by,
    )
    policy_of(pool)
    pool.save()
    record_event("pool.created", target=pool, by=by, pool=pool, name=name)
    if by is not None:
        Membership.objects.create(pool=pool, user=by, role=Role.MANAGER)
    return pool


def _free_slug(name: str) -> str:
    stem = slugify(name)[:100] or "pool"
    taken = set(Pool.objects.filter(slug__startswith=stem).values_list("slug", flat=True)) | RESERVED_SLUGS
    number, slug = 1, stem
    while slug in taken:
        number += 1
        slug = f"{stem}-{number}"
    return slug


@transaction.atomic
def add_member(*, pool: Pool, user: User, role: str, by: User | None) -> Membership:
    """Give somebody a role; giving it again changes nothing."""
    policies.check_can_manage(pool, by)
    membership, is_new = Membership.objects.get_or_create(pool=pool, user=user, role=Role(role))
    if is_new:
        record_event("member.added", target=membership, by=by, pool=pool, user=user.username, role=role)
    return membership


@transaction.atomic
def remove_member(*, pool: Pool, user: User, role: str, by: User | None) -> None:
    """Take a role away; what the person has answered stays, and what they hold goes back to the queue.

    The last manager cannot be removed.
    """
    policies.check_can_manage(pool, by)
    Pool.objects.select_for_update(no_key=True).get(pk=pool.pk)
    lock_person(user)
    membership = Membership.objects.filter(pool=pool, user=user, role=role).first()
    if membership is None:
        return
    if role == Role.MANAGER and not Membership.objects.filter(pool=pool, role=role).exclude(user=user).exists():
        raise Conflict(
            _("%(user)s is the last manager of %(pool)s. Make somebody else a manager first.")
            % {"user": user, "pool": pool},
            code="last_manager",
        )
    record_event("member.removed", target=membership, by=by, pool=pool, user=user.username, role=role)
    membership.delete()
    if purpose := WORK_OF.get(Role(role)):
        release_held(pool=pool, user=user, purpose=purpose, by=by)


@transaction.atomic
def create_invitation(
    *, pool: Pool, role: str, by: User, note: str = "", valid_for: timedelta = timedelta(days=7)
) -> tuple[Invitation, str]:
    """Invite one person; the token in the link is returned here and never again."""
    policies.check_can_manage(pool, by)
    token = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        pool=pool,
        role=Role(role),
        token_sha256=Invitation.hash_of(token),
        note=note,
        expires_at=timezone.now() + valid_for,
        created_by=by,
    )
    record_event("invitation.created", target=invitation, by=by, pool=pool, role=role, note=note)
    return invitation, token


@transaction.atomic
def accept_invitation(*, token: str, user: User) -> Membership:
    """Join the pool of the invitation. Following one's own link again changes nothing.

    Raises LabelingError (invitation_unknown) and Conflict (invitation_used, _expired, _revoked).
    """
    now = timezone.now()
    invitation = Invitation.objects.with_token(token).select_related("pool").first()
    if invitation is None:
        raise LabelingError(
            _("There is no such invitation. Check that the link is complete."), code="invitation_unknown"
        )
    taken = Invitation.objects.open_at(now).filter(pk=invitation.pk).update(accepted_by=user, accepted_at=now)
    if not taken:
        invitation.refresh_from_db()
        if invitation.accepted_by_id != user.pk:
            raise refusal(invitation)
        membership = Membership.objects.of(user, Role(invitation.role)).filter(pool=invitation.pool).first()
        if membership is None:
            raise Conflict(
                _("You used this invitation and have left since. Ask for a new one."), code="invitation_used"
            )
        return membership
    membership, _is_new = Membership.objects.get_or_create(pool=invitation.pool, user=user, role=invitation.role)
    record_event("invitation.accepted", target=invitation, by=user, pool=invitation.pool, role=invitation.role)
    return membership


def refusal(invitation: Invitation) -> Conflict:
    """Return why an invitation can no longer be accepted."""
    names = {"pool": invitation.pool, "day": date_format(invitation.expires_at, "d F Y")}
    if invitation.revoked_at is not None:
        words = _("This invitation was withdrawn. Ask a manager of %(pool)s for a new one.")
        return Conflict(words % names, code="invitation_revoked")
    if invitation.accepted_at is not None:
        words = _(
            "This invitation has been used already; a link is for one person. Ask a manager of %(pool)s for a new one."
        )
        return Conflict(words % names, code="invitation_used")
    words = _("This invitation ran out on %(day)s. Ask a manager of %(pool)s for a new one.")
    return Conflict(words % names, code="invitation_expired")


@transaction.atomic
def join_as_new_user(*, token: str, username: str, password: str) -> User:
    """Create an account for a person with an invitation, and accept it.

    Raises LabelingError (username_taken, username_invalid, password_weak) besides what accept_invitation raises.
    """
    user = _new_user(username)
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise LabelingError(" ".join(error.messages), code="password_weak") from error
    user.set_password(password)
    _save_new(user)
    accept_invitation(token=token, user=user)
    return user


@transaction.atomic
def create_manager(*, username: str) -> User:
    """Create an account that may create pools, without a password; or let an existing one do so.

    Called at the command line only. Raises LabelingError username_invalid.
    """
    user = User.objects.filter(username=username.strip()).first()
    if user is None:
        user = _new_user(username)
        user.set_unusable_password()
        _save_new(user)
    if not user.is_staff:
        user.is_staff = True
        user.save(update_fields=["is_staff"])
        record_event("manager.created", target=user, by=None, username=user.username)
    return user


def _new_user(username: str) -> User:
    user = User(username=username.strip())
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        raise LabelingError(" ".join(error.messages), code="username_invalid") from error
    return user


def _save_new(user: User) -> None:
    taken = Conflict(
        _("The name %(name)s is taken. Log in if it is yours, or choose another.") % {"name": user.username},
        code="username_taken",
    )
    if User.objects.filter(username__iexact=user.username).exists():
        raise taken
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError as error:
        raise taken from error


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, by: User | None) -> Invitation:
    """Withdraw an invitation that nobody has accepted; withdrawing it again changes nothing."""
    policies.check_can_manage(invitation.pool, by)
    gone = Invitation.objects.filter(pk=invitation.pk, accepted_at__isnull=True, revoked_at__isnull=True).update(
        revoked_at=timezone.now()
    )
    invitation.refresh_from_db()
    if gone:
        record_event("invitation.revoked", target=invitation, by=by, pool=invitation.pool)
    elif invitation.accepted_at is not None:
        raise Conflict(
            _("The invitation has been accepted already. Remove the person instead."), code="invitation_used"
        )
    return invitation
