"""Curricula of running trainers."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.utils.translation import gettext_lazy as _

from labeling.engine.curricula import CurriculumKind


class CurriculumForm(forms.Form):
    name = forms.CharField(
        label=_("Name"), max_length=120, help_text=_("Of the training run, as you will look for it.")
    )
    kind = forms.ChoiceField(label=_("Order of the questions"), widget=forms.RadioSelect)
    uses_stored_rollouts = forms.BooleanField(
        label=_("Start from the stored rollouts"),
        required=False,
        initial=True,
        help_text=_(
            "What the model answered when the questions were selected says how hard each is. "
            "Leave it out when another model is trained."
        ),
    )
    seed = forms.IntegerField(label=_("Seed"), initial=0, min_value=0, max_value=2**31 - 1)

    def __init__(self, *args: Any, kinds: list[CurriculumKind], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast(forms.ChoiceField, self.fields["kind"])
        field.choices = [(kind.key, kind.title) for kind in kinds]
        field.initial = kinds[0].key
