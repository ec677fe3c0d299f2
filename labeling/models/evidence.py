"""What models answered, stored once per question and generation fingerprint, and everything derived at a price."""

import zlib

from django.conf import settings
from django.db import models
from django.db.models import UniqueConstraint
from django.utils.translation import gettext_lazy as _


class CompressedTextField(models.BinaryField):
    """Text kept as zlib-compressed UTF-8; in Python it is a str."""

    def from_db_value(self, value, expression, connection):
        return None if value is None else zlib.decompress(bytes(value)).decode("utf-8", "surrogatepass")

    def get_prep_value(self, value):
        return None if value is None else zlib.compress(value.encode("utf-8", "surrogatepass"))


class PolicyModel(models.Model):
    """A model that will be trained, and how it is reached and sampled."""

    class EngineKind(models.TextChoices):
        TRANSFORMERS = "transformers", _("Transformers, on this machine")
        VLLM = "vllm", _("vLLM, on this machine")
        OPENAI = "openai", _("OpenAI-compatible servers, such as vLLM")
        RAY = "ray", _("vLLM on a Ray cluster")
        SCRIPTED = "scripted", _("Scripted answers (tests only)")

    class Keep(models.TextChoices):
        COMPLETIONS = "completions", _("All that the model writes")
        ANSWERS = "answers", _("The answers alone, to save room")

    name = models.CharField(max_length=120, unique=True)
    engine = models.CharField(max_length=20, choices=EngineKind.choices)
    model = models.CharField(max_length=300, help_text=_("Hub name, path, or assay-tiny (demo only)."))
    base_url = models.CharField(
        max_length=2000, blank=True, help_text=_("Of one server, or of several of the same model with commas.")
    )
    api_key_env = models.CharField(max_length=100, blank=True, help_text=_("Name of the variable that holds the key."))
    temperature = models.FloatField(
        null=True, blank=True, help_text=_("Empty: as the model's authors recommend, else 0.6.")
    )
    top_p = models.FloatField(null=True, blank=True, help_text=_("Empty: as the model's authors recommend, else 1."))
    max_tokens = models.PositiveIntegerField(default=2048)
    probe_max_tokens = models.PositiveIntegerField(default=64)
    keep = models.CharField(
        max_length=20,
        choices=Keep.choices,
        default=Keep.COMPLETIONS,
        help_text=_("Of full answers; chains and forced answers are always kept whole."),
    )
    options = models.JSONField(
        default=dict, blank=True, help_text=_("Engine options, such as batch_size, dtype, tokenizer.")
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="policy_model_server_has_url",
                condition=~models.Q(engine="openai") | ~models.Q(base_url=""),
            )
        ]

    def __str__(self) -> str:
        return self.name


class GenerationSettings(models.Model):
    """What a generation fingerprint stands for, so that people can be told in what two of them differ."""

    fingerprint = models.CharField(max_length=64, primary_key=True)
    parts = models.JSONField(help_text=_("Weights, template, temperature and so on, by name."))
    created_at = models.DateTimeField(auto_now_add=True)


class StoredCompletion(models.Model):
    """One completion as the model wrote it. Shared by every run that samples the same way; never changed."""

    question_fingerprint = models.CharField(max_length=64)
    generation_fingerprint = models.CharField(max_length=64)
    kind = models.CharField(max_length=20)  # outcome, trajectory, probe
    index = models.PositiveIntegerField(help_text=_("Outcome number, or trajectory tokens kept by a probe."))
    text = CompressedTextField()
    token_ids = CompressedTextField(null=True, help_text=_("JSON list, of trajectories only."))
    n_tokens = models.PositiveIntegerField()
    n_prompt_tokens = models.PositiveIntegerField()
    finish_reason = models.CharField(max_length=20)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            UniqueConstraint(
                fields=["generation_fingerprint", "question_fingerprint", "kind", "index"],
                name="completion_stored_once",
            )
        ]


class RecordedVotes(models.Model):
    """Answers brought in from a votes file, where the completions themselves stayed on another machine."""

    question_fingerprint = models.CharField(max_length=64)
    question_uid = models.CharField(max_length=200)
    generation_fingerprint = models.CharField(max_length=64)
    votes = models.JSONField(help_text=_("One line of a votes file."))
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            UniqueConstraint(fields=["generation_fingerprint", "question_fingerprint"], name="votes_recorded_once")
        ]


class Embedding(models.Model):
    """A question's vector, float32 bytes."""

    question_fingerprint = models.CharField(max_length=64)
    embedder_fingerprint = models.CharField(max_length=64)
    vector = models.BinaryField()

    class Meta:
        constraints = [
            UniqueConstraint(fields=["embedder_fingerprint", "question_fingerprint"], name="embedding_stored_once")
        ]


class StoredClustering(models.Model):
    """Which clusters K-means found, once for the same vectors, number and seed: another machine may find others."""

    key = models.CharField(max_length=64, primary_key=True)
    data = models.BinaryField(help_text=_("Labels and centres (selector.diversity.Clustering)."))
    created_at = models.DateTimeField(auto_now_add=True)


class StoredInternals(models.Model):
    """What a model's inside showed along the greedy chain of a question (selector.internals), as one .npz row."""

    question_fingerprint = models.CharField(max_length=64)
    generation_fingerprint = models.CharField(max_length=64)
    reader_version = models.PositiveIntegerField()
    data = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            UniqueConstraint(
                fields=["generation_fingerprint", "question_fingerprint", "reader_version"],
                name="internals_stored_once",
            )
        ]


class StoredVerdict(models.Model):
    """Whether two answers are equivalent, decided once, so that a busy machine never changes a pick."""

    key = models.CharField(max_length=64, primary_key=True)
    verdict = models.CharField(max_length=20)


class RolloutScores(models.Model):
    """What a question's stored outcome answers earn against a right answer, graded once.

    The key is a hash of the question, its right answer, the generation fingerprint, the policy and the grader.
    """

    key = models.CharField(max_length=64, primary_key=True)
    rewards = models.JSONField(help_text=_("1.0 or 0.0 for each answer, in order."))
