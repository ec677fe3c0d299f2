"""Tokens of the programs that use the API."""

from datetime import timedelta
from typing import Any, cast

from django import forms
from django.utils.translation import gettext_lazy as _

from labeling.models import ApiToken, Pool, User

DAYS = [("7", _("a week")), ("30", _("30 days")), ("90", _("90 days")), ("365", _("a year")), ("0", _("never"))]


class TokenForm(forms.Form):
    name = forms.CharField(label=_("For"), max_length=120, help_text=_("The machine or job that will use it."))
    scopes = forms.MultipleChoiceField(
        label=_("It may"),
        choices=[(value, label) for value, label in ApiToken.Scope.choices],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Choose at least one thing that it may do.")},
    )
    pool = forms.ModelChoiceField(
        label=_("In"),
        queryset=Pool.objects.none(),
        required=False,
        empty_label=_("All of my pools"),
        to_field_name="slug",
        help_text=_("In one pool only is safer, and enough for most programs."),
    )
    expires = forms.ChoiceField(label=_("Expires after"), choices=DAYS, initial="90")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ModelChoiceField, self.fields["pool"]).queryset = Pool.objects.visible_to(user).order_by("name")

    def wanted(self) -> dict[str, Any]:
        """What is asked for, as the action takes it."""
        data = self.cleaned_data
        days = int(data["expires"])
        expires_in = timedelta(days=days) if days else None
        return {"name": data["name"], "scopes": data["scopes"], "pool": data["pool"], "expires_in": expires_in}
