"""vLLM in this process, beyond the contract of engines. Run where vLLM can be loaded, by test_vllm_local.py."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator

import pytest

from selector.errors import EngineUnavailable, InvalidConfig
from selector.generation import Completion, CompletionKind, Prompt, Request, SamplingSettings, SetAside, open_engine
from selector.generation.vllm_local import VLLMEngine
from selector.volatility import cut_positions

SETTINGS = SamplingSettings(temperature=1.0, max_tokens=60, probe_max_tokens=16)
TRAJECTORY, PROBE, OUTCOME = CompletionKind.TRAJECTORY, CompletionKind.PROBE, CompletionKind.OUTCOME
PROMPTS = [Prompt(uid=f"q{i}", text=f"Compute {17 + i}+{28 * i}-{i}.") for i in range(4)]
REFUSED = Prompt(uid="refused", text="Compute " + "+".join(["17"] * 300) + ".")


@pytest.fixture(scope="module")
def engine() -> Iterator[VLLMEngine]:
    opened = open_engine("vllm", model="assay-tiny")
    yield opened
    opened.close()


def test_what_comes_later_is_answered_before_what_is_long(engine):
    slow = SamplingSettings(temperature=1.0, max_tokens=60)
    feed = engine.feed(slow, 1)
    started = time.perf_counter()
    feed.submit([Request(PROMPTS[0], OUTCOME, index) for index in range(400)])
    assert feed.results(timeout=0.01) == []

    feed.submit([Request(PROMPTS[1], PROBE, 1, (5,))])
    first = feed.results()
    seconds_to_first = time.perf_counter() - started
    rest = []
    while feed.n_in_flight:
        rest += feed.results()

    assert [(each.uid, each.kind) for each in first] == [("q1", PROBE)]
    assert seconds_to_first < time.perf_counter() - started
    assert sorted(each.index for each in rest) == list(range(400))
    feed.close()


def test_a_question_refused_is_set_aside_once_and_the_others_are_answered(engine):
    requests = [Request(prompt, OUTCOME, index) for prompt in (*PROMPTS, REFUSED) for index in range(3)]
    requests.append(Request(REFUSED, TRAJECTORY, 0))

    results = list(engine.complete(requests, SETTINGS, 1))

    (aside,) = [each for each in results if isinstance(each, SetAside)]
    assert (aside.uid, aside.code) == ("refused", "refused")
    assert "256" in aside.message  # the context
    assert sorted((each.uid, each.index) for each in results if isinstance(each, Completion)) == [
        (prompt.uid, index) for prompt in PROMPTS for index in range(3)
    ]


def test_outcomes_differ_and_at_temperature_zero_they_do_not(engine):
    requests = [Request(PROMPTS[3], OUTCOME, index) for index in range(12)]

    sampled = {each.text for each in engine.complete(requests, SETTINGS, 1)}
    greedy = {each.text for each in engine.complete(requests, SamplingSettings(temperature=0, max_tokens=60), 1)}

    assert len(sampled) > 1
    assert len(greedy) == 1


def test_what_it_writes_is_what_transformers_write(engine):
    requests = [Request(prompt, TRAJECTORY, 0) for prompt in PROMPTS]
    other = open_engine("transformers", model="assay-tiny")

    ours = {each.uid: each for each in engine.complete(requests, SETTINGS, 1)}
    theirs = {each.uid: each for each in other.complete(requests, SETTINGS, 1)}

    assert {uid: each.token_ids for uid, each in ours.items()} == {uid: each.token_ids for uid, each in theirs.items()}
    cuts = cut_positions(len(ours["q2"].token_ids), 5)
    probes = [Request(PROMPTS[2], PROBE, cut, ours["q2"].token_ids) for cut in sorted(set(cuts))]
    by_ours, by_theirs = (
        {each.index: (each.text, each.n_tokens, each.n_prompt_tokens) for each in which.complete(probes, SETTINGS, 1)}
        for which in (engine, other)
    )
    assert by_ours == by_theirs
    same = set(engine.describe(SETTINGS).items()) ^ set(other.describe(SETTINGS).items())
    assert {name for name, _ in same} == {"engine"}
    other.close()


def test_a_closed_feed_gives_nothing_and_leaves_nothing_behind(engine):
    feed = engine.feed(SETTINGS, 1)
    feed.submit([Request(prompt, OUTCOME, index) for prompt in PROMPTS for index in range(100)])

    feed.close()
    feed.close()

    assert feed.results() == []
    deadline = time.monotonic() + 30
    while engine._running.output_processor.has_unfinished_requests() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not engine._running.output_processor.has_unfinished_requests()
    with pytest.raises(ValueError):
        feed.submit([Request(PROMPTS[0], OUTCOME, 0)])


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ({"engine_args": {"colour": "blue"}}, "engine_args"),
        ({"max_model_len": 10**6}, "the engine's options"),
        ({"dtype": "float12"}, "the engine's options"),
        ({"data_parallel_size": 0}, "data_parallel_size"),
        ({"probe_layout": "other"}, "probe_layout"),
    ],
)
def test_options_that_mean_nothing_are_named(options, setting):
    with pytest.raises(InvalidConfig) as caught:
        open_engine("vllm", model="assay-tiny", **options)

    assert caught.value.setting == setting


def test_a_dead_engine_is_said_and_what_was_answered_stays_good():
    mortal = open_engine("vllm", model="assay-tiny")
    feed = mortal.feed(SETTINGS, 1)
    feed.submit([Request(PROMPTS[0], TRAJECTORY, 0)])
    (answered,) = feed.results()
    feed.submit([Request(prompt, OUTCOME, index) for prompt in PROMPTS for index in range(200)])
    for process in mortal._running.engine_core.resources.engine_manager.processes:
        os.kill(process.pid, signal.SIGKILL)

    with pytest.raises(EngineUnavailable):
        list(iter(feed.results, []))
    with pytest.raises(EngineUnavailable):
        list(mortal.complete([Request(PROMPTS[0], OUTCOME, 0)], SETTINGS, 1))

    assert answered.uid == "q0"
    mortal.close()
    assert mortal._loop.is_closed()
    assert not asyncio.all_tasks(mortal._loop)
