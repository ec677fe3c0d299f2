"""Who has read which version of a guideline."""

from labeling.models import Guideline, GuidelineReading, User


def record_reading(*, guideline: Guideline, by: User) -> GuidelineReading:
    """Write down that the person says they have read this version; once is enough."""
    reading, _ = GuidelineReading.objects.get_or_create(guideline=guideline, user=by)
    return reading
