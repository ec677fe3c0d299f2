"""Turns errors into pages, and login redirects into something htmx can act on."""

import json
from collections.abc import Callable
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render, resolve_url
from django.utils.cache import patch_vary_headers

from labeling.errors import LabelingError
from labeling.forms import DraftForm, LoginForm

GetResponse = Callable[[HttpRequest], HttpResponse]


class HtmxResponses:
    """Never swap a login page into a fragment; never let a cache mix fragments with pages.

    An htmx request whose session has ended gets 401 and the event ``reauth``: the page keeps what was typed, asks
    to log in over the page, and sends it again. A form sent without htmx leads back, after logging in, to the page it
    was on; the login page carries along what was typed about a question, which becomes its draft.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        asks_to_log_in = response.status_code == 302 and response["Location"].startswith(
            f"{resolve_url('login')}?next="
        )
        is_htmx = getattr(request, "htmx", False)
        if asks_to_log_in and is_htmx:
            response = HttpResponse(status=401, headers={"HX-Trigger": "reauth"})
        elif asks_to_log_in and request.method == "POST":
            response = _login_carrying_the_typed(request) or redirect_to_login(_page_of(request))
        patch_vary_headers(response, ["HX-Request"])
        if is_htmx:
            response["Cache-Control"] = "no-store"
        return response


def _login_carrying_the_typed(request: HttpRequest) -> HttpResponse | None:
    """The login page with what an answering form held; None where the form was another."""
    draft = DraftForm(request.POST)
    if "slot" not in request.POST or not draft.is_valid():
        return None
    typed = {"slot": request.POST["slot"], "draft": draft.cleaned_data}
    context = {
        "form": LoginForm(request),
        "next": _page_of(request),
        "typed": json.dumps(typed),
        "typed_answer": draft.cleaned_data["answer"],
    }
    return render(request, "labeling/login.html", context, status=401)


def _page_of(request: HttpRequest) -> str:
    """The page of ours that a form was on, else the start page."""
    page = urlsplit(request.headers.get("Referer", ""))
    return page.path if page.netloc == request.get_host() and page.path else resolve_url("home")


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
