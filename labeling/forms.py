"""What people fill in. A form checks its fields; the rules are the actions', whose refusals the views show on the form."""

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.db.models import Q

from labeling.models import Budget, CalibrationSet, Export, PolicyModel, Pool, Role, SelectionRun, UnanswerableReason


class LoginForm(AuthenticationForm):
    """Name and password, with one message whichever of them is wrong."""

    error_messages = {
        "invalid_login": "The name and password do not belong together. Both are case-sensitive.",
        "inactive": "The name and password do not belong together. Both are case-sensitive.",
    }


class JoinForm(forms.Form):
    """A new account, made with an invitation."""

    username = forms.CharField(
        label="Your name here", max_length=150, help_text="Letters, digits and @ . + - _; managers see it beside your answers.",
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    password = forms.CharField(
        label="Password", strip=False, help_text="At least 8 characters, not a common word and not only digits.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )


class InvitationForm(forms.Form):
    role = forms.ChoiceField(label="Role", choices=Role.choices, initial=Role.ANNOTATOR)
    note = forms.CharField(
        label="Note", max_length=200, required=False, help_text="For yourself: whom the link is for. They do not see it."
    )


class PoolForm(forms.Form):
    name = forms.CharField(label="Name", max_length=120)
    description = forms.CharField(
        label="Description", required=False, widget=forms.Textarea(attrs={"rows": 2}),
        help_text="What these questions are and where they come from.",
    )
    text_format = forms.ChoiceField(
        label="The questions are written in", choices=Pool.TextFormat.choices, initial=Pool.TextFormat.PLAIN,
        help_text="Maths between dollars is typeset either way. Markdown is right only where the file says so.",
    )
    percent = forms.ChoiceField(
        label="28% counts as", initial="either",
        choices=[("either", "28 or 0.28"), ("number", "28"), ("fraction", "0.28"), ("sign", "28% only")],
        help_text="When the other answer has no percent sign.",
    )
    units = forms.ChoiceField(
        label="A missing unit", initial="optional",
        choices=[("optional", "does not matter"), ("required", "makes an answer different")],
        help_text="5 against 5 cm. Two different units are always different.",
    )
    tolerance = forms.CharField(
        label="Numbers may differ by", initial="0",
        help_text="Relative, as a decimal: 0 is exact, 0.001 is one part in a thousand.",
    )
    case = forms.ChoiceField(
        label="Upper and lower case", initial="ignore", choices=[("ignore", "are the same"), ("keep", "are different")],
        help_text="Of answers that are words.",
    )

    def answer_policy(self) -> dict[str, str]:
        return {name: self.cleaned_data[name] for name in ("percent", "units", "tolerance", "case")}


class GuidelineForm(forms.Form):
    text = forms.CharField(
        label="What annotators should know", widget=forms.Textarea(attrs={"rows": 14}), max_length=50_000,
        help_text="How to write an answer, how far to round, when a question cannot be answered. Maths in $dollars$.",
    )


class FileForm(forms.Form):
    """A file of questions; the mapping is asked for only where the names in the file do not say it."""

    file = forms.FileField(
        label="File", help_text="JSONL, CSV or Parquet. Nothing changes until you have seen what is in it.",
        widget=forms.FileInput(attrs={"accept": ".jsonl,.json,.ndjson,.csv,.tsv,.parquet"}),
    )


class CalibrationFileForm(FileForm):
    """Questions with their answers, for a new calibration set or one that exists."""

    name = forms.CharField(
        label="Name of the calibration set", max_length=120, help_text="A new name makes a new set; a known name adds to it."
    )
    pool = forms.ModelChoiceField(
        label="For", queryset=Pool.objects.none(), required=False, empty_label="Every pool",
        help_text="A set for every pool can be used by all managers.",
    )
    field_order = ["name", "pool", "file"]

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["pool"].queryset = Pool.objects.managed_by(user)


class MappingForm(forms.Form):
    """Which column of a file holds what."""

    LABELS = {
        "question": "Question", "answer": "Answer", "uid": "Id", "choices": "Choices", "kind": "Kind of answer",
    }

    def __init__(self, *args: Any, columns: list[str], need_answer: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, label in self.LABELS.items():
            if name == "answer" and not need_answer:
                continue
            self.fields[name] = forms.ChoiceField(
                label=label,
                required=name in {"question", "answer"},
                choices=[("", "not in this file"), *((column, column) for column in columns)],
            )
        self.fields["repair"] = forms.BooleanField(
            label="Repair LaTeX that lost its backslashes", required=False,
            help_text="Where a file says \\frac and JSON needs \\\\frac, part of the command is read as a control character.",
        )


class VotesForm(forms.Form):
    """Answers or picks that were made on another machine."""

    file = forms.FileField(label="File", widget=forms.FileInput(attrs={"accept": ".jsonl"}))
    calibration_set = forms.ModelChoiceField(
        label="The votes belong to", queryset=CalibrationSet.objects.none(), required=False,
        empty_label="The questions of this pool",
    )

    def __init__(self, *args: Any, pool: Pool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["calibration_set"].queryset = CalibrationSet.objects.filter(Q(pool=pool) | Q(pool=None))


class PolicyModelForm(forms.Form):
    name = forms.CharField(label="Name", max_length=120, help_text="As you will choose it for a run.")
    engine = forms.ChoiceField(
        label="Where it runs", choices=[choice for choice in PolicyModel.EngineKind.choices if choice[0] != "scripted"]
    )
    model = forms.CharField(
        label="Model", max_length=300,
        help_text="A hub name or a path, as the engine knows it. assay-tiny is the model of the demo and good for nothing else.",
    )
    base_url = forms.URLField(
        label="Address of the server", required=False, assume_scheme="http", widget=forms.TextInput(attrs={"inputmode": "url"}),
        help_text="For a server only; usually ends in /v1.",
    )
    api_key_env = forms.CharField(
        label="Variable with the key", required=False, max_length=100,
        help_text="Name of an environment variable of the worker, such as OPENAI_API_KEY. Never the key itself.",
    )
    temperature = forms.FloatField(
        label="Temperature", required=False, min_value=0, max_value=5, help_text="Empty: as the model's authors recommend, else 0.6."
    )
    top_p = forms.FloatField(label="Top-p", required=False, min_value=0, max_value=1, help_text="Empty: as recommended, else 1.")
    max_tokens = forms.IntegerField(label="Longest answer, in tokens", initial=2048, min_value=1)
    probe_max_tokens = forms.IntegerField(
        label="Longest forced answer, in tokens", initial=64, min_value=1,
        help_text="A probe cuts a chain of thought and asks for the answer at once.",
    )
    check = forms.BooleanField(
        label="Try to reach the model now", required=False, initial=True,
        help_text="Loads a local model or asks the server; it may take a minute.",
    )


class RunForm(forms.Form):
    """A selection run: sane defaults in front, everything else folded away."""

    answers_from = forms.ChoiceField(label="Answers come from")
    calibration_set = forms.ModelChoiceField(
        label="Calibration set", queryset=CalibrationSet.objects.none(), empty_label=None,
        help_text="Questions with known answers, like those of the pool. They set the threshold and are never exported.",
    )
    budget = forms.IntegerField(
        label="Questions to pick", initial=8, min_value=1, help_text="A handful is enough for GRPO; each is answered by people."
    )
    alpha = forms.CharField(
        label="Alpha, the miscoverage level", initial="0.1",
        help_text="The threshold is set so that a share 1 − alpha of prediction sets holds the true answer. 0.1 is usual; a weak model needs more.",
    )
    question_limit = forms.IntegerField(
        label="Look at only so many questions", required=False, min_value=1,
        help_text="For a first try. Empty: the whole pool.",
    )
    n_outcomes = forms.IntegerField(label="Full answers per question", initial=20, min_value=0)
    n_probes = forms.IntegerField(
        label="Probes per question", initial=20, min_value=0,
        help_text="One chain of thought is cut at this many places and an answer is forced at each.",
    )
    strategy = forms.ChoiceField(label="Strategy", help_text="const picks the largest prediction set of each cluster.")
    preset = forms.ChoiceField(
        label="Rules", help_text="recommended groups equivalent answers; paper and reference follow the authors to the letter."
    )
    lam = forms.FloatField(label="Lambda, the weight of entropy", initial=0.02, min_value=0)
    n_clusters = forms.IntegerField(label="Clusters", required=False, min_value=1, help_text="Empty: one for each pick.")
    min_readable = forms.FloatField(
        label="Share of answers that must be readable", required=False, min_value=0, max_value=1,
        help_text="Below it a question is not picked. Empty: as the rules say.",
    )
    embedder = forms.CharField(
        label="Embedding model", required=False, help_text="Finds questions that are alike. Empty where clusters are given in the file."
    )
    seed = forms.IntegerField(label="Seed", initial=0, min_value=0, help_text="The same seed and data pick the same questions.")

    FRONT = ("answers_from", "calibration_set", "budget", "alpha", "question_limit")

    def __init__(
        self, *args: Any, pool: Pool, sources: list[tuple[str, str]], strategies: list[tuple[str, str]],
        presets: list[tuple[str, str]], embedder: str, **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields["answers_from"].choices = sources
        self.fields["strategy"].choices = strategies
        self.fields["preset"].choices = presets
        self.fields["embedder"].initial = embedder
        self.fields["calibration_set"].queryset = CalibrationSet.objects.filter(Q(pool=pool) | Q(pool=None))

    def front(self) -> list[forms.BoundField]:
        return [self[name] for name in self.FRONT]

    def folded(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in self.FRONT]

    def has_folded_errors(self) -> bool:
        return bool(set(self.errors) - {*self.FRONT, "__all__"})


class BudgetForm(forms.Form):
    name = forms.CharField(label="Name", max_length=120, help_text="For what or from whom the money is.")
    units = forms.IntegerField(
        label="Human answers", min_value=1, max_value=1_000_000,
        help_text="One unit is one answer by one person. A disagreement costs one more, for its adjudication.",
    )


class RoundForm(forms.Form):
    budget = forms.ModelChoiceField(label="Budget", queryset=Budget.objects.none(), empty_label=None)
    overlap = forms.IntegerField(
        label="Answers per question", initial=2, min_value=1, max_value=20,
        help_text="With two, mistakes show as disagreements. One wrong label of eight is an eighth of the training set.",
    )

    def __init__(self, *args: Any, run: SelectionRun, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["budget"].queryset = Budget.objects.filter(pool=run.pool)


class RoundStatusForm(forms.Form):
    to = forms.ChoiceField(choices=[("pause", "Pause"), ("resume", "Resume"), ("close", "Close")])


class AnswerForm(forms.Form):
    """One person's answer to one question."""

    answer = forms.CharField(label="Your answer", max_length=20_000, strip=True)
    unsure = forms.BooleanField(label="I am not sure of this answer", required=False)
    note = forms.CharField(
        label="Note for the adjudicator", required=False, max_length=5000, widget=forms.Textarea(attrs={"rows": 3})
    )
    confirm_unreadable = forms.BooleanField(label="Submit it as it is", required=False)
    idempotency_key = forms.UUIDField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, choices: list[str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["answer"].widget.attrs |= {
            "autocomplete": "off", "autocapitalize": "off", "spellcheck": "false", "class": "answer-input"
        }
        self.fields["answer"].error_messages["required"] = (
            "Give an answer first. If the question has none, say so under “It cannot be answered”."
        )


class DraftForm(forms.Form):
    """What has been typed so far; anything may be missing."""

    answer = forms.CharField(required=False, max_length=20_000, strip=False)
    unsure = forms.BooleanField(required=False)
    note = forms.CharField(required=False, max_length=5000, strip=False)


class UnanswerableForm(forms.Form):
    reason = forms.ChoiceField(label="Why", choices=[("", "Choose a reason"), *UnanswerableReason.choices])
    note = forms.CharField(label="What is wrong with it", required=False, max_length=5000, widget=forms.Textarea(attrs={"rows": 2}))
    idempotency_key = forms.UUIDField(widget=forms.HiddenInput)


class DecisionForm(forms.Form):
    """An adjudicator's decision: one of the given answers, another answer, or none."""

    decision = forms.CharField(label="Decision", max_length=40, error_messages={"required": "Choose one of the answers first."})
    answer = forms.CharField(label="Another answer", required=False, max_length=20_000)
    reason = forms.ChoiceField(label="Why", required=False, choices=[("", "Choose a reason"), *UnanswerableReason.choices])
    note = forms.CharField(label="Note", required=False, max_length=5000, widget=forms.Textarea(attrs={"rows": 3}))
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
    format = forms.ChoiceField(label="For", choices=Export.Format.choices)
