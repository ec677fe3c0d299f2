"""Comparisons of strategies: what was asked, how far it is, what came out."""

from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from labeling.models.work import Work, lease_constraints


class Comparison(Work):
    """Several strategies on the questions of one finished run, from the answers that the run had."""

    run = models.ForeignKey("labeling.SelectionRun", models.CASCADE, related_name="comparisons")
    strategies = models.JSONField(help_text=_("Keys of strategies."))
    budget = models.PositiveIntegerField()
    n_bootstrap = models.PositiveIntegerField(help_text=_("Resamplings of answers and of the calibration set."))
    result = models.JSONField(null=True, blank=True)

    class Meta(Work.Meta):
        constraints = [
            CheckConstraint(
                name="comparison_has_a_result_once_finished",
                condition=Q(status="finished", result__isnull=False) | (~Q(status="finished") & Q(result__isnull=True)),
            ),
            CheckConstraint(name="comparison_picks_something", condition=Q(budget__gte=1)),
            *lease_constraints("comparison"),
        ]

    def __str__(self) -> str:
        return gettext("Comparison %(comparison)s") % {"comparison": self.pk}
