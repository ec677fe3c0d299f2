"""Sessions in the database, as Django keeps them; every request reads one, so the query is prepared."""

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.db.models import CharField, DateTimeField
from django.utils import timezone

from labeling.prepared import Parameter, Prepared

_LIVE = Prepared(
    lambda: Session.objects.filter(
        session_key=Parameter("key", CharField()), expire_date__gt=Parameter("now", DateTimeField())
    )
)


class SessionStore(db.SessionStore):
    """Django's."""

    def _get_session_from_db(self) -> Session | None:
        session = _LIVE.first(key=self.session_key, now=timezone.now())
        if session is None:
            self._session_key = None
        return session
