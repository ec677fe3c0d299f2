"""A file that many reward workers write and curricula read: append-only, one JSON line an event, safe against kills.

A line is ``{"id": "...", "uid": "...", "rewards": [1.0, null], "step": 12}``. Writers hold an exclusive lock (flock)
while they write, so lines never mix and a batch is in the file whole or, after a failure, not at all. Only a kill or a
power cut in the middle of a write leaves less: whole lines of it count, and the next writer removes a torn last line,
which nobody was told was saved. Linux and macOS, on a disk of this machine (flock over a network is up to the server).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selector.curriculum.beliefs import MOST_STEP
from selector.errors import InvalidConfig, RewardLogChanged

READ_BYTES = 4 * 1024**2  # read at a time
TAIL_BYTES = 4096  # of what was read before, to know the file again


@dataclass(frozen=True)
class RewardEvent:
    """The rewards of some rollouts of one question at one step. Two events of one id are the same event."""

    uid: str
    rewards: tuple[float | None, ...]
    step: int
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def to_line(self) -> bytes:
        """Return the event as a line of JSON; NaN and infinities become null, which is what they count as."""
        rewards = [None if reward is None or not _is_finite(reward) else float(reward) for reward in self.rewards]
        row = {"id": self.id, "uid": self.uid, "rewards": rewards, "step": int(self.step)}
        return json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> RewardEvent:
        """Read a line back; it may say more than an event needs. Raises ValueError for anything that is no event."""
        row: Any = json.loads(line)
        if not isinstance(row, dict) or not {"id", "uid", "rewards", "step"} <= set(row):
            raise ValueError("not an object with id, uid, rewards and step")
        identity, uid, rewards, step = row["id"], row["uid"], row["rewards"], row["step"]
        if not isinstance(identity, str) or not identity or not isinstance(uid, str):
            raise ValueError("id and uid must be text")
        (identity + uid).encode()  # half a surrogate pair is no text
        if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step <= MOST_STEP:
            raise ValueError(f"step must be a whole number from 0 to {MOST_STEP}")
        if not isinstance(rewards, list) or not all(r is None or _is_number(r) for r in rewards):
            raise ValueError("rewards must be a list of numbers and nulls")
        return cls(uid, tuple(rewards), step, identity)


class RewardLog:
    """The log at a path; any number of processes and threads may append and read at once.

    ``is_synced``: wait for the disk at each append. Without it an acknowledged event survives the death of every
    process, and a power cut may cost the last seconds; with it, it survives both. ``damaged``: (offset, reason) of
    lines that were read and are no events (some other program wrote them); they are skipped, never silently.
    """

    def __init__(self, path: str | Path, *, is_synced: bool = False) -> None:
        self.path, self.is_synced = Path(path), is_synced
        self.damaged: list[tuple[int, str]] = []

    def append(self, events: Iterable[RewardEvent]) -> None:
        """Write the events behind all others; when this returns, they are in the file.

        On an error (a full disk) none of them is, and the same events may be appended again. Raises OSError, and
        InvalidConfig for what is no event.
        """
        text = b"".join(_checked_line(event) for event in events)
        if not text:
            return
        with self._locked(os.O_RDWR | os.O_APPEND | os.O_CREAT, fcntl.LOCK_EX) as file:
            end = _mend(file)
            try:
                written = 0
                while written < len(text):
                    written += os.write(file, text[written:])
                if self.is_synced:
                    os.fsync(file)
            except BaseException:
                os.ftruncate(file, end)
                raise

    def read_from(self, offset: int = 0, *, max_bytes: int = READ_BYTES) -> tuple[list[RewardEvent], int]:
        """Return the events from a byte offset on, and the offset to read from next; [] at the end.

        At most about ``max_bytes`` at a time (at least one line). Only what no writer can take back is returned: whole
        lines of finished writes. Events written twice are returned twice: their ids tell. Raises RewardLogChanged
        when the file is shorter than the offset.
        """
        if not self.path.exists():
            if offset:
                raise RewardLogChanged(path=str(self.path), offset=offset, found="is gone")
            return [], 0
        with self._locked(os.O_RDONLY, fcntl.LOCK_SH) as file:
            size = os.fstat(file).st_size  # under the lock: no write is going on, whatever lies before is final
            if offset > size:
                raise RewardLogChanged(path=str(self.path), offset=offset, found=f"has only {size} bytes")
            text = os.pread(file, min(max_bytes, size - offset), offset)
            while b"\n" not in text and offset + len(text) < size:
                text += os.pread(file, max_bytes, offset + len(text))
        text = text[: text.rfind(b"\n") + 1]
        events = []
        place = offset
        for line in text.split(b"\n")[:-1]:
            try:
                events.append(RewardEvent.from_line(line))
            except ValueError as error:
                self.damaged.append((place, str(error)))
            place += len(line) + 1
        return events, offset + len(text)

    def sync(self) -> None:
        """Wait until everything appended so far is on the disk."""
        if self.path.exists():
            with self._locked(os.O_RDONLY, fcntl.LOCK_SH) as file:
                os.fsync(file)

    def fingerprint(self, offset: int) -> str:
        """Return a hash of the bytes just before an offset, by which the file is known again."""
        if offset == 0 or not self.path.exists():
            return ""
        with self._locked(os.O_RDONLY, fcntl.LOCK_SH) as file:
            start = max(0, offset - TAIL_BYTES)
            return hashlib.sha256(os.pread(file, offset - start, start)).hexdigest()

    @contextmanager
    def _locked(self, flags: int, lock: int) -> Iterator[int]:
        # A descriptor of its own for each call: flock then keeps threads and forked children apart, too.
        if flags & os.O_CREAT:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, flags | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, lock)
            yield file
        finally:
            os.close(file)


def _mend(file: int) -> int:
    """Remove a torn last line, of a writer that was killed, and return the size of the file."""
    size = os.fstat(file).st_size
    end = size
    while end and os.pread(file, 1, end - 1) != b"\n":
        start = max(0, end - TAIL_BYTES)
        found = os.pread(file, end - start, start).rfind(b"\n")
        end = start if found < 0 else start + found + 1
    if end < size:
        os.ftruncate(file, end)
    return end


def _checked_line(event: RewardEvent) -> bytes:
    try:
        line = event.to_line()
        RewardEvent.from_line(line)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise InvalidConfig("a reward event", event, f"one that can be read back ({error})") from None
    return line


def _is_number(found: object) -> bool:
    """Whether it is a number that a float can hold; JSON's whole numbers may be longer."""
    return isinstance(found, float) or (isinstance(found, int) and abs(found) <= sys.float_info.max)


def _is_finite(reward: float) -> bool:
    return float("-inf") < float(reward) < float("inf")
