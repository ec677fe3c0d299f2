"""The tokens that a person may see: their own, and those of others into pools that they manage."""

from django.db.models import Q, QuerySet

from labeling.models import ApiToken, Pool, User


def tokens_for(user: User, *, revoked: bool = False) -> QuerySet[ApiToken]:
    """The person's tokens and those bound to pools they manage, newest first; ``revoked`` ones too if asked."""
    theirs = Q(owner=user) | Q(pool__in=Pool.objects.managed_by(user))
    tokens = ApiToken.objects.filter(theirs).select_related("owner", "pool")
    return tokens if revoked else tokens.filter(revoked_at__isnull=True)
