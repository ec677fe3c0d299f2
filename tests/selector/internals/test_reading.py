"""One streamed pass shows what a plain one shows, and costs little memory."""

import pytest
import torch

from selector.internals.pivots import window_for
from selector.internals.reading import ModelReader
from tests.selector.internals.conftest import PROMPTS, chains, plain_pass

TOLERANCE = 1e-4


def check_like_a_plain_pass(engine, prompts, max_tokens):
    reader = ModelReader(engine.model, engine.layout)
    for uid, chain in chains(engine, prompts, max_tokens).items():
        prompt_ids = engine.layout.prompt_ids(next(prompt for prompt in prompts if prompt.uid == uid))
        ids = [*prompt_ids, *chain.token_ids]
        found = reader.pass_over(prompt_ids, chain.token_ids)
        hidden, maps, logs = plain_pass(engine.model, ids, len(prompt_ids))
        before = logs[len(prompt_ids) - 1 : -1]
        distances = torch.arange(len(prompt_ids), len(ids))[:, None] - torch.arange(len(ids))
        window = window_for(len(ids))

        expected = {
            "start": hidden[:, len(prompt_ids)].mean(0),
            "end": hidden[:, -1].mean(0),
            "prompt_hidden": hidden[-1, len(prompt_ids) - 1],
            "first_probabilities": logs[len(prompt_ids) - 1].exp(),
            "token_entropy": -(before.exp() * before).sum(-1),
            "far": (maps * (distances > window))[..., 1:].sum(-1),
        }
        for name, value in expected.items():
            torch.testing.assert_close(getattr(found, name), value, atol=TOLERANCE, rtol=TOLERANCE)
        spans = (maps * distances)[..., 1:].sum(-1).mean(-1)
        torch.testing.assert_close(found.spans, spans, atol=1e-3, rtol=TOLERANCE)  # sums of hundreds of tokens


def test_the_tiny_model_reads_as_in_a_plain_pass(tiny):
    check_like_a_plain_pass(tiny, PROMPTS, 60)


@pytest.mark.engines
def test_smollm2_reads_as_in_a_plain_pass(smollm2):
    check_like_a_plain_pass(smollm2, PROMPTS[:3], 120)
