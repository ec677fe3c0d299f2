"""The worker: takes the run that has waited longest, executes it, and looks for the next."""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType

from django.db import InterfaceError, OperationalError, close_old_connections, connection

from labeling.runs.execution import execute
from labeling.runs.lease import claim_next

logger = logging.getLogger(__name__)


class Worker:
    """Executes runs one at a time until it is stopped; any number of workers may share a database."""

    def __init__(self, *, poll_seconds: float = 1.0) -> None:
        self._poll_seconds = poll_seconds
        self._stopping = threading.Event()

    def stop(self, signum: int = 0, frame: FrameType | None = None) -> None:
        """Finish the chunk in flight, put the run back into the queue, and end. A second signal ends at once."""
        if signum:
            signal.signal(signum, signal.SIG_DFL)
        self._stopping.set()

    def stop_on_signals(self) -> None:
        """Stop cleanly on SIGTERM and SIGINT."""
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self.stop)

    def run(self, *, once: bool = False) -> None:
        """Work until stopped; with ``once`` only until no run waits."""
        while not self._stopping.is_set():
            close_old_connections()
            try:
                if lease := claim_next():
                    execute(lease, should_stop=self._stopping.is_set)
                    continue
            except (
                OperationalError,
                InterfaceError,
            ):  # the database is away or busy: its runs lapse and are taken up again
                logger.exception("The database did not answer; trying again")
                connection.close()
            else:
                if once:
                    return
            self._stopping.wait(self._poll_seconds)
