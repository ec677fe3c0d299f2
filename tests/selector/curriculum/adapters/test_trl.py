"""TRL's real trainer and sampler, steered by what the reward function of an export saw."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from selector.curriculum import CURRICULA, RewardEvent, RewardLog
from selector.curriculum.adapters.steering import LogSteering
from selector.errors import InvalidConfig, NoRewardsHeard
from selector.rewards import accuracy_reward
from selector.tiny import MODEL_DIR, questions

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
trl = pytest.importorskip("trl", reason="TRL is not installed: pip install 'assay-rlvr[demo]'")
adapter = pytest.importorskip("selector.curriculum.adapters.trl")
datasets, torch, transformers = map(pytest.importorskip, ("datasets", "torch", "transformers"))

UIDS = [f"q{number}" for number in range(8)]
N_QUESTIONS, N_ROLLOUTS = 2, 4
quiet = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")


@pytest.fixture
def rows() -> Any:
    """What an export for TRL holds, of eight of the demo's questions."""
    asked = questions.demo_sets()["pool"][: len(UIDS)]
    return datasets.Dataset.from_list(
        [
            {"prompt": [{"role": "user", "content": question.text}], "answer": question.answer, "uid": uid}
            for uid, question in zip(UIDS, asked, strict=True)
        ]
    )


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the reward function reports to."""
    path = tmp_path / "rewards.jsonl"
    monkeypatch.setenv("ASSAY_REWARD_LOG", str(path))
    return path


class Watched(LogSteering):
    """Notes at each proposal how many events were known."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.known: list[int] = []

    def propose(self, k: int) -> list[str]:
        uids = super().propose(k)
        self.known.append(self.follower.n_counted)
        return uids


def steered_by(key: str, log: Path, **settings: Any) -> Watched:
    return Watched(CURRICULA[key](UIDS, seed=0, **settings), log)


def a_trainer(rows: Any, directory: Path, *, kind: Any = trl.GRPOTrainer, **more: Any) -> Any:
    settings = {name: more.pop(name) for name in ("max_steps", "save_steps", "num_train_epochs") if name in more}
    return kind(
        model=transformers.AutoModelForCausalLM.from_pretrained(MODEL_DIR, dtype=torch.float32),
        processing_class=transformers.AutoTokenizer.from_pretrained(MODEL_DIR),
        reward_funcs=accuracy_reward,
        train_dataset=rows,
        args=trl.GRPOConfig(
            output_dir=str(directory),
            use_cpu=True,
            bf16=False,
            per_device_train_batch_size=N_QUESTIONS * N_ROLLOUTS,
            num_generations=N_ROLLOUTS,
            max_completion_length=32,
            gradient_checkpointing=False,
            save_strategy="steps" if "save_steps" in settings else "no",
            report_to="none",
            disable_tqdm=True,
            seed=0,
            **settings,
        ),
        **more,
    )


def counted(log: Path) -> dict[str, tuple[float, float]]:
    """Return successes and failures of each question, read from the log one line at a time."""
    found = dict.fromkeys(UIDS, (0.0, 0.0))
    for event in RewardLog(log).read_from()[0]:
        right = sum(reward == 1.0 for reward in event.rewards)
        before = found[event.uid]
        found[event.uid] = (before[0] + right, before[1] + len(event.rewards) - right)
    return found


def beliefs(steering: LogSteering) -> dict[str, tuple[float, float]]:
    found = steering.curriculum.beliefs
    return {uid: (a - 1, b - 1) for uid, a, b in zip(found.uids, found.a.tolist(), found.b.tolist(), strict=True)}


@pytest.mark.parametrize(("batch_size", "mini_repeat_count", "repeat_count"), [(2, 4, 1), (3, 2, 2), (8, 1, 3)])
def test_the_sampler_has_the_shape_of_trls_own(
    rows: Any, log: Path, batch_size: int, mini_repeat_count: int, repeat_count: int
) -> None:
    shape = {"batch_size": batch_size, "mini_repeat_count": mini_repeat_count, "repeat_count": repeat_count}
    ours = adapter.CurriculumSampler(rows, LogSteering(CURRICULA["random"](UIDS), log, patience=99), **shape)
    theirs = trl.trainer.utils.RepeatSampler(rows, **shape, seed=0)

    drawn, expected = list(ours), list(theirs)

    assert len(ours) == len(theirs) == len(drawn) == len(expected)
    size = batch_size * mini_repeat_count
    for start in range(0, len(drawn), size * repeat_count):
        block = drawn[start : start + size]
        assert drawn[start : start + size * repeat_count] == block * repeat_count
        assert block == [row for row in block[::mini_repeat_count] for _ in range(mini_repeat_count)]
        assert len(set(block)) == batch_size


def test_the_sampler_proposes_only_when_a_batch_is_used(rows: Any, log: Path) -> None:
    steering = steered_by("insight", log)
    drawn = iter(adapter.CurriculumSampler(rows, steering, mini_repeat_count=2, batch_size=2))

    first = [next(drawn) for _ in range(4)]
    RewardLog(log).append([RewardEvent(UIDS[first[0]], (1.0, 0.0), step=0)])
    next(drawn)

    assert steering.known == [0, 1]


def test_a_training_whose_rewards_nobody_hears_ends_with_what_to_do(rows: Any, log: Path) -> None:
    drawn = adapter.CurriculumSampler(rows, steered_by("insight", log), mini_repeat_count=1, batch_size=2)

    with pytest.raises(NoRewardsHeard, match=r"After 3 proposals .* Set ASSAY_REWARD_LOG="):
        list(drawn)


def test_rewards_of_other_questions_are_told_apart_from_none(rows: Any, log: Path) -> None:
    RewardLog(log).append([RewardEvent("elsewhere", (1.0,), step=0)])
    drawn = adapter.CurriculumSampler(rows, steered_by("insight", log), mini_repeat_count=1, batch_size=2)

    with pytest.raises(NoRewardsHeard, match="only 1 events of other questions"):
        list(drawn)


def test_rows_must_have_a_uid_of_their_own(rows: Any, log: Path) -> None:
    with pytest.raises(InvalidConfig, match="a column 'uid'"):
        adapter.CurriculumSampler(rows.remove_columns("uid"), steered_by("random", log), mini_repeat_count=1)
    with pytest.raises(InvalidConfig, match="one row for each uid"):
        adapter.CurriculumSampler(
            datasets.concatenate_datasets([rows, rows]), steered_by("random", log), mini_repeat_count=1
        )
    with pytest.raises(InvalidConfig, match="a proposed question"):
        list(adapter.CurriculumSampler(rows.select([0]), steered_by("random", log), mini_repeat_count=1))


def test_merged_batches_keep_the_chosen_groups_and_pad_as_trl_does() -> None:
    def part(values: list[int], prompt: int, completion: int) -> dict[str, Any]:
        n = len(values)
        return {
            "prompt_ids": torch.tensor(values).repeat_interleave(prompt).reshape(n, prompt),
            "prompt_mask": torch.ones(n, prompt, dtype=torch.long),
            "completion_ids": torch.tensor(values).repeat_interleave(completion).reshape(n, completion),
            "completion_mask": torch.ones(n, completion, dtype=torch.long),
            "advantages": torch.tensor(values, dtype=torch.float32),
            "num_items_in_batch": torch.tensor(n * completion),
        }

    merged = adapter.merge([part([1, 1, 2, 2], 2, 3), part([3, 3], 4, 1)], [2, 0], n_each=2, pad_token_id=9)

    assert merged["prompt_ids"].tolist() == [[3, 3, 3, 3]] * 2 + [[9, 9, 1, 1]] * 2
    assert merged["prompt_mask"].tolist() == [[1, 1, 1, 1]] * 2 + [[0, 0, 1, 1]] * 2
    assert merged["completion_ids"].tolist() == [[3, 9, 9]] * 2 + [[1, 1, 1]] * 2
    assert merged["completion_mask"].tolist() == [[1, 0, 0]] * 2 + [[1, 1, 1]] * 2
    assert merged["advantages"].tolist() == [3, 3, 1, 1]
    assert merged["num_items_in_batch"] == 8


@quiet
@pytest.mark.slow
def test_beliefs_are_moved_by_what_the_reward_function_saw(rows: Any, log: Path, tmp_path: Path) -> None:
    steering = steered_by("insight", log)
    trainer = a_trainer(rows, tmp_path / "out", max_steps=3)
    adapter.steer(trainer, steering)

    trainer.train()
    steering.follower.catch_up()

    assert sum(map(sum, counted(log).values())) == 3 * N_QUESTIONS * N_ROLLOUTS
    assert beliefs(steering) == counted(log)
    assert {event.step for event in RewardLog(log).read_from()[0]} == {0, 1, 2}
    assert steering.known[:3] == [0, 0, N_QUESTIONS]  # the data loader fetches one batch ahead


@quiet
@pytest.mark.slow
def test_our_trainer_proposes_with_every_earlier_reward_and_goes_on_from_a_checkpoint(
    rows: Any, log: Path, tmp_path: Path
) -> None:
    steering = steered_by("insight", log)
    a_trainer(
        rows, tmp_path / "out", kind=adapter.CurriculumGRPOTrainer, steering=steering, max_steps=2, save_steps=1
    ).train()
    n_before = len(RewardLog(log).read_from()[0])
    resumed = steered_by("insight", log)
    trainer = a_trainer(rows, tmp_path / "out", kind=adapter.CurriculumGRPOTrainer, steering=resumed, max_steps=3)

    trainer.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-2"))
    resumed.follower.catch_up()

    assert steering.known == [0, N_QUESTIONS]
    assert (tmp_path / "out" / "checkpoint-1" / adapter.STATE_FILE).exists()
    assert n_before == 2 * N_QUESTIONS
    assert resumed.known == [2 * N_QUESTIONS]
    assert beliefs(resumed) == counted(log)
    assert len(RewardLog(log).read_from()[0]) == 3 * N_QUESTIONS


@quiet
@pytest.mark.slow
def test_a_steered_trainer_goes_on_from_a_checkpoint(rows: Any, log: Path, tmp_path: Path) -> None:
    trainer = a_trainer(rows, tmp_path / "out", max_steps=2, save_steps=1)
    adapter.steer(trainer, steered_by("insight", log))
    trainer.train()
    resumed = steered_by("insight", log)
    trainer = a_trainer(rows, tmp_path / "out", max_steps=3)
    adapter.steer(trainer, resumed)

    trainer.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-2"))
    resumed.follower.catch_up()

    assert trainer.state.global_step == 3
    assert resumed.known[0] == 2 * N_QUESTIONS  # nothing is drawn again for the steps that were done
    assert beliefs(resumed) == counted(log)
    assert len(RewardLog(log).read_from()[0]) == 3 * N_QUESTIONS


@quiet
@pytest.mark.slow
def test_dropped_questions_are_counted_and_replaced(rows: Any, log: Path, tmp_path: Path) -> None:
    steering = steered_by("dynamic_sampling", log)
    trained_on: list[Any] = []

    class Trainer(adapter.CurriculumGRPOTrainer):
        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            batch = super()._generate_and_score_completions(inputs)
            trained_on.append(batch["advantages"].reshape(-1, N_ROLLOUTS))
            return batch

    a_trainer(rows, tmp_path / "out", kind=Trainer, steering=steering, max_steps=3).train()

    events = RewardLog(log).read_from()[0]
    n_with_variance = sum(len(set(event.rewards)) > 1 for event in events)
    n_useful = sum(int((groups != 0).any(dim=1).sum()) for groups in trained_on)
    assert all(groups.shape == (N_QUESTIONS, N_ROLLOUTS) for groups in trained_on)
    assert len(events) > 3 * N_QUESTIONS  # of these questions, some are dropped
    assert n_useful == n_with_variance
    assert steering.curriculum.rollouts_spent == len(events) * N_ROLLOUTS


@pytest.mark.slow
def test_two_processes_are_told_the_same_questions_and_share_their_rollouts(tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone"]

    done = subprocess.run(
        [*launch, str(Path(__file__).parent / "two_processes.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd(), "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"},
        timeout=250,
    )

    assert done.returncode == 0, done.stderr[-2000:]
    first, second = (json.loads((tmp_path / f"rank{rank}").read_text()) for rank in (0, 1))
    assert first["sampled"] == second["sampled"]
    assert len(first["sampled"]) == 80
    for (proposed, ours), (told, theirs) in zip(first["seen"], second["seen"], strict=True):
        assert proposed == told
        assert ours + theirs == [uid for uid in proposed for _ in range(4)]
    assert sum(len(event.rewards) for event in RewardLog(tmp_path / "rewards.jsonl").read_from()[0]) == 2 * 12
