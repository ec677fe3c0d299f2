"""A pool of worker processes that are killed when a proof takes too long, and started again when next needed."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import IO, Any

from selector.answers.syntax import Node
from selector.answers.worker import node_to_json
from selector.errors import SelectorError

START_SECONDS = 60.0  # sympy imports slowly on a loaded machine; not counted against a proof
_SOURCE_ROOT = str(Path(__file__).resolve().parents[2])
_log = logging.getLogger(__name__)


class WorkerFailed(SelectorError):
    """A worker process could not be started, so nothing was decided."""

    code = "worker_failed"


class _Worker:
    def __init__(self, timeout_seconds: float) -> None:
        environment = {**os.environ, "PYTHONPATH": _with_source_root(), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "selector.answers.worker", str(timeout_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C at the terminal is for the parent, which closes its workers
        )
        self._stdin, self._stdout = _piped(self.process.stdin), _piped(self.process.stdout)
        self._is_ready = False

    def wait_until_ready(self) -> None:
        """Wait for the imports. Raises WorkerFailed."""
        if not self._is_ready and self._read_line(time.monotonic() + START_SECONDS) != b"ready\n":
            self.kill()
            raise WorkerFailed(f"exit status {self.process.returncode}")
        self._is_ready = True

    def ask(self, question: dict[str, Any], deadline: float) -> dict[str, Any] | None:
        """Return the reply; None where there is none by the deadline or the process died."""
        try:
            self._stdin.write(json.dumps(question).encode("ascii") + b"\n")
            self._stdin.flush()
        except OSError:
            return None
        line = self._read_line(deadline)
        return json.loads(line) if line.endswith(b"\n") else None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):  # what was still buffered cannot reach a dead process
                pipe.close()

    def _read_line(self, deadline: float) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([self._stdout], [], [], remaining)[0]:
                return line
            chunk = os.read(self._stdout.fileno(), 65536)
            if not chunk:
                return line
            line += chunk
        return line


def _piped(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise WorkerFailed("no pipe to it")
    return stream


class Prover:
    """Proves equalities in at most ``n_workers`` processes, started on first use; calls beyond that number wait.

    Safe to call from several threads. After a fork the child starts workers of its own.
    """

    def __init__(self, timeout_seconds: float, n_workers: int) -> None:
        self._timeout_seconds = timeout_seconds
        self._slots = threading.BoundedSemaphore(n_workers)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._owner = os.getpid()
        _open_provers.add(self)

    def prove(self, left: Node, right: Node, deadline_seconds: float) -> bool | None:
        """Tell whether sympy proves two trees equal; None where it did not finish in time."""
        return self._ask({"task": "prove", "left": node_to_json(left), "right": node_to_json(right)}, deadline_seconds)

    def judge(self, left: str, right: str, deadline_seconds: float) -> bool | None:
        """Tell whether math-verify finds two texts equivalent in both directions; None where it did not finish."""
        return self._ask({"task": "judge", "left": left, "right": right}, deadline_seconds)

    def warm(self) -> None:
        """Start a worker now. Raises WorkerFailed."""
        with self._slots:
            self._give_back(self._take())

    def close(self) -> None:
        """Kill the idle workers."""
        with self._lock:
            workers, self._idle = self._idle, []
            if self._owner != os.getpid():
                return
        for worker in workers:
            worker.kill()

    def _ask(self, question: dict[str, Any], deadline_seconds: float) -> bool | None:
        with self._slots:
            worker = self._take()
            reply = worker.ask(question, time.monotonic() + deadline_seconds)
            if reply is None:
                worker.kill()
                self._give_back(_Worker(self._timeout_seconds))  # imports while the caller goes on
                return None
            self._give_back(worker)
        if reply.get("error") == "MemoryError":
            return None
        return bool(reply["proved"])

    def _take(self) -> _Worker:
        with self._lock:
            if self._owner != os.getpid():
                self._idle, self._owner = [], os.getpid()
            worker = self._idle.pop() if self._idle else None
        worker = worker or _Worker(self._timeout_seconds)
        worker.wait_until_ready()
        return worker

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            self._idle.append(worker)


_open_provers: weakref.WeakSet[Prover] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for prover in list(_open_provers):
        prover.close()


def _with_source_root() -> str:
    inherited = os.environ.get("PYTHONPATH", "")
    return _SOURCE_ROOT + (os.pathsep + inherited if inherited else "")
