"""What annotators want a manager to look at."""

from labeling.models import Flag, Round


def flags_in(*, round: Round) -> list[Flag]:
    """Return the flags raised in a round, newest first."""
    flags = Flag.objects.filter(slot__round=round)
    return list(flags.select_related("by", "slot__question", "slot__calibration_item"))
