"""Turns errors into pages, and login redirects into something htmx can act on."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render, resolve_url
from django.utils.cache import patch_vary_headers

from labeling.errors import LabelingError

GetResponse = Callable[[HttpRequest], HttpResponse]


class HtmxResponses:
    """Never swap a login page into a fragment; never let a cache mix fragments with pages.

    An htmx request whose session has ended gets 401 and the event ``reauth``: the page keeps what was typed and
    offers to log in again.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        patch_vary_headers(response, ["HX-Request"])
        if getattr(request, "htmx", False):
            if response.status_code == 302 and response["Location"].startswith(resolve_url(settings.LOGIN_URL)):
                response = HttpResponse(status=401, headers={"HX-Trigger": "reauth", "Vary": "HX-Request"})
            response["Cache-Control"] = "no-store"
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
