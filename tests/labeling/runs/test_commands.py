import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from labeling.models import PolicyModel, SelectionRun

WANTED = {"budget": 3, "alpha": "0.5", "n_outcomes": 4, "n_probes": 4, "embedder": ""}


def select(**options: object) -> str:
    out = StringIO()
    call_command("select", stdout=out, stderr=StringIO(), **{**WANTED, **options})
    return out.getvalue()


@pytest.fixture
def names(filled_pool, calibration_set, scripted_model) -> dict[str, str]:
    return {"pool": filled_pool.name, "calibration": calibration_set.name, "model": scripted_model().name}


def test_select_queues_a_run_for_a_worker(names):
    found = json.loads(select(**names, json=True))

    assert (found["status"], found["picks"]) == ("queued", [])
    assert SelectionRun.objects.get(pk=found["run"]).created_by is None


def test_select_and_wait_executes_it_here(names):
    found = json.loads(select(**names, wait=True, json=True))

    assert found["status"] == "finished"
    assert [pick["rank"] for pick in found["picks"]] == [1, 2, 3]
    assert found["report"]["settings"]["alpha"] == "0.5"


def test_select_describes_what_it_found_to_a_person(names):
    text = select(**names, wait=True)

    assert "The threshold is" in text
    assert "  3. q" in text


def test_select_finds_a_pool_by_its_slug(names, filled_pool):
    select(**{**names, "pool": filled_pool.slug})

    assert filled_pool.runs.count() == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pool", "no pool named “x”"),
        ("calibration", "no calibration set named “x”"),
        ("model", "no policy model named"),
    ],
)
def test_select_names_what_does_not_exist(names, name, words):
    with pytest.raises(CommandError, match=words):
        select(**{**names, name: "x"})


def test_select_passes_on_why_a_run_is_refused(names):
    with pytest.raises(CommandError, match="The pool has 12 questions"):
        select(**names, budget=100)


def test_a_run_that_fails_ends_the_command_with_its_reason(names):
    PolicyModel.objects.update(options={"fails_half": True})

    with pytest.raises(CommandError, match="fails half of the time"):
        select(**names, wait=True)


def test_a_worker_that_works_once_empties_the_queue(names):
    select(**names)
    select(**names)

    call_command("worker", once=True, stderr=StringIO())

    assert set(SelectionRun.objects.values_list("status", flat=True)) == {"finished"}


def test_add_policy_model_adds_one(db):
    out = StringIO()
    call_command(
        "add_policy_model", "Mine", engine="scripted", model="m", max_tokens=99, options={"answers": ["1"]},
        check=True, json=True, stdout=out,
    )  # fmt: skip

    model = PolicyModel.objects.get(pk=json.loads(out.getvalue())["id"])
    assert (model.name, model.max_tokens, model.options, model.temperature) == ("Mine", 99, {"answers": ["1"]}, None)


def test_add_policy_model_says_why_not(db):
    with pytest.raises(CommandError, match="http://"):
        call_command("add_policy_model", "Mine", engine="openai", model="m")
