"""What people were shown of a model's answers, and what they made of it."""

from django.db import models
from django.db.models import Q, UniqueConstraint
from django.utils.translation import gettext_lazy as _

from labeling.models.records import AppendOnly


class ModelAnswers(AppendOnly):
    """The different answers a run's model gave to a question, one written form each, as people may be shown them.

    The most frequent comes first, without a count. Written when they are first needed, so that everybody who is shown
    them is shown the same, whatever is sampled or graded later. Calibration questions have theirs too.
    """

    run = models.ForeignKey("labeling.SelectionRun", models.CASCADE, related_name="model_answers")
    question_fingerprint = models.CharField(max_length=64)
    answers = models.JSONField(help_text=_("A list of texts."))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            UniqueConstraint(fields=["run", "question_fingerprint"], name="model_answers_once_per_question"),
        ]


class Reveal(AppendOnly):
    """Once a person had answered they were shown the model's answers. ``annotation`` is what they said before."""

    annotation = models.OneToOneField("labeling.Annotation", models.PROTECT, related_name="reveal")
    answers = models.JSONField(help_text=_("What was shown, in the order in which it was shown."))
    own = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text=_("Position of the one that means the same as the person's own answer.")
    )
    created_at = models.DateTimeField(auto_now_add=True)


class RevealDecision(AppendOnly):
    """What a person did after a reveal: kept their answer, or gave another one."""

    class Outcome(models.TextChoices):
        KEPT = "kept", _("Kept the answer")
        SAME = "same", _("Wrote the same answer another way")
        MODEL = "model", _("Switched to an answer of the model")
        OTHER = "other", _("Switched to another answer")

    reveal = models.OneToOneField(Reveal, models.PROTECT, related_name="decision")
    outcome = models.CharField(max_length=20, choices=Outcome.choices)
    annotation = models.OneToOneField(
        "labeling.Annotation",
        models.PROTECT,
        related_name="decided_after_reveal",
        null=True,
        blank=True,
        help_text=_("The answer given after the reveal, with its reason."),
    )
    chosen = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text=_("Position of the shown answer that it is, picked or typed.")
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="reveal_kept_has_no_new_answer",
                condition=Q(outcome="kept", annotation__isnull=True)
                | (~Q(outcome="kept") & Q(annotation__isnull=False)),
            ),
            models.CheckConstraint(
                name="reveal_switch_to_model_names_which",
                condition=~Q(outcome="model") | Q(chosen__isnull=False),
            ),
        ]
