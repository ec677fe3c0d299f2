from io import StringIO
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from labeling.models import User


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue().strip()


def log_in(client, link: str) -> str | None:
    """Follow the link as its page does; return who is logged in then."""
    token = parse_qs(urlsplit(link).query)["sesame"][0]
    client.post(reverse("login"), {"sesame": token})
    user_id = client.session.get("_auth_user_id")
    return None if user_id is None else User.objects.get(pk=user_id).username


def test_a_new_manager_gets_a_link_that_logs_in_once(db, client):
    link = run("create_manager", "emmy", "--base-url", "https://assay.example/")

    assert link.startswith("https://assay.example/login/?sesame=")
    assert log_in(client, link) == "emmy"
    client.logout()
    assert log_in(client, link) is None


def test_a_link_is_made_for_active_accounts_only(outsider, client):
    assert log_in(client, run("login_link", "outsider")) == "outsider"
    User.objects.update(is_active=False)

    for name in ("outsider", "nobody"):
        with pytest.raises(CommandError, match=name):
            run("login_link", name)


def test_a_name_that_cannot_be_is_refused(db):
    with pytest.raises(CommandError, match="username"):
        run("create_manager", "two words")
