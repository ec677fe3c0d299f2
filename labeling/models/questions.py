"""Questions, calibration items, and the imports that brought them."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q, UniqueConstraint
from django.utils.translation import gettext_lazy as _


class AnswerKind(models.TextChoices):
    """What an answer is, which decides how answers are compared. Empty: read off the answer itself."""

    NUMBER = "number", _("Number")
    EXPRESSION = "expression", _("Expression")
    SET = "set", _("Set")
    TUPLE = "tuple", _("Tuple")
    INTERVAL = "interval", _("Interval")
    EQUATION = "equation", _("Equation")
    CHOICE = "choice", _("Choice")
    PERCENT = "percent", _("Percent")
    CURRENCY = "currency", _("Currency")
    TEXT = "text", _("Text")


class CalibrationSet(models.Model):
    """Labeled questions that turn answers into prediction sets. Sealed: never exported, answers never shown."""

    name = models.CharField(max_length=120, unique=True)
    pool = models.ForeignKey(
        "labeling.Pool",
        models.CASCADE,
        related_name="calibration_sets",
        null=True,
        blank=True,
        help_text=_("Empty: any pool may use it."),
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ImportBatch(models.Model):
    """One file brought in: previewed, then committed or discarded."""

    class Status(models.TextChoices):
        PREVIEWED = "previewed", _("Previewed")
        COMMITTED = "committed", _("Committed")
        DISCARDED = "discarded", _("Discarded")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    pool = models.ForeignKey("labeling.Pool", models.CASCADE, related_name="imports", null=True)
    calibration_set = models.ForeignKey(CalibrationSet, models.CASCADE, related_name="imports", null=True)
    new_set = models.CharField(
        max_length=120, blank=True, help_text=_("Name of the calibration set that a commit makes.")
    )
    new_set_pool = models.ForeignKey("labeling.Pool", models.CASCADE, related_name="+", null=True)
    filename = models.CharField(max_length=255)
    stored_as = models.CharField(max_length=255, blank=True, help_text=_("Path below the media root while previewed."))
    sha256 = models.CharField(max_length=64)
    mapping = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.PREVIEWED)
    counts = models.JSONField(default=dict)
    rejected = models.JSONField(default=list, help_text=_("Line, code, message and found text of each rejected row."))
    sample = models.JSONField(default=list)
    warnings = models.JSONField(default=list)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    committed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                name="import_into_pool_xor_calibration_set",
                condition=Q(pool__isnull=False, calibration_set__isnull=True, new_set="", new_set_pool__isnull=True)
                | Q(pool__isnull=True, calibration_set__isnull=False, new_set="", new_set_pool__isnull=True)
                | (Q(pool__isnull=True, calibration_set__isnull=True) & ~Q(new_set="")),
            )
        ]

    @property
    def target_set(self) -> CalibrationSet | None:
        """The calibration set the file goes into; one that a commit would make is not stored yet."""
        if not self.new_set:
            return self.calibration_set
        return CalibrationSet(name=self.new_set, pool=self.new_set_pool, created_by=self.created_by)


class QuestionQuerySet(models.QuerySet["Question"]):
    def in_pool(self, pool) -> "QuestionQuerySet":
        return self.filter(pool=pool)

    def unlabeled(self) -> "QuestionQuerySet":
        from labeling.models.annotations import GoldAnswer

        return self.filter(~Exists(GoldAnswer.objects.filter(question=OuterRef("pk"))))


class Question(models.Model):
    """A question nobody has answered yet. ``uid`` is given by the file or a hash of the text and choices."""

    pool = models.ForeignKey("labeling.Pool", models.CASCADE, related_name="questions")
    uid = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64, db_index=True, help_text=_("Hash of normalised text and choices."))
    text = models.TextField()
    answer_kind = models.CharField(max_length=20, choices=AnswerKind.choices, blank=True)
    choices = models.JSONField(default=list, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    import_batch = models.ForeignKey(ImportBatch, models.SET_NULL, related_name="questions", null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = QuestionQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [UniqueConstraint(fields=["pool", "uid"], name="question_uid_once_per_pool")]

    def __str__(self) -> str:
        return self.text[:80]


class CalibrationItem(models.Model):
    """A question with its known answer. The answer is shown to nobody."""

    calibration_set = models.ForeignKey(CalibrationSet, models.CASCADE, related_name="items")
    uid = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64, db_index=True)
    text = models.TextField()
    answer = models.TextField()
    answer_kind = models.CharField(max_length=20, choices=AnswerKind.choices, blank=True)
    choices = models.JSONField(default=list, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    import_batch = models.ForeignKey(ImportBatch, models.SET_NULL, related_name="items", null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [UniqueConstraint(fields=["calibration_set", "uid"], name="calibration_uid_once_per_set")]

    def __str__(self) -> str:
        return self.text[:80]
