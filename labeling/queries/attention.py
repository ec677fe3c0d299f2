"""What waits for a manager, most urgent first, each with where to act; and what goes on by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.fields.json import KT
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling.models import AuditEvent, CalibrationSet, Comparison, ImportBatch, Pool, Round, SelectionRun, Slot, User
from labeling.queries.matters import MOST_ROWS, NEW_FOR, Matter
from labeling.queries.round_matters import round_matters
from labeling.queries.runs import NO_WORKER_AFTER

Status = SelectionRun.Status


def matters(user: User) -> list[Matter]:
    """Everything that waits for the person as a manager. A constant number of queries."""
    pools = list(Pool.objects.managed_by(user))
    if not pools:
        return []
    found = [*_runs(pools), *_comparisons(pools), *round_matters(pools), *_imports(pools)]
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
        action = _("Look and retry") if run.may_be_retried else _("Look")
        words, here = run.error[:200], ("run", run.pk)
        yield Matter("failed_run", "danger", _run(run), _("Failed"), run.pool, words, here, action)
    since = timezone.now() - NO_WORKER_AFTER
    for run in _of(pools).filter(status=Status.QUEUED, created_at__lt=since)[:MOST_ROWS]:
        words = _("No worker has taken it. Start one: manage.py worker.")
        yield Matter("no_worker", "danger", _run(run), _("Waiting"), run.pool, words, ("run", run.pk), _("Look"))
    yield from _finished_runs(pools)


def _comparisons(pools: list[Pool]) -> Iterator[Matter]:
    failed = Comparison.objects.filter(run__pool__in=pools, status=Status.FAILED).select_related("run__pool")
    for comparison in failed.defer("result", "traceback", "run__report", "run__traceback")[:MOST_ROWS]:
        action = _("Look and retry") if comparison.may_be_retried else _("Look")
        words, here = comparison.error[:200], ("comparison", comparison.pk)
        yield Matter(
            "failed_comparison", "danger", str(comparison), _("Failed"), comparison.run.pool, words, here, action
        )


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
        if str(run.degenerate).lower() in {"true", "1"}:
            words = _("Its calibration is degenerate: set size only counts distinct answers.")
            if run.offered:
                words += " " + _("With alpha %(alpha)s it would not be.") % {"alpha": run.offered}
            new = ("run-new", run.pool.slug), _("New run"), f"alpha={run.offered}"
            address, action, query = new if run.offered else (("run", run.pk), _("See why"), "")
            yield Matter("degenerate", "danger", _run(run), _("Degenerate"), run.pool, words, address, action, query)
            continue
        words = ngettext(
            "It picked %(n)s question; nobody has been asked to answer them yet.",
            "It picked %(n)s questions; nobody has been asked to answer them yet.",
            run.n_picks,
        ) % {"n": f"{run.n_picks:,}"}
        if n := len(others):
            words += " " + ngettext("%(n)s earlier run did too.", "%(n)s earlier runs did too.", n) % {"n": f"{n:,}"}
        address = ("round-new", run.pk)
        yield Matter("no_round", "gold", _run(run), _("Finished"), run.pool, words, address, _("Open a round"))


def _imports(pools: list[Pool]) -> Iterator[Matter]:
    sets = CalibrationSet.objects.filter(pool__in=pools)
    batches = (
        ImportBatch.objects.filter(Q(pool__in=pools) | Q(calibration_set__in=sets) | Q(new_set_pool__in=pools))
        .select_related("pool", "calibration_set", "new_set_pool")
        .defer("rejected", "sample", "warnings")
        .order_by("-created_at")
    )
    for batch in batches.filter(status=ImportBatch.Status.PREVIEWED)[:MOST_ROWS]:
        n = batch.counts.get("new", 0)
        words = ngettext(
            "%(n)s new row in it; nothing is imported before you say so.",
            "%(n)s new rows in it; nothing is imported before you say so.",
            n,
        ) % {"n": f"{n:,}"}
        address = ("import-preview", batch.pk)
        yield Matter(
            "pending_import", "gold", batch.filename, _("Previewed"), _into(batch), words, address, _("Look it over")
        )
    done = batches.filter(status=ImportBatch.Status.COMMITTED, counts__rejected__gt=0)
    for batch in done.filter(committed_at__gt=timezone.now() - NEW_FOR)[:MOST_ROWS]:
        n = batch.counts["rejected"]
        words = ngettext("%(n)s line could not be imported.", "%(n)s lines could not be imported.", n) % {"n": f"{n:,}"}
        address = ("import-preview", batch.pk)
        yield Matter(
            "rejected_lines", "gold", batch.filename, _("Rejected lines"), _into(batch), words, address, _("See why")
        )


def _run(run: SelectionRun) -> str:
    return _("Run %(run)s") % {"run": run.pk}


def _into(batch: ImportBatch) -> object:
    return batch.pool or batch.calibration_set or batch.new_set
