"""Models that are not there: the run fails with the reason, and adding one can check it beforehand."""

import socket

import pytest

from labeling.actions.policy_models import create_policy_model
from labeling.errors import Conflict, EngineFailure, LabelingError, NotAllowed
from labeling.models import PolicyModel
from tests import factories
from tests.labeling.runs.conftest import run_to_its_end


@pytest.fixture
def dead_url() -> str:
    """An address of this machine where nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


def test_a_server_that_is_down_fails_the_run_with_what_to_do(new_run, dead_url):
    model = factories.make_policy_model(engine="openai", base_url=dead_url, options={"max_retries": 0})

    run = run_to_its_end(new_run(policy_model=model))

    assert (run.status, run.error_code) == ("failed", "engine_unavailable")
    assert dead_url in run.error
    assert "Start it or check the address" in run.error


def test_a_model_that_does_not_exist_fails_the_run_with_its_name(new_run, tmp_path):
    model = factories.make_policy_model(engine="transformers", model=str(tmp_path / "no-such-model"))

    run = run_to_its_end(new_run(policy_model=model))

    assert (run.status, run.error_code) == ("failed", "model_not_found")
    assert "no-such-model" in run.error


def test_adding_a_model_with_a_check_refuses_a_server_that_is_down(db, dead_url):
    with pytest.raises(EngineFailure, match="did not answer"):
        create_policy_model(
            name="m", engine="openai", model="x", base_url=dead_url, options={"max_retries": 0}, check=True, by=None
        )

    assert not PolicyModel.objects.exists()


def test_a_name_is_given_once(scripted_model):
    name = scripted_model().name

    with pytest.raises(Conflict, match="already"):
        create_policy_model(name=name, engine="scripted", model="m", by=None)


def test_only_those_who_manage_something_add_models(manager, pool, annotator, outsider):
    assert create_policy_model(name="m", engine="scripted", model="m", by=manager).created_by == manager
    for person in (annotator, outsider):
        with pytest.raises(NotAllowed):
            create_policy_model(name="n", engine="scripted", model="m", by=person)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"engine": "magic"}, "must be one of"),
        ({"engine": "openai", "base_url": "localhost:8000"}, "http://"),
        ({"engine": "openai", "base_url": "http://a/v1, http://a/v1"}, "there once"),
        ({"engine": "openai", "base_url": "http://me:secret@a/v1"}, "without user or password"),
        ({"engine": "openai", "base_url": "http://h/v1", "api_key_env": "ASSAY_SECRET_KEY"}, "ends in _API_KEY"),
        ({"options": {"base_url": "http://elsewhere/v1"}}, "fields of their own"),
        ({"temperature": -1.0}, "between 0 and 5"),
        ({"top_p": 0.0}, "between"),
        ({"max_tokens": 0}, "between 1 and"),
        ({"name": " "}, "needs a name"),
    ],
)
def test_fields_without_meaning_are_refused(db, fields, words):
    with pytest.raises(LabelingError) as refused:
        create_policy_model(**{"name": "m", "engine": "scripted", "model": "m", "by": None, **fields})

    assert refused.value.code == "invalid_policy_model"
    assert words in refused.value.message
    assert not PolicyModel.objects.exists()


def test_a_check_refuses_answers_so_long_that_no_question_fits(db):
    fields = {"engine": "transformers", "model": "assay-tiny", "max_tokens": 2048, "by": None}

    with pytest.raises(LabelingError, match="max_tokens is 2048"):
        create_policy_model(name="Too long", check=True, **fields)

    assert not PolicyModel.objects.filter(name="Too long").exists()
