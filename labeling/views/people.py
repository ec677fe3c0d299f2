"""Logging in, joining by invitation, and the people of a pool."""

import json

from django.contrib import auth
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render, resolve_url
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import trigger_client_event

from labeling import policies
from labeling.actions import people as actions
from labeling.actions.drafts import save_draft
from labeling.errors import LabelingError
from labeling.forms import DraftForm, InvitationForm, JoinForm, LoginForm, MemberRoleForm
from labeling.models import Pool, Role, User
from labeling.queries import people as queries
from labeling.queries.queue import slot_for
from labeling.views.access import managed_invitation, managed_pool
from labeling.views.respond import HtmxHttpRequest, redirect, say


@sensitive_post_parameters("password", "sesame")
@never_cache
@login_not_required  # this is where people log in
@require_http_methods(["GET", "POST"])
def login(request: HttpRequest) -> HttpResponse:
    """Log in with a password, or with a one-time link, which only the button on its page uses up."""
    part = "#again" if getattr(request, "htmx", False) else ""
    if request.method == "GET":
        link = request.GET.get("sesame", "")
        context = {"form": LoginForm(request), "link": link, "next": request.GET.get("next", "")}
        return render(request, f"labeling/login.html{part}", context)
    to = request.POST.get("next") or ""
    if not url_has_allowed_host_and_scheme(to, {request.get_host()}, require_https=request.is_secure()):
        to = resolve_url("home")
    if token := request.POST.get("sesame"):
        user = auth.authenticate(request, sesame=token)
        if user is None:
            context = {"form": LoginForm(request), "link_refused": True, "next": to}
            return render(request, "labeling/login.html", context, status=422)
        auth.login(request, user, backend="sesame.backends.ModelBackend")
        return redirect(request, to)
    form = LoginForm(request, request.POST)
    if not form.is_valid():
        context = {"form": form, "next": to, "typed": request.POST.get("typed", "")}
        return render(request, f"labeling/login.html{part}", context, status=422)
    auth.login(request, form.get_user())
    if part:
        return trigger_client_event(HttpResponse(status=204), "logged-in", {"user": form.get_user().pk})
    _keep_typed(form.get_user(), request.POST.get("typed", ""))
    return redirect(request, to)


def _keep_typed(user: User, typed: str) -> None:
    """Save what a form held whose session had ended, as the draft of a question that this person was given."""
    try:
        found = json.loads(typed or "{}")
        slot_id, draft = int(found["slot"]), DraftForm(found["draft"])
    except (ValueError, KeyError, TypeError):
        return  # a login with nothing typed before it, or a field that somebody made up
    slot = slot_for(user=user, slot_id=slot_id)
    if slot is not None and not slot.is_adjudication and draft.is_valid():
        save_draft(slot=slot, draft=draft.cleaned_data, by=user)


@require_POST
def logout(request: HtmxHttpRequest) -> HttpResponse:
    auth.logout(request)
    return redirect(request, "login")


@sensitive_post_parameters("password")
@never_cache
@login_not_required  # whoever holds an invitation makes their account here
@require_http_methods(["GET", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """Accept an invitation: as oneself, or by making an account."""
    invitation = queries.invitation_of(token=token)
    form = JoinForm(request.POST or None)
    if request.method == "POST" and invitation is not None:
        if request.user.is_authenticated:
            membership = actions.accept_invitation(token=token, user=request.user)
            say(
                request,
                _("You are %(role)s of %(pool)s now.")
                % {"role": membership.get_role_display().lower(), "pool": membership.pool},
            )
            return redirect(request, "pool", pool_slug=membership.pool.slug)
        if form.is_valid():
            try:
                user = actions.join_as_new_user(token=token, **form.cleaned_data)
            except LabelingError as error:
                form.add_error(None, error.message)
            else:
                auth.login(request, user, backend="django.contrib.auth.backends.ModelBackend")
                say(
                    request,
                    _("Welcome. You are %(role)s of %(pool)s now.")
                    % {"role": invitation.get_role_display().lower(), "pool": invitation.pool},
                )
                return redirect(request, "pool", pool_slug=invitation.pool.slug)
    context: dict[str, object] = {"invitation": invitation, "form": form}
    if invitation is None:
        return render(request, "labeling/join.html", context, status=404)
    if invitation.accepted_at or invitation.revoked_at or invitation.expires_at <= timezone.now():
        context["refusal"] = actions.refusal(invitation).message
    return render(request, "labeling/join.html", context, status=422 if form.errors else 200)


def pool_people(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """Members and invitations; a new invitation's link is shown this once."""
    pool = managed_pool(request.user, pool_slug)
    return _people_page(request, pool, InvitationForm())


@require_POST
def invite(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """Make an invitation. Its link is in this answer and nowhere else, so there is no redirect."""
    pool = managed_pool(request.user, pool_slug)
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return _people_page(request, pool, form, status=422)
    invitation, token = actions.create_invitation(pool=pool, by=request.user, **form.cleaned_data)
    link = request.build_absolute_uri(reverse("join", args=[token]))
    return _people_page(request, pool, InvitationForm(), link=link, invitation=invitation)


@require_POST
def invitation_revoke(request: HtmxHttpRequest, invitation_id: int) -> HttpResponse:
    invitation = managed_invitation(request.user, invitation_id)
    actions.revoke_invitation(invitation=invitation, by=request.user)
    say(request, _("The invitation is withdrawn; its link no longer works."))
    return redirect(request, "pool-people", pool_slug=invitation.pool.slug)


@require_POST
def member_remove(request: HtmxHttpRequest, pool_slug: str) -> HttpResponse:
    """Take a role away from a member."""
    pool = managed_pool(request.user, pool_slug)
    form = MemberRoleForm(request.POST, pool=pool)
    if not form.is_valid():
        raise LabelingError(_("Name a member of this pool and one of their roles."), code="no_such_member")
    user, role = form.cleaned_data["user"], form.cleaned_data["role"]
    actions.remove_member(pool=pool, user=user, role=role, by=request.user)
    say(
        request,
        _("%(user)s is no longer %(role)s of %(pool)s.")
        % {"user": user, "role": Role(role).label.lower(), "pool": pool},
    )
    return redirect(request, "pool-people" if policies.can_manage(pool, request.user) else "pool", pool_slug=pool.slug)


def _people_page(
    request: HtmxHttpRequest, pool: Pool, form: InvitationForm, *, status: int = 200, **shown: object
) -> HttpResponse:
    context = {
        "pool": pool,
        "form": form,
        "members": queries.members_of(pool=pool),
        "invitations": queries.open_invitations(pool=pool),
        **shown,
    }
    response = render(request, "labeling/people.html", context, status=status)
    response["Cache-Control"] = "no-store"  # a link is shown once
    return response
