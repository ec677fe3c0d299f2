"""Two real vLLM servers of one model, one of them killed in the middle of a run."""

import os
import re
import signal
import subprocess
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial

import pytest

from selector.generation import CompletionKind, Prompt, Request, SamplingSettings, open_engine
from selector.tiny import MODEL_DIR
from tests.conftest import skip_or_fail
from tests.engines import EngineMissingError, on_many_machines, vllm_server

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("vllm"),
    on_many_machines,
]
SETTINGS = SamplingSettings(temperature=1.0, max_tokens=60, probe_max_tokens=16)
N_QUESTIONS, N_OUTCOMES, AT_ONCE = 60, 8, 32


def n_answered(url: str) -> int:
    """How many completions a server has made to their end."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/metrics", timeout=30) as page:
        text = page.read().decode()
    return int(sum(float(n) for n in re.findall(r"^vllm:request_success_total\{.*\} (\S+)$", text, re.MULTILINE)))


def test_a_run_on_two_servers_outlives_a_killed_one_and_gets_every_answer_once():
    prompts = [Prompt(uid=f"q{i}", text=f"Compute {17 + i}+{3 * i}-{i}.") for i in range(N_QUESTIONS)]
    wanted = [Request(prompt, CompletionKind.OUTCOME, index) for prompt in prompts for index in range(N_OUTCOMES)]
    processes: dict[str, subprocess.Popen[bytes]] = {}
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:

        def start(name: str) -> tuple[str, str]:
            started = partial(processes.__setitem__, name)
            return name, stack.enter_context(vllm_server(MODEL_DIR, name="assay-tiny", started=started))

        try:
            urls = dict(pool.map(start, ["mortal", "other"]))
        except EngineMissingError as missing:
            skip_or_fail(str(missing))
        engine = open_engine("openai", model="assay-tiny", base_url=list(urls.values()), concurrency=AT_ONCE)
        with closing(engine), closing(engine.feed(SETTINGS, 1)) as feed:
            n_before = {name: n_answered(url) for name, url in urls.items()}
            feed.submit(wanted)
            made = feed.results()
            while n_answered(urls["mortal"]) == n_before["mortal"]:
                made += feed.results(timeout=1)
            n_by_mortal = n_answered(urls["mortal"]) - n_before["mortal"]
            os.killpg(processes["mortal"].pid, signal.SIGKILL)
            n_open = feed.n_in_flight
            while feed.n_in_flight:
                made += feed.results()
            n_by_other = n_answered(urls["other"]) - n_before["other"]

    assert n_open > AT_ONCE  # it was the middle
    assert Counter((c.uid, c.index) for c in made) == Counter((r.prompt.uid, r.index) for r in wanted)
    assert len(wanted) - 2 * AT_ONCE <= n_by_mortal + n_by_other <= len(wanted) + AT_ONCE
