"""What a pool tells its annotators."""

from django.db import transaction
from django.utils.translation import gettext as _

from labeling import policies
from labeling.audit import record_event
from labeling.errors import LabelingError
from labeling.models import Guideline, Pool, User


@transaction.atomic
def save_guideline(*, pool: Pool, text: str, by: User) -> Guideline:
    """Make the text the newest version of the guideline; the same text again changes nothing."""
    policies.check_can_manage(pool, by)
    text = text.replace("\r\n", "\n").strip()
    if not text:
        raise LabelingError(_("The guideline is empty. Write what annotators should do."), code="guideline_empty")
    Pool.objects.select_for_update(no_key=True).get(pk=pool.pk)
    latest = Guideline.objects.filter(pool=pool).order_by("-version").first()
    if latest is not None and latest.text == text:
        return latest
    guideline = Guideline.objects.create(
        pool=pool, version=latest.version + 1 if latest else 1, text=text, created_by=by
    )
    record_event("guideline.saved", target=guideline, by=by, pool=pool, version=guideline.version)
    return guideline
