from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from labeling.models import ApiToken, Curriculum, GoldAnswer
from tests import factories


@pytest.fixture
def pool(db):
    pool = factories.make_pool(name="Sums", manager=factories.make_user(username="mira"))
    question = factories.make_question(pool=pool)
    round = factories.make_round(run=factories.make_run(pool=pool, questions=[question]))
    GoldAnswer.objects.create(question=question, round=round, answer="7", source=GoldAnswer.Source.SINGLE)
    return pool


def run(*arguments: str) -> dict[str, str]:
    out = StringIO()
    call_command("add_curriculum", *arguments, stdout=out, stderr=StringIO())
    return dict(line.split("=", 1) for line in out.getvalue().split())


def test_what_is_printed_opens_the_curriculum(pool):
    found = run("run 1", "--pool", "sums", "--kind", "mopps", "--token-of", "mira", "--base-url", "http://testserver/")

    client = Client(headers={"Authorization": f"Bearer {found['ASSAY_REWARD_TOKEN']}"})
    assert client.get(found["ASSAY_REWARD_URL"]).json()["n_questions"] == 1
    assert Curriculum.objects.get().kind == "mopps"


def test_without_an_owner_no_token_is_made(pool):
    assert list(run("run 1", "--pool", "Sums")) == ["ASSAY_REWARD_URL"]
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pool", "Sums", "--token-of", "nobody"], "create_manager"),
        (["--pool", "Sums", "--token-of", "otto"], "Only a manager"),
        (["--pool", "Products"], "There are: “Sums”"),
    ],
)
def test_a_refusal_says_why_and_makes_nothing(pool, arguments, message):
    factories.make_user(username="otto")

    with pytest.raises(CommandError, match=message):
        run("run 1", *arguments)
    assert not Curriculum.objects.exists()
    assert not ApiToken.objects.exists()
