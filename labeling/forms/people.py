"""Logging in, joining, and roles."""

from typing import Any, cast

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.utils.translation import gettext_lazy as _

from labeling.models import Pool, Role, User


class LoginForm(AuthenticationForm):
    """Name and password, with one message whichever of them is wrong."""

    error_messages = {
        "invalid_login": _("The name and password do not belong together. Both are case-sensitive."),
        "inactive": _("The name and password do not belong together. Both are case-sensitive."),
    }


class JoinForm(forms.Form):
    """A new account, made with an invitation."""

    username = forms.CharField(
        label=_("Your name here"),
        max_length=150,
        help_text=_("Letters, digits and @ . + - _; managers see it beside your answers."),
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=1000,
        help_text=_("At least 8 characters, not a common word and not only digits."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )


class InvitationForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.ANNOTATOR)
    note = forms.CharField(
        label=_("Note"),
        max_length=200,
        required=False,
        help_text=_("For yourself: whom the link is for. They do not see it."),
    )


class MemberRoleForm(forms.Form):
    user = forms.ModelChoiceField(queryset=User.objects.none())
    role = forms.ChoiceField(choices=Role.choices)

    def __init__(self, *args: Any, pool: Pool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ModelChoiceField, self.fields["user"]).queryset = User.objects.filter(
            memberships__pool=pool
        ).distinct()
