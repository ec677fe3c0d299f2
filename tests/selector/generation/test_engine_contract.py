"""What every engine does, asked of the shipped fake, of a model in this process, and of a real vLLM server.

vLLM in this process is asked where it can be loaded; test_vllm_local.py sees to that.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec

import pytest

from selector.errors import InvalidConfig
from selector.generation import Completion, CompletionKind, Engine, Prompt, Request, SamplingSettings, open_engine
from selector.generation.scripted import ScriptedEngine
from selector.tiny import MODEL_DIR
from selector.volatility import CompletionShards, cut_positions, probe_questions, votes_of
from tests.conftest import skip_or_fail
from tests.engines import EngineMissingError, vllm_server

SETTINGS = SamplingSettings(temperature=1.0, max_tokens=60, probe_max_tokens=16)
PROMPTS = [
    Prompt(uid="bare", text="Compute 37+48-12."),
    Prompt(
        uid="story", text="Ann has 12 apples. She buys 7 apples and eats 4 apples. How many apples does Ann have now?"
    ),
    Prompt(uid="choices", text="Compute 2+3.", choices=("4", "5", "6")),
]
LONG = Prompt(uid="long", text="Compute " + "+".join(["17"] * 300) + ".")
TRAJECTORY, PROBE, OUTCOME = CompletionKind.TRAJECTORY, CompletionKind.PROBE, CompletionKind.OUTCOME


VLLM_MARKS = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("vllm")]
VLLM = [pytest.param("openai", marks=VLLM_MARKS)]
if find_spec("vllm"):
    VLLM.append(pytest.param("vllm", marks=VLLM_MARKS))


@pytest.fixture(scope="module", params=["scripted", "transformers", *VLLM])
def engine(request) -> Iterator[Engine]:
    with ExitStack() as stack:
        if request.param == "scripted":
            opened: Engine = ScriptedEngine(max_prompt_words=40)
        elif request.param == "transformers":
            opened = open_engine("transformers", model="assay-tiny", batch_size=8)
        elif request.param == "vllm":
            opened = open_engine("vllm", model="assay-tiny")
        else:
            try:
                url = stack.enter_context(vllm_server(MODEL_DIR, name="assay-tiny"))
            except EngineMissingError as missing:
                skip_or_fail(str(missing))
            opened = open_engine("openai", model="assay-tiny", base_url=url)
        stack.callback(opened.close)
        yield opened


def long_for(engine: Engine) -> Prompt:
    return Prompt(uid="long", text="word " * 50) if isinstance(engine, ScriptedEngine) else LONG


def complete(
    engine: Engine, *requests: Request, settings: SamplingSettings = SETTINGS, seed: int = 5
) -> list[Completion]:
    results = list(engine.complete(requests, settings, seed))
    assert all(isinstance(result, Completion) for result in results)
    return results


def trajectory_of(engine: Engine, prompt: Prompt) -> Completion:
    (trajectory,) = complete(engine, Request(prompt, TRAJECTORY, 0))
    return trajectory


def test_every_request_gets_one_completion_whatever_the_mixture(engine):
    trajectory = trajectory_of(engine, PROMPTS[1])
    requests = [
        *(Request(prompt, OUTCOME, index) for index in range(5) for prompt in PROMPTS),
        Request(PROMPTS[0], TRAJECTORY, 0),
        *(Request(PROMPTS[1], PROBE, cut, trajectory.token_ids, trajectory.text) for cut in (1, 3)),
    ]

    made = complete(engine, *requests)

    assert sorted((c.uid, c.kind, c.index) for c in made) == sorted((r.prompt.uid, r.kind, r.index) for r in requests)
    assert all(c.n_tokens > 0 and c.n_prompt_tokens > 0 and c.finish_reason in ("stop", "length") for c in made)


def test_only_trajectories_carry_token_ids_and_none_of_them_ends_the_text(engine):
    trajectory = trajectory_of(engine, PROMPTS[1])
    (outcome,) = complete(engine, Request(PROMPTS[1], OUTCOME, 0))

    assert 0 < len(trajectory.token_ids) <= trajectory.n_tokens
    assert outcome.token_ids == ()


def test_a_limit_cuts_and_says_so(engine):
    settings = SamplingSettings(temperature=1.0, max_tokens=2, probe_max_tokens=1)

    made = complete(engine, *(Request(PROMPTS[1], OUTCOME, index) for index in range(4)), settings=settings)

    cut = [c for c in made if c.finish_reason == "length"]
    assert cut
    assert {c.n_tokens for c in cut} == {2}


def test_probes_answer_within_a_line_and_know_how_much_they_were_given(engine):
    trajectory = trajectory_of(engine, PROMPTS[1])
    cuts = sorted(set(cut_positions(len(trajectory.token_ids), 6)))

    made = complete(engine, *(Request(PROMPTS[1], PROBE, cut, trajectory.token_ids, trajectory.text) for cut in cuts))

    by_cut = sorted(made, key=lambda c: c.index)
    assert [c.index for c in by_cut] == cuts
    assert not any("\n" in c.text for c in made)
    lengths = [c.n_prompt_tokens for c in by_cut]
    assert [length - lengths[0] for length in lengths] == [cut - cuts[0] for cut in cuts]


def test_a_whole_question_is_probed_and_read(engine, tmp_path):
    store = CompletionShards(tmp_path / "completions")

    summary = probe_questions(
        engine, PROMPTS, settings=SETTINGS, n_outcomes=4, n_probes=5, seed=3, store=store, chunk_size=7
    )

    votes = [votes_of(prompt.uid, store.load([prompt.uid]), 4, 5) for prompt in PROMPTS]
    assert summary.set_aside == []
    assert all((len(v.outcome_answers), len(v.probe_answers)) == (4, 5) for v in votes)
    n_read = sum(answer != "" for v in votes for answer in v.outcome_answers + v.probe_answers)
    assert n_read > 0.6 * 27


def test_prompts_too_long_are_named_and_the_others_are_not(engine):
    long = long_for(engine)

    (found,) = engine.set_aside([*PROMPTS, long], SETTINGS)

    assert (found.uid, found.code) == ("long", "prompt_too_long")
    assert any(character.isdigit() for character in found.message)


def test_a_limit_beyond_the_context_is_a_setting_to_change(engine):
    if isinstance(engine, ScriptedEngine):
        pytest.skip("the script has no context")

    with pytest.raises(InvalidConfig) as caught:
        engine.set_aside(PROMPTS, SamplingSettings(max_tokens=100_000))

    assert caught.value.setting == "max_tokens"


def test_the_fingerprint_follows_the_settings_and_nothing_else(engine):
    assert engine.fingerprint(SETTINGS) == engine.fingerprint(SamplingSettings(**vars(SETTINGS)))
    others = [
        SamplingSettings(temperature=0.9, max_tokens=60, probe_max_tokens=16),
        SamplingSettings(temperature=1.0, top_p=0.9, max_tokens=60, probe_max_tokens=16),
        SamplingSettings(temperature=1.0, max_tokens=61, probe_max_tokens=16),
        SamplingSettings(temperature=1.0, max_tokens=60, probe_max_tokens=17),
    ]
    assert len({engine.fingerprint(settings) for settings in [SETTINGS, *others]}) == 5
    named = engine.describe(SETTINGS)
    assert {"engine", "model", "temperature", "top_p", "max_tokens", "probe_max_tokens"} <= set(named)
    assert not any("http" in str(value) or "/" in str(value) for value in named.values())


def test_asking_for_nothing_gives_nothing(engine):
    assert complete(engine) == []


def test_leaving_early_leaves_the_engine_usable(engine):
    results = engine.complete(
        [Request(prompt, OUTCOME, index) for prompt in PROMPTS for index in range(20)], SETTINGS, 1
    )
    next(results)
    results.close()

    assert len(complete(engine, Request(PROMPTS[0], OUTCOME, 0))) == 1


def test_what_the_models_authors_recommend_is_told(engine):
    recommended = engine.recommended_sampling()

    assert recommended.get("temperature", 1.0) == 1.0
