"""Internals of many questions as arrays, in memory, in a file, and appended to a state as they come."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from selector.errors import FingerprintMismatch, InvalidConfig, InvalidRow, MissingEvidence

READER_VERSION = 1  # of what the arrays mean: a change makes everything be read again
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Internals:
    """What one teacher-forced pass over prompt and greedy chain shows of N questions; rows go by ``uids``.

    Probabilities are in nats and over the whole vocabulary, at temperature 1. Where a chain is empty, ``start``,
    ``end`` and everything averaged over it are 0.
    """

    uids: tuple[str, ...]
    fingerprint: str  # of the generation settings that the chains were made with
    start: Floats  # [N, D] at the first token of the chain: mean over the transformer blocks of the hidden state
    end: Floats  # [N, D] the same at its last token
    prompt_hidden: Floats  # [N, D] last hidden state, after the final norm, at the last prompt token
    top_tokens: NDArray[np.int32]  # [N, K] the likeliest first tokens of an answer, likeliest first
    top_probabilities: Floats  # [N, K] their probabilities
    n_response_tokens: NDArray[np.int64]  # [N] of the chain, without the end token
    n_pivots: NDArray[np.int64]  # [N] -1 where the architecture shows no attention
    mean_token_entropy: Floats  # [N] of the distributions that the chain's tokens were taken from
    prefix_token_entropy: Floats  # [N] the same over the first quarter of the chain
    self_certainty: Floats  # [N] mean divergence of the uniform distribution from those: KL(uniform || p)
    is_truncated: NDArray[np.bool_]  # [N] the chain was cut off at its token limit

    def __len__(self) -> int:
        return len(self.uids)

    @property
    def pivot_density(self) -> Floats:
        """Pivots per token of the chain [N]; 0 for an empty one."""
        return (self.n_pivots / np.maximum(self.n_response_tokens, 1)).astype(np.float32)

    def take(self, uids: Sequence[str]) -> Internals:
        """Return the rows of these questions, in this order. Raises InvalidConfig, naming one that is not here."""
        row_of = {uid: row for row, uid in enumerate(self.uids)}
        if missing := [uid for uid in uids if uid not in row_of]:
            wanted = f"those of every question; {len(missing)} of {len(uids)} are missing, the first is {missing[0]!r}"
            raise InvalidConfig("internals", f"those of {len(self)} questions", wanted)
        rows = [row_of[uid] for uid in uids]
        arrays: dict[str, Any] = {name: array[rows] for name, array in self._arrays().items()}
        return replace(self, uids=tuple(uids), **arrays)

    def renamed(self, uids: Sequence[str]) -> Internals:
        """Return the same rows under other uids [N]."""
        return replace(self, uids=tuple(uids))

    def with_blank(self, uids: Sequence[str]) -> Internals:
        """Return these rows and an empty one for each further uid: questions that could not be asked."""
        blank: dict[str, Any] = {
            name: np.zeros((len(uids), *array.shape[1:]), array.dtype) for name, array in self._arrays().items()
        }
        return concatenate([self, replace(self, uids=tuple(uids), **blank)])

    def save(self, path: str | Path) -> None:
        """Write an .npz file without pickled objects, whole or not at all, under exactly this name."""
        path = Path(path)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(self.to_bytes())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    @classmethod
    def load(cls, source: str | Path | BinaryIO) -> Internals:
        """Read what ``save`` wrote. Raises InvalidConfig for anything else, and for a file of another version."""
        shown = source if isinstance(source, str | Path) else "stored internals"
        try:
            with np.load(source, allow_pickle=False) as found:
                version = int(found["version"])
                if version == READER_VERSION:
                    names = [field.name for field in fields(cls)]
                    arrays: dict[str, Any] = {name: found[name] for name in names}
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, BadZipFile) as error:
            wanted = f"an .npz file written by `assay probe --internals` ({error})"
            raise InvalidConfig("internals", str(shown), wanted) from error
        if version != READER_VERSION:
            wanted = f"of version {READER_VERSION}; read the internals again"
            raise InvalidConfig("internals", f"{shown} of version {version}", wanted)
        uids, fingerprint = tuple(map(str, arrays.pop("uids"))), str(arrays.pop("fingerprint"))
        return cls(uids=uids, fingerprint=fingerprint, **arrays)

    def to_bytes(self) -> bytes:
        """Return what ``save`` writes."""
        buffer = BytesIO()
        arrays: dict[str, Any] = {"uids": np.array(self.uids, np.str_), **self._arrays()}
        np.savez(buffer, version=READER_VERSION, fingerprint=self.fingerprint, **arrays)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Internals:
        """Read what ``to_bytes`` gave."""
        return cls.load(BytesIO(data))

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {field.name: getattr(self, field.name) for field in fields(self)[2:]}


def required(internals: Internals | None, strategy: str) -> Internals:
    """Return internals that a strategy cannot do without. Raises MissingEvidence."""
    if internals is None:
        how = "--internals FILE, or --engine transformers"
        raise MissingEvidence(strategy=strategy, need="internals of the model", how_to_get=how)
    return internals


def concatenate(parts: Sequence[Internals]) -> Internals:
    """Join rows read from the same model. Raises FingerprintMismatch, and ValueError where there are none."""
    if not parts:
        raise ValueError("no internals to join")
    for part in parts:
        if part.fingerprint != parts[0].fingerprint:
            raise FingerprintMismatch(pool=parts[0].fingerprint, calibration=part.fingerprint)
    arrays: dict[str, Any] = {
        name: np.concatenate([part._arrays()[name] for part in parts]) for name in parts[0]._arrays()
    }
    return replace(parts[0], uids=tuple(uid for part in parts for uid in part.uids), **arrays)


class InternalsStore(Protocol):
    """Where the internals of one generation fingerprint are kept, a question at a time."""

    def load(self, uids: Collection[str]) -> dict[str, Internals]:
        """Return what is stored of these questions: one row each."""
        ...

    def add(self, rows: Sequence[Internals]) -> None:
        """Store some questions' internals, one row each, all of them or nothing that counts."""
        ...


class JsonlInternalsStore:
    """Internals in one JSONL file, appended and flushed to disk as they come.

    A line torn by a crash, and lines of another reader's version, are left out; those questions are read again.
    Raises InvalidRow, naming the line, when the file holds anything else.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._offsets: dict[str, int] = {}
        with self.path.open("ab+") as file:
            file.seek(0)
            whole_lines = 0
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                try:
                    row = json.loads(line)
                    uid, version = str(row["uid"]), row["version"]
                except (ValueError, KeyError, TypeError) as error:
                    message = f"not the internals of a question: {error}"
                    raise InvalidRow(
                        path=str(self.path), line=number, row_code="not_internals", message=message
                    ) from error
                if version == READER_VERSION:
                    self._offsets.setdefault(uid, whole_lines)
                whole_lines += len(line)
            file.truncate(whole_lines)

    def load(self, uids: Collection[str]) -> dict[str, Internals]:
        """Return what is stored of these questions: one row each."""
        found = {}
        with self.path.open("rb") as file:
            for uid in sorted(set(uids) & self._offsets.keys()):
                file.seek(self._offsets[uid])
                found[uid] = Internals.from_bytes(base64.b64decode(json.loads(file.readline())["data"]))
        return found

    def add(self, rows: Sequence[Internals]) -> None:
        """Store some questions' internals, one row each."""
        with self.path.open("ab") as file:
            offset = file.seek(0, os.SEEK_END)
            lines = [
                json.dumps(
                    {"uid": row.uids[0], "version": READER_VERSION, "data": base64.b64encode(row.to_bytes()).decode()}
                ).encode()
                + b"\n"
                for row in rows
            ]
            file.write(b"".join(lines))
            file.flush()
            os.fsync(file.fileno())
        for row, line in zip(rows, lines, strict=True):
            self._offsets.setdefault(row.uids[0], offset)
            offset += len(line)
