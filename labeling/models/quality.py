"""How good answers are: practice, graded calibration checks, and what people say about the meaning of answers."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q, UniqueConstraint
from django.utils.translation import gettext_lazy as _

from labeling.models.annotations import UnanswerableReason
from labeling.models.records import AppendOnly


class CheckGrade(AppendOnly):
    """Whether an annotation of a calibration check meets the known answer, as that was when it was graded."""

    annotation = models.ForeignKey("labeling.Annotation", models.PROTECT, related_name="grades")
    against = models.TextField(help_text=_("The known answer it was compared with."))
    is_right = models.BooleanField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [UniqueConstraint(fields=["annotation", "against"], name="check_graded_once")]


class PracticeAnswer(AppendOnly):
    """One person's answer to a practice question of a round, or that they skipped it. Costs no unit."""

    round = models.ForeignKey("labeling.Round", models.CASCADE, related_name="practice_answers")
    item = models.ForeignKey("labeling.CalibrationItem", models.PROTECT, related_name="practice_answers")
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="practice_answers")
    answer = models.TextField(blank=True)
    unanswerable_reason = models.CharField(max_length=30, choices=UnanswerableReason.choices, blank=True)
    read_as = models.TextField(blank=True, help_text=_("What a trainer's grader reads."))
    against = models.TextField(help_text=_("The right answer as it was shown."))
    is_right = models.BooleanField(default=False)
    is_skipped = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["id"]
        constraints = [
            UniqueConstraint(fields=["round", "item", "annotator"], name="practice_answered_once"),
            models.CheckConstraint(
                name="practice_answered_or_skipped",
                condition=Q(is_skipped=True, answer="", unanswerable_reason="", is_right=False)
                | (
                    Q(is_skipped=False)
                    & ((~Q(answer="") & Q(unanswerable_reason="")) | (Q(answer="") & ~Q(unanswerable_reason="")))
                ),
            ),
        ]


class MeaningVerdict(AppendOnly):
    """A person says that two answers to a question mean the same, or do not. The latest about a pair holds."""

    question = models.ForeignKey("labeling.Question", models.PROTECT, related_name="meaning_verdicts")
    round = models.ForeignKey("labeling.Round", models.PROTECT, related_name="meaning_verdicts")
    answer_kind = models.CharField(max_length=20, blank=True)
    left = models.TextField(help_text=_("The form of one answer; left < right."))
    right = models.TextField(help_text=_("The form of the other."))
    same = models.BooleanField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["id"]
        constraints = [models.CheckConstraint(name="verdict_forms_in_order", condition=Q(left__lt=F("right")))]
