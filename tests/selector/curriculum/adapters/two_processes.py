"""One of the processes that test_trl.py starts: a sampler, then a trainer, each process with its own seed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import datasets
import torch
import transformers
import trl
from accelerate import PartialState

from selector.curriculum import CURRICULA
from selector.curriculum.adapters.steering import LogSteering
from selector.curriculum.adapters.trl import CurriculumGRPOTrainer, CurriculumSampler
from selector.rewards import accuracy_reward
from selector.tiny import MODEL_DIR, questions

UIDS = [f"q{number}" for number in range(40)]


class Watched(CurriculumGRPOTrainer):
    """Notes what it is told to roll out, and its share of it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seen: list[tuple[list[str], list[str]]] = []

    def _rows(self, uids: Any) -> list[dict[str, Any]]:
        rows = super()._rows(uids)
        self.seen.append((list(uids), [row["uid"] for row in rows]))
        return rows


def main() -> None:
    directory = Path(sys.argv[1])
    torch.set_num_threads(1)
    rank = PartialState(cpu=True).process_index
    steering = LogSteering(CURRICULA["random"](UIDS, seed=rank), directory / "rewards.jsonl", patience=99)
    asked = questions.demo_sets()["pool"][: len(UIDS)]
    rows = datasets.Dataset.from_list(
        [
            {"prompt": [{"role": "user", "content": question.text}], "answer": question.answer, "uid": uid}
            for uid, question in zip(UIDS, asked, strict=True)
        ]
    )
    sampled = list(CurriculumSampler(rows, steering, mini_repeat_count=2, batch_size=4))
    trainer = Watched(
        model=transformers.AutoModelForCausalLM.from_pretrained(MODEL_DIR, dtype=torch.float32),
        processing_class=transformers.AutoTokenizer.from_pretrained(MODEL_DIR),
        reward_funcs=accuracy_reward,
        train_dataset=rows,
        steering=steering,
        args=trl.GRPOConfig(
            output_dir=str(directory),
            use_cpu=True,
            bf16=False,
            per_device_train_batch_size=6,
            num_generations=4,
            max_completion_length=16,
            gradient_checkpointing=False,
            max_steps=2,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        ),
    )
    trainer.train()
    (directory / f"rank{rank}").write_text(json.dumps({"sampled": sampled, "seen": trainer.seen}))


if __name__ == "__main__":
    os.environ["ASSAY_REWARD_LOG"] = str(Path(sys.argv[1]) / "rewards.jsonl")
    main()
