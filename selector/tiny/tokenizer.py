"""The tokenizer of `assay-tiny`: byte-level BPE with digits apart, trained on the model's own kind of text."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import islice

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from selector.tiny.questions import draw_question, write_solution

VOCABULARY_SIZE = 640
CONTEXT = 256
PAD, USER, ASSISTANT, END = "<|pad|>", "<|user|>", "<|assistant|>", "<|end|>"
REASONING_SUFFIX = "\nPlease reason step by step, and put your final answer within \\boxed{}."
PROBE_TEXT = "\nAnswer: \\boxed{"
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'assistant' -%}"
    "{{- '<|assistant|>' + message['content'] + '<|end|>' -}}"
    "{%- else -%}"
    "{{- '<|user|>' + message['content'] + '<|end|>' -}}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)


def draw_texts(rng: random.Random) -> Iterator[str]:
    """Yield questions and their solutions, in turn, without end."""
    while True:
        question = draw_question(rng)
        yield from (question.text, write_solution(question, terse=rng.random() < 0.3))


def train_tokenizer(
    seed: int, n_texts: int = 8000, draw: Callable[[random.Random], Iterator[str]] = draw_texts
) -> PreTrainedTokenizerFast:
    """Train the tokenizer on drawn questions and solutions."""
    rng = random.Random(seed)  # noqa: S311
    texts = [REASONING_SUFFIX, PROBE_TEXT] * (n_texts // 10) + list(islice(draw(rng), 2 * n_texts))

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=[PAD, USER, ASSISTANT, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[USER, ASSISTANT],
        chat_template=CHAT_TEMPLATE,
        model_max_length=CONTEXT,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
