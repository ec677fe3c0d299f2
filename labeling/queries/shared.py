"""What pools share: policy models and calibration sets."""

from django.db.models import Count, F, Q, QuerySet

from labeling.models import CalibrationSet, PolicyModel, Pool, User


def policy_models() -> QuerySet[PolicyModel]:
    """Every policy model by name, with ``n_runs``."""
    return PolicyModel.objects.annotate(n_runs=Count("runs")).order_by("name")


def calibration_sets_for(user: User) -> QuerySet[CalibrationSet]:
    """The person's sets and those for every pool, with ``n_items``, ``smallest_alpha`` and ``n_runs``; no answers."""
    return (
        CalibrationSet.objects.filter(Q(pool=None) | Q(pool__in=Pool.objects.managed_by(user)))
        .select_related("pool")
        .annotate(n_items=Count("items", distinct=True), n_runs=Count("runs", distinct=True))
        .annotate(smallest_alpha=1.0 / (F("n_items") + 1.0))
        .order_by("name")
    )
