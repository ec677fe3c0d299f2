"""Selection runs: what was asked, how far it is, what came out."""

from django.conf import settings
from django.db import models
from django.db.models import Q, UniqueConstraint


class SelectionRunQuerySet(models.QuerySet["SelectionRun"]):
    def move(self, to: "SelectionRun.Status", **fields: object) -> int:
        """Change the status of those runs that may change to it, with other fields; return how many did.

        The only place where a status changes. One conditional update: of two workers one gets 1 and the other 0.
        """
        allowed = [status for status, targets in SelectionRun.ALLOWED_TRANSITIONS.items() if to in targets]
        return self.filter(status__in=allowed).update(status=to, **fields)

    def waiting_at(self, now) -> "SelectionRunQuerySet":
        """Runs that a worker may take: queued, or running under a lease that has lapsed."""
        return self.filter(
            Q(status=SelectionRun.Status.QUEUED) | Q(status=SelectionRun.Status.RUNNING, lease_until__lte=now)
        )


class SelectionRun(models.Model):
    """One selection of questions from a pool. The row carries the lease of the worker that executes it."""

    class Status(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        FINISHED = "finished", "Finished"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    ALLOWED_TRANSITIONS = {
        Status.QUEUED: {Status.RUNNING, Status.CANCELLED, Status.FAILED},
        Status.RUNNING: {Status.FINISHED, Status.FAILED, Status.CANCELLED, Status.QUEUED, Status.RUNNING},
        Status.FAILED: {Status.QUEUED},
        Status.CANCELLED: {Status.QUEUED},
        Status.FINISHED: set(),
    }

    pool = models.ForeignKey("labeling.Pool", models.CASCADE, related_name="runs")
    calibration_set = models.ForeignKey("labeling.CalibrationSet", models.PROTECT, related_name="runs", null=True)
    policy_model = models.ForeignKey("labeling.PolicyModel", models.PROTECT, related_name="runs", null=True, blank=True)
    generation_fingerprint = models.CharField(
        max_length=64, blank=True, help_text="Of recorded votes when there is no model; else set when the run starts."
    )
    embedder = models.CharField(max_length=300, blank=True, help_text="Name or path; empty where clusters are given.")
    config = models.JSONField(help_text="SelectionConfig as JSON.")
    question_limit = models.PositiveIntegerField(null=True, blank=True)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.QUEUED)
    stage = models.CharField(max_length=40, blank=True)
    stages = models.JSONField(
        default=list, blank=True, help_text="Per stage: name, done, total, done_before, started_at, seconds."
    )
    cancel_requested = models.BooleanField(default=False)
    lease_token = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0, help_text="Starts since something was last saved.")
    q_hat = models.FloatField(null=True, blank=True)
    q_hat_infinite = models.BooleanField(default=False)
    report = models.JSONField(null=True, blank=True)
    error_code = models.CharField(max_length=60, blank=True)
    error = models.TextField(blank=True, help_text="For the person at the screen.")
    traceback = models.TextField(blank=True, help_text="For whoever mends it.")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = SelectionRunQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                name="run_has_model_or_recorded_votes",
                condition=Q(policy_model__isnull=False) | ~Q(generation_fingerprint=""),
            ),
            models.CheckConstraint(
                name="run_is_leased_while_running",
                condition=(Q(status="running") & ~Q(lease_token="")) | (~Q(status="running") & Q(lease_token="")),
            ),
            models.CheckConstraint(
                name="run_q_hat_infinite_is_not_a_number", condition=Q(q_hat_infinite=False) | Q(q_hat__isnull=True)
            ),
            models.CheckConstraint(
                name="run_lease_token_and_time_go_together",
                condition=Q(lease_token="", lease_until__isnull=True)
                | (~Q(lease_token="") & Q(lease_until__isnull=False)),
            ),
        ]

    def __str__(self) -> str:
        return f"Run {self.pk} of {self.pool}"


class QuestionScore(models.Model):
    """What a run found out about one question."""

    run = models.ForeignKey(SelectionRun, models.CASCADE, related_name="scores")
    question = models.ForeignKey("labeling.Question", models.CASCADE, related_name="scores")
    set_size = models.PositiveIntegerField()
    acquisition_score = models.FloatField()
    entropy = models.FloatField()
    n_readable = models.PositiveIntegerField()
    n_distinct = models.PositiveIntegerField()
    cluster = models.IntegerField(null=True)
    eligible = models.BooleanField(default=True)
    ineligible_reason = models.CharField(max_length=60, blank=True)
    x = models.FloatField(null=True, help_text="Map of the pool, first principal component.")
    y = models.FloatField(null=True)

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
    prediction_set = models.JSONField(default=list, help_text="Answers with their frequencies.")
    tied_with = models.PositiveIntegerField(default=0)
    tie_break = models.CharField(max_length=40, blank=True, help_text="What decided against the next of the tied.")
    taken_by = models.CharField(max_length=20, help_text="cluster: the best of its own; global_order: of all the rest.")

    class Meta:
        ordering = ["run", "rank"]
        constraints = [
            UniqueConstraint(fields=["run", "rank"], name="pick_one_per_rank"),
            UniqueConstraint(fields=["run", "question"], name="pick_question_once_per_run"),
        ]
