"""One attempt at a run, from the lease to a status that says how it ended."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable

from django.db import InterfaceError, OperationalError
from django.utils import timezone

from labeling.errors import LabelingError
from labeling.models import SelectionRun
from labeling.runs.lease import Lease, LeaseLost
from labeling.runs.stages import RunStages, RunStopped

logger = logging.getLogger(__name__)
Status = SelectionRun.Status
MAX_ATTEMPTS = 5  # starts in a row without anything saved, after which a run is not tried again by itself


def execute(
    lease: Lease,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    listener: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> None:
    """Carry the run as far as it goes. How it ended is written on its row: finished, failed with the reason and what
    to do, cancelled, or queued again where ``should_stop`` said so.

    ``listener`` hears the stage, done and total. Only a failing database raises: then nothing can be written, and the
    run is taken up again once its lease has lapsed.
    """
    run = SelectionRun.objects.select_related("pool", "calibration_set", "policy_model").get(pk=lease.run_id)
    logger.info("Run %s: attempt %s", run.pk, run.attempts)
    try:
        with lease.heartbeat():
            _attempt(run, lease, should_stop, listener)
    except LeaseLost:
        logger.warning("Run %s: another worker has it; stopping", run.pk)


def _attempt(
    run: SelectionRun, lease: Lease, should_stop: Callable[[], bool], listener: Callable[[str, int, int], None]
) -> None:
    try:
        if run.attempts > MAX_ATTEMPTS:
            raise LabelingError(
                f"The run was started {run.attempts - 1} times and its worker ended each time before anything was "
                "saved, for example for want of memory. Look at the worker's log, then retry.",
                code="worker_died",
            )
        RunStages(run, lease, should_stop=should_stop, listener=listener).execute()
        logger.info("Run %s: finished", run.pk)
    except RunStopped as stopped:
        logger.info("Run %s: %s", run.pk, stopped)
        if stopped.is_cancelled:
            lease.end(Status.CANCELLED, finished_at=timezone.now())
        else:
            lease.end(Status.QUEUED, attempts=0)
    except (LeaseLost, OperationalError, InterfaceError):
        raise
    except LabelingError as error:
        logger.warning("Run %s: failed: %s", run.pk, error)
        lease.end(Status.FAILED, error_code=error.code, error=error.message, finished_at=timezone.now())
    except Exception as error:
        logger.exception("Run %s: failed unexpectedly", run.pk)
        lease.end(
            Status.FAILED,
            error_code="unexpected",
            error=f"Something went wrong that should not ({type(error).__name__}). Everything answered so far is kept. "
            "Retry; if it fails again, show the traceback to whoever runs this site.",
            traceback=traceback.format_exc(),
            finished_at=timezone.now(),
        )
