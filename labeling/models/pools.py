"""A pool of unanswered questions and the guidelines for answering them."""

from django.conf import settings
from django.db import models
from django.db.models import UniqueConstraint
from django.utils.translation import gettext_lazy as _


class PoolQuerySet(models.QuerySet["Pool"]):
    def visible_to(self, user) -> "PoolQuerySet":
        """Pools in which the user has any role; all of them for a superuser."""
        return self if user.is_superuser else self.filter(memberships__user=user).distinct()

    def managed_by(self, user) -> "PoolQuerySet":
        """Pools that the user manages; all of them for a superuser."""
        return self if user.is_superuser else self.filter(memberships__user=user, memberships__role="manager")


class Pool(models.Model):
    """Questions that belong together: same source, same policy for answers, same people."""

    class TextFormat(models.TextChoices):
        PLAIN = "plain", _("Plain text with $maths$")
        MARKDOWN = "markdown", _("Markdown with $maths$")

    name = models.CharField(max_length=120, unique=True)
    slug = models.SlugField(max_length=120, unique=True)
    description = models.TextField(blank=True)
    text_format = models.CharField(max_length=20, choices=TextFormat.choices, default=TextFormat.PLAIN)
    answer_policy = models.JSONField(
        default=dict, blank=True, help_text=_("How answers are compared; {} is the default.")
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PoolQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Guideline(models.Model):
    """One version of a pool's instructions to annotators; a new text is a new version."""

    pool = models.ForeignKey(Pool, models.CASCADE, related_name="guidelines")
    version = models.PositiveIntegerField()
    text = models.TextField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pool", "-version"]
        constraints = [UniqueConstraint(fields=["pool", "version"], name="guideline_one_per_version")]
