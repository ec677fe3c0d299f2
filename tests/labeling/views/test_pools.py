"""Pools, their questions and guidelines, and the pages of errors."""

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from labeling.models import Guideline, Membership, Pool
from labeling.rendering import render_answer, render_text
from tests import factories
from tests.labeling.views.conftest import HX


def test_a_pool_is_made_with_its_rules_for_answers(pool, manager, login):
    data = {
        "name": "Finance", "text_format": "markdown", "percent": "fraction", "units": "required", "tolerance": "0.01",
        "case": "keep",
    }  # fmt: skip

    response = login(manager).post(reverse("pool-new"), data)

    made = Pool.objects.get(name="Finance")
    assert response["Location"] == reverse("pool-import", args=[made.slug])
    assert made.answer_policy == {"percent": "fraction", "units": "required", "tolerance": "0.01", "case": "keep"}
    assert Membership.objects.get(pool=made).user == manager


def test_the_back_office_is_shown_to_who_may_do_something_there(pool, manager, login):
    staff, superuser = factories.make_user(is_staff=True), factories.make_user(is_superuser=True, is_staff=True)
    factories.make_membership(pool=pool, user=staff, role="manager")

    def is_shown(user):
        return reverse("admin:index") in login(user).get(reverse("home")).content.decode()

    assert [is_shown(user) for user in (manager, staff, superuser)] == [False, False, True]
    staff.user_permissions.add(Permission.objects.get(codename="view_pool"))
    assert is_shown(staff)


def test_a_pool_with_a_known_name_or_a_tolerance_without_meaning_is_sent_back(pool, manager, login):
    client = login(manager)
    rules = {"text_format": "plain", "percent": "either", "units": "optional", "case": "ignore"}

    known = client.post(reverse("pool-new"), {"name": "ALGEBRA", "tolerance": "0", **rules})
    odd = client.post(reverse("pool-new"), {"name": "New", "tolerance": "plenty", **rules})

    assert known.status_code == odd.status_code == 422
    assert "already" in known.content.decode()
    assert "tolerance" in odd.content.decode()


def test_questions_are_found_by_words_and_htmx_gets_the_list_alone(pool, manager, login):
    factories.make_question(pool=pool, text="How many apples?")
    factories.make_question(pool=pool, text="How many pears?")
    client, url = login(manager), reverse("pool-questions", args=[pool.slug])

    page, part = client.get(url, {"q": "pears"}), client.get(url, {"q": "pears"}, **HX)
    nothing = client.get(url, {"q": "plums"}).content.decode()

    assert "apples" not in page.content.decode()
    assert "pears" in page.content.decode()
    assert part.content.decode().strip().startswith('<section class="panel" id="question-list"')
    assert part["Vary"].count("HX-Request") == 1
    assert "No question has “plums” in it" in nothing


def test_a_long_list_comes_in_pages(pool, manager, login):
    factories.make_questions(pool=pool, n=51)
    client, url = login(manager), reverse("pool-questions", args=[pool.slug])

    assert "Page 1 of 2" in client.get(url).content.decode()
    assert client.get(url, {"page": "99"}).context["page"].number == 2


def test_saving_a_guideline_makes_a_version_and_the_same_text_does_not(pool, manager, login):
    client, url = login(manager), reverse("pool-guideline", args=[pool.slug])

    for text in ("Round to $0.01$.", "Do not round.", "Do not round."):
        client.post(url, {"text": text})

    assert list(Guideline.objects.order_by("version").values_list("version", "text")) == [
        (1, "Round to $0.01$."),
        (2, "Do not round."),
    ]


def test_each_empty_list_says_what_to_do(manager, login):
    pool = factories.make_pool(manager=manager)
    client = login(manager)

    for name, said in (
        ("pool", "Import questions"),
        ("pool-questions", "Import questions"),
        ("pool-runs", "No run yet"),
    ):
        assert said in client.get(reverse(name, args=[pool.slug])).content.decode()


def test_somebody_without_a_pool_is_told_how_to_get_into_one(outsider, login):
    assert "Ask a manager for an invitation link" in login(outsider).get("/").content.decode()


def test_nothing_there_is_said_in_the_same_language(manager, login):
    response = login(manager).get("/pools/nowhere/")

    assert response.status_code == 404
    assert "There is nothing here" in response.content.decode()


def test_an_old_page_is_explained_and_changes_nothing(manager, pool):
    client = Client(enforce_csrf_checks=True)
    client.force_login(manager)

    response = client.post(reverse("budget-new", args=[pool.slug]), {"name": "x", "units": 1})

    assert response.status_code == 403
    assert "This page has grown old" in response.content.decode()
    assert not pool.budgets.exists()


def test_a_fault_of_ours_is_a_page_too(manager, pool, login, monkeypatch):
    monkeypatch.setattr("labeling.views.home.work_for", lambda **_: 1 / 0)
    client = login(manager)
    client.raise_request_exception = False

    response = client.get("/")

    assert response.status_code == 500
    assert "Something broke here" in response.content.decode()


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("It costs $5 and $6.", "It costs $5 and $6."),
        (r"Give \$5.", "Give $5."),
        ("a < b & $x<y$", 'a &lt; b &amp; <span class="math inline" data-tex="x&lt;y">$x&lt;y$</span>'),
        (r"\(x\)", r'<span class="math inline" data-tex="x">\(x\)</span>'),
        ("So\n$$x$$\nand", 'So<span class="math block" data-tex="x">$$x$$</span>and'),
        (r"\[x\]", r'<span class="math block" data-tex="x">\[x\]</span>'),
        ("two\nlines", "two\nlines"),
        ("**not bold** in plain text", "**not bold** in plain text"),
        ('" onload="x', "&quot; onload=&quot;x"),
    ],
)
def test_plain_text_with_maths(text, html):
    assert render_text(text) == html


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("**bold**", "<strong>bold</strong>"),
        ("<b>x</b>", "&lt;b&gt;x&lt;/b&gt;"),
        ("![alt](https://elsewhere/x.png)", "!<a href"),
        ("[x](javascript:alert)", "[x](javascript:alert)"),
        (r"\(x^2\)", '<span class="math inline">x^2</span>'),
        ("$x<y$", '<span class="math inline">x&lt;y</span>'),
        ("$$\nx\n$$", '<div class="math block">'),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "<td>1</td>"),
        ("$5 and $6", "$5 and $6"),
    ],
)
def test_markdown_with_maths(text, inside):
    html = render_text(text, markdown=True)

    assert inside in html
    assert "<img" not in html


def test_a_very_long_text_is_shown_without_looking_for_maths():
    assert "math" not in render_text("\\[" * 200_000)


def test_answers_are_typeset_where_they_are_latex():
    assert render_answer(r"\frac12").startswith('<span class="math inline"')
    assert render_answer("3 apples") == "3 apples"
