"""A model in this process: the same completions whatever the batch, and probes cut exactly."""

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from selector.answers import extract_answer
from selector.errors import InvalidConfig, ModelNotFound
from selector.generation import CompletionKind, Prompt, Request, SamplingSettings, open_engine
from selector.generation.decoding import Sampler, decode
from selector.tiny import MODEL_DIR
from selector.volatility import CompletionShards, probe_questions, votes_of

SETTINGS = SamplingSettings(temperature=1.0, max_tokens=60, probe_max_tokens=16)
PROMPTS = [Prompt(uid=f"q{i}", text=f"Compute {17 + i}+{28 * i}-{i}{'+1' * i}.") for i in range(6)]
OUTCOMES = [Request(prompt, CompletionKind.OUTCOME, index) for prompt in PROMPTS for index in range(4)]


@pytest.fixture(scope="module")
def engine():
    opened = open_engine("transformers", model="assay-tiny")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(MODEL_DIR, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(MODEL_DIR)


def texts(engine, requests, seed=3):
    return {(c.uid, c.index): c.text for c in engine.complete(requests, SETTINGS, seed)}


def rendered(tokenizer, text):
    return tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], add_generation_prompt=True, return_dict=False
    )


def test_greedy_text_is_what_generate_writes(engine, model, tokenizer):
    made = {c.uid: c for c in engine.complete([Request(p, CompletionKind.TRAJECTORY, 0) for p in PROMPTS], SETTINGS, 1)}

    for prompt in PROMPTS:
        ids = torch.tensor([rendered(tokenizer, prompt.text)])
        expected = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=60, do_sample=False)
        written = expected[0, ids.shape[1] :].tolist()
        assert list(made[prompt.uid].token_ids) == [i for i in written if i != tokenizer.eos_token_id]
        assert made[prompt.uid].n_prompt_tokens == ids.shape[1]
        assert made[prompt.uid].n_tokens == len(written)


def test_probes_continue_the_tokens_of_the_prompt_the_cut_and_the_suffix(engine, model, tokenizer):
    prompt = PROMPTS[3]
    (trajectory,) = engine.complete([Request(prompt, CompletionKind.TRAJECTORY, 0)], SETTINGS, 1)
    cuts = range(1, len(trajectory.token_ids) + 1)

    probes = list(
        engine.complete([Request(prompt, CompletionKind.PROBE, cut, trajectory.token_ids) for cut in cuts], SETTINGS, 1)
    )

    assert {p.index for p in probes} == set(cuts)
    suffix = tokenizer.encode("\nAnswer: \\boxed{", add_special_tokens=False)
    for probe in probes:
        ids = torch.tensor([[*rendered(tokenizer, prompt.text), *trajectory.token_ids[: probe.index], *suffix]])
        expected = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=16, do_sample=False)
        written = tokenizer.decode(expected[0, ids.shape[1] :], skip_special_tokens=True)
        assert probe.text == written.split("\n")[0]
        assert probe.n_prompt_tokens == ids.shape[1]


def test_a_sampled_completion_does_not_depend_on_its_batch(engine):
    together = texts(engine, OUTCOMES)
    small = open_engine("transformers", model="assay-tiny", batch_size=5)

    apart = texts(small, OUTCOMES[::-1])

    small.close()
    n_equal = sum(together[key] == apart[key] for key in together)
    assert n_equal >= len(together) - 2  # float ties may fall either way


def test_the_seed_decides_the_samples_and_indices_differ(engine):
    once, again, other = texts(engine, OUTCOMES), texts(engine, OUTCOMES), texts(engine, OUTCOMES, seed=4)

    assert once == again
    assert once != other
    assert len({once["q5", index] for index in range(4)}) > 1


def test_samples_follow_the_models_distribution(model):
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]]).repeat(20_000, 1)
    uniforms = torch.rand(20_000, generator=torch.Generator().manual_seed(1))

    drawn = Sampler(temperature=0.5, top_p=1.0).choose(logits, uniforms)
    nucleus = Sampler(temperature=1.0, top_p=0.8).choose(logits, uniforms)

    expected = torch.softmax(logits[0] / 0.5, -1)
    assert torch.allclose(drawn.bincount(minlength=4) / 20_000, expected, atol=0.01)
    kept = torch.softmax(logits[0, :2], -1)  # .64 + .24 reach .8
    assert torch.allclose(nucleus.bincount(minlength=4)[:2] / 20_000, kept, atol=0.01)
    assert set(nucleus.tolist()) == {0, 1}


def test_rows_of_all_lengths_write_what_they_write_alone(model):
    prompts = [list(range(5, 5 + n)) for n in (3, 30, 7, 90, 1)]
    ends = torch.zeros(model.config.vocab_size, dtype=torch.bool)
    ends[::7] = True  # rows finish at different times
    options = {"max_new_tokens": 40, "sampler": Sampler(0, 1), "ends": ends}

    def write(prompts, groups):
        written = dict(decode(model, prompts, groups=groups, seeds=[0] * len(prompts), **options))
        return [written[number] for number in range(len(prompts))]

    together, as_one_group = write(prompts, "abcde"), write(prompts, "aaaaa")
    alone = [write([prompt], "a")[0] for prompt in prompts]

    assert together == as_one_group == alone
    assert len({len(row) for row in alone}) > 1


def test_a_missing_model_is_named(tmp_path):
    with pytest.raises(ModelNotFound) as caught:
        open_engine("transformers", model=str(tmp_path / "nowhere"))

    assert caught.value.model == str(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ({"dtype": "float12"}, "dtype"),
        ({"batch_size": 0}, "batch_size"),
        ({"concurrency": 4}, "engine options"),
        ({"probe_layout": "mine"}, "probe_layout"),
    ],
)
def test_options_that_mean_nothing_are_named(options, setting):
    with pytest.raises(InvalidConfig) as caught:
        open_engine("transformers", model="assay-tiny", **options)

    assert caught.value.setting == setting


def test_an_engine_nobody_knows_is_refused():
    with pytest.raises(InvalidConfig) as caught:
        open_engine("oracle", model="x")

    assert "transformers, openai, vllm" in str(caught.value)


def test_the_tiny_model_is_asked_the_bare_question_and_an_instruction_changes_the_fingerprint(engine):
    instructed = open_engine("transformers", model="assay-tiny", instruction="Think.")
    by_path = open_engine("transformers", model=str(MODEL_DIR))

    assert engine.describe(SETTINGS)["instruction"] == by_path.describe(SETTINGS)["instruction"] == ""
    assert instructed.describe(SETTINGS)["instruction"] == "Think."
    assert instructed.fingerprint(SETTINGS) != engine.fingerprint(SETTINGS)
    for opened in (instructed, by_path):
        opened.close()


def test_by_the_authors_layout_the_whole_response_is_the_answer(tmp_path):
    authors = open_engine("transformers", model="assay-tiny", probe_layout="authors")
    ours = open_engine("transformers", model="assay-tiny")
    store = CompletionShards(tmp_path / "completions")

    probe_questions(authors, PROMPTS[:2], settings=SETTINGS, n_outcomes=1, n_probes=3, seed=1, store=store)

    made = list(store.load(["q0"]))
    probes = [each for each in made if each.kind is CompletionKind.PROBE]
    assert len(probes) == 3
    (chain,) = (each for each in made if each.kind is CompletionKind.TRAJECTORY)
    assert all(each.n_prompt_tokens > chain.n_prompt_tokens + each.index + 20 for each in probes)
    assert votes_of("q0", made, 1, 3, whole_replies=True).probe_answers == tuple(
        extract_answer(each.text) for each in sorted(probes, key=lambda each: each.index)
    )
    assert authors.fingerprint(SETTINGS) != ours.fingerprint(SETTINGS)
    for engine in (authors, ours):
        engine.close()
