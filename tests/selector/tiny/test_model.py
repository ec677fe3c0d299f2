"""The weights that ship: they are the ones that were measured, they load, and they wobble as the demo needs."""

from __future__ import annotations

import hashlib
import itertools
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from selector.config import SelectionConfig
from selector.generation import Prompt, open_engine
from selector.generation.prompts import PROBE_SUFFIX
from selector.generation.store import CompletionShards
from selector.pipeline import run_selection
from selector.tiny import MODEL_DIR, WEIGHTS_SHA256, questions, tokenizer, train
from selector.tiny.evaluate import SETTINGS, accuracies
from selector.volatility import probe_questions, votes_of


def test_the_weights_are_the_measured_ones() -> None:
    weights = (MODEL_DIR / "model.safetensors").read_bytes()

    assert hashlib.sha256(weights).hexdigest() == WEIGHTS_SHA256
    assert len(weights) < 2_000_000


def test_the_template_renders_a_question_as_training_did() -> None:
    loaded = AutoTokenizer.from_pretrained(MODEL_DIR)
    rendered = loaded.apply_chat_template(
        [{"role": "user", "content": "Compute 1+2."}], add_generation_prompt=True, tokenize=False
    )
    answered = loaded.apply_chat_template(
        [{"role": "user", "content": "Compute 1+2."}, {"role": "assistant", "content": "3"}], tokenize=False
    )

    assert rendered == "<|user|>Compute 1+2.<|end|><|assistant|>"
    assert answered == rendered + "3<|end|>"
    assert len(loaded.encode("1234")) == 4
    assert loaded.decode(loaded.encode("½ “é” 🙂")) == "½ “é” 🙂"


def test_probes_are_laid_out_as_in_training() -> None:
    assert tokenizer.PROBE_TEXT == PROBE_SUFFIX


def test_accuracy_is_mixed() -> None:
    shares = accuracies(MODEL_DIR, questions.demo_sets()["held_out"][:80])

    assert 0.3 < np.mean(shares) < 0.75
    assert np.mean([0 < share < 1 for share in shares]) > 0.4


def test_calibration_gives_a_finite_threshold_and_sets_of_many_sizes(tmp_path: Path) -> None:
    sets = questions.demo_sets()
    asked = {f"{name}{i}": question for name in ("calibration", "pool") for i, question in enumerate(sets[name][:40])}
    store = CompletionShards(tmp_path / "completions")
    prompts = [Prompt(uid, question.text) for uid, question in asked.items()]

    with closing(open_engine("transformers", model="assay-tiny")) as engine:
        probe_questions(engine, prompts, settings=SETTINGS, n_outcomes=10, n_probes=10, seed=0, store=store)
    votes = [
        replace(votes_of(uid, store.load([uid]), 10, 10), truth=question.answer, kind="number")
        for uid, question in asked.items()
    ]
    result = run_selection(
        votes[40:],
        votes[:40],
        config=SelectionConfig.preset("recommended", alpha="0.1", budget=3, strategy="v2", n_outcomes=10, n_probes=10),
    )

    assert sum(bool(answer) for each in votes for answer in each.probe_answers) > 0.95 * 800
    assert sum(each.truth in (*each.probe_answers, *each.outcome_answers) for each in votes) > 0.85 * 80
    assert not result.report["q_hat_infinite"]
    assert not result.report["calibration"]["degenerate"]
    assert len(result.report["set_size_histogram"]) >= 3


def test_training_repeats_itself_and_learns(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    losses = []
    for _ in range(2):
        torch.manual_seed(1)
        fresh = tokenizer.train_tokenizer(1, n_texts=300)
        batches = list(itertools.islice(train.draw_batches(1, 2, fresh), 2))
        untrained = train.new_model(fresh)
        losses.append((batches[0][0], next(untrained.parameters()).sum().item()))
    trained, fresh = train.train(seed=1, n_steps=3)
    train.save(trained, fresh, tmp_path)

    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)

    assert losses[0] == losses[1]
    assert sum(parameter.numel() for parameter in loaded.parameters()) == pytest.approx(840_000, rel=0.02)
