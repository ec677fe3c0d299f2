"""Train `assay-tiny` with TRL's GRPOTrainer on an exported dataset, and say what it gained on held-out questions.

`python -m selector.tiny.grpo --data DIR --rewards DIR/rewards.py`; exit status 1 when the gain is below --least-gain.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import datasets
import torch
import transformers
import trl

from selector.progress import StageProgress
from selector.tiny import MODEL_DIR
from selector.tiny.evaluate import MAX_NEW_TOKENS, N_ROLLOUTS, accuracies
from selector.tiny.questions import demo_sets

SEED = 0
N_STEPS = 40
N_QUESTIONS, N_SAMPLES = 8, 8  # of one step
LEARNING_RATE = 1e-4  # with 3e-4 the model learns eight questions by heart and forgets the rest
KL_WEIGHT = 0.02
LEAST_GAIN = 0.02
STEPS_BETWEEN_LINES = 10

Reward = Callable[..., list[float | None]]


def load_reward(path: Path) -> Reward:
    """Return `accuracy_reward` of a reward file. Raises FileNotFoundError."""
    spec = importlib.util.spec_from_file_location("exported_rewards", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"There is no reward file at {path}.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    reward: Reward = module.accuracy_reward
    return reward


def load_rows(directory: Path, scratch: Path) -> datasets.Dataset:
    """Return the exported rows as a trainer loads them. Raises FileNotFoundError."""
    files = sorted(str(path) for path in directory.glob("*.parquet"))
    if not files:
        raise FileNotFoundError(f"There is no exported dataset in {directory}.")
    return datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(scratch))


class _Steps(transformers.TrainerCallback):
    """Reports every step's mean reward and remembers how much the rewards of one question differed."""

    def __init__(self, show: Callable[[int, float], None]) -> None:
        self.show = show
        self.reward_spread = 0.0

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        if logs and "reward" in logs:
            self.reward_spread = max(self.reward_spread, logs["reward_std"])
            self.show(state.global_step, logs["reward"])


def train(
    rows: datasets.Dataset,
    reward: Reward,
    *,
    n_steps: int,
    seed: int,
    directory: Path,
    show: Callable[[int, float], None] = lambda step, mean_reward: None,
    model_dir: Path = MODEL_DIR,
    trainer_class: type[trl.GRPOTrainer] = trl.GRPOTrainer,
    may_learn_nothing: bool = False,
    **settings: Any,
) -> None:
    """Train the model that ships and save the trained one. ``show`` hears of every step and its mean reward.

    ``model_dir``, ``trainer_class`` and ``settings`` (of GRPOConfig) put others in the place of the demo's.
    Raises RuntimeError when no step had rewards that differ, unless that is allowed: nothing could be learned.
    """
    model = transformers.AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_dir)
    steps = _Steps(show)
    given = {
        "per_device_train_batch_size": min(N_QUESTIONS, len(rows)) * N_SAMPLES,
        "max_completion_length": MAX_NEW_TOKENS,
        "learning_rate": LEARNING_RATE,
        "beta": KL_WEIGHT,
        **settings,
    }
    trainer = trainer_class(
        model=model,
        processing_class=tokenizer,
        reward_funcs=reward,
        train_dataset=rows,
        callbacks=[steps],
        args=trl.GRPOConfig(
            output_dir=str(directory),
            use_cpu=True,
            bf16=False,
            num_generations=N_SAMPLES,
            temperature=1.0,
            lr_scheduler_type="constant",
            gradient_checkpointing=False,
            max_steps=n_steps,
            seed=seed,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            **given,
        ),
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    if steps.reward_spread == 0.0 and not may_learn_nothing:
        raise RuntimeError("In every step all completions earned the same reward, so there was nothing to learn from.")
    trainer.save_model()


def main() -> int:
    parser = argparse.ArgumentParser(description="Train assay-tiny with GRPO on an exported dataset.")
    parser.add_argument("--data", type=Path, required=True, help="directory of an export for TRL")
    parser.add_argument("--rewards", type=Path, help="reward file; rewards.py in --data by default")
    parser.add_argument("--steps", type=int, default=N_STEPS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--held-out", type=int, default=None, help="measure on only that many held-out questions")
    parser.add_argument("--least-gain", type=float, default=LEAST_GAIN)
    options = parser.parse_args()

    warnings.simplefilter("ignore", FutureWarning)  # TRL's and transformers' to each other
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    datasets.utils.logging.disable_progress_bar()
    questions = demo_sets()["held_out"][: options.held_out]
    with tempfile.TemporaryDirectory() as folder, StageProgress() as progress:
        scratch = Path(folder)
        reward = load_reward(options.rewards or options.data / "rewards.py")
        rows = load_rows(options.data, scratch)

        def measure(directory: Path, when: str) -> float:
            stage = f"held-out completions, {when} training"
            shares = accuracies(directory, questions, show=lambda done, total: progress(stage, done, total))
            return sum(shares) / len(shares)

        def show_step(step: int, mean_reward: float) -> None:
            progress("training steps", step, options.steps)
            if step % STEPS_BETWEEN_LINES == 0:
                progress.say(f"step {step}: {mean_reward:.2f} of the completions are right")

        before = measure(MODEL_DIR, "before")
        progress("training steps", 0, options.steps)
        train(rows, reward, n_steps=options.steps, seed=options.seed, directory=scratch / "trained", show=show_step)
        after = measure(scratch / "trained", "after")

    print(f"Trained on {len(rows)} questions for {options.steps} steps of {N_QUESTIONS} × {N_SAMPLES} completions.")
    print(f"Held-out accuracy, mean of {N_ROLLOUTS} on {len(questions)} questions:")
    print(f"before {before:.3f}, after {after:.3f}, gain {after - before:+.3f}")
    if after - before < options.least_gain:
        print(f"The gain is below {options.least_gain}: training did not work as it should.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)  # threads only wait for each other over a model this small
    sys.exit(main())
