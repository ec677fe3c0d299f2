"""The directory a command keeps its work in: completions, verdicts, embeddings, and what settings they came from."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from selector.answers.stores import JsonlVerdictStore
from selector.errors import StateInUse, StateMismatch
from selector.generation.store import JsonlCompletionStore
from selector.internals import JsonlInternalsStore


def write_atomically(path: str | Path, lines: Iterable[str]) -> None:
    """Write a text file whole or not at all: to a temporary neighbour first, renamed when it is on the disk."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class State:
    """A state directory, held by one process at a time (a lock that the system frees when the process dies).

    ``completions.jsonl``, ``internals.jsonl``, ``verdicts.jsonl``, ``embeddings-*.npy`` and ``manifest.json``, which
    names the generation settings that the completions were made with. Raises StateInUse.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = (self.path / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise StateInUse(path=str(path)) from None
        self.completions = JsonlCompletionStore(self.path / "completions.jsonl")
        self.verdicts = JsonlVerdictStore(self.path / "verdicts.jsonl")

    @cached_property
    def internals(self) -> JsonlInternalsStore:
        """What has been read inside the model, of the chains in ``completions``."""
        return JsonlInternalsStore(self.path / "internals.jsonl")

    def __enter__(self) -> State:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.verdicts.close()
        self._lock.close()

    def claim(self, fingerprint: str, description: Mapping[str, object]) -> None:
        """Bind the directory to these generation settings. Raises StateMismatch when it holds answers of others."""
        manifest = self.path / "manifest.json"
        wanted = {"fingerprint": fingerprint, "generation": dict(description)}
        if manifest.exists():
            found = json.loads(manifest.read_text(encoding="utf-8"))
            if found["fingerprint"] != fingerprint:
                raise StateMismatch(
                    path=str(self.path),
                    differences=differences(
                        found["generation"], json.loads(json.dumps(wanted["generation"], default=str))
                    ),
                )
            return
        write_atomically(manifest, [json.dumps(wanted, indent=2, default=str), "\n"])

    def embeddings(
        self, texts: Sequence[str], fingerprint: str, make: Callable[[Sequence[str]], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """Return the texts' embeddings [N, D], kept from an earlier run of the same texts and embedder or made now."""
        key = hashlib.sha256("\0".join([fingerprint, *sorted(texts)]).encode()).hexdigest()[:16]
        path = self.path / f"embeddings-{key}.npy"
        order = sorted(range(len(texts)), key=lambda i: texts[i])
        if path.exists():
            in_order = np.load(path, allow_pickle=False)
        else:
            in_order = make([texts[i] for i in order])
            temporary = path.with_suffix(".tmp.npy")
            np.save(temporary, in_order, allow_pickle=False)
            temporary.replace(path)
        vectors = np.empty_like(in_order)
        vectors[order] = in_order
        return vectors


def differences(found: Mapping[str, object], wanted: Mapping[str, object]) -> str:
    """Say which named parts differ: ``temperature 0.6, now 1.0``."""
    names = [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]
    return "; ".join(f"{name} {found.get(name)!r}, now {wanted.get(name)!r}" for name in names) or "of another version"
