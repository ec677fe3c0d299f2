"""Practice, and buying one more answer."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from labeling.actions.answers import MOST_ANSWER_CHARACTERS
from labeling.forms.answers import AnswerForm
from labeling.models import UnanswerableReason


class PracticeForm(forms.Form):
    """An answer to a practice question, or a reason why it has none (``give`` = reason)."""

    use_required_attribute = False

    item = forms.IntegerField(widget=forms.HiddenInput)
    answer = forms.CharField(label=_("Your answer"), required=False, max_length=MOST_ANSWER_CHARACTERS, strip=True)
    confirm_unreadable = forms.BooleanField(label=_("Submit it as it is"), required=False)
    reason = forms.ChoiceField(
        label=_("Why"), required=False, choices=[("", _("Choose a reason")), *UnanswerableReason.choices]
    )
    give = forms.ChoiceField(required=False, choices=[(name, name) for name in ("answer", "reason", "skip")])

    def __init__(self, *args: Any, kind: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        like = AnswerForm(kind=kind).fields["answer"]  # practice looks as the real page does
        self.fields["answer"].widget.attrs |= like.widget.attrs
        self.fields["answer"].help_text = like.help_text

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        give = data.get("give") or "answer"
        if give == "answer" and not data.get("answer"):
            self.add_error("answer", _("Give an answer first."))
        if give == "reason" and not data.get("reason"):
            self.add_error("reason", _("Choose why it cannot be answered."))
        return data


class OneMoreForm(forms.Form):
    """A question of the round that gets one more answer."""

    question = forms.IntegerField(widget=forms.HiddenInput)
    asked_before = forms.IntegerField(widget=forms.HiddenInput)
