"""How fields and their widgets become HTML: by Jinja2, which is faster than Django's templates on pages of many."""

from pathlib import Path
from typing import Any

import django.forms
from django.conf import settings
from django.forms.renderers import Jinja2
from django.utils.functional import cached_property
from django.utils.translation import gettext, ngettext
from jinja2 import Environment


class FormRenderer(Jinja2):
    """Django's, with a template of ours for ``as_field_group``."""

    field_template_name = "field.html"

    @cached_property
    def engine(self) -> Any:
        directories = [settings.BASE_DIR / "templates" / "forms", Path(django.forms.__file__).parent / "jinja2"]
        options = {"environment": "labeling.forms.rendering.environment"}
        return self.backend({"APP_DIRS": False, "DIRS": directories, "NAME": "forms", "OPTIONS": options})


def environment(**options: Any) -> Environment:
    """Return what the templates are read with: they translate as Django's do."""
    made = Environment(extensions=["jinja2.ext.i18n"], **options)  # noqa: S701 - options say autoescape=True
    made.install_gettext_callables(gettext, ngettext, newstyle=True)  # type: ignore[attr-defined]
    return made
