"""What of a pool can be exported, and what has been."""

from hashlib import file_digest
from pathlib import Path

from django.db.models import Count, QuerySet
from django.utils.translation import gettext as _

from labeling.errors import Conflict
from labeling.models import Export, GoldAnswer, Pool


def gold_counts(pool: Pool) -> dict[str, int]:
    """How many gold answers there are, by the label of where they come from; nothing for none."""
    counts = dict(
        GoldAnswer.objects.filter(question__pool=pool).order_by().values_list("source").annotate(n=Count("pk"))
    )
    return {str(GoldAnswer.Source(source).label): n for source, n in sorted(counts.items())}


def exports_of(pool: Pool) -> QuerySet[Export]:
    """The pool's exports, newest first, without the rows of their snapshots."""
    return (
        Export.objects.filter(snapshot__pool=pool)
        .select_related("snapshot", "created_by")
        .defer("snapshot__rows")
        .order_by("-created_at", "-id")
    )


def file_of(export: Export, filename: str) -> Path | None:
    """Return where a file of an export is; None where the export has none of that name.

    Raises Conflict file_gone and file_changed where it is not what was written.
    """
    listed = next((each for each in export.files if each["name"] == filename), None)
    if listed is None:
        return None
    path = Path(export.directory, filename)
    if not path.is_file():
        raise Conflict(
            _("%(filename)s is no longer on the server. Export again: the same bytes come out.")
            % {"filename": filename},
            code="file_gone",
        )
    with path.open("rb") as file:
        if file_digest(file, "sha256").hexdigest() != listed["sha256"]:
            raise Conflict(
                _("%(filename)s has been changed since it was written. Export again.") % {"filename": filename},
                code="file_changed",
            )
    return path
