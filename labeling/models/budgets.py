"""Budgets: money, counted in human answers."""

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q, UniqueConstraint
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from labeling.models.rounds import Round


class BudgetQuerySet(models.QuerySet["Budget"]):
    def for_labels(self) -> "BudgetQuerySet":
        """Budgets that somebody granted, which rounds of labels are paid from."""
        return self.filter(purpose=Budget.Purpose.LABELS)


class Budget(models.Model):
    """Money, counted in human answers. Granting creates that many units, so overspending is impossible.

    A round's calibration checks have units of their own, in a budget made with the round.
    """

    class Purpose(models.TextChoices):
        LABELS = "labels", _("Labels")
        CHECKS = "checks", _("Calibration checks")

    purpose = models.CharField(max_length=20, choices=Purpose.choices, default=Purpose.LABELS)
    pool = models.ForeignKey("labeling.Pool", models.CASCADE, related_name="budgets")
    name = models.CharField(max_length=120)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = BudgetQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        constraints = [UniqueConstraint(fields=["pool", "name"], name="budget_name_once_per_pool")]

    def __str__(self) -> str:
        return self.name


class BudgetUnitQuerySet(models.QuerySet["BudgetUnit"]):
    def untaken(self) -> "BudgetUnitQuerySet":
        """Units that no slot has taken; a void slot gives its unit back."""
        from labeling.models.rounds import Slot

        return self.filter(~Exists(Slot.objects.filter(unit=OuterRef("pk")).exclude(state=Slot.State.VOID)))

    def free(self) -> "BudgetUnitQuerySet":
        """Untaken units that no round holds back for its disagreements."""
        return self.untaken().filter(held_for=None)

    def usable_by(self, round: "Round") -> "BudgetUnitQuerySet":
        """Untaken units of the round's budget that it may take: free ones, and those that it holds back."""
        return self.untaken().filter(Q(held_for=None) | Q(held_for=round), budget=round.budget_id)


class BudgetUnit(models.Model):
    """One human answer that has been paid for in advance."""

    budget = models.ForeignKey(Budget, models.CASCADE, related_name="units")
    number = models.PositiveIntegerField()
    held_for = models.ForeignKey(
        "labeling.Round",
        models.SET_NULL,
        related_name="held_units",
        null=True,
        blank=True,
        db_index=False,
        help_text=_("The open round that holds it back for disagreements, so that no other work takes it."),
    )

    objects = BudgetUnitQuerySet.as_manager()

    class Meta:
        ordering = ["budget", "number"]
        indexes = [models.Index(fields=["held_for", "budget", "number"], name="unit_held")]
        constraints = [UniqueConstraint(fields=["budget", "number"], name="unit_number_once_per_budget")]
