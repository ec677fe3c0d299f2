"""Answering, adjudicating and exporting."""

from typing import Any

from django import forms

from labeling.actions.answers import MOST_ANSWER_CHARACTERS, MOST_NOTE_CHARACTERS
from labeling.models import Export, UnanswerableReason


class AnswerForm(forms.Form):
    """One person's answer to one question."""

    answer = forms.CharField(label="Your answer", max_length=MOST_ANSWER_CHARACTERS, strip=True)
    unsure = forms.BooleanField(label="I am not sure of this answer", required=False)
    note = forms.CharField(
        label="Note for the adjudicator",
        required=False,
        max_length=MOST_NOTE_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    confirm_unreadable = forms.BooleanField(label="Submit it as it is", required=False)
    idempotency_key = forms.UUIDField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, choices: list[str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["answer"].widget.attrs |= {
            "autocomplete": "off",
            "autocapitalize": "off",
            "spellcheck": "false",
            "class": "answer-input",
        }
        self.fields["answer"].error_messages["required"] = (
            "Give an answer first. If the question has none, say so under “It cannot be answered”."
        )


class DraftForm(forms.Form):
    """What has been typed so far; anything may be missing."""

    answer = forms.CharField(required=False, max_length=MOST_ANSWER_CHARACTERS, strip=False)
    unsure = forms.BooleanField(required=False)
    note = forms.CharField(required=False, max_length=MOST_NOTE_CHARACTERS, strip=False)


class UnanswerableForm(forms.Form):
    reason = forms.ChoiceField(label="Why", choices=[("", "Choose a reason"), *UnanswerableReason.choices])
    note = forms.CharField(
        label="What is wrong with it",
        required=False,
        max_length=MOST_NOTE_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    idempotency_key = forms.UUIDField(widget=forms.HiddenInput)


class DecisionForm(forms.Form):
    """An adjudicator's decision: one of the given answers, another answer, or none."""

    decision = forms.CharField(
        label="Decision", max_length=40, error_messages={"required": "Choose one of the answers first."}
    )
    answer = forms.CharField(
        label="Another answer",
        required=False,
        max_length=MOST_ANSWER_CHARACTERS,
        widget=forms.TextInput(attrs={"aria-label": "Another answer", "autocomplete": "off"}),
    )
    reason = forms.ChoiceField(
        label="Why",
        required=False,
        choices=[("", "Choose a reason"), *UnanswerableReason.choices],
        widget=forms.Select(attrs={"aria-label": "Why it cannot be answered"}),
    )
    note = forms.CharField(
        label="Note", required=False, max_length=MOST_NOTE_CHARACTERS, widget=forms.Textarea(attrs={"rows": 3})
    )
    confirm_unreadable = forms.BooleanField(label="Decide for it as it is", required=False)
    idempotency_key = forms.UUIDField(widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("decision") == "other" and not data.get("answer"):
            self.add_error("answer", "Write the answer that is right.")
        if data.get("decision") == "unanswerable" and not data.get("reason"):
            self.add_error("reason", "Choose why it cannot be answered.")
        return data


class ExportForm(forms.Form):
    KEEPS = [
        ("all", "All of them"),
        ("not_always_right", "Not those that the model always gets right"),
        ("useful", "Only those it gets right now and then"),
    ]
    format = forms.ChoiceField(label="For", choices=Export.Format.choices)
    keep = forms.ChoiceField(label="Keep", choices=KEEPS, required=False)
