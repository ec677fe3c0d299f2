"""What people say of a question: answers with their versions, decisions, and what they come to."""

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q, UniqueConstraint
from django.utils.translation import gettext_lazy as _

from labeling.models.records import AppendOnly, AppendOnlyQuerySet
from labeling.models.rounds import Round, Slot


class UnanswerableReason(models.TextChoices):
    """Why a question has no single verifiable answer."""

    ILL_POSED = "ill_posed", _("Ill-posed")
    SEVERAL_ANSWERS = "several_answers", _("Several valid answers")
    MISSING_DATA = "missing_data", _("A figure or data is missing")
    OUTSIDE_DATA = "outside_data", _("Needs outside or dated data")
    NOT_VERIFIABLE = "not_verifiable", _("Not verifiable (proof, essay)")
    DUPLICATE = "duplicate", _("Duplicate")
    BROKEN_TEXT = "broken_text", _("Broken text")


class AnnotationQuerySet(AppendOnlyQuerySet):
    def about(self, slot: Slot) -> "AnnotationQuerySet":
        """What anybody said to what the slot asks in its round."""
        asked = {f"slot__{name}": value for name, value in slot.asked_ids.items()}
        return self.filter(slot__round=slot.round_id, **asked)

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
        FIRST = "first", _("First answer")
        REVISION = "revision", _("Revised")
        AFTER_REVEAL = "after_reveal", _("Revised after seeing model answers")

    slot = models.ForeignKey(Slot, models.PROTECT, related_name="annotations")
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="annotations")
    idempotency_key = models.UUIDField(default=uuid.uuid4)
    answer = models.TextField(blank=True)
    answer_kind = models.CharField(max_length=20, blank=True)
    read_as = models.TextField(blank=True, help_text=_("What a trainer's grader reads."))
    unanswerable_reason = models.CharField(max_length=30, choices=UnanswerableReason.choices, blank=True)
    confident = models.BooleanField(default=True)
    note = models.TextField(blank=True)
    seconds_spent = models.FloatField(null=True, blank=True)
    surplus = models.BooleanField(
        default=False, help_text=_("Came after the slot had gone to somebody else: kept, not counted.")
    )
    version = models.PositiveIntegerField(default=1)
    origin = models.CharField(max_length=20, choices=Origin.choices, default=Origin.FIRST)
    why = models.TextField(blank=True, help_text=_("Why it was revised."))
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
        SINGLE = "single", _("One annotation")
        AGREEMENT = "agreement", _("Annotators agree")
        MERGED = "merged", _("Merged by a person")
        MAJORITY = "majority", _("Most annotators agree")
        ADJUDICATION = "adjudication", _("Adjudicated")

    question = models.OneToOneField("labeling.Question", models.PROTECT, related_name="gold_answer")
    round = models.ForeignKey(Round, models.PROTECT, related_name="gold_answers")
    answer = models.TextField()
    answer_kind = models.CharField(max_length=20, blank=True)
    source = models.CharField(max_length=20, choices=Source.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.CheckConstraint(name="gold_answer_not_empty", condition=~Q(answer=""))]
