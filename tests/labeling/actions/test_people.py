from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from labeling.actions.people import (
    accept_invitation,
    add_member,
    create_invitation,
    create_manager,
    create_pool,
    join_as_new_user,
    remove_member,
    revoke_invitation,
)
from labeling.errors import Conflict, LabelingError, NotAllowed
from labeling.models import AuditEvent, Invitation, Membership, Pool, Role, User
from labeling.queries.people import invitation_of, open_invitations, roles_of
from tests import factories

PASSWORD = "gauss-and-his-theorem-1801"


def test_whoever_creates_a_pool_manages_it(pool, manager):
    created = create_pool(name=" Number   Theory ", by=manager, answer_policy={"percent": "number"})

    assert (created.name, created.slug) == ("Number Theory", "number-theory")
    assert roles_of(pool=created, user=manager) == {Role.MANAGER}
    assert AuditEvent.objects.get(action="pool.created").pool == created


def test_pools_are_created_by_staff_managers_and_the_command_line(pool, annotator, outsider):
    for user in (annotator, outsider):
        with pytest.raises(NotAllowed):
            create_pool(name="x", by=user)

    assert create_pool(name="a", by=factories.make_user(is_staff=True)).pk
    assert create_pool(name="b", by=None).created_by is None


def test_a_pool_needs_a_name_of_its_own_and_a_policy_that_exists(pool, manager):
    for fields, code in (
        ({"name": " "}, "pool_name_missing"),
        ({"name": "ALGEBRA"}, "pool_exists"),
        ({"name": "x", "answer_policy": {"percent": "maybe"}}, "invalid_config"),
        ({"name": "x", "answer_policy": {"colour": "red"}}, "invalid_config"),
    ):
        with pytest.raises(LabelingError) as refused:
            create_pool(by=manager, **fields)
        assert refused.value.code == code

    assert Pool.objects.count() == 1


def test_slugs_do_not_clash(pool, manager):
    names = ["Algebra!", "new", "???"]

    assert [create_pool(name=name, by=manager).slug for name in names] == ["algebra-2", "new-2", "pool"]


def test_a_role_is_given_once(pool, manager, outsider):
    first = add_member(pool=pool, user=outsider, role="annotator", by=manager)

    assert add_member(pool=pool, user=outsider, role="annotator", by=manager) == first
    add_member(pool=pool, user=outsider, role="adjudicator", by=manager)

    assert roles_of(pool=pool, user=outsider) == {Role.ANNOTATOR, Role.ADJUDICATOR}
    assert AuditEvent.objects.filter(action="member.added").count() == 2
    with pytest.raises(NotAllowed):
        add_member(pool=pool, user=outsider, role="manager", by=outsider)


def test_the_last_manager_stays(pool, manager, annotator):
    remove_member(pool=pool, user=annotator, role="annotator", by=manager)
    remove_member(pool=pool, user=annotator, role="annotator", by=manager)
    with pytest.raises(Conflict) as refused:
        remove_member(pool=pool, user=manager, role="manager", by=manager)

    assert refused.value.code == "last_manager"
    assert not roles_of(pool=pool, user=annotator)
    add_member(pool=pool, user=annotator, role="manager", by=manager)
    remove_member(pool=pool, user=manager, role="manager", by=manager)
    with pytest.raises(NotAllowed):
        remove_member(pool=pool, user=annotator, role="manager", by=manager)


def test_an_invitation_lets_one_person_in_and_keeps_no_token(pool, manager, outsider):
    invitation, token = create_invitation(pool=pool, role="annotator", by=manager, note="Ada")
    assert list(open_invitations(pool=pool)) == [invitation]
    assert invitation_of(token=token) == invitation
    assert token not in str(Invitation.objects.values().get())

    membership = accept_invitation(token=token, user=outsider)

    assert (membership.user, membership.role) == (outsider, Role.ANNOTATOR)
    assert accept_invitation(token=token, user=outsider) == membership  # the link followed again
    with pytest.raises(Conflict) as refused:
        accept_invitation(token=token, user=manager)
    assert refused.value.code == "invitation_used"
    assert not open_invitations(pool=pool)
    assert AuditEvent.objects.filter(action="invitation.accepted").count() == 1


def test_a_second_invitation_adds_a_role(pool, manager, annotator):
    _, token = create_invitation(pool=pool, role="adjudicator", by=manager)
    _, same = create_invitation(pool=pool, role="annotator", by=manager)

    accept_invitation(token=token, user=annotator)
    accept_invitation(token=same, user=annotator)

    assert roles_of(pool=pool, user=annotator) == {Role.ANNOTATOR, Role.ADJUDICATOR}
    assert Membership.objects.filter(user=annotator).count() == 2


def test_invitations_end(pool, manager, outsider):
    late, late_token = create_invitation(pool=pool, role="annotator", by=manager, valid_for=timedelta(seconds=-1))
    gone, gone_token = create_invitation(pool=pool, role="annotator", by=manager)
    for _ in range(2):
        revoke_invitation(invitation=gone, by=manager)

    for token, code in (
        (late_token, "invitation_expired"),
        (gone_token, "invitation_revoked"),
        ("nonsense", "invitation_unknown"),
    ):
        with pytest.raises(LabelingError) as refused:
            accept_invitation(token=token, user=outsider)
        assert refused.value.code == code

    assert not Membership.objects.filter(user=outsider).exists()
    assert AuditEvent.objects.filter(action="invitation.revoked").count() == 1
    assert not open_invitations(pool=pool)
    assert late.expires_at < timezone.now()


def test_who_left_needs_a_new_invitation(pool, manager, outsider):
    _, token = create_invitation(pool=pool, role="annotator", by=manager)
    accept_invitation(token=token, user=outsider)
    remove_member(pool=pool, user=outsider, role="annotator", by=manager)

    with pytest.raises(Conflict, match="have left since"):
        accept_invitation(token=token, user=outsider)


def test_an_accepted_invitation_cannot_be_withdrawn(pool, manager, outsider):
    invitation, token = create_invitation(pool=pool, role="annotator", by=manager)
    accept_invitation(token=token, user=outsider)

    with pytest.raises(Conflict, match="accepted already"):
        revoke_invitation(invitation=invitation, by=manager)


def test_only_managers_invite(pool, annotator, manager):
    invitation, _ = create_invitation(pool=pool, role="annotator", by=manager)

    with pytest.raises(NotAllowed):
        create_invitation(pool=pool, role="manager", by=annotator)
    with pytest.raises(NotAllowed):
        revoke_invitation(invitation=invitation, by=annotator)


def test_a_new_person_joins_with_an_account_of_their_own(pool, manager):
    _, token = create_invitation(pool=pool, role="annotator", by=manager)

    user = join_as_new_user(token=token, username="ada", password=PASSWORD)

    assert user.check_password(PASSWORD)
    assert roles_of(pool=pool, user=user) == {Role.ANNOTATOR}


@pytest.mark.parametrize(
    ("username", "password", "code"),
    [
        ("manager", PASSWORD, "username_taken"),
        ("MANAGER", PASSWORD, "username_taken"),
        ("", PASSWORD, "username_invalid"),
        ("two words", PASSWORD, "username_invalid"),
        ("x" * 151, PASSWORD, "username_invalid"),
        ("ada", "12345678", "password_weak"),
    ],
)
def test_a_bad_account_is_refused_and_the_invitation_stays_open(pool, manager, username, password, code):
    invitation, token = create_invitation(pool=pool, role="annotator", by=manager)

    with pytest.raises(LabelingError) as refused:
        join_as_new_user(token=token, username=username, password=password)

    assert refused.value.code == code
    assert User.objects.count() == 1
    assert list(open_invitations(pool=pool)) == [invitation]


def test_nobody_gets_an_account_without_an_open_invitation(pool, manager, outsider):
    _, token = create_invitation(pool=pool, role="annotator", by=manager)
    accept_invitation(token=token, user=outsider)

    for dead in (token, "nonsense"):
        with pytest.raises(LabelingError):
            join_as_new_user(token=dead, username="ada", password=PASSWORD)

    assert not User.objects.filter(username="ada").exists()


def test_a_manager_is_made_at_the_command_line_without_a_password(db, outsider):
    created = create_manager(username="emmy")

    assert create_manager(username="emmy") == created
    assert not created.has_usable_password()
    assert create_pool(name="Rings", by=created).created_by == created
    assert create_manager(username="outsider") == outsider
    assert AuditEvent.objects.filter(action="manager.created").count() == 2
    with pytest.raises(LabelingError):
        create_manager(username="two words")


def test_the_database_refuses_impossible_memberships_and_invitations(pool, manager, annotator):
    invitation, _ = create_invitation(pool=pool, role="annotator", by=manager)

    for broken in (
        lambda: factories.make_membership(pool=pool, user=annotator),
        lambda: Invitation.objects.filter(pk=invitation.pk).update(accepted_by=annotator),
        lambda: Invitation.objects.create(
            pool=pool,
            role="annotator",
            token_sha256=invitation.token_sha256,
            expires_at=timezone.now(),
            created_by=manager,
        ),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            broken()


def test_events_are_never_edited(pool, manager):
    create_invitation(pool=pool, role="annotator", by=manager)
    event = AuditEvent.objects.get(action="invitation.created")

    for change in (event.save, event.delete, AuditEvent.objects.all().delete):
        with pytest.raises(TypeError):
            change()
    with pytest.raises(TypeError):
        AuditEvent.objects.update(action="nothing.happened")
