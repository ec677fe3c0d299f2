"""A worker is killed in the middle of a run, another takes over: nothing is lost, and the picks are the same."""

import json
import re
import signal
from collections import Counter
from typing import Any

import pytest

from tests.journeys.command_line import CommandLine, wait_until

pytestmark = pytest.mark.slow
N_QUESTIONS, N_ANSWERS = 24, 6
SELECT = ("select", "--pool", "sums", "--calibration", "known", "--budget", "4", "--alpha", "0.5", "--embedder", "")
SELECT = (*SELECT, "--outcomes", str(N_ANSWERS), "--probes", str(N_ANSWERS), "--json")


@pytest.fixture(scope="module")
def fresh_site(tmp_path_factory) -> CommandLine:
    """A pool and a calibration set of sums, with clusters of their own, and three models that answer alike."""
    site = CommandLine(tmp_path_factory.mktemp("site"), ASSAY_LEASE_SECONDS="2")
    site.migrate()
    questions = [{"id": f"q{n}", "question": f"What is {n} + {n * n}?", "cluster": n % 4} for n in range(N_QUESTIONS)]
    site.import_questions(questions, pool="sums")
    items = [{"question": f"What is {n} - {n * n}?", "answer": str(1 + n % 4)} for n in range(N_QUESTIONS)]
    site.import_calibration(items, name="known")
    for name, options in (("slow", {"delay_seconds": 0.03}), ("quick", {}), ("silent", {"crash_after": 0})):
        site.run("add_policy_model", name, "--engine", "scripted", "--model", "m", "--options", json.dumps(options))
    return site


@pytest.fixture
def site(fresh_site, tmp_path):
    copy = fresh_site.copied_to(tmp_path / "site")
    yield copy
    copy.close()


def start(site: CommandLine, model: str, *more: str) -> dict[str, Any]:
    return json.loads(site.run(*SELECT, "--model", model, *more))


def n_stored(site: CommandLine, kind: str) -> int:
    ((count,),) = site.rows("SELECT count(*) FROM labeling_storedcompletion WHERE kind = ?", kind)
    return count


def test_a_killed_workers_run_is_finished_by_another_with_the_same_picks(site, fresh_site, tmp_path):
    run = start(site, "slow")["run"]
    victim = site.start_worker()
    wait_until(lambda: site.status(run)[1] == "pool: probes", what="the run probes the pool", timeout_seconds=90)
    victim.send_signal(signal.SIGKILL)
    victim.wait(timeout=120)
    assert site.status(run)[0] == "running"
    n_before = n_stored(site, "probe")
    n_outcomes_before = n_stored(site, "outcome")

    site.start_worker()
    wait_until(lambda: site.status(run)[0] not in {"running", "queued"}, what="the run ends", timeout_seconds=120)

    assert site.status(run) == ("finished", "scoring", "")
    stages = site.stages(run)
    assert stages["calibration: outcomes"]["done_before"] == n_outcomes_before == N_QUESTIONS * N_ANSWERS
    assert stages["pool: trajectories"]["done_before"] == N_QUESTIONS
    n_probes_of_calibration = stages["calibration: probes"]["total"]
    assert stages["pool: probes"]["done_before"] == n_before - n_probes_of_calibration

    again = start(site, "silent", "--wait")  # a model that would crash if it were asked anything
    assert again["status"] == "finished"
    assert site.picks(run) == site.picks(again["run"])
    assert len(site.picks(run)) == 4

    undisturbed = fresh_site.copied_to(tmp_path / "undisturbed")
    assert site.picks(run) == undisturbed.picks(start(undisturbed, "quick", "--wait")["run"])


def test_a_worker_told_to_stop_saves_what_it_has_and_puts_the_run_back(site):
    run = start(site, "slow")["run"]
    worker = site.start_worker()
    wait_until(lambda: site.status(run)[1] == "calibration: probes", what="the run has begun", timeout_seconds=90)

    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=120) == 0

    assert site.status(run)[0] == "queued"
    assert n_stored(site, "trajectory") == N_QUESTIONS


def test_workers_share_the_runs_without_executing_any_twice(site):
    runs = [start(site, "quick", "--seed", str(seed))["run"] for seed in range(5)]

    workers = [site.start_worker("--once") for _ in range(3)]
    logs = [worker.communicate(timeout=120)[1] for worker in workers]

    assert {site.status(run)[0] for run in runs} == {"finished"}
    attempts = Counter(re.findall(r"Selection run (\d+): attempt", "".join(logs)))
    assert attempts == {str(run): 1 for run in runs}
