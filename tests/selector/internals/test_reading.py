"""One streamed pass shows what a plain one shows, and costs little memory."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from selector.errors import InternalsUnavailable, MissingCompletions, Stopped
from selector.internals import JsonlInternalsStore, attention, reading
from selector.internals.pivots import window_for
from selector.internals.reading import ModelReader, read_internals
from tests.selector.internals.conftest import PROMPTS, chains, plain_pass

TOLERANCE = 1e-4


def check_reading(found, model, ids, n_prompt):
    hidden, maps, logs = plain_pass(model, ids, n_prompt)
    before = logs[n_prompt - 1 : -1]
    distances = torch.arange(n_prompt, len(ids))[:, None] - torch.arange(len(ids))
    uniform = torch.full_like(before, 1 / before.shape[1])
    expected = {
        "start": hidden[:, n_prompt].mean(0),
        "end": hidden[:, -1].mean(0),
        "prompt_hidden": hidden[-1, n_prompt - 1],
        "first_probabilities": logs[n_prompt - 1].exp(),
        "token_entropy": -(before.exp() * before).sum(-1),
        "self_certainty": (uniform * (uniform.log() - before)).sum(-1),
        "far": (maps * (distances > window_for(len(ids))))[..., 1:].sum(-1),
    }
    for name, value in expected.items():
        torch.testing.assert_close(getattr(found, name), value, atol=TOLERANCE, rtol=TOLERANCE)
    spans = (maps * distances)[..., 1:].sum(-1).mean(-1)
    torch.testing.assert_close(found.spans, spans, atol=1e-3, rtol=TOLERANCE)  # sums over hundreds of tokens


def check_like_a_plain_pass(engine, prompts, max_tokens):
    reader = ModelReader(engine.model, engine.layout)
    made = chains(engine, prompts, max_tokens)
    for prompt in prompts:
        prompt_ids, chain = engine.layout.prompt_ids(prompt), made[prompt.uid].token_ids
        check_reading(reader.pass_over(prompt_ids, chain), engine.model, [*prompt_ids, *chain], len(prompt_ids))


def test_the_tiny_model_reads_as_in_a_plain_pass(tiny):
    check_like_a_plain_pass(tiny, PROMPTS, 60)


@pytest.mark.engines
def test_smollm2_reads_as_in_a_plain_pass(smollm2):
    check_like_a_plain_pass(smollm2, PROMPTS[:3], 120)


TINY_SIZES = {"vocab_size": 90, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
LLAMA_SIZES = {**TINY_SIZES, "intermediate_size": 48, "num_key_value_heads": 2, "head_dim": 8}


def random_model(architecture):
    torch.manual_seed(1)
    configs = {
        "llama": lambda: transformers.LlamaConfig(**LLAMA_SIZES),
        "qwen2": lambda: transformers.Qwen2Config(**LLAMA_SIZES),
        "qwen3": lambda: transformers.Qwen3Config(**LLAMA_SIZES),
        "mistral, sliding": lambda: transformers.MistralConfig(**LLAMA_SIZES, sliding_window=20),
        "gemma2, capped": lambda: transformers.Gemma2Config(**LLAMA_SIZES, sliding_window=16),
        "granite, scaled": lambda: transformers.GraniteConfig(**LLAMA_SIZES, logits_scaling=4.0),
        "gpt2": lambda: transformers.GPT2Config(vocab_size=90, n_embd=32, n_layer=3, n_head=4),
        "bloom": lambda: transformers.BloomConfig(vocab_size=90, hidden_size=32, n_layer=3, n_head=4),
    }
    return transformers.AutoModelForCausalLM.from_config(configs[architecture](), dtype=torch.float32).eval()


@pytest.mark.parametrize(
    "architecture", ["llama", "qwen2", "qwen3", "mistral, sliding", "gemma2, capped", "granite, scaled", "gpt2"]
)
def test_any_architecture_with_exchangeable_attention_reads_as_in_a_plain_pass(tiny, architecture, monkeypatch):
    monkeypatch.setattr(attention, "BLOCK_ELEMENTS", 500)  # several blocks of rows to a map
    monkeypatch.setattr(reading, "LOGITS_AT_ONCE", 90 * 7)
    model = random_model(architecture)
    ids = torch.randint(0, 90, (70,), generator=torch.Generator().manual_seed(2)).tolist()

    found = ModelReader(model, tiny.layout).pass_over(ids[:25], ids[25:])

    check_reading(found, model, ids, 25)
    assert model.config._attn_implementation != attention.NAME


def test_an_architecture_that_hides_its_attention_still_shows_hidden_states(tiny):
    model = random_model("bloom")
    ids = list(range(40))

    found = ModelReader(model, tiny.layout).pass_over(ids[:25], ids[25:])

    hidden, _, logs = plain_pass(model, ids, 25, attentions=False)
    torch.testing.assert_close(found.end, hidden[:, -1].mean(0), atol=TOLERANCE, rtol=TOLERANCE)
    torch.testing.assert_close(found.first_probabilities, logs[24].exp(), atol=TOLERANCE, rtol=TOLERANCE)
    assert found.spans is None


def test_a_row_has_every_measure_and_blank_ones_for_an_empty_chain(tiny):
    reader = ModelReader(tiny.model, tiny.layout)
    chain = chains(tiny)["q2"]

    row = reader.read(PROMPTS[2], chain, "f")
    empty = reader.read(PROMPTS[2], replace(chain, token_ids=(), text=""), "f")
    cut = reader.read(PROMPTS[2], replace(chain, finish_reason="length"), "f")

    reading_ = reader.pass_over(tiny.layout.prompt_ids(PROMPTS[2]), chain.token_ids)
    n = len(chain.token_ids)
    quarter = reading_.token_entropy[: math.ceil(n / 4)]
    assert row.n_response_tokens.tolist() == [n]
    assert row.prefix_token_entropy[0] == pytest.approx(float(quarter.mean()), rel=1e-5)
    assert row.mean_token_entropy[0] == pytest.approx(float(reading_.token_entropy.mean()), rel=1e-5)
    assert row.top_probabilities.shape == (1, 256)
    assert (np.diff(row.top_probabilities[0]) <= 0).all()
    assert row.top_tokens[0, 0] == int(reading_.first_probabilities.argmax())
    assert (row.is_truncated.tolist(), cut.is_truncated.tolist()) == ([False], [True])
    assert not empty.start.any()
    assert (empty.n_pivots.tolist(), empty.mean_token_entropy.tolist()) == ([0], [0.0])
    np.testing.assert_allclose(empty.prompt_hidden, row.prompt_hidden, atol=TOLERANCE)
    np.testing.assert_allclose(empty.top_probabilities, row.top_probabilities, atol=TOLERANCE)


def test_a_chain_of_thought_is_read_between_its_delimiters(tiny):
    reader = ModelReader(tiny.model, tiny.layout)
    reader._thinking = (50, 51)

    assert reader._anchors([50, 7, 8, 51, 9]) == (0, 3)
    assert reader._anchors([7, 8, 51, 9]) == (0, 2)  # the prompt ended with the opening one
    assert reader._anchors([6, 50, 7]) == (1, 2)  # cut off while thinking
    assert reader._anchors([7, 8]) == (0, 1)


def test_a_chain_stored_as_text_is_refused(tiny):
    chain = replace(chains(tiny)["q1"], token_ids=())

    with pytest.raises(InternalsUnavailable) as caught:
        ModelReader(tiny.model, tiny.layout).read(PROMPTS[1], chain, "f")

    assert "q1" in str(caught.value)


def test_numbers_that_are_not_finite_are_refused(tiny):
    chain, model = chains(tiny)["q0"], copy.deepcopy(tiny.model)
    model.model.norm.weight.data[0] = torch.nan

    with pytest.raises(InternalsUnavailable) as caught:
        ModelReader(model, tiny.layout).read(PROMPTS[0], chain, "f")

    assert "float32" in str(caught.value)


def test_reading_goes_on_where_it_stopped(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "QUESTIONS_BETWEEN_SAVES", 1)
    trajectories, seen = chains(tiny), []
    store = JsonlInternalsStore(tmp_path / "internals.jsonl")

    with pytest.raises(Stopped):
        read_internals(tiny, PROMPTS, trajectories, fingerprint="f", store=store, should_stop=lambda: len(seen) >= 3,
                       progress=lambda done, total: seen.append((done, total)))  # fmt: skip
    n_stored = len(store.load([prompt.uid for prompt in PROMPTS]))
    again = JsonlInternalsStore(tmp_path / "internals.jsonl")
    found = read_internals(tiny, PROMPTS[::-1], trajectories, fingerprint="f", store=again,
                           progress=lambda done, total: seen.append((done, total)))  # fmt: skip

    assert n_stored == 2
    assert seen == [(n, 6) for n in (0, 1, 2, 2, 2, 3, 4, 5, 6, 6)]
    assert found.uids == tuple(prompt.uid for prompt in PROMPTS[::-1])
    fresh = ModelReader(tiny.model, tiny.layout).read(PROMPTS[4], trajectories["q4"], "f")
    np.testing.assert_allclose(found.take(["q4"]).start, fresh.start, atol=TOLERANCE)


def test_a_question_without_a_chain_is_named(tiny, tmp_path):
    with pytest.raises(MissingCompletions) as caught:
        read_internals(tiny, PROMPTS, {}, fingerprint="f", store=JsonlInternalsStore(tmp_path / "i.jsonl"))

    assert caught.value.uid == "q0"
