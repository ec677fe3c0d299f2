"""One ticket of the lottery: train the pool's model on some questions, and measure it on the held-out ones."""

from __future__ import annotations

import logging
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import datasets
import torch
import transformers
import trl

from benchmarks.lottery.pools import Pool
from selector.generation.decoding import Sampler, decode
from selector.rewards import accuracy_reward
from selector.seeds import question_seed
from selector.tiny import evaluate, grpo
from selector.tiny.questions import TinyQuestion

EVALUATION_SEED = 0  # the same for every training, so that differences are paired


@dataclass(frozen=True)
class Recipe:
    """How every training is done, whatever was chosen; fixed before the first one."""

    n_steps: int = 15
    learning_rate: float = 1e-4
    kl_weight: float = 0.0


class QuickTrainer(trl.GRPOTrainer):
    """TRL's trainer, in half the time: same loss, same steps.

    Completions are written by `selector.generation.decoding`. Those of questions that were always or never right have
    no advantage and so, without a KL term, no gradient: they are counted but not passed through the model again.
    """

    def _generate_single_turn(
        self, prompt_ids: list[list[int]], images: Any, multimodal_fields: Any, num_generations: int, **_: Any
    ) -> tuple[list[list[int]], None]:
        ends = torch.zeros(self.model.config.vocab_size, dtype=torch.bool)
        ends[self.eos_token_ids] = True
        stage = f"step {self.state.global_step}"
        written = dict(
            decode(
                self.model,
                prompt_ids,
                groups=[" ".join(map(str, ids)) for ids in prompt_ids],
                seeds=[question_seed(self.args.seed, stage, str(row)) for row in range(len(prompt_ids))],
                max_new_tokens=self.max_completion_length,
                sampler=Sampler(self.temperature, 1.0),
                ends=ends,
            )
        )
        return [written[row] for row in range(len(prompt_ids))], None

    def _compute_loss(self, model: Any, inputs: Mapping[str, Any]) -> torch.Tensor:
        if self.beta or self.loss_type != "dapo":  # dapo divides by the tokens of the whole batch
            raise ValueError(
                "QuickTrainer leaves completions out, which is exact for loss dapo without a KL term only."
            )
        advantages = inputs["advantages"]
        kept = advantages.nonzero()[:, 0] if advantages.any() else torch.tensor([0])
        rows = {
            name: value[kept]
            for name, value in inputs.items()
            if isinstance(value, torch.Tensor) and value.ndim and len(value) == len(advantages)
        }
        return super()._compute_loss(model, {**inputs, **rows})


def be_quiet() -> None:
    """Keep the libraries' remarks to each other off the screen."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    datasets.utils.logging.disable_progress_bar()


def training_rows(questions: Sequence[TinyQuestion]) -> datasets.Dataset:
    """Return the rows of a trainer; fewer than a step's are repeated in turn, so that all steps cost the same."""
    n_repeats = -(-grpo.N_QUESTIONS // len(questions))
    rows = [{"prompt": [{"role": "user", "content": each.text}], "answer": each.answer} for each in questions]
    return datasets.Dataset.from_list(rows * n_repeats)


def train_and_measure(pool: Pool, questions: Sequence[TinyQuestion], *, seed: int, recipe: Recipe) -> dict[str, Any]:
    """Train on the questions and return what came of it: held-out accuracy, rewards by step, processor seconds."""
    began = time.process_time()
    rewards: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        grpo.train(
            training_rows(questions),
            accuracy_reward,
            n_steps=recipe.n_steps,
            seed=seed,
            directory=Path(folder),
            show=lambda step, mean_reward: rewards.append(round(mean_reward, 4)),
            model_dir=pool.model_dir,
            trainer_class=QuickTrainer,
            may_learn_nothing=True,
            learning_rate=recipe.learning_rate,
            beta=recipe.kl_weight,
            max_completion_length=pool.max_new_tokens,
        )
        trained = time.process_time()
        measured = measure(pool, Path(folder))
    seconds = [round(trained - began, 1), round(time.process_time() - trained, 1)]
    return {**measured, "rewards": rewards, "seconds_training_measuring": seconds}


def measure(pool: Pool, directory: Path) -> dict[str, Any]:
    """Return held-out accuracy: the mean of 8 samples at temperature 1, over all and by family, and the greedy one."""
    sampled = evaluate.accuracies(directory, pool.held_out, seed=EVALUATION_SEED)
    greedy = evaluate.accuracies(directory, pool.held_out, greedy=True)
    return {
        "mean_of_8": round(fmean(sampled), 5),
        "greedy": round(fmean(greedy), 5),
        "by_family": by_family(pool.held_out, sampled),
    }


def by_family(questions: Sequence[TinyQuestion], shares: Sequence[float]) -> Mapping[str, float]:
    """Return the mean share right of each family."""
    groups = defaultdict(list)
    for question, share in zip(questions, shares, strict=True):
        groups[question.family].append(share)
    return {family: round(fmean(found), 4) for family, found in sorted(groups.items())}
