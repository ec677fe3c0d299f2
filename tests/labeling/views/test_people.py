"""Logging in, joining and inviting."""

import sesame.utils
from django.urls import reverse

from labeling.models import Invitation, Membership, User
from tests import factories

PASSWORD = "a long enough phrase"


def with_password(**fields):
    user = factories.make_user(**fields)
    user.set_password(PASSWORD)
    user.save()
    return user


def test_a_preview_of_a_login_link_does_not_use_it_up(db, client):
    user = factories.make_user(username="mira")
    link = f"{reverse('login')}{sesame.utils.get_query_string(user)}"

    client.get(link)
    page = client.get(link)
    response = client.post(reverse("login"), {"sesame": sesame.utils.get_parameters(user)["sesame"]})

    assert "Log in with your link" in page.content.decode()
    assert response["Location"] == reverse("home")
    assert client.get(reverse("home")).status_code == 200


def test_a_login_link_works_once(db, client):
    token = sesame.utils.get_token(factories.make_user())
    client.post(reverse("login"), {"sesame": token})
    client.post(reverse("logout"))

    again = client.post(reverse("login"), {"sesame": token})

    assert again.status_code == 422
    assert "no longer works" in again.content.decode()
    assert client.get(reverse("home")).status_code == 302


def test_login_by_password_goes_where_one_wanted_to_go_but_never_elsewhere(db, client):
    with_password(username="mira")
    data = {"username": "mira", "password": PASSWORD}

    inside = client.post(reverse("login"), {**data, "next": "/models/"})
    outside = client.post(reverse("login"), {**data, "next": "https://evil.example/"})

    assert inside["Location"] == "/models/"
    assert outside["Location"] == reverse("home")


def test_a_form_sent_after_the_session_ended_leads_back_to_its_page(db, client):
    page = "http://testserver/slots/7/"

    back = client.post("/slots/7/submit/", HTTP_REFERER=page)
    elsewhere = client.post("/slots/7/submit/", HTTP_REFERER="https://evil.example/slots/7/")
    nowhere = client.post("/slots/7/submit/")

    assert back["Location"] == "/login/?next=/slots/7/"
    assert elsewhere["Location"] == nowhere["Location"] == "/login/?next=/"


def test_a_wrong_password_says_the_same_as_a_wrong_name(db, client):
    with_password(username="mira")

    pages = [
        client.post(reverse("login"), {"username": name, "password": "wrong"}).content.decode()
        for name in ("mira", "nobody")
    ]

    assert all("do not belong together" in page for page in pages)


def test_guessing_is_stopped(db, client):
    with_password(username="mira")
    for _ in range(8):
        client.post(reverse("login"), {"username": "mira", "password": "wrong"})

    assert client.post(reverse("login"), {"username": "mira", "password": PASSWORD}).status_code == 429


def test_an_invitation_link_is_shown_once(pool, manager, login):
    client = login(manager)

    page = client.post(reverse("invitation-new", args=[pool.slug]), {"role": "annotator", "note": "Karim"})

    token = page.context["link"].split("/")[-2]
    assert page["Cache-Control"] == "no-store"
    assert token in page.content.decode()
    assert token not in client.get(reverse("pool-people", args=[pool.slug])).content.decode()
    assert Invitation.objects.get().token_sha256 != token


def invitation_link(pool, manager, login, role="annotator"):
    page = login(manager).post(reverse("invitation-new", args=[pool.slug]), {"role": role})
    return page.context["link"].removeprefix("http://testserver")


def test_a_new_person_makes_an_account_and_joins(pool, manager, login, client):
    link = invitation_link(pool, manager, login)

    assert "Make an account" in client.get(link).content.decode()
    response = client.post(link, {"username": "karim", "password": PASSWORD})

    assert response["Location"] == reverse("pool", args=[pool.slug])
    assert Membership.objects.get(user__username="karim").role == "annotator"
    assert client.get(response["Location"]).status_code == 200


def test_a_weak_password_or_a_taken_name_is_said_on_the_form(pool, manager, login, client):
    link = invitation_link(pool, manager, login)
    factories.make_user(username="taken")

    weak = client.post(link, {"username": "karim", "password": "12345678"})
    taken = client.post(link, {"username": "Taken", "password": PASSWORD})

    assert weak.status_code == taken.status_code == 422
    assert "is taken" in taken.content.decode()
    assert not User.objects.filter(username="karim").exists()


def test_somebody_who_is_logged_in_joins_as_themselves(pool, manager, outsider, login):
    link = invitation_link(pool, manager, login, role="adjudicator")

    login(outsider).post(link)

    assert Membership.objects.get(user=outsider).role == "adjudicator"


def test_a_used_or_withdrawn_link_says_why_it_is_closed(pool, manager, outsider, login, client):
    used, withdrawn = invitation_link(pool, manager, login), invitation_link(pool, manager, login)
    login(outsider).post(used)
    login(manager).post(reverse("invitation-revoke", args=[Invitation.objects.get(accepted_at=None).pk]))

    assert "has been used already" in client.get(used).content.decode()
    assert "was withdrawn" in client.get(withdrawn).content.decode()
    assert client.get("/join/nothing/").status_code == 404


def test_a_role_is_taken_away_but_not_the_last_managers(pool, manager, annotator, login):
    client, url = login(manager), reverse("member-remove", args=[pool.slug])

    client.post(url, {"user": annotator.pk, "role": "annotator"})
    refused = client.post(url, {"user": manager.pk, "role": "manager"})

    assert not Membership.objects.filter(user=annotator).exists()
    assert refused.status_code == 409
    assert Membership.objects.filter(user=manager).exists()
