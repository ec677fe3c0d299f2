"""One attempt at long work, from the lease to a status that says how it ended."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

from django.db import InterfaceError, OperationalError
from django.utils import timezone

from labeling.errors import LabelingError
from labeling.models import Comparison, SelectionRun
from labeling.models.work import Work
from labeling.runs.attempt import Attempt, WorkStopped
from labeling.runs.comparing import ComparisonStages
from labeling.runs.lease import Lease, LeaseLost
from labeling.runs.stages import RunStages

logger = logging.getLogger(__name__)
Status = Work.Status
MAX_ATTEMPTS = 5  # starts in a row without anything saved, after which it is not tried again by itself


def execute(
    lease: Lease,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    listener: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> None:
    """Carry the work as far as it goes. How it ended is written on its row: finished, failed with the reason and what
    to do, cancelled, or queued again where ``should_stop`` said so.

    ``listener`` hears the stage, done and total. Only a failing database raises: then nothing can be written, and the
    work is taken up again once its lease has lapsed.
    """
    work: Any
    if lease.kind is SelectionRun:
        work = SelectionRun.objects.select_related("pool", "calibration_set", "policy_model").get(pk=lease.pk)
        attempt: type[Attempt] = RunStages
    else:
        work = Comparison.objects.select_related("run__pool", "run__calibration_set", "run__policy_model").get(
            pk=lease.pk
        )
        attempt = ComparisonStages
    logger.info("%s: attempt %s", lease, work.attempts)
    try:
        with lease.heartbeat():
            _attempt(attempt, work, lease, should_stop, listener)
    except LeaseLost:
        logger.warning("%s: another worker has it; stopping", lease)


def _attempt(
    attempt: type[Attempt],
    work: Work,
    lease: Lease,
    should_stop: Callable[[], bool],
    listener: Callable[[str, int, int], None],
) -> None:
    what = str(work._meta.verbose_name)
    try:
        if work.attempts > MAX_ATTEMPTS:
            raise LabelingError(
                f"The {what} was started {work.attempts - 1} times and its worker ended each time before anything was "
                "saved, for example for want of memory. Look at the worker's log, then retry.",
                code="worker_died",
            )
        attempt(work, lease, should_stop=should_stop, listener=listener).execute()
        logger.info("%s: finished", lease)
    except WorkStopped as stopped:
        logger.info("%s: %s", lease, stopped)
        if stopped.is_cancelled:
            lease.end(Status.CANCELLED, finished_at=timezone.now())
        else:
            lease.end(Status.QUEUED, attempts=0)
    except (LeaseLost, OperationalError, InterfaceError):
        raise
    except LabelingError as error:
        logger.warning("%s: failed: %s", lease, error)
        lease.end(Status.FAILED, error_code=error.code, error=error.message, finished_at=timezone.now())
    except Exception as error:
        logger.exception("%s: failed unexpectedly", lease)
        lease.end(
            Status.FAILED,
            error_code="unexpected",
            error=f"Something went wrong that should not ({type(error).__name__}). Everything answered so far is kept. "
            "Retry; if it fails again, show the traceback to whoever runs this site.",
            traceback=traceback.format_exc(),
            finished_at=timezone.now(),
        )
