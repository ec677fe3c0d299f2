"""verl's own dataset, data loader and reward manager, put together as its trainer does it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from selector import rewards
from selector.curriculum import RewardLog
from selector.errors import InvalidConfig
from selector.tiny import MODEL_DIR

pytest.importorskip("verl", reason="verl is not installed; it needs an environment of its own (docs/curriculum.md)")

N_QUESTIONS, BATCH = 12, 3
SCORED = ("data_source", "reward_model", "extra_info")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # verl's, ray's and tensordict's own
]


def write_rows(path: Path, split: str, n: int) -> Path:
    rows = [
        {
            "data_source": "sums",
            "prompt": [{"role": "user", "content": f"Compute {number}+1."}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(number + 1)},
            "extra_info": {"split": split, "index": number, "uid": f"{split}{number}", "answer_kind": "number"},
        }
        for number in range(n)
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """verl's own defaults for data, with what docs/curriculum.md says to set."""
    import verl
    from omegaconf import OmegaConf

    monkeypatch.setenv("ASSAY_REWARD_LOG", str(tmp_path / "rewards.jsonl"))
    defaults = OmegaConf.load(Path(verl.__file__).parent / "trainer/config/data/legacy_data.yaml")
    prior = {f"train{number}": [4, 4] if number < BATCH else [8, 0] for number in range(N_QUESTIONS)}
    (tmp_path / "prior.json").write_text(json.dumps(prior))
    ours = {
        "train_files": str(write_rows(tmp_path / "train.parquet", "train", N_QUESTIONS)),
        "val_files": str(write_rows(tmp_path / "val.parquet", "test", 4)),
        "train_batch_size": BATCH,
        "shuffle": False,
        "dataloader_num_workers": 0,
        "cache_dir": str(tmp_path / "cache"),
        "custom_cls": {"path": "pkg://selector.curriculum.adapters.verl", "name": "CurriculumDataset"},
        "curriculum": {
            "kind": "insight",
            "log": str(tmp_path / "rewards.jsonl"),
            "prior": str(tmp_path / "prior.json"),
        },
    }
    reward = {"custom_reward_function": {"path": rewards.__file__, "name": "compute_score"}}
    return OmegaConf.create({"data": OmegaConf.merge(defaults, ours), "reward": reward})


def tokenizer() -> Any:
    import transformers

    return transformers.AutoTokenizer.from_pretrained(MODEL_DIR)


def loader_of(config: Any, *, files: str = "train_files") -> Any:
    """Build dataset and data loader as PPOTrainer._init_dataloader does."""
    from torchdata.stateful_dataloader import StatefulDataLoader
    from verl.trainer.ppo.utils import create_rl_dataset, create_rl_sampler
    from verl.utils.dataset.rl_dataset import collate_fn

    dataset = create_rl_dataset(config.data[files], config.data, tokenizer(), None, is_train=files == "train_files")
    return StatefulDataLoader(
        dataset=dataset,
        batch_size=config.data.get("gen_batch_size", None) or config.data.train_batch_size,
        num_workers=config.data["dataloader_num_workers"],
        drop_last=True,
        collate_fn=collate_fn,
        sampler=create_rl_sampler(config.data, dataset),
    )


def uids_of(batch: Any) -> list[str]:
    return [info["uid"] for info in batch["extra_info"]]


def earn(config: Any, batch: Any, answers: list[str]) -> list[float]:
    """Score one response to each question with verl's reward manager and the exported reward file."""
    import torch
    from verl import DataProto
    from verl.experimental.reward_loop.reward_manager import get_reward_manager_cls
    from verl.trainer.ppo.reward import get_custom_reward_fn

    tokens = tokenizer()
    manager = get_reward_manager_cls("naive")(config, tokens, get_custom_reward_fn(config))
    earned = []
    for place, answer in enumerate(answers):
        ids = torch.tensor([tokens.encode(answer)])
        seen = torch.ones(1, 2 * ids.shape[1], dtype=torch.long)
        found = DataProto.from_dict(
            tensors={"responses": ids, "prompts": ids, "attention_mask": seen},
            non_tensors={name: batch[name][place : place + 1] for name in SCORED},
        )
        earned.append(manager.loop.run_until_complete(manager.run_single(found))["reward_score"])
    return earned


def boxed(text: str) -> str:
    return f"So \\boxed{{{text}}}"


def test_rows_come_as_the_curriculum_proposes_and_its_beliefs_move_by_what_compute_score_saw(config: Any) -> None:
    loader = loader_of(config)
    batches = iter(loader)

    first = next(batches)
    golds = [each["ground_truth"] for each in first["reward_model"]]
    earned = earn(config, first, [boxed(golds[0]), boxed("-5"), "no answer"])
    second = next(batches)

    events = RewardLog(config.data.curriculum.log).read_from()[0]
    curriculum = loader.dataset.steering.curriculum
    assert set(uids_of(first)) == {"train0", "train1", "train2"}  # half right before, the others always
    assert earned == [1.0, 0.0, 0.0]
    assert [(event.uid, event.rewards, event.step) for event in events] == [
        (uid, (reward,), 0) for uid, reward in zip(uids_of(first), earned, strict=True)
    ]
    row = curriculum.beliefs.row(uids_of(first)[0])
    assert (curriculum.beliefs.a[row], curriculum.beliefs.b[row]) == (6.0, 5.0)
    assert {info["step"] for info in second["extra_info"]} == {1}


def test_a_prompt_at_a_time_gets_the_questions_of_one_proposal(config: Any) -> None:
    config.data.gen_batch_size = 1  # as verl sets it for DAPO's filter and for asynchronous training
    batches = iter(loader_of(config))

    drawn = [next(batches) for _ in range(2 * BATCH)]

    assert len({uids_of(each)[0] for each in drawn[:BATCH]}) == BATCH
    assert [each["extra_info"][0]["step"] for each in drawn] == [0] * BATCH + [1] * BATCH


def test_the_data_loaders_checkpoint_holds_the_curriculum(config: Any) -> None:
    import torch

    loader = loader_of(config)
    batches = iter(loader)
    earn(config, next(batches), [boxed("-5")] * BATCH)
    next(batches)
    saved = io.BytesIO()
    torch.save(loader.state_dict(), saved)
    expected = [uids_of(next(batches)) for _ in range(2)]

    resumed = loader_of(config)
    resumed.load_state_dict(torch.load(io.BytesIO(saved.getvalue()), weights_only=False))
    found = [next(rest) for rest in [iter(resumed)] for _ in range(2)]

    assert [uids_of(each) for each in found] == expected
    assert [each["extra_info"][0]["step"] for each in found] == [2, 3]


def test_validation_is_read_in_order_and_teaches_nothing(config: Any) -> None:
    batch = next(iter(loader_of(config, files="val_files")))

    earned = earn(config, batch, [boxed(each["ground_truth"]) for each in batch["reward_model"]])

    assert uids_of(batch) == ["test0", "test1", "test2"]
    assert earned == [1.0] * BATCH
    assert RewardLog(config.data.curriculum.log).read_from()[0] == []


@pytest.mark.parametrize(("name", "value"), [("shuffle", True), ("dataloader_num_workers", 2)])
def test_an_order_that_is_not_the_curriculums_is_refused(config: Any, name: str, value: object) -> None:
    config.data[name] = value

    with pytest.raises(InvalidConfig, match=f"data.{name}"):
        loader_of(config)


def test_a_curriculum_that_is_not_named_is_refused_with_the_names(config: Any) -> None:
    config.data.curriculum.kind = "hardest"

    with pytest.raises(InvalidConfig, match="insight, mopps"):
        loader_of(config)
