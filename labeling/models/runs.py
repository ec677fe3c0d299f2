"""Selection runs: what was asked, how far it is, what came out."""

from typing import Any

from django.db import models
from django.db.models import Exists, F, OuterRef, Q, UniqueConstraint
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from labeling.models.work import Work, lease_constraints


class SelectionRun(Work):
    """One selection of questions from a pool."""

    class Race(models.TextChoices):
        EXACT = "exact", _("Only those that the picks depend on")
        OFF = "off", _("All of them, of every question")

    pool = models.ForeignKey("labeling.Pool", models.CASCADE, related_name="runs")
    calibration_set = models.ForeignKey(
        "labeling.CalibrationSet", models.PROTECT, related_name="runs", null=True, blank=True
    )
    policy_model = models.ForeignKey("labeling.PolicyModel", models.PROTECT, related_name="runs", null=True, blank=True)
    generation_fingerprint = models.CharField(
        max_length=64,
        blank=True,
        help_text=_("Of recorded votes when there is no model; else set when the run starts."),
    )
    embedder = models.CharField(
        max_length=300, blank=True, help_text=_("Name or path; empty where clusters are given.")
    )
    config = models.JSONField(help_text=_("SelectionConfig as JSON."))
    question_limit = models.PositiveIntegerField(null=True, blank=True)
    race = models.CharField(
        max_length=20,
        choices=Race.choices,
        default=Race.OFF,
        help_text=_("Whether full answers are asked only where the picks depend on them."),
    )
    continues = models.ForeignKey(
        "self",
        models.PROTECT,
        related_name="continued_by",
        null=True,
        blank=True,
        help_text=_("The run whose picks count as labeled, so that this one goes on from them."),
    )
    q_hat = models.FloatField(null=True, blank=True)
    q_hat_infinite = models.BooleanField(default=False)
    report = models.JSONField(null=True, blank=True)
    race_history = models.JSONField(
        default=list, blank=True, help_text=_("How its race went, which depends on how fast answers came.")
    )

    class Meta(Work.Meta):
        constraints = [
            models.CheckConstraint(
                name="run_is_calibrated_on_answers",
                condition=Q(policy_model__isnull=False)
                | ~Q(generation_fingerprint="")
                | Q(calibration_set__isnull=True),
            ),
            models.CheckConstraint(
                name="run_q_hat_infinite_is_not_a_number", condition=Q(q_hat_infinite=False) | Q(q_hat__isnull=True)
            ),
            *lease_constraints("run"),
        ]

    def __str__(self) -> str:
        return gettext("Run %(run)s of %(pool)s") % {"run": self.pk, "pool": self.pool}


class QuestionScoreQuerySet(models.QuerySet["QuestionScore"]):
    def left_for(self, round: Any) -> "QuestionScoreQuerySet":
        """Questions of a round's run, in its order, that could have been picked and that nobody was ever asked."""
        from labeling.models.annotations import GoldAnswer
        from labeling.models.rounds import Slot

        of_question = {"question": OuterRef("question")}
        return self.filter(
            ~Exists(Pick.objects.filter(run=round.run_id, **of_question)),
            ~Exists(GoldAnswer.objects.filter(**of_question)),
            ~Exists(Slot.objects.filter(**of_question).exclude(state=Slot.State.VOID)),
            run=round.run_id,
            eligible=True,
        ).order_by(F("place").asc(nulls_last=True), "-acquisition_score", "question__fingerprint")


class QuestionScore(models.Model):
    """What a run found out about one question."""

    run = models.ForeignKey(SelectionRun, models.CASCADE, related_name="scores")
    question = models.ForeignKey("labeling.Question", models.CASCADE, related_name="scores")
    set_size = models.PositiveIntegerField(help_text=_("After a race, what it is at least."))
    set_size_at_most = models.PositiveIntegerField(null=True, help_text=_("After a race; empty without one."))
    n_drawn = models.PositiveIntegerField(null=True, help_text=_("Full answers that a race asked for."))
    acquisition_score = models.FloatField()
    entropy = models.FloatField()
    n_readable = models.PositiveIntegerField()
    n_distinct = models.PositiveIntegerField()
    cluster = models.IntegerField(null=True)
    eligible = models.BooleanField(default=True)
    ineligible_reason = models.CharField(max_length=60, blank=True)
    place = models.PositiveIntegerField(
        null=True,
        help_text=_(
            "In the strategy's order of the whole pool, ties broken, from 1; after a race of what it tells apart."
        ),
    )
    x = models.FloatField(null=True, help_text=_("Map of the pool, first principal component."))
    y = models.FloatField(null=True)

    objects = QuestionScoreQuerySet.as_manager()

    class Meta:
        constraints = [UniqueConstraint(fields=["run", "question"], name="score_one_per_question_and_run")]


class Pick(models.Model):
    """A question chosen for labeling, and why."""

    run = models.ForeignKey(SelectionRun, models.CASCADE, related_name="picks")
    question = models.ForeignKey("labeling.Question", models.PROTECT, related_name="picks")
    rank = models.PositiveIntegerField()
    cluster = models.IntegerField(null=True)
    set_size = models.PositiveIntegerField()
    acquisition_score = models.FloatField()
    prediction_set = models.JSONField(default=list, help_text=_("Answers with their frequencies."))
    tied_with = models.PositiveIntegerField(
        null=True, default=0, help_text=_("Other questions of the same score; empty after a race, which cannot know.")
    )
    tie_break = models.CharField(max_length=40, blank=True, help_text=_("What decided against the next of the tied."))
    taken_by = models.CharField(
        max_length=20,
        help_text=_(
            "cluster: the best of its own; global_order: of all the rest; joint: one of a set; control: drawn."
        ),
    )
    inclusion_probability = models.FloatField(
        null=True, help_text=_("The chance that a control had of being drawn; empty for what was chosen on purpose.")
    )

    class Meta:
        ordering = ["run", "rank"]
        constraints = [
            UniqueConstraint(fields=["run", "rank"], name="pick_one_per_rank"),
            UniqueConstraint(fields=["run", "question"], name="pick_question_once_per_run"),
        ]
