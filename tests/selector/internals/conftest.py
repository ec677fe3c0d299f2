"""Models to read, and what a plain forward pass over the same tokens shows."""

from __future__ import annotations

import pytest
import torch

from selector.generation import CompletionKind, Prompt, Request, SamplingSettings, open_engine
from tests.smollm2 import SmolLM2MissingError, smollm2_dir

TEXTS = [f"Compute {17 + i}+{28 * i}-{i}{'+1' * i}." for i in range(6)]
PROMPTS = [Prompt(uid=f"q{i}", text=text) for i, text in enumerate(TEXTS)]


@pytest.fixture(scope="session")
def tiny():
    opened = open_engine("transformers", model="assay-tiny")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def smollm2():
    try:
        path = smollm2_dir()
    except SmolLM2MissingError as error:
        pytest.skip(str(error))
    opened = open_engine("transformers", model=str(path))
    yield opened
    opened.close()


def chains(engine, prompts=PROMPTS, max_tokens=60):
    requests = [Request(prompt, CompletionKind.TRAJECTORY, 0) for prompt in prompts]
    settings = SamplingSettings(temperature=1.0, max_tokens=max_tokens)
    return {completion.uid: completion for completion in engine.complete(requests, settings, 1)}


def plain_pass(model, ids, n_prompt, *, attentions=True):
    """Read everything from one eager pass that keeps every hidden state [layers, T, D] and map [heads, rows, T]."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        output = model(
            input_ids=torch.tensor([ids]), output_hidden_states=True, output_attentions=attentions, use_cache=False
        )
    model.set_attn_implementation(before)
    hidden = torch.stack(output.hidden_states[1:])[:, 0]
    maps = torch.cat([each[0, :, n_prompt:] for each in output.attentions]) if attentions else None
    return hidden, maps, output.logits[0].log_softmax(-1)
