"""What a comparison of strategies is asked with."""

from typing import Any, cast

from django import forms
from django.db.models import Exists, OuterRef
from django.utils.formats import date_format
from django.utils.translation import gettext_lazy as _

from labeling.actions.runs import MOST_QUESTIONS
from labeling.models import Pool, QuestionScore, SelectionRun


class FinishedRunField(forms.ModelChoiceField):
    """A choice of finished runs, named by what tells them apart."""

    def label_from_instance(self, run: SelectionRun) -> str:
        return _("Run %(run)s: %(source)s, %(day)s, alpha %(alpha)s") % {
            "run": run.pk,
            "source": run.policy_model or _("imported votes"),
            "day": date_format(run.created_at, "j M Y"),
            "alpha": run.config.get("alpha", "–"),
        }


class ComparisonForm(forms.Form):
    run = FinishedRunField(
        label=_("Answers of"),
        queryset=SelectionRun.objects.none(),
        empty_label=None,
        help_text=_("Its answers, threshold and settings are used; no model is asked anything."),
    )
    budget = forms.IntegerField(
        label=_("Questions to pick"),
        initial=8,
        min_value=1,
        max_value=MOST_QUESTIONS,
        help_text=_("Each strategy picks this many."),
    )
    n_bootstrap = forms.IntegerField(
        label=_("Resamplings"),
        initial=100,
        min_value=0,
        max_value=2000,
        help_text=_("How often answers and calibration set are drawn anew, to see what owes to chance. 0: not at all."),
    )
    strategies = forms.MultipleChoiceField(label=_("Strategies"), widget=forms.CheckboxSelectMultiple)

    def __init__(self, *args: Any, pool: Pool, strategies: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        finished = SelectionRun.objects.filter(pool=pool, status=SelectionRun.Status.FINISHED)
        with_scores = finished.filter(Exists(QuestionScore.objects.filter(run=OuterRef("pk"))))
        runs = with_scores.select_related("policy_model").defer("report", "traceback").order_by("-pk")
        cast(forms.ModelChoiceField, self.fields["run"]).queryset = runs
        cast(forms.MultipleChoiceField, self.fields["strategies"]).choices = strategies
        self.initial.setdefault("strategies", [strategy[0] for strategy in strategies])

    def front(self) -> list[forms.BoundField]:
        return [self[name] for name in ("run", "budget", "n_bootstrap")]
