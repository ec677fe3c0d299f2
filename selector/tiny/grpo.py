"""Train `assay-tiny` with TRL's GRPOTrainer on an exported dataset, and say what it gained on held-out questions.

`python -m selector.tiny.grpo --data DIR --rewards DIR/rewards.py`; exit status 1 when the gain is below --least-gain.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import datasets
import torch
import transformers
import trl
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from selector.tiny import MODEL_DIR
from selector.tiny.evaluate import MAX_NEW_TOKENS, N_ROLLOUTS, accuracies, load_model
from selector.tiny.questions import demo_sets

SEED = 0
N_STEPS = 40
N_QUESTIONS, N_SAMPLES = 8, 8  # of one step
LEARNING_RATE = 3e-4
KL_WEIGHT = 0.02
LEAST_GAIN = 0.02

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


class _StepProgress(transformers.TrainerCallback):
    """Moves a progress bar and remembers how much the rewards of one question differed."""

    def __init__(self, advance: Callable[[str], None]) -> None:
        self.advance = advance
        self.reward_spread = 0.0

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        if logs and "reward" in logs:
            self.reward_spread = max(self.reward_spread, logs["reward_std"])
            self.advance(f"reward {logs['reward']:.2f}")


def train(
    rows: datasets.Dataset, reward: Reward, *, n_steps: int, seed: int, scratch: Path, advance: Callable[[str], None]
) -> Any:
    """Return the trained model. ``advance`` hears of every step.

    Raises RuntimeError when no step had rewards that differ: nothing could be learned.
    """
    model, tokenizer = load_model(MODEL_DIR)
    progress = _StepProgress(advance)
    trainer = trl.GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=reward,
        train_dataset=rows,
        callbacks=[progress],
        args=trl.GRPOConfig(
            output_dir=str(scratch),
            use_cpu=True,
            bf16=False,
            per_device_train_batch_size=min(N_QUESTIONS, len(rows)) * N_SAMPLES,
            num_generations=N_SAMPLES,
            max_completion_length=MAX_NEW_TOKENS,
            temperature=1.0,
            learning_rate=LEARNING_RATE,
            lr_scheduler_type="constant",
            beta=KL_WEIGHT,
            gradient_checkpointing=False,
            max_steps=n_steps,
            seed=seed,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        ),
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    if progress.reward_spread == 0.0:
        raise RuntimeError("In every step all completions earned the same reward, so there was nothing to learn from.")
    return model.eval()


def main() -> int:
    parser = argparse.ArgumentParser(description="Train assay-tiny with GRPO on an exported dataset.")
    parser.add_argument("--data", type=Path, required=True, help="directory of an export for TRL")
    parser.add_argument("--rewards", type=Path, help="reward file; rewards.py in --data by default")
    parser.add_argument("--steps", type=int, default=N_STEPS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--held-out", type=int, default=None, help="measure on only that many held-out questions")
    parser.add_argument("--least-gain", type=float, default=LEAST_GAIN)
    options = parser.parse_args()

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    datasets.utils.logging.disable_progress_bar()
    questions = demo_sets()["held_out"][: options.held_out]
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:<22}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with tempfile.TemporaryDirectory() as folder, Progress(*columns, console=console) as progress:
        scratch = Path(folder)

        def measure(model: Any, when: str) -> float:
            task = progress.add_task(f"held-out, {when}", total=len(questions), note="")
            tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL_DIR)
            shares = accuracies(
                model, tokenizer, questions, on_progress=lambda n_done: progress.update(task, completed=n_done)
            )
            mean = sum(shares) / len(shares)
            progress.update(task, note=f"{mean:.3f}")
            return mean

        reward = load_reward(options.rewards or options.data / "rewards.py")
        rows = load_rows(options.data, scratch)
        before = measure(load_model(MODEL_DIR)[0], "before")
        task = progress.add_task("training, steps", total=options.steps, note="")
        trained = train(
            rows,
            reward,
            n_steps=options.steps,
            seed=options.seed,
            scratch=scratch,
            advance=lambda note: progress.update(task, advance=1, note=note),
        )
        after = measure(trained, "after")

    print(f"Trained on {len(rows)} questions for {options.steps} steps of {N_QUESTIONS} × {N_SAMPLES} completions.")
    print(f"Held-out accuracy, mean of {N_ROLLOUTS} on {len(questions)} questions:")
    print(f"before {before:.3f}, after {after:.3f}, gain {after - before:+.3f}")
    if after - before < options.least_gain:
        print(f"The gain is below {options.least_gain}: training did not work as it should.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    torch.set_num_threads(min(2, os.cpu_count() or 1))
    sys.exit(main())
