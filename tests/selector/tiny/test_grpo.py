"""GRPO on an exported dataset, with TRL's own trainer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from selector import rewards
from selector.tiny import MODEL_DIR, questions

grpo = pytest.importorskip("selector.tiny.grpo", reason="TRL is not installed: pip install 'assay-rlvr[demo]'")


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """What an export for TRL looks like: rows with prompt, gold and uid, and the reward file."""
    directory = tmp_path / "trl"
    directory.mkdir()
    asked = questions.demo_sets()["pool"][:4]
    rows = [
        {
            "prompt": [{"role": "user", "content": question.text}],
            "solution": f"${question.answer}$",
            "answer": question.answer,
            "answer_kind": "number",
            "uid": str(number),
        }
        for number, question in enumerate(asked)
    ]
    pq.write_table(pa.Table.from_pylist(rows), directory / "train.parquet")
    shutil.copy(rewards.__file__, directory / "rewards.py")
    return directory


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_two_steps_train_on_rewards_that_differ(export: Path, tmp_path: Path) -> None:
    steps: list[tuple[int, float]] = []

    grpo.train(
        grpo.load_rows(export, tmp_path / "cache"),
        grpo.load_reward(export / "rewards.py"),
        n_steps=2,
        seed=0,
        directory=tmp_path / "trained",
        show=lambda step, mean_reward: steps.append((step, mean_reward)),
    )

    assert [step for step, _ in steps] == [1, 2]
    assert all(0 < mean_reward < 1 for _, mean_reward in steps)
    assert (tmp_path / "trained" / "model.safetensors").read_bytes() != (MODEL_DIR / "model.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_equal_rewards_are_no_training(export: Path, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="nothing to learn"):
        grpo.train(
            grpo.load_rows(export, tmp_path / "cache"),
            lambda completions, **columns: [0.0] * len(completions),
            n_steps=1,
            seed=0,
            directory=tmp_path / "trained",
        )


def test_a_missing_export_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no exported dataset"):
        grpo.load_rows(tmp_path, tmp_path)
    with pytest.raises(FileNotFoundError, match="no reward file"):
        grpo.load_reward(tmp_path / "rewards.py")
