"""Turns errors into pages, and login redirects into something htmx can act on."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from labeling.errors import LabelingError

GetResponse = Callable[[HttpRequest], HttpResponse]


class HtmxResponses:
    """Never swap a login page into a fragment; never let a cache mix fragments with pages."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if getattr(request, "htmx", False):
            response["Vary"] = ", ".join(filter(None, [response.get("Vary"), "HX-Request"]))
        return response


class LabelingErrors:
    """Shows a LabelingError raised by a view as a page with its own status."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, LabelingError):
            return None
        return render(request, "labeling/error.html", {"error": exception}, status=exception.status)
