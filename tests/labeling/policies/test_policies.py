import pytest

from labeling import policies
from labeling.errors import NotAllowed
from tests import factories

CAST = ["manager", "annotator", "adjudicator", "outsider"]
MAY = {
    "manage": {"manager"},
    "annotate": {"annotator"},
    "adjudicate": {"adjudicator"},
    "manage_shared": {"manager"},
    "create_pool": {"manager"},
}


@pytest.mark.parametrize("deed", MAY)
@pytest.mark.parametrize("person", CAST)
def test_each_role_may_do_its_own_work_only(request, pool, deed, person):
    user = request.getfixturevalue(person)
    subject = (user,) if deed in {"manage_shared", "create_pool"} else (pool, user)

    allowed = getattr(policies, f"can_{deed}")(*subject)

    assert allowed == (person in MAY[deed])
    if not allowed:
        with pytest.raises(NotAllowed) as refused:
            getattr(policies, f"check_can_{deed}")(*subject)
        assert refused.value.status == 403


def test_a_role_in_one_pool_says_nothing_about_another(manager, annotator):
    other = factories.make_pool()

    assert not policies.can_manage(other, manager)
    assert not policies.can_annotate(other, annotator)


def test_the_command_line_and_superusers_manage_but_never_answer(pool):
    root = factories.make_user(is_superuser=True)

    for user in (None, root):
        assert policies.can_manage(pool, user)
        assert policies.can_manage_shared(user)
        assert not policies.can_annotate(pool, user)
        assert not policies.can_adjudicate(pool, user)


def test_a_deactivated_account_may_do_nothing(pool, manager, annotator):
    for user in (manager, annotator):
        user.is_active = False
        user.is_superuser = True
        user.save()

    assert not policies.can_manage(pool, manager)
    assert not policies.can_create_pool(manager)
    assert not policies.can_annotate(pool, annotator)
