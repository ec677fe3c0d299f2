"""What waits for a manager: one matter each, with where to act on it; and how it is said."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils.translation import ngettext

MOST_ROWS = 10  # of one kind
NEW_FOR = timedelta(days=7)  # what nobody settles, such as a rejected line or a flag, is news for so long


@dataclass(frozen=True)
class Matter:
    """Something that only a manager can move on. ``tone``: danger (it stands still) or gold (it waits).

    ``address`` is a URL name with its argument, ``action`` what is done there.
    """

    kind: str
    tone: str
    title: str
    chip: str
    where: object
    words: str
    address: tuple[str, Any]
    action: str
    query: str = ""


def days(idle: timedelta) -> str:
    """So many hours, or from two days on so many days."""
    if idle.days > 1:
        return ngettext("%(n)s day", "%(n)s days", idle.days) % {"n": f"{idle.days:,}"}
    hours = int(idle.total_seconds() // 3600)
    return ngettext("%(n)s hour", "%(n)s hours", hours) % {"n": hours}
