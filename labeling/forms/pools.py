"""Pools, their guidelines, and files coming in."""

from typing import Any, cast

from django import forms
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from labeling.models import CalibrationSet, Pool


class PoolForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=120)
    description = forms.CharField(
        label=_("Description"),
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("What these questions are and where they come from."),
    )
    text_format = forms.ChoiceField(
        label=_("The questions are written in"),
        choices=Pool.TextFormat.choices,
        initial=Pool.TextFormat.PLAIN,
        help_text=_("Maths between dollars is typeset either way. Markdown is right only where the file says so."),
    )
    percent = forms.ChoiceField(
        label=_("28% counts as"),
        initial="either",
        choices=[("either", _("28 or 0.28")), ("number", "28"), ("fraction", "0.28"), ("sign", _("28% only"))],
        help_text=_("When the other answer has no percent sign."),
    )
    units = forms.ChoiceField(
        label=_("A missing unit"),
        initial="optional",
        choices=[("optional", _("does not matter")), ("required", _("makes an answer different"))],
        help_text=_("5 against 5 cm. Two different units are always different."),
    )
    tolerance = forms.CharField(
        label=_("Numbers may differ by"),
        initial="0",
        max_length=40,
        help_text=_("Relative, as a decimal: 0 is exact, 0.001 is one part in a thousand."),
    )
    case = forms.ChoiceField(
        label=_("Upper and lower case"),
        initial="ignore",
        choices=[("ignore", _("are the same")), ("keep", _("are different"))],
        help_text=_("Of answers that are words."),
    )

    def answer_policy(self) -> dict[str, str]:
        return {name: self.cleaned_data[name] for name in ("percent", "units", "tolerance", "case")}


class GuidelineForm(forms.Form):
    text = forms.CharField(
        label=_("What annotators should know"),
        widget=forms.Textarea(attrs={"rows": 14}),
        max_length=50_000,
        help_text=_(
            "How to write an answer, how far to round, when a question cannot be answered. Maths in $dollars$."
        ),
    )


class FileForm(forms.Form):
    """A file of questions; the mapping is asked for only where the names in the file do not say it."""

    file = forms.FileField(
        label=_("File"),
        help_text=_("JSONL, CSV or Parquet. Nothing changes until you have seen what is in it."),
        widget=forms.FileInput(attrs={"accept": ".jsonl,.json,.ndjson,.csv,.tsv,.parquet"}),
    )


class CalibrationFileForm(FileForm):
    """Questions with their answers, for a new calibration set or one that exists."""

    name = forms.CharField(
        label=_("Name of the calibration set"),
        max_length=120,
        help_text=_("A new name makes a new set; a known name adds to it, and corrects answers under a known id."),
    )
    pool = forms.ModelChoiceField(
        label=_("For"),
        queryset=Pool.objects.none(),
        required=False,
        empty_label=_("Every pool"),
        help_text=_("A set for every pool can be used by all managers, and changed by you and by staff."),
    )
    field_order = ["name", "pool", "file"]

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ModelChoiceField, self.fields["pool"]).queryset = Pool.objects.managed_by(user)


class MappingForm(forms.Form):
    """Which column of a file holds what."""

    LABELS = {
        "question": _("Question"),
        "answer": _("Answer"),
        "uid": _("Id"),
        "choices": _("Choices"),
        "kind": _("Kind of answer"),
    }

    def __init__(self, *args: Any, columns: list[str], need_answer: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, label in self.LABELS.items():
            if name == "answer" and not need_answer:
                continue
            self.fields[name] = forms.ChoiceField(
                label=label,
                required=name in {"question", "answer"},
                choices=[("", _("not in this file")), *((column, column) for column in columns)],
            )
        self.fields["repair"] = forms.BooleanField(
            label=_("Repair LaTeX that lost its backslashes"),
            required=False,
            help_text=_(
                "JSON needs \\\\frac for \\frac; otherwise part of the command is read as a control character."
            ),
        )


class VotesForm(forms.Form):
    """Answers or picks that were made on another machine."""

    holds = forms.ChoiceField(
        label=_("The file holds"),
        choices=[("votes", _("Votes, made by assay probe")), ("picks", _("Picks, made by assay rank"))],
    )
    file = forms.FileField(label=_("File"), widget=forms.FileInput(attrs={"accept": ".jsonl"}))
    calibration_set = forms.ModelChoiceField(
        label=_("The votes belong to"),
        queryset=CalibrationSet.objects.none(),
        required=False,
        empty_label=_("The questions of this pool"),
    )
    fingerprint = forms.CharField(
        label=_("Name of the generation settings"),
        required=False,
        max_length=64,
        help_text=_("Only where the rows do not say under which settings their answers were sampled."),
    )
    report = forms.FileField(
        label=_("Report"),
        required=False,
        help_text=_("The report.json that was written with the picks."),
        widget=forms.FileInput(attrs={"accept": ".json"}),
    )

    def __init__(self, *args: Any, pool: Pool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        usable = CalibrationSet.objects.filter(Q(pool=pool) | Q(pool=None))
        cast(forms.ModelChoiceField, self.fields["calibration_set"]).queryset = usable
