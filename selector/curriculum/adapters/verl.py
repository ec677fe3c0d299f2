"""verl: a dataset whose next row is whatever the curriculum proposes. Verified with verl 0.9.1, which has no samplers.

``data.custom_cls.path=pkg://selector.curriculum.adapters.verl data.custom_cls.name=CurriculumDataset``, with
``data.shuffle=False data.dataloader_num_workers=0`` and, below ``+data.curriculum``:

- ``kind``: a key of CURRICULA, and ``log``: the file of ASSAY_REWARD_LOG; ``seed``; ``prior``: a JSON file of
  {uid: [successes, failures]}; ``settings``: those of the curriculum
- or ``url``: a curriculum of the application, with its token in ASSAY_REWARD_TOKEN
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selector.curriculum import CURRICULA
from selector.curriculum.adapters.remote import RemoteCurriculum
from selector.curriculum.adapters.steering import LogSteering, Steering
from selector.errors import InvalidConfig

_Rows: Any = object  # an RLHFDataset, once verl is there
PATIENCE = 8  # proposals without a reward; asynchronous trainers fetch some batches before the first answer


class _Proposed(_Rows):
    """An RLHFDataset in which the position asked for does not matter: each row is the next proposed question.

    ``data.train_batch_size`` questions are proposed together when the first of them is asked for, and the questions of
    one proposal differ. Their ``extra_info`` gets the proposal's number as ``step``, under which compute_score reports.
    Groups that verl drops (``algorithm.filter_groups``) are replaced by the next proposed ones. The curriculum's
    state goes into the data loader's checkpoint (``data.pt``). Validation files are read in their own order. Raises
    InvalidConfig for settings under which positions would be shuffled or rows fetched in other processes.
    """

    def __init__(
        self, data_files: Any, tokenizer: Any, config: Any, processor: Any = None, max_samples: int = -1
    ) -> None:
        super().__init__(data_files, tokenizer, config, processor=processor, max_samples=max_samples)
        self.steering: Steering | None = None
        if _as_list(data_files) != _as_list(config.train_files):
            return
        for name, wanted in (("shuffle", False), ("dataloader_num_workers", 0)):
            if config.get(name) != wanted:
                raise InvalidConfig(f"data.{name}", config.get(name), f"{wanted}: the curriculum decides the order")
        uids = [str(info["uid"]) for info in self.dataframe["extra_info"]]
        self._row_by_uid = {uid: row for row, uid in enumerate(uids)}
        if len(self._row_by_uid) < len(uids):
            raise InvalidConfig("the training rows", f"{len(uids)} rows", "an extra_info.uid of its own for each")
        self.steering = open_steering(config.get("curriculum") or {}, uids)
        self._n_proposed = 0
        self._waiting: list[str] = []

    def __getitem__(self, item: int) -> dict[str, Any]:
        if self.steering is None:
            return dict(super().__getitem__(item))
        if not self._waiting:
            self._waiting = self.steering.propose(min(self.config.train_batch_size, len(self)))
            self._n_proposed += 1
        uid = self._waiting.pop(0)
        if uid not in self._row_by_uid:
            raise InvalidConfig("a proposed question", uid, f"one of the {len(self._row_by_uid)} training rows")
        row = dict(super().__getitem__(self._row_by_uid[uid]))
        row["extra_info"] = {**row["extra_info"], "step": self._n_proposed - 1}
        return row

    def state_dict(self) -> dict[str, Any]:
        """Return what the next rows depend on; the data loader asks for it."""
        if self.steering is None:
            return {}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "curriculum.json"
            self.steering.save(path)
            state = path.read_text(encoding="utf-8")
        return {"curriculum": state, "n_proposed": self._n_proposed, "waiting": list(self._waiting)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state. Raises CurriculumMismatch and RewardLogChanged."""
        if self.steering is None or not state:
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "curriculum.json"
            path.write_text(state["curriculum"], encoding="utf-8")
            self.steering.load(path)
        self._n_proposed, self._waiting = state["n_proposed"], list(state["waiting"])


def __getattr__(name: str) -> Any:
    """Make CurriculumDataset when it is asked for, so that this module can be imported where verl is not installed."""
    if name != "CurriculumDataset":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from verl.utils.dataset.rl_dataset import RLHFDataset

    made = type(name, (_Proposed, RLHFDataset), {"__module__": __name__, "__doc__": _Proposed.__doc__})
    globals()[name] = made
    return made


def open_steering(found: Mapping[str, Any], uids: list[str]) -> Steering:
    """Return what ``data.curriculum`` asks for. Raises InvalidConfig."""
    if found.get("url"):
        return RemoteCurriculum(found["url"], os.environ.get("ASSAY_REWARD_TOKEN", ""))
    if found.get("kind") not in CURRICULA or not found.get("log"):
        keys = ", ".join(CURRICULA)
        raise InvalidConfig("data.curriculum", dict(found), f"a url, or a log and a kind that is one of {keys}")
    prior = json.loads(Path(found["prior"]).read_text(encoding="utf-8")) if found.get("prior") else {}
    known = set(uids)
    curriculum = CURRICULA[found["kind"]](
        uids,
        seed=found.get("seed", 0),
        prior={uid: counts for uid, counts in prior.items() if uid in known},
        **(found.get("settings") or {}),
    )
    return LogSteering(curriculum, found["log"], patience=PATIENCE)


def _as_list(files: Any) -> list[str]:
    return [files] if isinstance(files, str) else list(files)
