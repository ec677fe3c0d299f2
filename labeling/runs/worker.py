"""The worker: takes the run that has waited longest, executes it, and looks for the next."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.db import close_old_connections

from labeling.actions.settling import sweep_rounds
from labeling.runs.execution import execute
from labeling.runs.lease import claim_next

logger = logging.getLogger(__name__)
SECONDS_BETWEEN_SWEEPS = 60.0


def work(*, should_stop: Callable[[], bool] = lambda: False, poll_seconds: float = 1.0, once: bool = False) -> None:
    """Execute runs one at a time until ``should_stop`` says so; with ``once`` until none waits.

    Told to stop in the middle of a run, it saves the chunk in flight and puts the run back into the queue. Between
    runs it settles what rounds a crash has left unsettled. Any number of workers may share a database.
    """
    swept_at = float("-inf")
    while not should_stop():
        try:
            if time.monotonic() - swept_at >= SECONDS_BETWEEN_SWEEPS:
                swept_at = time.monotonic()
                sweep_rounds()
            if lease := claim_next():
                execute(lease, should_stop=should_stop)
            elif once:
                return
            else:
                time.sleep(poll_seconds)
        except Exception:  # mostly a database that is away: a run it held is taken up again when its lease has lapsed
            if once:
                raise
            logger.exception("Something went wrong outside of a run; trying again")
            close_old_connections()
            time.sleep(poll_seconds)
