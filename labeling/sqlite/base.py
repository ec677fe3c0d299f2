"""Django's SQLite backend, with writers that wait their turn.

SQLite lets one transaction write at a time and has the others poll with growing pauses, so that under load a few win
again and again and one may wait for half a minute. Here whoever begins a transaction first takes a lock on a file
beside the database, where the kernel queues those who wait and wakes them at once; SQLite's own lock is then free, and
still guards what writes without a transaction or from outside. A process that dies gives the lock back.
"""

import fcntl
import os
import threading
from typing import Any

from django.db.backends.sqlite3 import base


class Turn:
    """The right to write to one database file: for one thread of one process at a time."""

    _of_path: dict[str, "Turn"] = {}
    _guard = threading.Lock()

    def __init__(self, path: str) -> None:
        self.path = path
        self.pid = os.getpid()
        self.in_process = threading.Lock()
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @classmethod
    def of(cls, database: str) -> "Turn":
        """Return the one lock of this process for a database; a forked process makes its own."""
        path = f"{os.path.abspath(database)}-turn"
        with cls._guard:
            turn = cls._of_path.get(path)
            if turn is None or turn.pid != os.getpid() or not os.path.exists(path):
                turn = cls._of_path[path] = Turn(path)
            return turn

    def take(self) -> None:
        """Wait until it is this thread's turn."""
        self.in_process.acquire()
        try:
            fcntl.lockf(self.file, fcntl.LOCK_EX)
        except BaseException:
            self.in_process.release()
            raise

    def give_back(self) -> None:
        """Let the next one in."""
        fcntl.lockf(self.file, fcntl.LOCK_UN)
        self.in_process.release()


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that has its turn from BEGIN to COMMIT or ROLLBACK."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._turn: Turn | None = None

    def _start_transaction_under_autocommit(self) -> None:
        if self._turn is None and not self.is_in_memory_db():
            turn = Turn.of(str(self.settings_dict["NAME"]))
            turn.take()
            self._turn = turn
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except BaseException:
            self._give_back()
            raise

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]
        self._give_back()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]
        finally:
            self._give_back()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            self._give_back()

    def _give_back(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None and turn.pid == os.getpid():
            turn.give_back()
