"""What somebody is typing, saved as they go."""

import json
from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from labeling.actions.claiming import check_shown, lease_end
from labeling.errors import LabelingError
from labeling.models import Draft, Slot, User

MOST_DRAFT_CHARACTERS = 100_000


@transaction.atomic
def save_draft(*, slot: Slot, draft: Mapping[str, object], by: User) -> Draft:
    """Save what the person has typed, whoever holds the slot by now; typing keeps the slot for its holder."""
    check_shown(slot, by)
    content = dict(draft)
    if len(json.dumps(content)) > MOST_DRAFT_CHARACTERS:
        raise LabelingError(
            _("The draft is longer than %(most)s characters and was not saved. An answer is short.")
            % {"most": f"{MOST_DRAFT_CHARACTERS:,}"},
            code="draft_too_long",
        )
    now = timezone.now()
    mine = Draft.objects.about(slot).filter(author=by)
    mine.update(content=content, saved_at=now)
    Slot.objects.held_by(by).filter(pk=slot.pk).update(lease_until=lease_end(now))
    return mine.get()
