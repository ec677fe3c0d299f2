"""Budgets and rounds of labeling: a slot is one human answer, and takes one unit of a budget."""

import hashlib
import uuid
from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Exists, ExpressionWrapper, F, OuterRef, Q, UniqueConstraint

from labeling.models.people import Role
from labeling.models.records import AppendOnly, AppendOnlyQuerySet


class BudgetQuerySet(models.QuerySet["Budget"]):
    def for_labels(self) -> "BudgetQuerySet":
        """Budgets that somebody granted, which rounds of labels are paid from."""
        return self.filter(purpose=Budget.Purpose.LABELS)


class Budget(models.Model):
    """Money, counted in human answers. Granting creates that many units, so overspending is impossible.

    A round's calibration checks have units of their own, in a budget made with the round.
    """

    class Purpose(models.TextChoices):
        LABELS = "labels", "Labels"
        CHECKS = "checks", "Calibration checks"

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
        return self.filter(~Exists(Slot.objects.filter(unit=OuterRef("pk")).exclude(state=Slot.State.VOID)))

    def free(self) -> "BudgetUnitQuerySet":
        """Untaken units that no round holds back for its disagreements."""
        return self.untaken().filter(held_for=None)

    def usable_by(self, round: "Round") -> "BudgetUnitQuerySet":
        """Untaken units of the round's budget that it may take: those it holds back first, then the free ones."""
        mine = self.untaken().filter(Q(held_for=None) | Q(held_for=round), budget=round.budget_id)
        return mine.order_by(F("held_for").asc(nulls_last=True), "number")


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
        help_text="The open round that holds it back for disagreements, so that no other work takes it.",
    )

    objects = BudgetUnitQuerySet.as_manager()

    class Meta:
        ordering = ["budget", "number"]
        constraints = [UniqueConstraint(fields=["budget", "number"], name="unit_number_once_per_budget")]


class RoundQuerySet(models.QuerySet["Round"]):
    def in_pool(self, pool: Any) -> "RoundQuerySet":
        return self.filter(run__pool=pool)

    def visible_to(self, user: Any) -> "RoundQuerySet":
        """Rounds of the pools in which the user has any role; all of them for a superuser."""
        return self if user.is_superuser else self.filter(run__pool__memberships__user=user).distinct()

    def managed_by(self, user: Any) -> "RoundQuerySet":
        """Rounds of the pools that the user manages; all of them for a superuser."""
        if user.is_superuser:
            return self
        return self.filter(run__pool__memberships__user=user, run__pool__memberships__role=Role.MANAGER)


class Round(models.Model):
    """The picks of a run, opened for labeling."""

    class Status(models.TextChoices):
        LIVE = "live", "Live"
        PAUSED = "paused", "Paused"
        CLOSED = "closed", "Closed"

    class Blindness(models.TextChoices):
        BLIND = "blind", "Never"
        REVEAL_AFTER = "reveal_after", "After the person has answered"
        SHOWN_FIRST = "shown_first", "From the start"

    ALLOWED_TRANSITIONS = {
        Status.LIVE: {Status.PAUSED, Status.CLOSED},
        Status.PAUSED: {Status.LIVE, Status.CLOSED},
        Status.CLOSED: set(),
    }

    run = models.ForeignKey("labeling.SelectionRun", models.PROTECT, related_name="rounds")
    budget = models.ForeignKey(Budget, models.PROTECT, related_name="rounds")
    overlap = models.PositiveIntegerField(default=1, help_text="Independent answers per question.")
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.LIVE)
    guideline = models.ForeignKey("labeling.Guideline", models.PROTECT, null=True, blank=True, related_name="rounds")
    calibration_set = models.ForeignKey(
        "labeling.CalibrationSet",
        models.PROTECT,
        related_name="rounds",
        null=True,
        blank=True,
        help_text="Where checks and practice come from.",
    )
    check_rate = models.FloatField(default=0.0, help_text="Calibration checks per question asked, unmarked.")
    n_practice = models.PositiveIntegerField(default=0, help_text="Practice questions before a person's first.")
    practice_may_be_skipped = models.BooleanField(default=False)
    blindness = models.CharField(
        max_length=20,
        choices=Blindness.choices,
        default=Blindness.REVEAL_AFTER,
        help_text="When people are shown the answers of the model.",
    )
    control_share = models.FloatField(
        default=0.1, help_text="Share of the questions whose model answers are not shown afterwards either."
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    objects = RoundQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(name="round_overlap_at_least_one", condition=Q(overlap__gte=1)),
            models.CheckConstraint(
                name="round_check_rate_between_0_and_1", condition=Q(check_rate__gte=0, check_rate__lte=1)
            ),
            models.CheckConstraint(
                name="round_checks_and_practice_have_a_set",
                condition=Q(calibration_set__isnull=False) | Q(check_rate=0, n_practice=0),
            ),
            models.CheckConstraint(
                name="round_control_share_is_a_share", condition=Q(control_share__gte=0, control_share__lte=1)
            ),
            models.CheckConstraint(
                name="round_closed_has_time",
                condition=Q(status="closed", closed_at__isnull=False)
                | (~Q(status="closed") & Q(closed_at__isnull=True)),
            ),
        ]

    def __str__(self) -> str:
        return f"Round {self.pk}"

    @property
    def pool(self) -> Any:
        """The pool whose questions are being labeled."""
        return self.run.pool

    def is_control(self, uid: str) -> bool:
        """Whether a question stays blind, so that there is something to compare the others with.

        Decided by a hash of the run's seed and the question's uid: the same for everybody, and at every time.
        """
        drawn = hashlib.sha256(f"control:{self.run.config.get('seed', 0)}:{uid}".encode()).digest()
        return int.from_bytes(drawn[:8], "big") < self.control_share * 2**64


ONE_IS_ASKED = Q(question__isnull=True, calibration_item__isnull=False) | Q(
    question__isnull=False, calibration_item__isnull=True
)


def _not_by_index(person: str) -> Any:
    """A person's column, written so that a database does not go through everything that person ever did."""
    return ExpressionWrapper(F(person) + 0, output_field=models.BigIntegerField())


class AboutQuerySet(models.QuerySet[Any]):
    """Rows that hang on a round and on what is asked there: a question, or a calibration item as a check."""

    def about(self, slot: "Slot") -> Any:
        """Rows about what the slot asks in its round."""
        return self.filter(round=slot.round_id, **slot.asked_ids)


class SlotQuerySet(models.QuerySet["Slot"]):
    def loaded(self) -> "SlotQuerySet":
        """Slots with what their pages show; not the report of the run, which may be long."""
        return self.select_related("round__run__pool", "round__guideline", "question", "calibration_item").defer(
            "round__run__report", "round__run__traceback"
        )

    def held_by(self, user: Any) -> "SlotQuerySet":
        """Slots the user holds now, also past their time as long as nobody else has claimed them."""
        return self.filter(holder=user, state=Slot.State.LEASED)

    def shown_to(self, user: Any) -> "SlotQuerySet":
        """Slots whose question the user has been shown: held, done, given back, or lost to somebody else.

        The queryset of the pages that take in typed work: a late answer or draft must still find its slot.
        """
        same = Q(question=OuterRef("question")) | Q(calibration_item=OuterRef("calibration_item"))
        return self.filter(Exists(Draft.objects.filter(same, author=user, round=OuterRef("round"))))

    def unseen_by(self, user: Any) -> "SlotQuerySet":
        """Slots whose question the user has neither answered (counted or not), nor holds, nor skipped in the round.

        Asked of one question at a time, by the slots of that question: the queue must not slow down with how much
        somebody has answered, or with how large the pool is.
        """
        person = getattr(user, "pk", user)
        asked = {"question": OuterRef("question")}
        answers = Annotation.objects.alias(by=_not_by_index("annotator")).filter(by=person, withdrawal=None)
        held = Slot.objects.alias(by=_not_by_index("holder")).filter(by=person, **asked).exclude(state=Slot.State.VOID)
        skipped = Skip.objects.filter(user=user, round=OuterRef("round"), **asked)
        return self.filter(
            ~Exists(answers.filter(slot__question=OuterRef("question"))), ~Exists(held), ~Exists(skipped)
        )

    def checks_unseen_by(self, user: Any) -> "SlotQuerySet":
        """Checks that ask nothing the user has ever been shown: as a check, in practice, or as a question."""
        drafts = Draft.objects.filter(author=user)
        seen = (
            drafts.filter(calibration_item__isnull=False).values("calibration_item__fingerprint"),
            drafts.filter(question__isnull=False).values("question__fingerprint"),
            user.practice_answers.values("item__fingerprint"),
        )
        return self.filter(*(~Q(calibration_item__fingerprint__in=each) for each in seen))

    def open_at(self, now: datetime) -> "SlotQuerySet":
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
        CHECK = "check", "Calibration check"
        ADJUDICATION = "adjudication", "Adjudication"

    round = models.ForeignKey(Round, models.CASCADE, related_name="slots")
    unit = models.ForeignKey(BudgetUnit, models.PROTECT, related_name="slots")
    purpose = models.CharField(max_length=20, choices=Purpose.choices, default=Purpose.LABEL)
    question = models.ForeignKey("labeling.Question", models.PROTECT, related_name="slots", null=True, blank=True)
    calibration_item = models.ForeignKey(
        "labeling.CalibrationItem", models.PROTECT, related_name="slots", null=True, blank=True
    )
    state = models.CharField(max_length=20, choices=State.choices, default=State.OPEN)
    priority = models.PositiveIntegerField(default=0)
    holder = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="slots", null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    claimed_at = models.DateTimeField(null=True, blank=True)

    objects = SlotQuerySet.as_manager()

    class Meta:
        ordering = ["priority", "id"]
        indexes = [models.Index(fields=["round", "purpose", "state", "priority", "id"], name="slot_queue")]
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
            UniqueConstraint(
                fields=["round", "calibration_item", "holder"],
                condition=Q(holder__isnull=False) & ~Q(state="void"),
                name="slot_check_once_per_person",
            ),
            UniqueConstraint(
                fields=["round", "holder"],
                condition=Q(state="leased") & ~Q(purpose="adjudication"),
                name="slot_one_held_at_a_time",
            ),
            UniqueConstraint(
                fields=["round", "holder"],
                condition=Q(state="leased", purpose="adjudication"),
                name="slot_one_adjudication_held_at_a_time",
            ),
            models.CheckConstraint(
                name="slot_question_xor_calibration_item",
                condition=Q(question__isnull=True, calibration_item__isnull=False, purpose="check")
                | (Q(question__isnull=False, calibration_item__isnull=True) & ~Q(purpose="check")),
            ),
            models.CheckConstraint(
                name="slot_open_has_no_holder",
                condition=Q(state="open", holder__isnull=True, lease_until__isnull=True) | ~Q(state="open"),
            ),
            models.CheckConstraint(
                name="slot_leased_has_holder_and_time",
                condition=Q(state="leased", holder__isnull=False, lease_until__isnull=False) | ~Q(state="leased"),
            ),
            models.CheckConstraint(
                name="slot_done_has_holder", condition=Q(state="done", holder__isnull=False) | ~Q(state="done")
            ),
        ]

    @property
    def pool(self) -> Any:
        """The pool of the slot's question."""
        return self.round.run.pool

    @property
    def asked(self) -> Any:
        """What is asked: the question, or the calibration item of a check. Both have text, choices, answer_kind."""
        return self.question if self.question_id is not None else self.calibration_item

    @property
    def asked_ids(self) -> dict[str, Any]:
        """What is asked, as a filter of rows about it."""
        if self.question_id is not None:
            return {"question_id": self.question_id}
        return {"calibration_item_id": self.calibration_item_id}

    @property
    def is_check(self) -> bool:
        return self.purpose == self.Purpose.CHECK

    @property
    def is_adjudication(self) -> bool:
        return self.purpose == self.Purpose.ADJUDICATION


class Draft(models.Model):
    """What a person has typed so far for a question of a round.

    It begins, empty, when the question is first shown to them, and stays when the slot goes to somebody else: nobody
    sees another's draft, and nothing typed is lost.
    """

    round = models.ForeignKey(Round, models.CASCADE, related_name="drafts")
    question = models.ForeignKey("labeling.Question", models.CASCADE, related_name="drafts", null=True, blank=True)
    calibration_item = models.ForeignKey(
        "labeling.CalibrationItem", models.CASCADE, related_name="drafts", null=True, blank=True
    )
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="drafts")
    content = models.JSONField(default=dict, blank=True)
    opened_at = models.DateTimeField(auto_now_add=True)
    saved_at = models.DateTimeField(null=True, blank=True)

    objects = AboutQuerySet.as_manager()

    class Meta:
        constraints = [
            UniqueConstraint(fields=["round", "question", "author"], name="draft_one_per_person"),
            UniqueConstraint(fields=["round", "calibration_item", "author"], name="draft_one_per_person_and_check"),
            models.CheckConstraint(name="draft_question_xor_calibration_item", condition=ONE_IS_ASKED),
        ]


class Skip(models.Model):
    """'Not me': the question goes back to the queue and is not offered to this person again in the round."""

    round = models.ForeignKey(Round, models.CASCADE, related_name="skips")
    question = models.ForeignKey("labeling.Question", models.CASCADE, related_name="skips", null=True, blank=True)
    calibration_item = models.ForeignKey(
        "labeling.CalibrationItem", models.CASCADE, related_name="skips", null=True, blank=True
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="skips")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AboutQuerySet.as_manager()

    class Meta:
        constraints = [
            UniqueConstraint(fields=["round", "question", "user"], name="skip_once_per_person"),
            UniqueConstraint(fields=["round", "calibration_item", "user"], name="skip_check_once_per_person"),
            models.CheckConstraint(name="skip_question_xor_calibration_item", condition=ONE_IS_ASKED),
        ]


class Replacement(models.Model):
    """A question that turned out unanswerable, and the next of its run's order, which is asked in its place."""

    round = models.ForeignKey(Round, models.CASCADE, related_name="replacements")
    replaced = models.ForeignKey("labeling.Question", models.PROTECT, related_name="+")
    replacement = models.ForeignKey("labeling.Question", models.PROTECT, related_name="+")
    taken_by = models.CharField(max_length=20, help_text="As of a pick: from its cluster, the global order, or a draw.")
    place = models.PositiveIntegerField(null=True, help_text="In the run's order of the pool, from 1.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            UniqueConstraint(fields=["round", "replaced"], name="replaced_once_per_round"),
            UniqueConstraint(fields=["round", "replacement"], name="replacement_once_per_round"),
        ]


class UnanswerableReason(models.TextChoices):
    """Why a question has no single verifiable answer."""

    ILL_POSED = "ill_posed", "Ill-posed"
    SEVERAL_ANSWERS = "several_answers", "Several valid answers"
    MISSING_DATA = "missing_data", "A figure or data is missing"
    OUTSIDE_DATA = "outside_data", "Needs outside or dated data"
    NOT_VERIFIABLE = "not_verifiable", "Not verifiable (proof, essay)"
    DUPLICATE = "duplicate", "Duplicate"
    BROKEN_TEXT = "broken_text", "Broken text"


class AnnotationQuerySet(AppendOnlyQuerySet):
    def about(self, slot: Slot) -> "AnnotationQuerySet":
        """What anybody said to what the slot asks in its round."""
        asked = {f"slot__{name}": value for name, value in slot.asked_ids.items()}
        return self.filter(slot__round=slot.round_id, **asked)

    def standing_of(self, slot: Slot, user: Any) -> "Annotation | None":
        """What the person says now of what the slot asks in its round; the first where they said it of two slots."""
        standing: dict[int, Annotation] = {}
        for annotation in self.about(slot).select_related("slot", "withdrawal").order_by("version"):
            if annotation.annotator_id == user.pk and not hasattr(annotation, "withdrawal"):
                standing[annotation.slot_id] = annotation
        return min(standing.values(), key=lambda annotation: annotation.pk, default=None)

    def standing(self) -> "AnnotationQuerySet":
        """What each person says of each slot now: their latest version that they have not withdrawn, late or not."""
        later = Annotation.objects.filter(
            slot=OuterRef("slot"), annotator=OuterRef("annotator"), version__gt=OuterRef("version"), withdrawal=None
        )
        return self.filter(~Exists(later), withdrawal=None)

    def counting(self) -> "AnnotationQuerySet":
        """The one answer of each finished slot that agreement, gold answers and exports rest on."""
        return self.standing().filter(surplus=False, slot__state=Slot.State.DONE, slot__purpose=Slot.Purpose.LABEL)


class Annotation(AppendOnly):
    """One person's word on one slot. Never edited; a revision is a new row with the next version."""

    class Origin(models.TextChoices):
        FIRST = "first", "First answer"
        REVISION = "revision", "Revised"
        AFTER_REVEAL = "after_reveal", "Revised after seeing model answers"

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
    surplus = models.BooleanField(
        default=False, help_text="Came after the slot had gone to somebody else: kept, not counted."
    )
    version = models.PositiveIntegerField(default=1)
    origin = models.CharField(max_length=20, choices=Origin.choices, default=Origin.FIRST)
    why = models.TextField(blank=True, help_text="Why it was revised.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects: ClassVar[Any] = AnnotationQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            UniqueConstraint(fields=["slot", "version"], condition=Q(surplus=False), name="annotation_version_once"),
            UniqueConstraint(fields=["annotator", "idempotency_key"], name="annotation_submitted_once"),
            models.CheckConstraint(
                name="annotation_answer_xor_unanswerable",
                condition=(~Q(answer="") & Q(unanswerable_reason="")) | (Q(answer="") & ~Q(unanswerable_reason="")),
            ),
        ]


class Withdrawal(AppendOnly):
    """A person took back what they had just submitted. The annotation stays on record and counts for nothing."""

    annotation = models.OneToOneField(Annotation, models.PROTECT, related_name="withdrawal")
    created_at = models.DateTimeField(auto_now_add=True)


class Adjudication(AppendOnly):
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
        MERGED = "merged", "Merged by a person"
        MAJORITY = "majority", "Most annotators agree"
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
