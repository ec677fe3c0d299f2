"""The directory a command keeps its work in: completions, verdicts, embeddings, and what settings they came from."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from selector.answers.stores import JsonlVerdictStore
from selector.diversity import Clustering
from selector.embedding_file import EmbeddingFile
from selector.errors import StateInUse, StateMismatch
from selector.generation.store import CompletionShards, parse_completion
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

    ``completions/``, ``internals.jsonl``, ``verdicts.jsonl``, ``embeddings-*``, ``clusters-*.npz`` and
    ``manifest.json``, which names the generation settings that the completions were made with. ``keep``: what is kept
    of outcomes (selector.generation.store.KEEP). ``notices`` are sentences about what was found. Raises StateInUse.
    """

    def __init__(self, path: str | Path, *, keep: str = "completions") -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = (self.path / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise StateInUse(path=str(path)) from None
        self.notices: list[str] = []
        self.completions = CompletionShards(self.path / "completions", keep=keep)
        if n_torn := self.completions.n_torn_bytes:
            self.notices.append(f"The last {n_torn:,} bytes in {self.completions.path} were torn; they are made again.")
        self._bring_over_jsonl()
        self.verdicts = JsonlVerdictStore(self.path / "verdicts.jsonl")
        self.clusterings = ClusteringFiles(self.path)

    def _bring_over_jsonl(self) -> None:
        """Take over the completions of an earlier version, which kept them in one plain file."""
        path = self.path / "completions.jsonl"
        if not path.exists():
            return
        with path.open("rb") as file:
            lines = (line for line in file if line.endswith(b"\n"))  # a torn last line is made again
            while chunk := list(islice(lines, 1000)):
                self.completions.add([parse_completion(line) for line in chunk])
        path.unlink()
        self.notices.append(f"The completions in {path} are now kept compressed, in {self.completions.path}.")

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
        self,
        texts: Sequence[str],
        fingerprint: str,
        make: Callable[[Sequence[str]], NDArray[np.float32]],
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> NDArray[np.float32]:
        """Return the texts' embeddings [N, D]: those stored earlier, the others made and stored now, some at a time.

        ``fingerprint`` names the embedder. ``progress`` hears how many of the texts have one.
        """
        key = hashlib.sha256(fingerprint.encode()).hexdigest()[:16]
        return EmbeddingFile(self.path / f"embeddings-{key}").of(texts, make, progress)


class ClusteringFiles:
    """Clusterings in a directory, one ``clusters-*.npz`` each."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, key: str) -> Clustering | None:
        """Return the clustering kept under a key, if any."""
        path = self._path / f"clusters-{key}.npz"
        return Clustering.from_bytes(path.read_bytes()) if path.exists() else None

    def save(self, key: str, clustering: Clustering) -> None:
        """Keep a clustering."""
        temporary = self._path / f".clusters-{key}.tmp"
        temporary.write_bytes(clustering.to_bytes())
        temporary.replace(self._path / f"clusters-{key}.npz")


def differences(found: Mapping[str, object], wanted: Mapping[str, object]) -> str:
    """Say which named parts differ: ``temperature 0.6, now 1.0``."""
    names = [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]
    return "; ".join(f"{name} {found.get(name)!r}, now {wanted.get(name)!r}" for name in names) or "of another version"
