"""Rounds of labeling: a slot is one human answer, and takes one unit of a budget."""

import hashlib
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Exists, ExpressionWrapper, F, OuterRef, Q, UniqueConstraint
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from labeling.models.budgets import Budget, BudgetUnit
from labeling.models.people import Role

MOST_OVERLAP = 20  # answers to one question, those bought later included


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
        LIVE = "live", _("Live")
        PAUSED = "paused", _("Paused")
        CLOSED = "closed", _("Closed")

    class Blindness(models.TextChoices):
        BLIND = "blind", _("Never")
        REVEAL_AFTER = "reveal_after", _("After the person has answered")
        SHOWN_FIRST = "shown_first", _("From the start")

    ALLOWED_TRANSITIONS = {
        Status.LIVE: {Status.PAUSED, Status.CLOSED},
        Status.PAUSED: {Status.LIVE, Status.CLOSED},
        Status.CLOSED: set(),
    }

    run = models.ForeignKey("labeling.SelectionRun", models.PROTECT, related_name="rounds")
    budget = models.ForeignKey(Budget, models.PROTECT, related_name="rounds")
    overlap = models.PositiveIntegerField(default=1, help_text=_("Independent answers per question."))
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.LIVE)
    guideline = models.ForeignKey("labeling.Guideline", models.PROTECT, null=True, blank=True, related_name="rounds")
    calibration_set = models.ForeignKey(
        "labeling.CalibrationSet",
        models.PROTECT,
        related_name="rounds",
        null=True,
        blank=True,
        help_text=_("Where checks and practice come from."),
    )
    check_rate = models.FloatField(default=0.0, help_text=_("Calibration checks per question asked, unmarked."))
    n_practice = models.PositiveIntegerField(default=0, help_text=_("Practice questions before a person's first."))
    practice_may_be_skipped = models.BooleanField(default=False)
    blindness = models.CharField(
        max_length=20,
        choices=Blindness.choices,
        default=Blindness.REVEAL_AFTER,
        help_text=_("When people are shown the answers of the model."),
    )
    control_share = models.FloatField(
        default=0.1, help_text=_("Share of the questions whose model answers are not shown afterwards either.")
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
        return gettext("Round %(round)s") % {"round": self.pk}

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

    def unseen_by(self, user: Any) -> "SlotQuerySet":
        """Slots whose question the user has neither answered (counted or not), nor holds, nor skipped in the round.

        Asked of one question at a time, by the slots of that question: the queue must not slow down with how much
        somebody has answered, or with how large the pool is.
        """
        from labeling.models.annotations import Annotation

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
        OPEN = "open", _("Open")
        LEASED = "leased", _("Held")
        DONE = "done", _("Done")
        VOID = "void", _("Void")

    class Purpose(models.TextChoices):
        LABEL = "label", _("Label")
        CHECK = "check", _("Calibration check")
        ADJUDICATION = "adjudication", _("Adjudication")

    round = models.ForeignKey(Round, models.CASCADE, related_name="slots")
    unit = models.ForeignKey(BudgetUnit, models.PROTECT, related_name="slots")
    purpose = models.CharField(max_length=20, choices=Purpose.choices, default=Purpose.LABEL)
    question = models.ForeignKey(
        "labeling.Question", models.PROTECT, related_name="slots", null=True, blank=True, db_index=False
    )
    calibration_item = models.ForeignKey(
        "labeling.CalibrationItem", models.PROTECT, related_name="slots", null=True, blank=True, db_index=False
    )
    state = models.CharField(max_length=20, choices=State.choices, default=State.OPEN)
    priority = models.PositiveIntegerField(default=0)
    holder = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="slots", null=True, blank=True, db_index=False
    )
    lease_until = models.DateTimeField(null=True, blank=True)
    claimed_at = models.DateTimeField(null=True, blank=True)

    objects = SlotQuerySet.as_manager()

    class Meta:
        ordering = ["priority", "id"]
        indexes = [
            models.Index(fields=["round", "purpose", "state", "priority", "id"], name="slot_queue"),
            models.Index(fields=["question", "round"], name="slot_question_in_round"),
            models.Index(fields=["calibration_item", "round"], name="slot_check_in_round"),
            models.Index(fields=["holder", "state"], name="slot_held"),
        ]
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
    taken_by = models.CharField(
        max_length=20, help_text=_("As of a pick: from its cluster, the global order, or a draw.")
    )
    place = models.PositiveIntegerField(null=True, help_text=_("In the run's order of the pool, from 1."))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            UniqueConstraint(fields=["round", "replaced"], name="replaced_once_per_round"),
            UniqueConstraint(fields=["round", "replacement"], name="replacement_once_per_round"),
        ]
