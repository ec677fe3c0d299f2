"""Exports: writing a pool's gold answers for a trainer, and downloading the files."""

from __future__ import annotations

from django.http import FileResponse, Http404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from labeling.actions.exports import create_export, create_snapshot
from labeling.api.access import managed, managed_pool
from labeling.api.endpoint import Endpoint, Scope
from labeling.api.schema import BINARY, operation
from labeling.engine.variance import KEEPS
from labeling.models import Export
from labeling.queries.exports import exports_of, file_of


class NewExportSerializer(Serializer):
    format = serializers.ChoiceField(Export.Format.choices)
    keep = serializers.ChoiceField(list(KEEPS), default="all", help_text="Which, by the variance of their rollouts.")


class ExportedFileSerializer(Serializer):
    name = serializers.CharField()
    bytes = serializers.IntegerField()
    sha256 = serializers.CharField()


class ExportSerializer(Serializer):
    id = serializers.IntegerField()
    pool = serializers.CharField(source="snapshot.pool.slug")
    format = serializers.ChoiceField(Export.Format.choices)
    n_rows = serializers.IntegerField()
    snapshot_sha256 = serializers.CharField(source="snapshot.sha256")
    sha256 = serializers.CharField(help_text="Of the manifest.")
    filter = serializers.DictField()
    files = ExportedFileSerializer(many=True)
    created_at = serializers.DateTimeField()


class Exports(Endpoint):
    tag = "exports"
    scopes = {"GET": Scope.EXPORT, "POST": Scope.EXPORT}

    @operation(pages=ExportSerializer)
    def get(self, request: Request, pool_slug: str) -> Response:
        """List the pool's exports, newest first."""
        exports = exports_of(managed_pool(request, pool_slug)).select_related("snapshot__pool")
        return self.paged(exports, ExportSerializer)

    @operation(takes=NewExportSerializer, gives=ExportSerializer, status=201)
    def post(self, request: Request, pool_slug: str) -> Response:
        """Freeze the gold answers and write them; refused, with each question's reason, where they would not train."""
        pool = managed_pool(request, pool_slug)
        asked = self.asked(NewExportSerializer)
        export = create_export(snapshot=create_snapshot(pool=pool, by=request.user), by=request.user, **asked)
        return Response(ExportSerializer(export).data, status=201)


class ExportEndpoint(Endpoint):
    """An address below one export."""

    tag = "exports"
    scopes = {"GET": Scope.EXPORT}

    def export(self, request: Request, export_id: int) -> Export:
        rows = Export.objects.select_related("snapshot").defer("snapshot__rows")
        return managed(request, rows, export_id, pool="snapshot__pool")


class ExportDetail(ExportEndpoint):
    @operation(gives=ExportSerializer)
    def get(self, request: Request, export_id: int) -> Response:
        """Show an export and its files."""
        return Response(ExportSerializer(self.export(request, export_id)).data)


class ExportFile(ExportEndpoint):
    @operation(gives={(200, "application/octet-stream"): BINARY})
    def get(self, request: Request, export_id: int, filename: str) -> FileResponse:
        """Download one file, as it was written."""
        export = self.export(request, export_id)
        path = file_of(export, filename)
        if path is None:
            raise Http404
        return FileResponse(
            path.open("rb"), as_attachment=True, filename=path.name, content_type="application/octet-stream"
        )
