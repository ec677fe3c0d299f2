"""Curricula of running trainers: what is believed of each question, and every reward that was reported."""

from django.conf import settings
from django.db import models
from django.db.models import Q, UniqueConstraint
from django.utils.translation import gettext_lazy as _

from labeling.models.records import AppendOnly


class Curriculum(models.Model):
    """The order in which a trainer visits the questions of a snapshot, steered by the rewards it reports."""

    pool = models.ForeignKey("labeling.Pool", models.CASCADE, related_name="curricula")
    snapshot = models.ForeignKey("labeling.DatasetSnapshot", models.PROTECT, related_name="curricula")
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=40, help_text=_("Key of the curriculum in the engine."))
    seed = models.PositiveIntegerField(default=0)
    options = models.JSONField(default=dict, blank=True, help_text=_("Settings of the curriculum, where they differ."))
    prior = models.JSONField(
        default=dict, blank=True, help_text=_("Stored rollouts by uid: [successes, failures] before any training.")
    )
    state = models.JSONField(null=True, help_text=_("What the engine goes on from; every stored reward is in it."))
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [UniqueConstraint(fields=["pool", "name"], name="curriculum_name_once_in_a_pool")]

    def __str__(self) -> str:
        return self.name


class RewardEvent(AppendOnly):
    """The rewards of some rollouts of one question at one step of a training, as they were reported."""

    curriculum = models.ForeignKey(Curriculum, models.CASCADE, related_name="events")
    event_id = models.CharField(max_length=64, help_text=_("Of whoever reported it; the same again is the same event."))
    question_uid = models.CharField(max_length=200)
    step = models.PositiveBigIntegerField()
    rewards = models.JSONField(help_text=_("Numbers, and null where a reward is missing."))
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [UniqueConstraint(fields=["curriculum", "event_id"], name="reward_event_counts_once")]


class Proposal(AppendOnly):
    """Questions that a trainer was given to roll out."""

    curriculum = models.ForeignKey(Curriculum, models.CASCADE, related_name="proposals")
    idempotency_key = models.CharField(
        max_length=100, blank=True, help_text=_("The same again gets the same questions.")
    )
    uids = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            UniqueConstraint(
                fields=["curriculum", "idempotency_key"],
                condition=~Q(idempotency_key=""),
                name="proposal_once_for_a_key",
            )
        ]
