"""Answering, adjudicating and exporting."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from labeling.actions.answers import MOST_ANSWER_CHARACTERS, MOST_NOTE_CHARACTERS
from labeling.models import Export, UnanswerableReason

# What an answer of each kind looks like, and how to write it. No field asks for a digit pad: those of telephones have
# no minus, no slash and no backslash.
WRITTEN = {
    "number": ("3/4", _(r"One number, exact where it can be: 3/4, 0.75, 2\sqrt{3}, 10^6. No words.")),
    "expression": ("x^2 + 1", _(r"In the question's own letters: x^2 + 1, or LaTeX such as \frac{n(n+1)}{2}.")),
    "set": ("{1, 2, 3}", _("Every element, in braces. Their order does not matter.")),
    "tuple": ("(1, 2)", _("In round brackets. The order matters.")),
    "interval": (
        "(1, 2]",
        _(r"A square bracket where the end belongs to it: (1, 2]. Join with \cup; \infty for no end."),
    ),
    "equation": ("y = 2x + 1", _("The whole equation, with both sides.")),
    "choice": ("B", _("The letter of the choice, alone.")),
    "percent": ("12.5%", _("With the percent sign: 12.5%.")),
    "currency": ("$12.50", _("The amount with its currency: $12.50 or 12.50 EUR.")),
    "text": ("", _("As few words as say it: only the same words will be accepted.")),
    "": ("3/4", _("The final answer alone: 3/4, 0.75, 12 cm, (1, 2] or LaTeX.")),
}


class AnswerForm(forms.Form):
    """One person's answer to one question. ``kind`` of answer decides what the field asks for.

    ``warned`` is the answer whose warnings the person has had on the screen.
    """

    use_required_attribute = False  # one form has several buttons, and each wants other fields

    answer = forms.CharField(label=_("Your answer"), max_length=MOST_ANSWER_CHARACTERS, strip=True)
    unsure = forms.BooleanField(label=_("I am not sure of this answer"), required=False)
    note = forms.CharField(
        label=_("Note for the adjudicator"),
        required=False,
        max_length=MOST_NOTE_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    confirm_unreadable = forms.BooleanField(label=_("Submit it as it is"), required=False)
    warned = forms.CharField(required=False, max_length=MOST_ANSWER_CHARACTERS, strip=True, widget=forms.HiddenInput)
    idempotency_key = forms.UUIDField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, kind: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        placeholder, help_text = WRITTEN.get(kind, WRITTEN[""])
        field = self.fields["answer"]
        field.help_text = help_text
        field.widget.attrs |= {
            "autocomplete": "off",
            "autocapitalize": "sentences" if kind == "text" else "off",
            "spellcheck": "true" if kind == "text" else "false",
            "inputmode": "text",
            "enterkeyhint": "done",
            "placeholder": _("for example %(example)s") % {"example": placeholder} if placeholder else "",
            "class": "answer-input",
            "aria-keyshortcuts": "/ i",
        }
        field.error_messages["required"] = _(
            "Give an answer first. If the question has none, say so under “It cannot be answered”."
        )


class RevisionForm(AnswerForm):
    """Another answer to a question that the person has answered, and why."""

    why = forms.CharField(
        label=_("Why you change it"),
        max_length=MOST_NOTE_CHARACTERS,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"required": _("Say why you change your answer: both stay on record.")},
    )


class DraftForm(forms.Form):
    """Whatever stands in an answering form so far; anything may be missing."""

    answer = forms.CharField(required=False, max_length=MOST_ANSWER_CHARACTERS, strip=False)
    unsure = forms.BooleanField(required=False)
    note = forms.CharField(required=False, max_length=MOST_NOTE_CHARACTERS, strip=False)
    reason = forms.CharField(required=False, max_length=30)
    problem = forms.CharField(required=False, max_length=MOST_NOTE_CHARACTERS, strip=False)
    flag_note = forms.CharField(required=False, max_length=MOST_NOTE_CHARACTERS, strip=False)
    why = forms.CharField(required=False, max_length=MOST_NOTE_CHARACTERS, strip=False)
    ALWAYS = ("answer", "unsure", "note")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        return {name: value for name, value in data.items() if value or name in self.ALWAYS}


class UnanswerableForm(forms.Form):
    """Why a question has no answer; it stands in the same form as the answer."""

    use_required_attribute = False

    reason = forms.ChoiceField(
        label=_("Why"),
        choices=[("", _("Choose a reason")), *UnanswerableReason.choices],
        error_messages={"required": _("Choose why it cannot be answered.")},
    )
    problem = forms.CharField(
        label=_("What is wrong with it"),
        required=False,
        max_length=MOST_NOTE_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    idempotency_key = forms.UUIDField(widget=forms.HiddenInput)


class FlagForm(forms.Form):
    """What a manager should look at; it stands in the same form as the answer."""

    use_required_attribute = False

    flag_note = forms.CharField(
        label=_("What should a manager look at?"),
        max_length=MOST_NOTE_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": _("Say what the manager should look at.")},
    )
    flag_key = forms.UUIDField(widget=forms.HiddenInput)


class DecisionForm(forms.Form):
    """An adjudicator's decision: one of the given answers, another answer, or none."""

    decision = forms.CharField(
        label=_("Decision"), max_length=40, error_messages={"required": _("Choose one of the answers first.")}
    )
    answer = forms.CharField(
        label=_("Another answer"),
        required=False,
        max_length=MOST_ANSWER_CHARACTERS,
        widget=forms.TextInput(attrs={"aria-label": _("Another answer"), "autocomplete": "off"}),
    )
    reason = forms.ChoiceField(
        label=_("Why"),
        required=False,
        choices=[("", _("Choose a reason")), *UnanswerableReason.choices],
        widget=forms.Select(attrs={"aria-label": _("Why it cannot be answered")}),
    )
    note = forms.CharField(
        label=_("Note"), required=False, max_length=MOST_NOTE_CHARACTERS, widget=forms.Textarea(attrs={"rows": 3})
    )
    confirm_unreadable = forms.BooleanField(label=_("Decide for it as it is"), required=False)
    idempotency_key = forms.UUIDField(widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("decision") == "other" and not data.get("answer"):
            self.add_error("answer", _("Write the answer that is right."))
        if data.get("decision") == "unanswerable" and not data.get("reason"):
            self.add_error("reason", _("Choose why it cannot be answered."))
        return data


class ExportForm(forms.Form):
    KEEPS = [
        ("all", _("All of them")),
        ("not_always_right", _("Not those that the model always gets right")),
        ("useful", _("Only those it gets right now and then")),
    ]
    format = forms.ChoiceField(label=_("For"), choices=Export.Format.choices)
    keep = forms.ChoiceField(label=_("Keep"), choices=KEEPS, required=False)
