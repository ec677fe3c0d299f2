"""Where verdicts are kept: in memory, or in a file that a killed process may leave with a torn last line."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Lock

from selector.answers.contract import Verdict


class MemoryVerdictStore:
    """Verdicts of one process."""

    def __init__(self) -> None:
        self._verdicts: dict[str, Verdict] = {}

    def __len__(self) -> int:
        return len(self._verdicts)

    def get(self, key: str) -> Verdict | None:
        """Return the verdict kept under the key, if any."""
        return self._verdicts.get(key)

    def put(self, key: str, verdict: Verdict) -> None:
        """Keep a verdict; the first one kept under a key stays."""
        self._verdicts.setdefault(key, verdict)


class JsonlVerdictStore:
    """Verdicts in a JSONL file, one ``{"key", "verdict"}`` a line, appended and flushed one by one.

    A last line that was cut off by a crash is dropped on opening; a broken line elsewhere raises ValueError.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = Lock()
        self._verdicts: dict[str, Verdict] = {}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            self._load()
        self._file = self._path.open("a", encoding="utf-8")

    def _load(self) -> None:
        raw = self._path.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        for line in whole.splitlines():
            row = json.loads(line)
            self._verdicts.setdefault(row["key"], Verdict(row["verdict"]))
        if len(whole) < len(raw):
            with self._path.open("r+b") as file:
                file.truncate(len(whole))

    def get(self, key: str) -> Verdict | None:
        """Return the verdict kept under the key, if any."""
        return self._verdicts.get(key)

    def put(self, key: str, verdict: Verdict) -> None:
        """Keep a verdict on disk; the first one kept under a key stays."""
        with self._lock:
            if key not in self._verdicts:
                self._verdicts[key] = verdict
                self._file.write(json.dumps({"key": key, "verdict": str(verdict)}) + "\n")
                self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
