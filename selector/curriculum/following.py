"""A curriculum that learns from a reward log: each event counts once, and a restart need not read the log again."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from selector.curriculum.contract import Curriculum
from selector.curriculum.log import RewardEvent, RewardLog
from selector.errors import RewardLogChanged
from selector.state import write_atomically

ID_BYTES = 16  # kept of each event's id


class LogFollower:
    """Feeds a curriculum from a log; with a ``checkpoint`` file it goes on where it was last saved.

    ``n_counted``: events the curriculum has learned from; ``n_repeated``: events whose id had come before, left out;
    ``n_unknown``: events of questions that the curriculum does not have, left out (a log may serve several). One
    process follows into one checkpoint. Raises CurriculumMismatch, and RewardLogChanged when the log is not the file
    that the checkpoint was made from.
    """

    def __init__(self, curriculum: Curriculum, log: RewardLog, checkpoint: str | Path | None = None) -> None:
        self.curriculum, self.log = curriculum, log
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self.offset = self.n_counted = self.n_repeated = self.n_unknown = 0
        self._ids: set[bytes] = set()
        if self.checkpoint is not None and self.checkpoint.exists():
            self._load(json.loads(self.checkpoint.read_text(encoding="utf-8")))

    def catch_up(self) -> int:
        """Learn from everything the log holds by now and return how many events counted."""
        before = self.n_counted
        while True:
            events, offset = self.log.read_from(self.offset)
            for event in events:
                self._count(event)
            if offset == self.offset:
                return self.n_counted - before
            self.offset = offset

    def save(self) -> None:
        """Write the curriculum's state and the place in the log, together, whole or not at all.

        The log is on the disk first, so that no power cut leaves a checkpoint that is ahead of it.
        """
        if self.checkpoint is None:
            raise ValueError("this follower was made without a checkpoint file")
        self.log.sync()
        state = {
            "curriculum": self.curriculum.state_dict(),
            "offset": self.offset,
            "log_fingerprint": self.log.fingerprint(self.offset),
            "counts": [self.n_counted, self.n_repeated, self.n_unknown],
            "ids": base64.b64encode(b"".join(sorted(self._ids))).decode(),
        }
        write_atomically(self.checkpoint, [json.dumps(state), "\n"])

    def _count(self, event: RewardEvent) -> None:
        identity = hashlib.blake2b(event.id.encode(), digest_size=ID_BYTES).digest()
        if identity in self._ids:
            self.n_repeated += 1
        elif event.uid not in self.curriculum.beliefs.rows:
            self.n_unknown += 1
        else:
            self.curriculum.observe(event.uid, event.rewards, event.step)
            self._ids.add(identity)
            self.n_counted += 1

    def _load(self, saved: dict[str, Any]) -> None:
        offset = saved["offset"]
        if self.log.fingerprint(offset) != saved["log_fingerprint"]:
            raise RewardLogChanged(path=str(self.log.path), offset=offset, found="holds something else there")
        self.curriculum.load_state_dict(saved["curriculum"])
        self.offset = offset
        self.n_counted, self.n_repeated, self.n_unknown = saved["counts"]
        ids = base64.b64decode(saved["ids"])
        self._ids = {ids[start : start + ID_BYTES] for start in range(0, len(ids), ID_BYTES)}
