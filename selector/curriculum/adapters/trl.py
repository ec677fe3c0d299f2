"""TRL: `CurriculumGRPOTrainer`, and `steer` for any other trainer of TRL whose sampler is a RepeatSampler.

Training rows need a column ``uid``, and the reward function reports (`selector.rewards`, ASSAY_REWARD_LOG). Written
against TRL 1.16. Of several processes the first proposes and tells the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
import trl
from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from torch.utils.data import Sampler

from selector.curriculum.adapters.steering import Steering
from selector.errors import InvalidConfig

STATE_FILE = "curriculum.json"  # in each of the trainer's checkpoints


class CurriculumSampler(Sampler[int]):
    """TRL's RepeatSampler, but each batch of ``batch_size`` questions is proposed when it is about to be used.

    Yields indices of ``data_source`` (which has a column ``uid``): every question ``mini_repeat_count`` times in a row,
    the whole batch ``repeat_count`` times. An epoch is as long as RepeatSampler's, so that ``max_steps``, epochs and
    learning rates mean what they meant. Data loaders fetch one batch ahead: a proposal knows the rewards up to the last
    batch but one.
    """

    def __init__(
        self,
        data_source: Any,
        steering: Steering,
        *,
        mini_repeat_count: int,
        batch_size: int = 1,
        repeat_count: int = 1,
    ) -> None:
        self.steering, self.row_by_uid = steering, rows_by_uid(data_source)
        self.mini_repeat_count, self.batch_size, self.repeat_count = mini_repeat_count, batch_size, repeat_count
        self.n_batches = len(data_source) // batch_size

    def __iter__(self) -> Iterator[int]:
        for _ in range(self.n_batches):
            uids = on_all_processes(lambda: self.steering.propose(self.batch_size))
            rows = [row_of(uid, self.row_by_uid) for uid in uids]
            for _ in range(self.repeat_count):
                for row in rows:
                    yield from [row] * self.mini_repeat_count

    def __len__(self) -> int:
        return self.n_batches * self.batch_size * self.mini_repeat_count * self.repeat_count


def steer(trainer: Any, steering: Steering) -> None:
    """Give a trainer of TRL a CurriculumSampler, and its checkpoints the curriculum's state.

    A checkpoint holds one proposal that was fetched and not used: after a resumption it is not rolled out. Groups that
    `dynamic_sampling` would drop stay in the batch, with zero advantage, and nothing takes their place.
    """

    def make_sampler(dataset: Any = None) -> CurriculumSampler:
        return CurriculumSampler(
            trainer.train_dataset if dataset is None else dataset,
            steering,
            mini_repeat_count=trainer.num_generations,
            batch_size=trainer.args.generation_batch_size // trainer.num_generations,
            repeat_count=trainer.num_iterations * trainer.args.steps_per_generation,
        )

    trainer._get_train_sampler = make_sampler
    trainer.args.ignore_data_skip = True  # a resumed curriculum goes on; nothing is to be drawn again and skipped
    trainer.add_callback(_CurriculumInCheckpoints(steering))


class CurriculumGRPOTrainer(trl.GRPOTrainer):
    """GRPOTrainer that asks for its questions at the moment it rolls them out: a proposal knows every earlier reward.

    What the data loader brings only says how many. On one process the curriculum may also refill the batch
    (`dynamic_sampling`): those it drops are rolled out, reported and not trained on. On several processes, or with a
    curriculum that hears later (``hears_at_once``), they stay, with zero advantage. Where refilling ended before the
    batch was full, dropped groups fill it up. Raises InvalidConfig for rows without ``uid``.
    """

    def __init__(self, *args: Any, steering: Steering, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.steering = steering
        self._questions: Any = self.train_dataset
        self._row_by_uid = rows_by_uid(self._questions)
        self._n_each = int(self.num_generations or 1)
        self.add_callback(_CurriculumInCheckpoints(steering))

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        model: Any = self.model
        if not model.training:
            return dict(super()._generate_and_score_completions(inputs))
        k = len(inputs) * self.accelerator.num_processes // self._n_each
        uids = on_all_processes(lambda: self.steering.propose(k))
        parts = [super()._generate_and_score_completions(self._rows(uids))]
        if self.accelerator.num_processes == 1 and self.steering.hears_at_once:
            while more := self.steering.refill():
                uids += more
                parts.append(super()._generate_and_score_completions(self._rows(more)))
        if len(parts) == 1:
            return dict(parts[0])
        kept = set(self.steering.kept())
        order = sorted(range(len(uids)), key=lambda place: uids[place] not in kept)[:k]
        return merge(parts, order, n_each=self._n_each, pad_token_id=self._tokenizer.pad_token_id)

    def _rows(self, uids: Sequence[str]) -> list[dict[str, Any]]:
        """Return this process's share of the rows of a batch, each question once for each of its completions."""
        rows = [self._questions[row_of(uid, self._row_by_uid)] for uid in uids]
        repeated = [dict(row) for row in rows for _ in range(self._n_each)]
        share = len(repeated) // self.accelerator.num_processes
        start = self.accelerator.process_index * share
        return repeated[start : start + share]


def merge(
    parts: Sequence[Mapping[str, Any]], groups: Sequence[int], *, n_each: int, pad_token_id: int
) -> dict[str, Any]:
    """Return the chosen groups of ``n_each`` rows from scored batches, as one batch.

    Prompts are padded on the left and everything else on the right, as TRL has them. Raises InvalidConfig for batches
    with images, which cannot be cut by rows.
    """
    rows = torch.tensor([group * n_each + place for group in groups for place in range(n_each)])
    merged: dict[str, Any] = {}
    for name, first in parts[0].items():
        found = [part[name] for part in parts]
        if not isinstance(first, torch.Tensor) or first.dim() > 2:
            raise InvalidConfig("a curriculum that refills its batches", name, "text alone")
        if first.dim() == 0:
            continue
        if first.dim() == 2:
            width = max(each.shape[1] for each in found)
            fill = pad_token_id if name.endswith("_ids") else 0
            is_left = name.startswith("prompt_")
            found = [_pad(each, width, fill, is_left) for each in found]
        merged[name] = torch.cat(found)[rows.to(first.device)]
    merged["num_items_in_batch"] = merged["completion_mask"].sum()
    return merged


def _pad(tensor: torch.Tensor, width: int, fill: int, is_left: bool) -> torch.Tensor:
    missing = width - tensor.shape[1]
    return torch.nn.functional.pad(tensor, (missing, 0) if is_left else (0, missing), value=fill)


def on_all_processes(ask: Callable[[], list[str]]) -> list[str]:
    """Return to every process what the first one was answered."""
    answer = [ask() if PartialState().is_main_process else None]
    uids: list[str] = broadcast_object_list(answer, from_process=0)[0]
    return uids


def rows_by_uid(dataset: Any) -> dict[str, int]:
    """Return the row of each uid. Raises InvalidConfig where there are no uids or one comes twice."""
    if "uid" not in dataset.column_names:
        raise InvalidConfig("the columns of the training rows", dataset.column_names, "a column 'uid' among them")
    rows = {str(uid): row for row, uid in enumerate(dataset["uid"])}
    if len(rows) < len(dataset):
        raise InvalidConfig("the training rows", f"{len(dataset)} rows of {len(rows)} uids", "one row for each uid")
    return rows


def row_of(uid: str, rows: Mapping[str, int]) -> int:
    """Return the row of a proposed question. Raises InvalidConfig."""
    if uid not in rows:
        raise InvalidConfig("a proposed question", uid, f"one of the {len(rows)} training rows")
    return rows[uid]


class _CurriculumInCheckpoints(transformers.TrainerCallback):
    def __init__(self, steering: Steering) -> None:
        self.steering = steering

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self.steering.save(_checkpoint(args, state) / STATE_FILE)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step and state.is_world_process_zero:
            self.steering.load(_checkpoint(args, state) / STATE_FILE)


def _checkpoint(args: Any, state: Any) -> Path:
    return Path(args.output_dir) / f"checkpoint-{state.global_step}"
