"""Vectors of texts on disk: a flat file of float32 rows and the texts' hashes beside it, both only ever appended to."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats32 = NDArray[np.float32]
TEXTS_AT_ONCE = 256  # embedded between two saves: what a crash can cost
_KEY_BYTES = 16


class EmbeddingFile:
    """The vectors that one embedder gave to texts: ``PATH.f32`` and ``PATH.keys``.

    The first record of the keys holds the number of dimensions, each further one the hash of the text whose vector is
    the next row. Rows reach the disk before their keys do, so that what a crash tears is dropped and made again.
    """

    def __init__(self, path: Path) -> None:
        self._rows_path, self._keys_path = path.with_name(f"{path.name}.f32"), path.with_name(f"{path.name}.keys")

    def of(
        self,
        texts: Sequence[str],
        make: Callable[[Sequence[str]], Floats32],
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Floats32:
        """Return the texts' vectors [N, D], making those that are not stored yet; equal texts are made once.

        ``progress`` hears how many of the different texts have a vector.
        """
        keys = [key_of(text) for text in texts]
        row_of, n_dimensions = self._load()
        text_of = dict(zip(keys, texts, strict=True))
        missing = sorted(text_of.keys() - row_of.keys())
        n_stored = len(text_of) - len(missing)
        progress(n_stored, len(text_of))
        for start in range(0, len(missing), TEXTS_AT_ONCE):
            chunk = missing[start : start + TEXTS_AT_ONCE]
            made = np.ascontiguousarray(make([text_of[key] for key in chunk]), np.float32)
            n_dimensions = n_dimensions or made.shape[1]
            self._append(chunk, made.reshape(len(chunk), n_dimensions), is_first=not row_of)
            row_of |= {key: row for row, key in enumerate(chunk, start=len(row_of))}
            progress(n_stored + start + len(chunk), len(text_of))
        if not keys:
            return np.zeros((0, n_dimensions or 1), np.float32)
        rows = np.memmap(self._rows_path, np.float32, "r", shape=(len(row_of), n_dimensions))
        return np.asarray(rows[np.array([row_of[key] for key in keys], np.intp)])

    def _load(self) -> tuple[dict[bytes, int], int]:
        """Return the row of each key, and the number of dimensions (0: nothing is stored); drop what was torn."""
        if not self._keys_path.exists():
            return {}, 0
        data = self._keys_path.read_bytes()
        records = [data[at : at + _KEY_BYTES] for at in range(0, len(data) - _KEY_BYTES + 1, _KEY_BYTES)]
        if not records:
            return {}, 0
        n_dimensions, keys = int(records[0]), records[1:]
        os.truncate(self._keys_path, len(records) * _KEY_BYTES)
        os.truncate(self._rows_path, len(keys) * n_dimensions * 4)
        return {key: row for row, key in enumerate(keys)}, n_dimensions

    def _append(self, keys: Sequence[bytes], rows: Floats32, *, is_first: bool) -> None:
        records = b"".join(keys)
        if is_first:
            records = f"{rows.shape[1]:0{_KEY_BYTES}d}".encode() + records
        for path, data in ((self._rows_path, rows.tobytes()), (self._keys_path, records)):
            with path.open("wb" if is_first else "ab") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())


def key_of(text: str) -> bytes:
    """Return the hash by which a text's vector is kept."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:_KEY_BYTES]
