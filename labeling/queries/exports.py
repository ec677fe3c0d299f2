"""What of a pool can be exported, and what has been."""

from django.db.models import Count, QuerySet

from labeling.models import Export, GoldAnswer, Pool


def gold_counts(pool: Pool) -> dict[str, int]:
    """How many gold answers there are, by the label of where they come from; nothing for none."""
    counts = dict(
        GoldAnswer.objects.filter(question__pool=pool).order_by().values_list("source").annotate(n=Count("pk"))
    )
    return {GoldAnswer.Source(source).label: n for source, n in sorted(counts.items())}


def exports_of(pool: Pool) -> QuerySet[Export]:
    """The pool's exports, newest first, without the rows of their snapshots."""
    return (
        Export.objects.filter(snapshot__pool=pool)
        .select_related("snapshot", "created_by")
        .defer("snapshot__rows")
        .order_by("-created_at", "-id")
    )
