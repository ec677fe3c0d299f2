"""What a person makes of the model's answers, once they have seen them."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from labeling.actions.answers import MOST_ANSWER_CHARACTERS, MOST_NOTE_CHARACTERS

KEEP, ANOTHER = "keep", "another"


class RevealForm(forms.Form):
    """Keep the answer, take one of those shown (by its position), or write another; a change says why."""

    choice = forms.CharField(max_length=10, error_messages={"required": _("Choose what your answer is.")})
    answer = forms.CharField(
        required=False,
        max_length=MOST_ANSWER_CHARACTERS,
        widget=forms.TextInput(
            attrs={
                "autocomplete": "off",
                "autocapitalize": "off",
                "spellcheck": "false",
                "aria-labelledby": "another-label",
            }
        ),
    )
    why = forms.CharField(
        label=_("Why you change it"),
        required=False,
        max_length=MOST_NOTE_CHARACTERS,
        widget=forms.TextInput(attrs={"list": "reasons", "autocomplete": "off"}),
    )
    unsure = forms.BooleanField(label=_("I am not sure of the new answer"), required=False)
    confirm_unreadable = forms.BooleanField(label=_("Submit it as it is"), required=False)
    idempotency_key = forms.UUIDField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, n_shown: int, own: int | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._keeping = {KEEP, str(own)}
        self._choices = {KEEP, ANOTHER, *map(str, range(n_shown))}

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        choice = data.get("choice")
        if choice is None:
            return data
        if choice not in self._choices:
            self.add_error("choice", _("Choose one of the answers that are shown."))
        if choice == ANOTHER and not data.get("answer"):
            self.add_error("answer", _("Write the answer that is right."))
        if choice not in self._keeping and not data.get("why"):
            self.add_error("why", _("Say in a few words why you change your answer."))
        return data

    @property
    def keeps(self) -> bool:
        return self.cleaned_data["choice"] in self._keeping

    @property
    def chosen(self) -> int | None:
        """The position of the answer that was taken from those shown."""
        choice = self.cleaned_data["choice"]
        return None if choice in {KEEP, ANOTHER} else int(choice)
