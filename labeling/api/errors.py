"""One shape for every error: ``{"error": {"code", "message", "details"}}``."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

from labeling.errors import LabelingError


def error_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turn an expected error into an answer; None leaves the unexpected to the server's log."""
    if isinstance(error, LabelingError):
        return _answer(error.status, error.code, error.message, dict(error.details))
    if isinstance(error, Http404):
        return _answer(404, "not_found", "There is nothing here that this token may see.")
    if isinstance(error, PermissionDenied):
        return _answer(403, "not_allowed", "This is not allowed.")
    if isinstance(error, ValidationError):
        return _answer(400, "invalid", "The request cannot be read as it is; details name each field.", error.detail)
    if not isinstance(error, APIException):
        return None
    standard = exception_handler(error, context)  # keeps headers such as WWW-Authenticate
    answer = _answer(error.status_code, str(error.get_codes()), str(error.detail))
    if standard is not None:
        for name in ("WWW-Authenticate", "Retry-After"):
            if name in standard:
                answer[name] = standard[name]
    return answer


def _answer(status: int, code: str, message: str, details: Any = None) -> Response:
    return Response({"error": {"code": code, "message": message, "details": details or {}}}, status=status)
