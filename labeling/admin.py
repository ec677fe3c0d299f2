"""The back office, for staff: everything can be looked at, and nothing that is a record can be changed."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from labeling import models
from labeling.actions.people import remove_member


class ReadOnly(admin.ModelAdmin):
    """Look, do not touch."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


admin.site.site_header = _("Assay: back office")
admin.site.site_title = "Assay"
admin.site.register(models.User, UserAdmin)


@admin.register(models.Pool)
class PoolAdmin(admin.ModelAdmin):
    """How a pool is described and compared may be changed; deleting one would take its record along."""

    list_display = ["name", "text_format", "created_by", "created_at"]
    search_fields = ["name", "description"]
    readonly_fields = ["slug", "created_by", "created_at"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # the page makes its maker a manager

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(models.Membership)
class MembershipAdmin(admin.ModelAdmin):
    list_display = ["user", "role", "pool", "created_at"]
    list_filter = ["role"]
    list_select_related = ["user", "pool"]
    autocomplete_fields = ["user", "pool"]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # another role is another membership

    def delete_model(self, request: Any, obj: models.Membership) -> None:
        remove_member(pool=obj.pool, user=obj.user, role=obj.role, by=request.user)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[models.Membership]) -> None:
        for membership in queryset.select_related("pool", "user"):
            self.delete_model(request, membership)


@admin.register(models.PolicyModel)
class PolicyModelAdmin(ReadOnly):
    """How a model is sampled is part of what its answers are, so a change is another model."""

    list_display = ["name", "engine", "model", "base_url"]
    search_fields = ["name", "model"]


@admin.register(models.SelectionRun)
class SelectionRunAdmin(ReadOnly):
    list_display = ["id", "pool", "status", "stage", "created_by", "created_at"]
    list_filter = ["status"]
    list_select_related = ["pool", "created_by"]
    exclude = ["lease_token"]


@admin.register(models.Comparison)
class ComparisonAdmin(ReadOnly):
    list_display = ["id", "run", "status", "stage", "budget", "created_by", "created_at"]
    list_filter = ["status"]
    list_select_related = ["run__pool", "created_by"]
    exclude = ["lease_token", "result"]


@admin.register(models.Curriculum)
class CurriculumAdmin(ReadOnly):
    list_display = ["name", "pool", "kind", "created_by", "created_at"]
    list_select_related = ["pool", "created_by"]
    search_fields = ["name"]
    exclude = ["state", "prior"]


@admin.register(models.RewardEvent)
class RewardEventAdmin(ReadOnly):
    list_display = ["event_id", "curriculum", "question_uid", "step", "received_at"]
    list_select_related = ["curriculum"]
    search_fields = ["=event_id", "=question_uid"]
    show_full_result_count = False


@admin.register(models.ApiToken)
class ApiTokenAdmin(ReadOnly):
    list_display = ["name", "hint", "pool", "owner", "scopes", "created_at", "last_used_at", "revoked_at"]
    list_select_related = ["pool", "owner"]
    exclude = ["token_sha256"]


@admin.register(models.Question)
class QuestionAdmin(ReadOnly):
    list_display = ["uid", "pool", "answer_kind", "created_at"]
    list_select_related = ["pool"]
    search_fields = ["=uid", "text"]
    show_full_result_count = False


@admin.register(models.CalibrationSet)
class CalibrationSetAdmin(ReadOnly):
    """The sets, without their items: a calibration answer is shown to nobody."""

    list_display = ["name", "pool", "created_by", "created_at"]
    list_select_related = ["pool", "created_by"]


@admin.register(models.ImportBatch)
class ImportBatchAdmin(ReadOnly):
    list_display = ["filename", "pool", "calibration_set", "status", "created_by", "created_at"]
    list_filter = ["status"]
    list_select_related = ["pool", "calibration_set", "created_by"]
    exclude = ["sample"]


@admin.register(models.Invitation)
class InvitationAdmin(ReadOnly):
    list_display = ["pool", "role", "note", "created_by", "expires_at", "accepted_by", "revoked_at"]
    list_select_related = ["pool", "created_by", "accepted_by"]
    exclude = ["token_sha256"]


@admin.register(models.Round)
class RoundAdmin(ReadOnly):
    list_display = ["id", "run", "budget", "overlap", "status", "created_at"]
    list_filter = ["status"]
    list_select_related = ["run__pool", "budget"]


@admin.register(models.Annotation)
class AnnotationAdmin(ReadOnly):
    list_display = ["id", "annotator", "answer", "unanswerable_reason", "surplus", "created_at"]
    list_select_related = ["annotator"]
    raw_id_fields = ["slot"]


@admin.register(models.Adjudication)
class AdjudicationAdmin(ReadOnly):
    list_display = ["id", "adjudicator", "answer", "unanswerable_reason", "created_at"]
    list_select_related = ["adjudicator"]


@admin.register(models.GoldAnswer)
class GoldAnswerAdmin(ReadOnly):
    list_display = ["question", "answer", "source", "created_at"]
    list_select_related = ["question"]


@admin.register(models.AuditEvent)
class AuditEventAdmin(ReadOnly):
    list_display = ["created_at", "actor", "action", "target_type", "target_id", "pool"]
    list_filter = ["action"]
    list_select_related = ["actor", "pool"]
    date_hierarchy = "created_at"


for record in (models.Budget, models.Guideline, models.DatasetSnapshot, models.Export):
    admin.site.register(record, ReadOnly)
