"""Models, selection runs, budgets and rounds."""

from collections.abc import Sequence
from typing import Any, cast

from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from labeling.actions.budgets import MOST_UNITS
from labeling.actions.checks import parts_of
from labeling.actions.policy_models import MOST_TOKENS
from labeling.actions.rounds import MOST_CHECKS_PER_ANSWER, MOST_HELD, MOST_PRACTICE
from labeling.actions.runs import MOST_ANSWERS, MOST_QUESTIONS
from labeling.engine.selection import MOST_SEED, StrategyCard
from labeling.models import Budget, CalibrationSet, PolicyModel, Pool, Round, SelectionRun
from labeling.models.rounds import MOST_OVERLAP


class PolicyModelForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=120, help_text=_("As you will choose it for a run."))
    engine = forms.ChoiceField(
        label=_("Where it runs"),
        choices=[choice for choice in PolicyModel.EngineKind.choices if choice[0] != "scripted"],
    )
    model = forms.CharField(
        label=_("Model"),
        max_length=300,
        help_text=_("A hub name or a path, as the engine knows it. assay-tiny is for the demo only."),
    )
    base_url = forms.CharField(
        label=_("Address of the server"),
        required=False,
        max_length=2000,
        help_text=_("For a server only; usually ends in /v1. Several of the same model: with commas."),
    )
    api_key_env = forms.CharField(
        label=_("Variable with the key"),
        required=False,
        max_length=100,
        help_text=_("An environment variable of the worker, such as OPENAI_API_KEY. Never the key itself."),
    )
    temperature = forms.FloatField(
        label=_("Temperature"),
        required=False,
        min_value=0,
        max_value=5,
        help_text=_("Empty: as the model's authors recommend, else 0.6."),
    )
    top_p = forms.FloatField(
        label=_("Top-p"), required=False, min_value=0, max_value=1, help_text=_("Empty: as recommended, else 1.")
    )
    max_tokens = forms.IntegerField(
        label=_("Longest answer, in tokens"), initial=2048, min_value=1, max_value=MOST_TOKENS
    )
    probe_max_tokens = forms.IntegerField(
        label=_("Longest forced answer, in tokens"),
        initial=64,
        min_value=1,
        max_value=MOST_TOKENS,
        help_text=_("A probe cuts a chain of thought and asks for the answer at once."),
    )
    keep = forms.ChoiceField(
        label=_("What is kept of full answers"),
        required=False,
        choices=PolicyModel.Keep.choices,
        initial=PolicyModel.Keep.COMPLETIONS,
        help_text=_("Chains and forced answers are always kept whole. Answers alone cannot be read anew later."),
    )
    check = forms.BooleanField(
        label=_("Try to reach the model now"),
        required=False,
        initial=True,
        help_text=_("Loads a local model or asks the server; it may take a minute."),
    )

    def clean_keep(self) -> str:
        return str(self.cleaned_data["keep"] or PolicyModel.Keep.COMPLETIONS)


class RunChoiceField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return _("Run %(run)s, %(n)s picked") % {"run": obj.pk, "n": obj.n_picks}


class RunForm(forms.Form):
    """A selection run: sane defaults in front, everything else folded away."""

    answers_from = forms.ChoiceField(label=_("Answers come from"))
    calibration_set = forms.ModelChoiceField(
        label=_("Calibration set"),
        required=False,
        queryset=CalibrationSet.objects.none(),
        empty_label=_("None: only what the strategy needs is asked"),
        help_text=_("Questions with known answers, like the pool's. They set the threshold and are never exported."),
    )
    budget = forms.IntegerField(
        label=_("Questions to pick"),
        initial=8,
        min_value=1,
        max_value=MOST_QUESTIONS,
        help_text=_("A handful is enough for GRPO; each is answered by people."),
    )
    alpha = forms.CharField(
        label=_("Alpha, the miscoverage level"),
        initial="0.1",
        max_length=40,
        help_text=_(
            "A share 1 − alpha of prediction sets holds the true answer. 0.1 is usual; a weak model needs more."
        ),
    )
    question_limit = forms.IntegerField(
        label=_("Look at only so many questions"),
        required=False,
        min_value=1,
        max_value=MOST_QUESTIONS,
        help_text=_("For a first try. Empty: the whole pool."),
    )
    n_outcomes = forms.IntegerField(
        label=_("Full answers per question"), initial=20, min_value=0, max_value=MOST_ANSWERS
    )
    n_probes = forms.IntegerField(
        label=_("Probes per question"),
        initial=20,
        min_value=0,
        max_value=MOST_ANSWERS,
        help_text=_("One chain of thought is cut at this many places and an answer is forced at each."),
    )
    race = forms.ChoiceField(
        label=_("Full answers are asked"),
        required=False,
        choices=[("", _("Where the picks depend on them, if that can be told")), *SelectionRun.Race.choices],
        help_text=_("A race gives the very same picks from fewer answers; comparing strategies needs all of them."),
    )
    continues = RunChoiceField(
        label=_("Go on from"),
        required=False,
        queryset=SelectionRun.objects.none(),
        empty_label=_("None: a first round"),
        help_text=_("Its picks count as labeled: they are not picked again, and the set they form is continued."),
    )
    control_share = forms.CharField(
        label=_("Share of random controls"),
        required=False,
        initial="0",
        max_length=40,
        help_text=_("From 0 to 1, rounded up: drawn uniformly, so that their labels speak for the pool."),
    )
    per_cluster = forms.IntegerField(
        label=_("Picks from each cluster"),
        required=False,
        min_value=1,
        max_value=MOST_QUESTIONS,
        help_text=_("Empty: as the strategy has it. More than one makes fewer clusters."),
    )
    strategy = forms.ChoiceField(label=_("Strategy"), widget=forms.RadioSelect)
    preset = forms.ChoiceField(
        label=_("Rules"),
        help_text=_("recommended groups equivalent answers; paper and reference follow the authors to the letter."),
    )
    lam = forms.FloatField(label=_("Lambda, the weight of entropy"), initial=0.02, min_value=0)
    n_clusters = forms.IntegerField(
        label=_("Clusters"),
        required=False,
        min_value=1,
        max_value=MOST_QUESTIONS,
        help_text=_("Empty: one for each pick."),
    )
    min_readable = forms.FloatField(
        label=_("Share of answers that must be readable"),
        required=False,
        min_value=0,
        max_value=1,
        help_text=_("Below it a question is not picked. Empty: as the rules say."),
    )
    embedder = forms.CharField(
        label=_("Embedding model"),
        required=False,
        max_length=300,
        help_text=_("Finds questions that are alike. Empty where clusters are given in the file."),
    )
    seed = forms.IntegerField(
        label=_("Seed"),
        initial=0,
        min_value=0,
        max_value=MOST_SEED,
        help_text=_("The same seed and data pick the same questions."),
    )

    FRONT = ("answers_from", "calibration_set", "budget", "alpha", "question_limit", "continues")

    def __init__(
        self,
        *args: Any,
        pool: Pool,
        sources: list[tuple[str, str]],
        strategies: Sequence[StrategyCard],
        runs: QuerySet[SelectionRun],
        presets: list[tuple[str, str]],
        embedder: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ChoiceField, self.fields["answers_from"]).choices = sources
        self._cards = {card.key: card for card in strategies}
        cast(forms.ChoiceField, self.fields["strategy"]).choices = [(card.key, card.title) for card in strategies]
        cast(forms.ChoiceField, self.fields["preset"]).choices = presets
        usable = CalibrationSet.objects.filter(Q(pool=pool) | Q(pool=None))
        cast(forms.ModelChoiceField, self.fields["calibration_set"]).queryset = usable
        cast(forms.ModelChoiceField, self.fields["continues"]).queryset = runs
        first = usable.first()
        self.initial = {
            "embedder": embedder,
            "strategy": "const",
            "preset": "recommended",
            "calibration_set": first and first.pk,
            **self.initial,
        }

    def front(self) -> list[forms.BoundField]:
        return [self[name] for name in self.FRONT]

    def folded(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in (*self.FRONT, "strategy")]

    def strategies(self) -> list[tuple[forms.boundfield.BoundWidget, StrategyCard]]:
        """Each strategy's radio button, with what to know of it."""
        return [(choice, self._cards[str(choice.data["value"])]) for choice in self["strategy"]]

    def chosen_strategy(self) -> StrategyCard | None:
        return self._cards.get(str(self["strategy"].value()))

    def has_folded_errors(self) -> bool:
        return bool(set(self.errors) - {*self.FRONT, "strategy", "__all__"})


class BudgetForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=120, help_text=_("For what or from whom the money is."))
    units = forms.IntegerField(
        label=_("Human answers"),
        min_value=1,
        max_value=MOST_UNITS,
        help_text=_("One unit is one answer by one person. A disagreement costs one more, for its adjudication."),
    )


class UnitsForm(forms.Form):
    """More units for a budget, of which the person saw ``granted_before``."""

    units = forms.IntegerField(min_value=1, max_value=MOST_UNITS)
    granted_before = forms.IntegerField(min_value=0, max_value=MOST_UNITS * 1000)


class RoundForm(forms.Form):
    budget = forms.ModelChoiceField(label=_("Budget"), queryset=Budget.objects.none(), empty_label=None)
    overlap = forms.IntegerField(
        label=_("Answers per question"),
        initial=2,
        min_value=1,
        max_value=MOST_OVERLAP,
        help_text=_("With two, mistakes show as disagreements. One wrong label of 8 is an eighth of the dataset."),
    )
    held = forms.IntegerField(
        label=_("Units held back"),
        required=False,
        min_value=0,
        max_value=MOST_HELD,
        help_text=_(
            "For disagreements and for questions that replace unanswerable ones; given back when the round "
            "closes. Empty: one for each question, so that no disagreement waits for money, or as many as there are."
        ),
    )
    blindness = forms.ChoiceField(
        label=_("The model’s answers are shown"),
        choices=Round.Blindness.choices,
        initial=Round.Blindness.REVEAL_AFTER,
        help_text=_(
            "Afterwards finds slips, and what was said first stays on record. From the start, people follow the "
            "model; every exported row then says so."
        ),
    )
    control_share = forms.FloatField(
        label=_("Share that stays blind as a control"),
        initial=0.1,
        min_value=0,
        max_value=1,
        help_text=_("From 0 to 1. On these questions nothing is shown afterwards either."),
    )

    calibration_set = forms.ModelChoiceField(
        label=_("Checks and practice come from"),
        queryset=CalibrationSet.objects.none(),
        required=False,
        empty_label=_("No calibration set"),
        help_text=_("Questions with known answers. A part of it is kept for practice, the others are for checks."),
    )
    check_rate = forms.FloatField(
        label=_("Checks for each answer"),
        required=False,
        min_value=0,
        max_value=MOST_CHECKS_PER_ANSWER,
        help_text=_(
            "0.1 is one question with a known answer, unmarked, for every ten answers; 0 is none. Checks have "
            "units of their own and show how often each person is right."
        ),
    )
    n_practice = forms.IntegerField(
        label=_("Practice questions"),
        required=False,
        min_value=0,
        max_value=MOST_PRACTICE,
        help_text=_(
            "Before a person’s first question, each followed by the right answer. 0 is none; they cost nothing."
        ),
    )
    practice_may_be_skipped = forms.BooleanField(label=_("Practice may be skipped"), required=False)

    def __init__(self, *args: Any, run: SelectionRun, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ModelChoiceField, self.fields["budget"]).queryset = Budget.objects.for_labels().filter(pool=run.pool)
        usable = CalibrationSet.objects.filter(Q(pool=run.pool) | Q(pool=None))
        cast(forms.ModelChoiceField, self.fields["calibration_set"]).queryset = usable
        n_checks, n_practice = parts_of(run.calibration_set)
        self.initial = {
            "calibration_set": run.calibration_set_id,
            "check_rate": 0.1 if n_checks else 0,
            "n_practice": min(2, n_practice),
            **self.initial,
        }

    def clean_check_rate(self) -> float:
        return float(self.cleaned_data["check_rate"] or 0)

    def clean_n_practice(self) -> int:
        return int(self.cleaned_data["n_practice"] or 0)


class RoundStatusForm(forms.Form):
    to = forms.ChoiceField(choices=[("pause", _("Pause")), ("resume", _("Resume")), ("close", _("Close"))])
