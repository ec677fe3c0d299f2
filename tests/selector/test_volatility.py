"""Probing a question: what is asked, what is kept, and what is read."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selector.errors import EngineUnavailable, MissingCompletions, Stopped
from selector.generation.contract import Completion, CompletionKind, Prompt, SamplingSettings
from selector.generation.scripted import ScriptedCrashError, ScriptedEngine
from selector.volatility import CompletionShards, cut_positions, probe_questions, votes_of

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = SamplingSettings(max_tokens=50, probe_max_tokens=10)
PROMPTS = [Prompt(uid=f"q{i}", text=f"What is {i} + {i}?") for i in range(6)]
TRAJECTORY, PROBE, OUTCOME = CompletionKind.TRAJECTORY, CompletionKind.PROBE, CompletionKind.OUTCOME


def probe(engine, store, prompts=PROMPTS, **options):
    return probe_questions(
        engine,
        prompts,
        settings=SETTINGS,
        seed=7,
        store=store,
        **{"n_outcomes": 3, "n_probes": 4, "chunk_size": 5, **options},
    )


@pytest.fixture
def store(tmp_path):
    return CompletionShards(tmp_path / "completions")


def content(store):
    return {path.name: path.read_bytes() for path in store.path.iterdir()}


def completion(kind, index, text, **fields):
    return Completion(
        **{
            "uid": "q",
            "kind": kind,
            "index": index,
            "text": text,
            "n_tokens": 1,
            "n_prompt_tokens": 9,
            "finish_reason": "stop",
            **fields,
        }
    )


def test_cuts_of_an_hand_worked_trajectory():
    assert cut_positions(10, 4) == [3, 5, 8, 10]
    assert cut_positions(3, 5) == [1, 2, 2, 3, 3]
    assert cut_positions(0, 5) == []


@given(n_tokens=st.integers(1, 500), n_probes=st.integers(1, 40))
def test_cuts_never_go_back_and_end_at_the_whole_trajectory(n_tokens, n_probes):
    cuts = cut_positions(n_tokens, n_probes)

    assert len(cuts) == n_probes
    assert cuts == sorted(cuts)
    assert cuts[0] >= 1
    assert cuts[-1] == n_tokens


def test_everything_is_asked_once_and_equal_cuts_are_one_request(store):
    engine = ScriptedEngine()

    summary = probe(engine, store, n_probes=20)

    assert set(engine.asked.values()) == {1}
    for prompt in PROMPTS:
        kept = list(store.load([prompt.uid]))
        (trajectory,) = (c for c in kept if c.kind is TRAJECTORY)
        cuts = set(cut_positions(len(trajectory.token_ids), 20))
        assert {c.index for c in kept if c.kind is PROBE} == cuts
        assert {c.index for c in kept if c.kind is OUTCOME} == {0, 1, 2}
        assert len(votes_of(prompt.uid, kept, 3, 20).probe_answers) == 20
    assert summary.n_completions_made == engine.asked.total() == len(store.keys([p.uid for p in PROMPTS]))
    assert summary.tokens["outcomes"] == sum(
        c.n_tokens for c in store.load([p.uid for p in PROMPTS]) if c.kind is OUTCOME
    )


def test_probing_again_asks_nothing_and_more_outcomes_ask_only_for_those(store):
    first = probe(ScriptedEngine(), store)
    again, more = ScriptedEngine(), ScriptedEngine()

    summary = probe(again, store)
    probe(more, store, n_outcomes=5)

    assert again.asked.total() == 0
    assert summary.tokens == first.tokens
    assert set(more.asked) == {(p.uid, OUTCOME, i) for p in PROMPTS for i in (3, 4)}


def test_progress_reaches_the_total_of_every_stage_and_starts_at_what_is_stored(store):
    heard = []
    probe(ScriptedEngine(), store, prompts=PROMPTS[:2])

    probe(ScriptedEngine(), store, progress=lambda *report: heard.append(report))

    for stage in ("trajectories", "probes", "outcomes"):
        reports = [(done, total) for name, done, total in heard if name == stage]
        assert reports[-1][0] == reports[-1][1]
        assert reports[0][0] > 0
        assert reports == sorted(reports)
    assert heard[0] == ("trajectories", 2, 6)


@pytest.mark.parametrize("crash_after", [1, 7, 13, 30])
def test_after_a_crash_only_what_was_not_saved_is_asked_again(tmp_path, crash_after):
    path = tmp_path / "completions"
    crashing, resuming, untroubled = ScriptedEngine(crash_after=crash_after), ScriptedEngine(), ScriptedEngine()
    with pytest.raises(ScriptedCrashError):
        probe(crashing, CompletionShards(path))

    probe(resuming, CompletionShards(path))

    probe(untroubled, CompletionShards(tmp_path / "untroubled"))
    asked_twice = crashing.asked.total() + resuming.asked.total() - untroubled.asked.total()
    assert asked_twice == 0  # an exception leaves time to save; only a killed process loses its chunk
    assert votes(CompletionShards(path)) == votes(CompletionShards(tmp_path / "untroubled"))


def votes(store):
    return [votes_of(p.uid, store.load([p.uid]), 3, 4) for p in PROMPTS]


def test_a_killed_process_loses_at_most_the_chunk_in_flight(tmp_path):
    path = tmp_path / "completions"
    script = f"""
from pathlib import Path
from selector.generation.contract import Prompt, SamplingSettings
from selector.generation.scripted import ScriptedEngine
from selector.volatility import CompletionShards, probe_questions
prompts = [Prompt(f"q{{i}}", f"What is {{i}} + {{i}}?") for i in range(6)]
settings = SamplingSettings(max_tokens=50, probe_max_tokens=10)
store = CompletionShards(Path({str(path)!r}))
probe_questions(ScriptedEngine(delay_seconds=0.02), prompts, settings=settings, n_outcomes=3, n_probes=4, seed=7,
    store=store, chunk_size=5, progress=lambda stage, done, total: print(stage, done, flush=True))
"""
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.split() == ["probes", "10"]:
                os.kill(process.pid, signal.SIGKILL)
    resuming, untroubled = ScriptedEngine(), ScriptedEngine()

    n_saved = len(CompletionShards(path).keys([p.uid for p in PROMPTS]))
    probe(resuming, CompletionShards(path))

    probe(untroubled, CompletionShards(tmp_path / "untroubled"))
    assert process.returncode == -signal.SIGKILL
    assert n_saved >= 16
    assert resuming.asked.total() == untroubled.asked.total() - n_saved
    assert votes(CompletionShards(path)) == votes(CompletionShards(tmp_path / "untroubled"))


def test_an_engine_that_fails_keeps_what_came(store):
    with pytest.raises(EngineUnavailable):
        probe(ScriptedEngine(fails_half=True), store)

    assert len(store.keys([p.uid for p in PROMPTS])) == 3


def test_stopping_saves_first(store):
    n_calls = 0

    def should_stop():
        nonlocal n_calls
        n_calls += 1
        return n_calls > 3

    with pytest.raises(Stopped):
        probe(ScriptedEngine(), store, should_stop=should_stop)

    assert len(store.keys([p.uid for p in PROMPTS])) >= 10


def test_slow_completions_are_saved_before_a_chunk_is_full(store, monkeypatch):
    monkeypatch.setattr("selector.volatility.SECONDS_BETWEEN_SAVES", 0.05)
    heard = []

    probe(
        ScriptedEngine(delay_seconds=0.06),
        store,
        prompts=PROMPTS[:1],
        n_outcomes=3,
        chunk_size=1000,
        progress=lambda stage, done, total: heard.append((stage, done)),
    )

    assert [done for stage, done in heard if stage == "outcomes"] == [0, 1, 2, 3]


def test_a_store_that_refuses_is_not_offered_the_chunk_again(store):
    class LostLeaseError(Exception):
        pass

    class Refusing(CompletionShards):
        n_offers = 0

        def add(self, completions):
            Refusing.n_offers += 1
            raise LostLeaseError

    with pytest.raises(LostLeaseError):
        probe(ScriptedEngine(), Refusing(store.path))

    assert Refusing.n_offers == 1


def test_questions_set_aside_are_named_and_the_rest_goes_on(store):
    long = Prompt(uid="long", text="word " * 50)
    engine = ScriptedEngine(refused=["q3"], max_prompt_words=20)

    summary = probe(engine, store, prompts=[*PROMPTS, long])

    assert [(question.uid, question.code) for question in summary.set_aside] == [
        ("long", "prompt_too_long"),
        ("q3", "refused"),
    ]
    assert {uid for uid, _, _ in engine.asked} == {"q0", "q1", "q2", "q4", "q5"}
    assert store.keys(["long", "q3"]) == set()


def test_the_order_of_the_questions_does_not_matter(tmp_path):
    forward, backward = (CompletionShards(tmp_path / name) for name in ("forward", "backward"))

    probe(ScriptedEngine(), forward)
    probe(ScriptedEngine(), backward, prompts=PROMPTS[::-1])

    assert content(forward) == content(backward)


def test_votes_are_read_in_chain_order_with_equal_cuts_repeated():
    made = [
        completion(TRAJECTORY, 0, "a b", token_ids=(5, 6), n_tokens=3),
        completion(PROBE, 2, "\\frac{1}{2}} and so on"),
        completion(PROBE, 1, "never closed"),
        completion(OUTCOME, 1, "It is \\boxed{4}", n_tokens=40),
        completion(OUTCOME, 0, "", finish_reason="length", n_tokens=50),
        completion(OUTCOME, 0, "\\boxed{9}", uid="another"),
    ]

    votes = votes_of("q", made, n_outcomes=2, n_probes=4)

    assert votes.probe_answers == ("", "", "\\frac{1}{2}", "\\frac{1}{2}")
    assert votes.outcome_answers == ("", "4")
    assert (votes.prompt_tokens, votes.trajectory_tokens, votes.outcome_tokens) == (9, 3, (50, 40))


def test_an_empty_trajectory_gives_unread_probes():
    votes = votes_of("q", [completion(TRAJECTORY, 0, "")], n_outcomes=0, n_probes=3)

    assert votes.probe_answers == ("", "", "")


def test_probes_of_a_server_without_token_ids_are_read_as_whole_responses():
    made = [completion(TRAJECTORY, 0, "so 2"), completion(PROBE, 1, "\\boxed{1}"), completion(PROBE, 2, "\\boxed{2}.")]

    assert votes_of("q", made, n_outcomes=0, n_probes=2).probe_answers == ("1", "2")


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ([], TRAJECTORY),
        ([completion(TRAJECTORY, 0, "x", token_ids=(1,))], PROBE),
        ([completion(TRAJECTORY, 0, "x", token_ids=(1,)), completion(PROBE, 1, "1}")], OUTCOME),
    ],
)
def test_votes_are_not_made_of_half_the_evidence(made, kind):
    with pytest.raises(MissingCompletions) as caught:
        votes_of("q", made, n_outcomes=2, n_probes=1)

    assert (caught.value.uid, caught.value.kind) == ("q", kind)
