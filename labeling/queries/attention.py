"""What waits for a manager, most urgent first, each with where to act; and what goes on by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.fields.json import KT
from django.utils import timezone

from labeling.models import AuditEvent, CalibrationSet, ImportBatch, Pool, Round, SelectionRun, Slot, User
from labeling.queries.matters import MOST_ROWS, NEW_FOR, Matter, count
from labeling.queries.round_matters import round_matters
from labeling.queries.runs import NO_WORKER_AFTER

Status = SelectionRun.Status


def matters(user: User) -> list[Matter]:
    """Everything that waits for the person as a manager. A constant number of queries."""
    pools = list(Pool.objects.managed_by(user))
    if not pools:
        return []
    found = [*_runs(pools), *round_matters(pools), *_imports(pools)]
    return sorted(found, key=lambda matter: matter.tone != "danger")


def runs_under_way(user: User) -> QuerySet[SelectionRun]:
    """Runs that wait for a worker or are at work, newest first."""
    return _of(Pool.objects.managed_by(user)).filter(status__in=[Status.QUEUED, Status.RUNNING])[:MOST_ROWS]


def unfinished_rounds(user: User) -> QuerySet[Round]:
    """Rounds that are not closed, with ``n_done`` of ``n_slots`` answers, newest first."""
    return (
        Round.objects.filter(run__pool__in=Pool.objects.managed_by(user))
        .exclude(status=Round.Status.CLOSED)
        .select_related("run__pool", "budget")
        .order_by("-created_at", "-id")
        .annotate(
            n_slots=Count("slots", filter=~Q(slots__state=Slot.State.VOID)),
            n_done=Count("slots", filter=Q(slots__state=Slot.State.DONE)),
        )[:MOST_ROWS]
    )


def noteworthy_events(pool: Pool) -> QuerySet[AuditEvent]:
    """What people did in the pool, newest first; not who took which question from the queue."""
    return (
        AuditEvent.objects.filter(pool=pool)
        .exclude(action__startswith="slot.")
        .select_related("actor")
        .order_by("-id")[:MOST_ROWS]
    )


def _of(pools: Any) -> QuerySet[SelectionRun]:
    return (
        SelectionRun.objects.filter(pool__in=pools)
        .select_related("pool")
        .defer("report", "traceback")
        .order_by("-created_at", "-id")  # said here: counting drops a model's own ordering
    )


def _runs(pools: list[Pool]) -> Iterator[Matter]:
    for run in _of(pools).filter(status=Status.FAILED)[:MOST_ROWS]:
        action = "Look and retry" if run.may_be_retried else "Look"
        words, here = run.error[:200], ("run", run.pk)
        yield Matter("failed_run", "danger", f"Run {run.pk}", "Failed", run.pool, words, here, action)
    since = timezone.now() - NO_WORKER_AFTER
    for run in _of(pools).filter(status=Status.QUEUED, created_at__lt=since)[:MOST_ROWS]:
        words = "No worker has taken it. Start one: manage.py worker."
        yield Matter("no_worker", "danger", f"Run {run.pk}", "Waiting", run.pool, words, ("run", run.pk), "Look")
    yield from _finished_runs(pools)


def _finished_runs(pools: list[Pool]) -> Iterator[Matter]:
    """The newest finished run of each pool in which no round has been opened since; others are only counted."""
    later = Round.objects.filter(run__pool=OuterRef("pool"), created_at__gte=OuterRef("created_at"))
    waiting = (
        _of(pools)
        .filter(~Exists(later), status=Status.FINISHED)
        .annotate(
            n_picks=Count("picks"),
            degenerate=KT("report__calibration__degenerate"),
            offered=KT("report__calibration__smallest_useful_alpha__alpha"),
        )
    )
    newest: dict[int, list[Any]] = {}
    for run in waiting:
        newest.setdefault(run.pool_id, []).append(run)
    for run, *others in list(newest.values())[:MOST_ROWS]:
        earlier = f" {count(len(others), 'earlier run')} did too." if others else ""
        if str(run.degenerate).lower() in {"true", "1"}:
            better = f" With alpha {run.offered} it would not be." if run.offered else ""
            words = f"Its calibration is degenerate: set size only counts distinct answers.{better}"
            new = ("run-new", run.pool.slug), "New run", f"alpha={run.offered}"
            address, action, query = new if run.offered else (("run", run.pk), "See why", "")
            yield Matter("degenerate", "danger", f"Run {run.pk}", "Degenerate", run.pool, words, address, action, query)
            continue
        words = f"It picked {count(run.n_picks, 'question')}; nobody has been asked to answer them yet.{earlier}"
        address = ("round-new", run.pk)
        yield Matter("no_round", "gold", f"Run {run.pk}", "Finished", run.pool, words, address, "Open a round")


def _imports(pools: list[Pool]) -> Iterator[Matter]:
    sets = CalibrationSet.objects.filter(pool__in=pools)
    batches = (
        ImportBatch.objects.filter(Q(pool__in=pools) | Q(calibration_set__in=sets) | Q(new_set_pool__in=pools))
        .select_related("pool", "calibration_set", "new_set_pool")
        .defer("rejected", "sample", "warnings")
        .order_by("-created_at")
    )
    for batch in batches.filter(status=ImportBatch.Status.PREVIEWED)[:MOST_ROWS]:
        words = f"{count(batch.counts.get('new', 0), 'new row')} in it; nothing is imported before you say so."
        address = ("import-preview", batch.pk)
        yield Matter(
            "pending_import", "gold", batch.filename, "Previewed", _into(batch), words, address, "Look it over"
        )
    done = batches.filter(status=ImportBatch.Status.COMMITTED, counts__rejected__gt=0)
    for batch in done.filter(committed_at__gt=timezone.now() - NEW_FOR)[:MOST_ROWS]:
        words = f"{count(batch.counts['rejected'], 'line')} could not be imported."
        address = ("import-preview", batch.pk)
        yield Matter(
            "rejected_lines", "gold", batch.filename, "Rejected lines", _into(batch), words, address, "See why"
        )


def _into(batch: ImportBatch) -> object:
    return batch.pool or batch.calibration_set or batch.new_set
