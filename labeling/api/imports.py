"""Files coming in: upload one, look at what it would bring, then commit or discard; votes and picks made elsewhere."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling import policies
from labeling.actions import imports as actions
from labeling.actions.evidence_imports import import_picks, import_votes
from labeling.api.access import bound_to, check_unbound, managed_import, managed_pool, managed_set
from labeling.api.endpoint import Endpoint, Scope
from labeling.api.fields import Id
from labeling.api.parsing import FileParser
from labeling.api.schema import operation
from labeling.errors import LabelingError
from labeling.imports.report import ImportReport
from labeling.models import ImportBatch
from labeling.queries.pool_questions import imports_of
from labeling.queries.shared import calibration_sets_for

BATCH_COUNTS = ("new", "unchanged", "changed", "duplicates", "rejected", "warnings")


class FileSerializer(Serializer):
    file = serializers.FileField(help_text="JSONL, CSV or Parquet.", max_length=255, allow_empty_file=True)


class PicksFileSerializer(FileSerializer):
    report = serializers.FileField(required=False, help_text="The report.json that was written with the picks.")


class UploadSerializer(Serializer):
    filename = serializers.CharField(
        required=False, default="", max_length=255, help_text="Where the body is the file itself; its ending counts."
    )
    repair = serializers.BooleanField(required=False, default=False, help_text="Repair LaTeX that JSON ate.")


class SetUploadSerializer(UploadSerializer):
    name = serializers.CharField(max_length=120, help_text="A new name makes a set; a known one adds to it.")
    pool = serializers.SlugField(required=False, default="", allow_blank=True, help_text="Empty: for every pool.")


class VotesUploadSerializer(Serializer):
    filename = serializers.CharField(required=False, default="", max_length=255)
    calibration_set = Id(required=False, allow_null=True, default=None)
    fingerprint = serializers.CharField(
        max_length=64, required=False, default="", allow_blank=True, help_text="Where the rows do not say it."
    )


class MappingSerializer(Serializer):
    """Which column holds what; empty: not in this file."""

    question = serializers.CharField(max_length=200, required=False, allow_blank=True)
    answer = serializers.CharField(max_length=200, required=False, allow_blank=True)
    uid = serializers.CharField(max_length=200, required=False, allow_blank=True)
    choices = serializers.CharField(max_length=200, required=False, allow_blank=True)
    kind = serializers.CharField(max_length=200, required=False, allow_blank=True)
    repair = serializers.BooleanField(required=False, default=False)


class ImportSerializer(Serializer):
    id = serializers.UUIDField()
    pool = serializers.CharField(source="pool.slug", default=None, allow_null=True)
    calibration_set = serializers.CharField(source="target_set.name", default=None, allow_null=True)
    filename = serializers.CharField()
    sha256 = serializers.CharField()
    status = serializers.ChoiceField(ImportBatch.Status.choices)
    counts = serializers.DictField(child=serializers.IntegerField(), help_text=", ".join(BATCH_COUNTS))
    created_at = serializers.DateTimeField()
    committed_at = serializers.DateTimeField(allow_null=True)


class ImportDetailSerializer(ImportSerializer):
    columns = serializers.DictField(child=serializers.CharField(allow_blank=True), source="mapping.columns")
    names = serializers.ListField(child=serializers.CharField(), source="mapping.names")
    rejected = serializers.ListField(child=serializers.DictField(), help_text="Line, code and message.")
    warnings = serializers.ListField(child=serializers.DictField())
    sample = serializers.ListField(child=serializers.DictField(), help_text="The first rows, never with an answer.")

    def to_representation(self, instance: ImportBatch) -> Any:
        """Without what could be an answer: those of calibration sets are sealed."""
        shown = super().to_representation(instance)
        if instance.target_set is not None:
            for row in (*shown["sample"], *shown["rejected"], *shown["warnings"]):
                row.pop("answer", None)
                row.pop("found", None)
        return shown


class ReportSerializer(Serializer):
    counts = serializers.DictField(child=serializers.IntegerField())
    rejected = serializers.ListField(child=serializers.DictField())
    warnings = serializers.ListField(child=serializers.DictField())
    details = serializers.DictField()


class UploadEndpoint(Endpoint):
    """An address that takes a file: as the body, or as the field ``file`` of a form."""

    tag = "imports"
    scopes = {"POST": Scope.IMPORT}
    parser_classes = [MultiPartParser, FileParser]

    def upload(self, kind: type[Serializer]) -> dict[str, Any]:
        """What is said beside the file: in the address, or in other fields of the form."""
        fields = {name: value for name, value in self.request.data.items() if isinstance(value, str) and value}
        return self._valid(kind, {**fields, **self.request.query_params.dict()}, {})

    def uploaded(self, name: str = "file") -> Any:
        file = self.request.FILES.get(name)
        if file is None:
            raise LabelingError(
                "There is no file, or it is empty. Send it as the body, or as a form’s field “file”.", code="no_file"
            )
        return file


UPLOAD = {"multipart/form-data": FileSerializer, "application/octet-stream": bytes}


class Imports(UploadEndpoint):
    @operation(pages=ImportSerializer)
    def get(self, request: Request, pool_slug: str) -> Response:
        """List the files brought into the pool, newest first."""
        rows = imports_of(managed_pool(request, pool_slug)).select_related("pool", "calibration_set")
        return self.paged(rows.order_by("-created_at", "id"), ImportSerializer)

    @operation(takes=UPLOAD, gives=ImportDetailSerializer, status=201, query=UploadSerializer)
    def post(self, request: Request, pool_slug: str) -> Response:
        """Upload questions and see what they would bring; nothing changes before it is committed."""
        pool = managed_pool(request, pool_slug)
        asked, file = self.upload(UploadSerializer), self.uploaded()
        batch = actions.preview_import(
            file=file, filename=asked["filename"] or file.name, pool=pool, by=request.user, repair=asked["repair"]
        )
        return Response(ImportDetailSerializer(batch).data, status=201)


class CalibrationImports(UploadEndpoint):
    @operation(takes=UPLOAD, gives=ImportDetailSerializer, status=201, query=SetUploadSerializer)
    def post(self, request: Request) -> Response:
        """Upload questions with their answers, for a new calibration set or one that is there."""
        policies.check_can_manage_shared(request.user)
        asked, file = self.upload(SetUploadSerializer), self.uploaded()
        if not asked["pool"]:
            check_unbound(request)
        pool = managed_pool(request, asked["pool"]) if asked["pool"] else None
        into = actions.calibration_set_to_fill(name=asked["name"], pool=pool, by=request.user)
        if bound_to(request) is not None and into.pool != bound_to(request):
            check_unbound(request)
        batch = actions.preview_import(
            file=file,
            filename=asked["filename"] or file.name,
            calibration_set=into,
            by=request.user,
            repair=asked["repair"],
        )
        return Response(ImportDetailSerializer(batch).data, status=201)


class ImportEndpoint(Endpoint):
    """An address below one uploaded file."""

    tag = "imports"
    scopes = {"POST": Scope.IMPORT}
    is_repeatable = True


class ImportDetail(ImportEndpoint):
    @operation(gives=ImportDetailSerializer)
    def get(self, request: Request, import_id: UUID) -> Response:
        """Show what a file would bring, or has brought, row by row where something is wrong."""
        return Response(ImportDetailSerializer(managed_import(request, import_id)).data)


class ImportMap(ImportEndpoint):
    @operation(takes=MappingSerializer, gives=ImportDetailSerializer)
    def post(self, request: Request, import_id: UUID) -> Response:
        """Preview the same file again with other columns."""
        batch = managed_import(request, import_id)
        mapping = self.asked(MappingSerializer)
        repair = mapping.pop("repair")
        batch = actions.map_import(batch=batch, mapping=mapping, repair=repair, by=request.user)
        return Response(ImportDetailSerializer(batch).data)


class ImportCommit(ImportEndpoint):
    @operation(gives=ImportDetailSerializer)
    def post(self, request: Request, import_id: UUID) -> Response:
        """Bring the file in."""
        batch = actions.commit_import(batch=managed_import(request, import_id), by=request.user)
        return Response(ImportDetailSerializer(batch).data)


class ImportDiscard(ImportEndpoint):
    @operation(gives=ImportDetailSerializer)
    def post(self, request: Request, import_id: UUID) -> Response:
        """Drop the file; nothing had changed."""
        batch = actions.discard_import(batch=managed_import(request, import_id), by=request.user)
        return Response(ImportDetailSerializer(batch).data)


class Votes(UploadEndpoint):
    @operation(takes=UPLOAD, gives=ReportSerializer, status=201, query=VotesUploadSerializer)
    def post(self, request: Request, pool_slug: str) -> Response:
        """Record answers made by ``assay probe`` on another machine; the same file again changes nothing."""
        pool = managed_pool(request, pool_slug)
        asked, file = self.upload(VotesUploadSerializer), self.uploaded()
        known = None if asked["calibration_set"] is None else managed_set(request, asked["calibration_set"])
        if known is not None and known.pool is not None and known.pool != pool:
            raise LabelingError("The calibration set belongs to another pool.", code="set_of_another_pool")
        report = import_votes(
            file=file,
            filename=asked["filename"] or file.name,
            pool=None if known else pool,
            calibration_set=known,
            fingerprint=asked["fingerprint"],
            by=request.user,
        )
        return Response(_report(report), status=201)


class Picks(UploadEndpoint):
    @operation(
        takes={"multipart/form-data": PicksFileSerializer, "application/octet-stream": bytes},
        gives=ReportSerializer,
        status=201,
        query=UploadSerializer,
    )
    def post(self, request: Request, pool_slug: str) -> Response:
        """Record a picks file made by ``assay rank`` as a finished run, whose id is in ``details``."""
        pool = managed_pool(request, pool_slug)
        asked, file = self.upload(UploadSerializer), self.uploaded()
        report = import_picks(
            file=file,
            filename=asked["filename"] or file.name,
            pool=pool,
            report_file=request.FILES.get("report"),
            by=request.user,
        )
        return Response(_report(report), status=201)


class CalibrationSetSerializer(Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    pool = serializers.CharField(source="pool.slug", default=None, allow_null=True)
    n_items = serializers.IntegerField()
    smallest_alpha = serializers.FloatField(help_text="The smallest miscoverage level that so many items can give.")
    n_runs = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class CalibrationSets(Endpoint):
    tag = "calibration sets"

    @operation(pages=CalibrationSetSerializer)
    def get(self, request: Request) -> Response:
        """List the calibration sets you may use. Their answers are shown to nobody."""
        policies.check_can_manage_shared(request.user)
        sets = calibration_sets_for(request.user)
        if (bound := bound_to(request)) is not None:
            sets = sets.filter(pool=None) | sets.filter(pool=bound)
        return self.paged(sets.order_by("name"), CalibrationSetSerializer)


def _report(report: ImportReport) -> dict[str, object]:
    return {
        "counts": report.counts(),
        "rejected": report.rejected.listed,
        "warnings": report.warnings.listed,
        "details": report.details,
    }
