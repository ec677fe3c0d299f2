"""What waits for a manager: runs under way, failed, or without a round; rounds being answered."""

from django.db.models import Count, Q, QuerySet

from labeling.models import AuditEvent, Pool, Round, SelectionRun, Slot, User

MOST_ROWS = 10


def runs_under_way(user: User) -> QuerySet[SelectionRun]:
    """Runs that wait for a worker or are at work, newest first."""
    return _runs(user).filter(status__in=[SelectionRun.Status.QUEUED, SelectionRun.Status.RUNNING])[:MOST_ROWS]


def failed_runs(user: User) -> QuerySet[SelectionRun]:
    """Runs that failed and have not been tried again, newest first."""
    return _runs(user).filter(status=SelectionRun.Status.FAILED)[:MOST_ROWS]


def runs_without_round(user: User) -> QuerySet[SelectionRun]:
    """Finished runs whose picks nobody has been asked to label yet, newest first."""
    return (
        _runs(user)
        .filter(status=SelectionRun.Status.FINISHED, rounds__isnull=True)
        .annotate(n_picks=Count("picks"))[:MOST_ROWS]
    )


def unfinished_rounds(user: User) -> QuerySet[Round]:
    """Rounds that are not closed, with ``n_done`` of ``n_slots`` answers, newest first."""
    return (
        Round.objects.filter(run__pool__in=Pool.objects.managed_by(user))
        .exclude(status=Round.Status.CLOSED)
        .select_related("run__pool", "budget")
        .order_by("-created_at", "-id")
        .annotate(
            n_slots=Count("slots", filter=~Q(slots__state=Slot.State.VOID) & Q(slots__question__isnull=False)),
            n_done=Count("slots", filter=Q(slots__state=Slot.State.DONE, slots__question__isnull=False)),
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


def _runs(user: User) -> QuerySet[SelectionRun]:
    return (
        SelectionRun.objects.filter(pool__in=Pool.objects.managed_by(user))
        .select_related("pool")
        .defer("report", "traceback")
        .order_by("-created_at", "-id")  # said here: counting drops a model's own ordering
    )
