"""Real processes on a real database file, and on PostgreSQL where there is one.

ASSAY_RACE_SLOTS=1000 runs the races of annotators at full size, with no pause between being shown a question and
answering it.
"""

import json
import os
import subprocess
import sys
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from tests.conftest import ROOT, skip_or_fail
from tests.labeling.race_rewards import N_EVENTS, N_IN_ONE_REQUEST, N_PROCESSES, N_REWARDS

IS_FULL = "ASSAY_RACE_SLOTS" in os.environ
N_SLOTS = int(os.environ.get("ASSAY_RACE_SLOTS", "120"))
KILLED_ONE_OF = 10 if IS_FULL else 5


def race(database_url: str, *arguments: object, var, module: str = "race") -> dict:
    finished = subprocess.run(
        [sys.executable, "-m", f"tests.labeling.{module}", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database_url, "ASSAY_VAR": str(var), "ASSAY_DEBUG": "1"},
        capture_output=True,
        text=True,
        timeout=900 if IS_FULL else 280,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


@pytest.fixture
def postgres_url():
    """A database of its own on the server that ASSAY_TEST_POSTGRES or DATABASE_URL names."""
    server = os.environ.get("ASSAY_TEST_POSTGRES") or os.environ.get("DATABASE_URL", "")
    if not server.startswith("postgres"):
        skip_or_fail("no PostgreSQL: ASSAY_TEST_POSTGRES is not set")
    name = f"assay_race_{uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    yield urlsplit(server)._replace(path=f"/{name}").geturl()
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def annotators(database_url: str, var, *, overlap: int, kill_every: int = 0) -> dict:
    size = ["--slots", N_SLOTS, "--overlap", overlap, "--kill-every", kill_every]
    found = race(database_url, *size, *(["--think", 0] if IS_FULL else []), var=var)
    print(json.dumps(found))
    return found


def check(found: dict, *, overlap: int) -> None:
    n_questions = N_SLOTS // overlap
    n_disputed = n_questions // 10 if overlap > 1 else 0
    n_adjudications = min(n_disputed, 3)  # spare units
    assert found["errors"] == []
    assert found["false_empty"] == 0
    assert found["n_slots_done"] == found["n_counted"] == N_SLOTS
    assert found["n_slots_held"] == 0
    assert found["most_times_one_person_saw_a_question"] == 1
    assert found["most_slots_per_unit"] == 1
    assert found["n_adjudications"] == n_adjudications
    assert found["n_units_taken"] == N_SLOTS + n_adjudications <= found["n_units_granted"]
    assert found["n_gold"] == n_questions - n_disputed
    assert found["n_people_at_work"] > 1
    assert found["watched"]["n_samples"] > 5
    assert found["watched"]["n_overspent"] == found["watched"]["n_units_shared"] == 0
    assert found["watched"]["most_answers"] == overlap


@pytest.mark.parametrize("overlap", [1, 2])
def test_nobody_gets_anothers_slot_on_sqlite(tmp_path, overlap):
    found = annotators(f"sqlite:///{tmp_path / 'race.sqlite3'}", tmp_path, overlap=overlap)

    check(found, overlap=overlap)
    assert found["n_surplus"] == 0


@pytest.mark.parametrize("overlap", [1, 2] if IS_FULL else [2])
def test_what_killed_clients_held_comes_free_on_sqlite(tmp_path, overlap):
    database_url = f"sqlite:///{tmp_path / 'race.sqlite3'}"

    found = annotators(database_url, tmp_path, overlap=overlap, kill_every=KILLED_ONE_OF)

    check(found, overlap=overlap)
    assert found["n_killed"] >= found["n_clients"] // KILLED_ONE_OF // 2 > 0  # others found the work done


@pytest.mark.engines
@pytest.mark.parametrize("overlap", [1, 2] if IS_FULL else [2])
def test_nobody_gets_anothers_slot_on_postgresql(tmp_path, overlap, postgres_url):
    found = annotators(postgres_url, tmp_path, overlap=overlap)

    check(found, overlap=overlap)
    assert found["n_surplus"] == 0


@pytest.mark.engines
@pytest.mark.parametrize("overlap", [1, 2] if IS_FULL else [2])
def test_what_killed_clients_held_comes_free_on_postgresql(tmp_path, overlap, postgres_url):
    found = annotators(postgres_url, tmp_path, overlap=overlap, kill_every=KILLED_ONE_OF)

    check(found, overlap=overlap)
    assert found["n_killed"] >= found["n_clients"] // KILLED_ONE_OF // 2 > 0  # others found the work done


def check_rewards(found: dict) -> None:
    assert found["errors"] == []
    assert found["n_rejected"] == 0
    assert found["n_accepted"] == found["n_events"] == N_EVENTS
    assert found["n_repeated"] == (N_PROCESSES - 1) * N_EVENTS
    assert found["n_rollouts_believed"] == N_EVENTS * N_REWARDS
    assert found["n_proposals"] == N_EVENTS // N_IN_ONE_REQUEST
    assert found["proposals_agree"]


def test_rewards_that_eight_report_at_once_count_once_on_sqlite(tmp_path):
    check_rewards(race(f"sqlite:///{tmp_path / 'race.sqlite3'}", var=tmp_path, module="race_rewards"))


@pytest.mark.engines
def test_rewards_that_eight_report_at_once_count_once_on_postgresql(tmp_path, postgres_url):
    check_rewards(race(postgres_url, var=tmp_path, module="race_rewards"))


def check_budget(found: dict) -> None:
    assert found["errors"] == []
    assert found["wrong"] == []
    assert found["adds_up"]
    assert found["spent"] <= found["granted"] == 20 + found["done"].get("add", 0)
    assert found["done"]["open"] > 0
    assert found["done"]["answer"] > 0
    assert found["done"].get("refused: units_missing", 0) > 0


def test_no_way_of_spending_a_budget_spends_more_than_was_granted_on_sqlite(tmp_path):
    check_budget(race(f"sqlite:///{tmp_path / 'race.sqlite3'}", var=tmp_path, module="race_budget"))


@pytest.mark.engines
def test_no_way_of_spending_a_budget_spends_more_than_was_granted_on_postgresql(tmp_path, postgres_url):
    check_budget(race(postgres_url, var=tmp_path, module="race_budget"))
