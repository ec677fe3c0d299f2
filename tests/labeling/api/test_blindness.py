# ruff: noqa: F811  (fixtures of a sibling directory are imported)
"""Through the API an annotator is shown no more than on the pages: nothing of the model before they have answered."""

import pytest

from labeling.models import Adjudication, Annotation, ApiToken, GoldAnswer, RecordedVotes, Reveal, Round
from tests import factories
from tests.labeling.api.conftest import Api
from tests.labeling.api.test_access import ADDRESSES, address, ask  # noqa: F401
from tests.labeling.views.conftest import login, world  # noqa: F401

SECRETS = [b"731731", b"0.731", b"ANSWERNOBODYSEES", b"other_annotator", b"THEIRANSWER", b"GOLDANSWER"]


@pytest.fixture
def secretive(world, other_annotator):
    """The world, in which everything that an annotator must not see can be told from all else."""
    Round.objects.update(control_share=0.0)
    pick = world.run.picks.get(question=world.held.question)
    pick.prediction_set = [{"answer": "731731", "frequency": 0.731}]
    pick.save()
    RecordedVotes.objects.create(
        question_fingerprint=world.held.question.fingerprint,
        question_uid=world.held.question.uid,
        generation_fingerprint=world.run.generation_fingerprint,
        votes={"id": world.held.question.uid, "probe_answers": [], "outcome_answers": ["731731"] * 5 + ["7"] * 3},
    )
    sealed = factories.make_calibration_set(pool=world.pool, name="Sealed")
    factories.make_calibration_item(calibration_set=sealed, answer="ANSWERNOBODYSEES")
    theirs = world.round.slots.filter(question=world.held.question).exclude(pk=world.held.pk).first()
    theirs.state, theirs.holder = "done", other_annotator
    theirs.save()
    Annotation.objects.create(slot=theirs, annotator=other_annotator, answer="THEIRANSWER")
    labeled = factories.make_question(pool=world.pool)
    GoldAnswer.objects.create(question=labeled, round=world.round, answer="GOLDANSWER", source="single")
    return world


def test_no_address_tells_an_annotator_what_the_model_others_or_the_gold_say(
    secretive, address, annotator, other_annotator
):
    api = Api(annotator)
    told = []

    for name, (_, methods) in ADDRESSES.items():
        for method in methods:
            url = address(name) if "reveal" not in name else f"/api/v1/slots/{secretive.held.pk}/reveal/"
            response = ask(api.client, method, url)
            content = b"".join(response.streaming_content) if response.streaming else response.content
            told += [(name, method, secret) for secret in SECRETS if secret in content]

    assert told == []


def test_what_the_model_says_is_told_once_the_answer_is_stored_and_that_is_on_record(secretive, annotator):
    api, slot = Api(annotator), secretive.held.pk
    assert api.post(f"slots/{slot}/reveal/", status=409)["error"]["code"] == "not_answered"
    api.post(f"slots/{slot}/submit/", {"answer": "9"}, status=201)

    reveal = api.post(f"slots/{slot}/reveal/")["reveal"]
    position = reveal["answers"].index("7")
    changed = api.post(f"slots/{slot}/reveal/change/", {"chosen": position, "why": "I forgot the carry"}, key="once")
    again = api.post(f"slots/{slot}/reveal/change/", {"chosen": position, "why": "I forgot the carry"}, key="once")

    assert set(reveal["answers"]) == {"731731", "7"}
    assert (reveal["own"], reveal["first"]["answer"], reveal["decision"]) == (None, "9", None)
    assert changed["reveal"]["decision"]["outcome"] == "model"
    assert changed == again
    assert Reveal.objects.filter(annotation__slot=slot).count() == 1
    versions = Annotation.objects.filter(slot=slot).order_by("version")
    assert [(each.answer, each.origin) for each in versions] == [("9", "first"), ("7", "after_reveal")]


def test_an_answer_is_undone_and_revised_over_the_api(world, annotator):
    api, slot = Api(annotator), world.held.pk
    api.post(f"slots/{slot}/submit/", {"answer": "9", "note": "sure"}, status=201, key="a")

    back = api.post(f"slots/{slot}/undo/")
    api.post(f"slots/{slot}/submit/", {"answer": "8"}, status=201, key="b")
    revised = api.post(f"slots/{slot}/revise/", {"answer": "7", "why": "a slip"}, status=201, key="c")
    shown = api.get(f"slots/{slot}/")

    assert (back["state"], back["draft"]["answer"], back["draft"]["note"]) == ("held", "9", "sure")
    assert (revised["answer"], shown["annotation"]["answer"], shown["state"]) == ("7", "7", "answered")
    assert api.post(f"slots/{slot}/submit/", {"answer": "8"}, status=201, key="b")["answer"] == "8"


def test_the_same_key_with_another_answer_is_a_conflict(world, annotator):
    api, slot = Api(annotator), world.held.pk
    first = api.post(f"slots/{slot}/submit/", {"answer": "9"}, status=201, key="a")

    assert api.post(f"slots/{slot}/submit/", {"answer": "9"}, status=201, key="a") == first
    refused = api.post(f"slots/{slot}/submit/", {"answer": "8"}, status=409, key="a")

    assert refused["error"]["code"] in {"already_answered", "key_used"}
    assert Annotation.objects.filter(slot=slot).count() == 1


def test_an_adjudicator_decides_without_learning_who_said_what(world, adjudicator, annotator, other_annotator):
    api, slot = Api(adjudicator), world.dispute.pk

    shown = api.get(f"adjudications/{slot}/")
    decided = api.post(f"adjudications/{slot}/decide/", {"answer": "12"}, status=201, key="a")

    assert {group["n_answers"] for group in shown["groups"]} == {1}
    assert annotator.username not in str(shown)
    assert other_annotator.username not in str(shown)
    assert decided["answer"] == "12"
    assert api.post(f"adjudications/{slot}/decide/", {"answer": "12"}, status=201, key="a") == decided
    assert Adjudication.objects.count() == 1


def test_a_calibration_file_shows_no_answers_through_the_api(manager, pool, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    api = Api(manager, *ApiToken.Scope.values)
    rows = b'{"question": "1 + 1?", "answer": "SEALED"}\n{"question": "", "answer": "SEALED"}\n'

    preview = api.upload(f"calibration-sets/imports/?name=Known&pool={pool.slug}&filename=a.jsonl", rows)
    committed = api.post(f"imports/{preview['id']}/commit/")

    assert committed["counts"]["new"] == 1
    assert "SEALED" not in str(preview) + str(committed) + str(api.get(f"imports/{preview['id']}/"))
