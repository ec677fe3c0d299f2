"""One shape for every error: ``{"error": {"code", "message", "details"}}``."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.defaults import server_error
from rest_framework.exceptions import APIException, NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView, exception_handler

from labeling.errors import LabelingError


class AnsweredBefore(Exception):
    """Not an error: the same request came before, and this is what was answered."""

    def __init__(self, status: int, body: Any) -> None:
        self.status, self.body = status, body
        super().__init__()


def error_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turn an expected error into an answer; None leaves the unexpected to the server's log."""
    if isinstance(error, AnsweredBefore):
        return Response(error.body, status=error.status, headers={"Idempotent-Replayed": "true"})
    if isinstance(error, LabelingError):
        return _answer(error.status, error.code, error.message, dict(error.details))
    if isinstance(error, Http404):
        return _answer(404, "not_found", "There is nothing here that this token may see.")
    if isinstance(error, PermissionDenied):
        return _answer(403, "not_allowed", "This is not allowed.")
    if isinstance(error, SuspiciousOperation):
        return _answer(400, "bad_request", f"The request cannot be read: {error}")
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


class NoSuchAddress(APIView):
    """Whatever has no address, in the one shape of errors."""

    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound("There is no such address. The schema lists all of them, and all end in a slash.")


def _answer(status: int, code: str, message: str, details: Any = None) -> Response:
    found = details if isinstance(details, dict) else {"list": details} if details else {}
    return Response({"error": {"code": code, "message": message, "details": found}}, status=status)


def internal_error(request: HttpRequest) -> HttpResponse:
    """What an unexpected error looks like: in the one shape below the API, a page elsewhere."""
    if not request.path.startswith("/api/"):
        return server_error(request)
    message = "Something went wrong in the server, and was written to its log. It is not the request's fault."
    return JsonResponse({"error": {"code": "internal_error", "message": message, "details": {}}}, status=500)
