"""Budgets and rounds of labeling: a slot is one human answer, and takes one unit of a budget."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q, UniqueConstraint


class Budget(models.Model):
    """Money, counted in human answers. Granting creates that many units, so overspending is impossible."""

    pool = models.ForeignKey("labeling.Pool", models.CASCADE, related_name="budgets")
    name = models.CharField(max_length=120)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [UniqueConstraint(fields=["pool", "name"], name="budget_name_once_per_pool")]

    def __str__(self) -> str:
        return self.name


class BudgetUnit(models.Model):
    """One human answer that has been paid for in advance."""

    budget = models.ForeignKey(Budget, models.CASCADE, related_name="units")
    number = models.PositiveIntegerField()

    class Meta:
        ordering = ["budget", "number"]
        constraints = [UniqueConstraint(fields=["budget", "number"], name="unit_number_once_per_budget")]


class Round(models.Model):
    """The picks of a run, opened for labeling."""

    class Status(models.TextChoices):
        LIVE = "live", "Live"
        PAUSED = "paused", "Paused"
        CLOSED = "closed", "Closed"

    run = models.ForeignKey("labeling.SelectionRun", models.PROTECT, related_name="rounds")
    budget = models.ForeignKey(Budget, models.PROTECT, related_name="rounds")
    overlap = models.PositiveIntegerField(default=1, help_text="Independent answers per question.")
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.LIVE)
    guideline = models.ForeignKey("labeling.Guideline", models.PROTECT, null=True, blank=True, related_name="rounds")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(name="round_overlap_at_least_one", condition=Q(overlap__gte=1)),
        ]

    def __str__(self) -> str:
        return f"Round {self.pk}"


class SlotQuerySet(models.QuerySet["Slot"]):
    def open_at(self, now) -> "SlotQuerySet":
        """Slots anyone eligible may claim: open, or held under a lease that has run out."""
        return self.filter(Q(state=Slot.State.OPEN) | Q(state=Slot.State.LEASED, lease_until__lte=now))


class Slot(models.Model):
    """One answer to be given by one person."""

    class State(models.TextChoices):
        OPEN = "open", "Open"
        LEASED = "leased", "Held"
        DONE = "done", "Done"
        VOID = "void", "Void"

    class Purpose(models.TextChoices):
        LABEL = "label", "Label"
        ADJUDICATION = "adjudication", "Adjudication"

    round = models.ForeignKey(Round, models.CASCADE, related_name="slots")
    unit = models.ForeignKey(BudgetUnit, models.PROTECT, related_name="slots")
    purpose = models.CharField(max_length=20, choices=Purpose.choices, default=Purpose.LABEL)
    question = models.ForeignKey("labeling.Question", models.PROTECT, related_name="slots")
    state = models.CharField(max_length=20, choices=State.choices, default=State.OPEN)
    priority = models.PositiveIntegerField(default=0)
    holder = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="slots", null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    claimed_at = models.DateTimeField(null=True, blank=True)
    draft = models.JSONField(default=dict, blank=True, help_text="What the holder has typed so far.")
    draft_saved_at = models.DateTimeField(null=True, blank=True)

    objects = SlotQuerySet.as_manager()

    class Meta:
        ordering = ["priority", "id"]
        indexes = [models.Index(fields=["round", "state", "priority"])]
        constraints = [
            UniqueConstraint(fields=["unit"], condition=~Q(state="void"), name="unit_spent_once"),
            UniqueConstraint(
                fields=["round", "question", "holder"],
                condition=Q(holder__isnull=False) & ~Q(state="void"),
                name="slot_question_once_per_person",
            ),
            UniqueConstraint(
                fields=["round", "question"],
                condition=Q(purpose="adjudication") & ~Q(state="void"),
                name="slot_one_adjudication_per_question",
            ),
            models.CheckConstraint(
                name="slot_open_has_no_holder",
                condition=Q(state="open", holder__isnull=True, lease_until__isnull=True) | ~Q(state="open"),
            ),
            models.CheckConstraint(
                name="slot_leased_has_holder_and_time",
                condition=Q(state="leased", holder__isnull=False, lease_until__isnull=False) | ~Q(state="leased"),
            ),
        ]


class Skip(models.Model):
    """'Not me': the question goes back to the queue and is not offered to this person again in the round."""

    round = models.ForeignKey(Round, models.CASCADE, related_name="skips")
    question = models.ForeignKey("labeling.Question", models.CASCADE, related_name="skips")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="skips")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [UniqueConstraint(fields=["round", "question", "user"], name="skip_once_per_person")]


class UnanswerableReason(models.TextChoices):
    """Why a question has no single verifiable answer."""

    ILL_POSED = "ill_posed", "Ill-posed"
    SEVERAL_ANSWERS = "several_answers", "Several valid answers"
    MISSING_DATA = "missing_data", "A figure or data is missing"
    OUTSIDE_DATA = "outside_data", "Needs outside or dated data"
    NOT_VERIFIABLE = "not_verifiable", "Not verifiable (proof, essay)"
    DUPLICATE = "duplicate", "Duplicate"
    BROKEN_TEXT = "broken_text", "Broken text"


class Annotation(models.Model):
    """One person's final word on one slot. Never edited; a revision is a new row."""

    slot = models.ForeignKey(Slot, models.PROTECT, related_name="annotations")
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="annotations")
    idempotency_key = models.UUIDField(default=uuid.uuid4)
    answer = models.TextField(blank=True)
    answer_kind = models.CharField(max_length=20, blank=True)
    read_as = models.TextField(blank=True, help_text="What a trainer's grader reads.")
    unanswerable_reason = models.CharField(max_length=30, choices=UnanswerableReason.choices, blank=True)
    confident = models.BooleanField(default=True)
    note = models.TextField(blank=True)
    seconds_spent = models.FloatField(null=True, blank=True)
    surplus = models.BooleanField(default=False, help_text="Came after the slot had gone to somebody else: kept, not counted.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            UniqueConstraint(fields=["slot"], condition=Q(surplus=False), name="annotation_one_per_slot"),
            UniqueConstraint(fields=["annotator", "idempotency_key"], name="annotation_submitted_once"),
            models.CheckConstraint(
                name="annotation_answer_xor_unanswerable",
                condition=(~Q(answer="") & Q(unanswerable_reason="")) | (Q(answer="") & ~Q(unanswerable_reason="")),
            ),
        ]


class Adjudication(models.Model):
    """The adjudicator's decision on a disagreement. Never edited."""

    slot = models.OneToOneField(Slot, models.PROTECT, related_name="adjudication")
    adjudicator = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="adjudications")
    idempotency_key = models.UUIDField(default=uuid.uuid4)
    answer = models.TextField(blank=True)
    answer_kind = models.CharField(max_length=20, blank=True)
    unanswerable_reason = models.CharField(max_length=30, choices=UnanswerableReason.choices, blank=True)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            UniqueConstraint(fields=["adjudicator", "idempotency_key"], name="adjudication_submitted_once"),
            models.CheckConstraint(
                name="adjudication_answer_xor_unanswerable",
                condition=(~Q(answer="") & Q(unanswerable_reason="")) | (Q(answer="") & ~Q(unanswerable_reason="")),
            ),
        ]


class GoldAnswer(models.Model):
    """The answer a question trains with: the adjudicator's, else the first annotation's canonical form."""

    class Source(models.TextChoices):
        SINGLE = "single", "One annotation"
        AGREEMENT = "agreement", "Annotators agree"
        ADJUDICATION = "adjudication", "Adjudicated"

    question = models.OneToOneField("labeling.Question", models.PROTECT, related_name="gold_answer")
    round = models.ForeignKey(Round, models.PROTECT, related_name="gold_answers")
    answer = models.TextField()
    answer_kind = models.CharField(max_length=20, blank=True)
    source = models.CharField(max_length=20, choices=Source.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.CheckConstraint(name="gold_answer_not_empty", condition=~Q(answer=""))]
