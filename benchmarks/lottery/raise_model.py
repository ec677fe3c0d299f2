"""Train the second model: `python -m benchmarks.lottery.raise_model --out DIR` (about 4 minutes on one core).

Recipe and architecture are those of `assay-tiny`, whose matrices and common tokens it starts from, since it can
calculate already; the tokenizer and the questions are its own (`benchmarks.lottery.skills`).
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import torch
from transformers import AutoTokenizer, LlamaForCausalLM, PreTrainedTokenizerFast

from benchmarks.lottery.pools import mixed_candidates
from benchmarks.lottery.skills import draw_examples, draw_texts
from selector.tiny import MODEL_DIR
from selector.tiny.tokenizer import train_tokenizer
from selector.tiny.train import new_model, save, train

SEED = 11
N_STEPS = 1200


def start_from_tiny(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Return `assay-tiny` with the vocabulary of another tokenizer; tokens that both know keep their vectors."""
    tiny, tokens = (
        LlamaForCausalLM.from_pretrained(MODEL_DIR, dtype=torch.float32),
        AutoTokenizer.from_pretrained(MODEL_DIR),
    )
    model = new_model(tokenizer)
    weights = {
        name: weight for name, weight in tiny.state_dict().items() if "embed" not in name and "lm_head" not in name
    }
    model.load_state_dict(weights, strict=False)
    known = tokens.get_vocab()
    with torch.no_grad():
        for token, number in tokenizer.get_vocab().items():
            if token in known:
                model.get_input_embeddings().weight[number] = tiny.get_input_embeddings().weight[known[token]]
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the model of the lottery's mixed pool.")
    parser.add_argument("--out", type=Path, required=True, help="directory for weights and tokenizer")
    parser.add_argument("--start", type=Path, help="a model that this made, to train on with other questions")
    parser.add_argument("--steps", type=int, default=N_STEPS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    seed = SEED + bool(options.start)
    torch.manual_seed(seed)
    draw = partial(draw_examples, excluded=mixed_candidates())
    if options.start:
        tokenizer = AutoTokenizer.from_pretrained(options.start)
        model = LlamaForCausalLM.from_pretrained(options.start, dtype=torch.float32)
    else:
        tokenizer = train_tokenizer(seed, draw=draw_texts)
        model = start_from_tiny(tokenizer)
    save(*train(seed=seed, n_steps=options.steps, tokenizer=tokenizer, model=model, draw=draw), options.out)


if __name__ == "__main__":
    main()
