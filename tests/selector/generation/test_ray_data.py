"""The model of the other engines on a Ray cluster of this machine: the same contract, and a worker that is killed."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress

import pytest

from selector.errors import EngineUnavailable
from selector.generation import open_engine
from tests.conftest import skip_or_fail
from tests.engines import ROOT, VLLM_PYTHON, on_many_machines, vllm_environment


def on_ray(test):
    return on_many_machines(
        pytest.mark.xdist_group("vllm")(pytest.mark.vllm(pytest.mark.slow(pytest.mark.timeout(900)(test))))
    )


def run_script(what: str) -> dict:
    """Run a part of ray_script where Ray and vLLM are installed, and end whatever it leaves behind."""
    if not (VLLM_PYTHON.parents[1] / ".installed").exists():
        skip_or_fail("vLLM and Ray are not installed in .venv-vllm: run .ci/vllm.sh")
    process = subprocess.Popen(
        [VLLM_PYTHON, "-m", "tests.selector.generation.ray_script", what],
        cwd=ROOT,
        env={**vllm_environment(), "RAY_USAGE_STATS_ENABLED": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=600)
    finally:
        with suppress(ProcessLookupError):  # nothing is left
            os.killpg(process.pid, signal.SIGKILL)
    lines = [line for line in output.splitlines() if line.startswith("RESULT ")]
    assert lines, output[-4000:]
    return json.loads(lines[-1].removeprefix("RESULT "))


def test_without_ray_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "selector.generation.ray_data", raising=False)

    with pytest.raises(EngineUnavailable, match=r"pip install 'assay-rlvr\[ray,vllm\]'"):
        open_engine("ray", model="assay-tiny")


def made(results):
    return [result for result in results if result["type"] == "Completion"]


def keys(results):
    return Counter((c["uid"], c["kind"], c["index"]) for c in made(results))


@on_ray
def test_the_contract_of_all_engines_holds_on_ray_and_a_bad_row_fails_nothing_else():
    found = run_script("contract")

    wanted = [(uid, "outcome", index) for uid in ("bare", "story", "choices") for index in range(5)]
    assert keys(found["first"]) == Counter([*wanted, *((uid, "trajectory", 0) for uid in ("bare", "story", "choices"))])
    assert [(r["uid"], r["code"]) for r in found["first"] if r["type"] == "SetAside"] == [("long", "refused")]
    assert all(c["n_tokens"] > 0 and c["n_prompt_tokens"] > 0 for c in made(found["first"]))
    assert {bool(c["token_ids"]) for c in made(found["first"]) if c["kind"] == "trajectory"} == {True}
    assert {bool(c["token_ids"]) for c in made(found["first"]) if c["kind"] == "outcome"} == {False}
    assert len({c["text"] for c in made(found["first"]) if c["kind"] == "outcome" and c["uid"] == "story"}) > 1

    probes = sorted((c for c in made(found["short"]) if c["kind"] == "probe"), key=lambda c: c["index"])
    assert [c["index"] for c in probes] == found["cuts"]
    assert not any("\n" in c["text"] for c in probes)
    lengths = [c["n_prompt_tokens"] for c in probes]
    assert [length - lengths[0] for length in lengths] == [cut - found["cuts"][0] for cut in found["cuts"]]
    assert all(c["finish_reason"] == "stop" for c in probes)
    assert {(c["finish_reason"], c["n_tokens"]) for c in made(found["short"]) if c["kind"] == "outcome"} == {
        ("length", 2)
    }

    assert found["set_aside"] == ["long"]
    assert len(set(found["fingerprints"])) == 2


@on_ray
def test_a_killed_worker_loses_no_answer_and_none_is_given_twice():
    found = run_script("killed")

    assert found["is_gone"]
    assert keys(found["results"]) == Counter((f"q{i}", "outcome", index) for i in range(20) for index in range(8))
