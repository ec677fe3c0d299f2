"""How a view answers: a whole page, or for htmx the part of it that changes."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect as plain_redirect
from django.shortcuts import render, resolve_url
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from labeling.errors import LabelingError
from labeling.models import User

ROWS_PER_PAGE = 50


class HtmxHttpRequest(HttpRequest):
    """A request of somebody who is logged in, with the details that django-htmx adds."""

    htmx: HtmxDetails
    user: User


def render_page(
    request: HttpRequest, template: str, partial: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """Render the template, or for htmx only its inline partial of that name."""
    name = f"{template}#{partial}" if getattr(request, "htmx", False) else template
    return render(request, name, context, status=status)


def redirect(request: HttpRequest, to: Any, *args: Any, **kwargs: Any) -> HttpResponse:
    """Send the browser to another page; htmx is told to load it as a page instead of swapping it in."""
    if getattr(request, "htmx", False):
        return HttpResponseClientRedirect(resolve_url(to, *args, **kwargs))
    return plain_redirect(to, *args, **kwargs)


def refused(request: HttpRequest, error: LabelingError, *, next: str, typed: str = "") -> HttpResponse:
    """Show an error with a button to the next question (a form to the address ``next``), and what was typed."""
    return render(request, "labeling/error.html", {"error": error, "next": next, "typed": typed}, status=error.status)


def say(request: HttpRequest, text: str, *, about: str = "") -> None:
    """Leave a message of success for the next page."""
    messages.success(request, text, extra_tags=about)


def page_of(request: HttpRequest, rows: QuerySet[Any] | Sequence[Any]) -> Page[Any]:
    """Return the asked-for page of rows; a page number that does not exist is the nearest that does."""
    return Paginator(rows, ROWS_PER_PAGE).get_page(request.GET.get("page"))
