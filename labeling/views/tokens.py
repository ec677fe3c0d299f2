"""API tokens: making one, which is shown this once, and revoking it."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from labeling.actions import tokens as actions
from labeling.errors import LabelingError
from labeling.forms import TokenForm
from labeling.models import ApiToken
from labeling.queries.tokens import tokens_for
from labeling.views.access import seen_token
from labeling.views.respond import HtmxHttpRequest, page_of, redirect, say

LINKED = ("pool", "scopes")  # settings that a link to the form may bring


@require_http_methods(["GET", "POST"])
def tokens(request: HtmxHttpRequest) -> HttpResponse:
    """A person's tokens. A new one is in the answer to its form and nowhere else, so there is no redirect."""
    form = TokenForm(request.POST or None, user=request.user, initial=_linked(request))
    shown: dict[str, object] = {}
    if request.method == "POST" and form.is_valid():
        try:
            row, token = actions.create_token(by=request.user, **form.wanted())
        except LabelingError as error:
            form.add_error(None, error.message)
        else:
            shown = {"token": token, "token_row": row}
            form = TokenForm(user=request.user)
    context = {"form": form, "page": page_of(request, tokens_for(request.user)), "scopes": ApiToken.Scope, **shown}
    response = render(request, "labeling/tokens.html", context, status=422 if form.errors else 200)
    response["Cache-Control"] = "no-store"  # a token is shown once
    return response


@require_POST
def revoke(request: HtmxHttpRequest, token_id: int) -> HttpResponse:
    token = seen_token(request.user, token_id)
    actions.revoke_token(token=token, by=request.user)
    say(request, _("The token %(token)s is revoked; programs that use it are refused from now on.") % {"token": token})
    return redirect(request, "tokens")


def _linked(request: HtmxHttpRequest) -> dict[str, object]:
    given = {name: request.GET[name] for name in LINKED if name in request.GET}
    return {name: value.split(",") if name == "scopes" else value for name, value in given.items()}
