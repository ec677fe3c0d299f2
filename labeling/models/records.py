"""Who did what, when. Append-only."""

from typing import Any, ClassVar, NoReturn

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class AppendOnlyQuerySet(models.QuerySet[Any]):
    """Rows that may be added and read."""

    def update(self, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{self.model.__name__} is append-only.")

    def delete(self) -> NoReturn:
        raise TypeError(f"{self.model.__name__} is append-only.")


class AppendOnly(models.Model):
    """A fact: written once, never changed or deleted by our code."""

    objects: ClassVar[Any] = AppendOnlyQuerySet.as_manager()

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError(f"{type(self).__name__} is append-only.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is append-only.")


class AuditEvent(AppendOnly):
    """One thing that somebody did."""

    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    action = models.CharField(max_length=60)
    target_type = models.CharField(max_length=60)
    target_id = models.CharField(max_length=60)
    pool = models.ForeignKey("labeling.Pool", models.CASCADE, related_name="events", null=True)
    budget = models.ForeignKey(
        "labeling.Budget", models.CASCADE, related_name="events", null=True, help_text=_("Whose units it moved.")
    )
    details = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["target_type", "target_id"])]
