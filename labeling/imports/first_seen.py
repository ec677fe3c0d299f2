"""Where in a file something was seen first, in memory that does not grow with the file."""

from __future__ import annotations

import hashlib
import sqlite3
from types import TracebackType
from typing import Self

_CACHE_KIB = 32 * 1024


class FirstSeen:
    """Keys by kind, with the line each was first seen on: a temporary SQLite file that vanishes when closed."""

    def __enter__(self) -> Self:
        self._database = sqlite3.connect("", isolation_level=None)  # "" is a private temporary file
        self._database.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("CREATE TABLE seen (key BLOB PRIMARY KEY, line INTEGER) WITHOUT ROWID")
        self._database.execute("BEGIN")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._database.close()

    def line_of(self, kind: str, key: str) -> int | None:
        """Return the line on which the key was first seen, None where it was not."""
        found = self._database.execute("SELECT line FROM seen WHERE key = ?", (_digest(kind, key),)).fetchone()
        return None if found is None else found[0]

    def add(self, kind: str, key: str, line: int) -> None:
        """Remember the key; a key that is known keeps its first line."""
        self._database.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (_digest(kind, key), line))


def _digest(kind: str, key: str) -> bytes:
    return hashlib.blake2b(f"{kind}\0{key}".encode(), digest_size=16).digest()
