"""The worker: takes the run that has waited longest, executes it, and looks for the next."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.db import InterfaceError, OperationalError, close_old_connections, connection

from labeling.runs.execution import execute
from labeling.runs.lease import claim_next

logger = logging.getLogger(__name__)


def work(*, should_stop: Callable[[], bool] = lambda: False, poll_seconds: float = 1.0, once: bool = False) -> None:
    """Execute runs one at a time until ``should_stop`` says so; with ``once`` until none waits.

    Told to stop in the middle of a run, it saves the chunk in flight and puts the run back into the queue. Any number
    of workers may share a database.
    """
    while not should_stop():
        close_old_connections()
        try:
            if lease := claim_next():
                execute(lease, should_stop=should_stop)
                continue
        except (
            OperationalError,
            InterfaceError,
        ):  # the database is away; the run is taken up again when its lease lapses
            logger.exception("The database did not answer; trying again")
            connection.close()
        else:
            if once:
                return
        time.sleep(poll_seconds)
