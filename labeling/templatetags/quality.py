"""Filters of the pages that show how good answers are."""

from django import template

from labeling.queries import quality
from labeling.queries.adjudication import key_of
from labeling.queries.intervals import Share
from labeling.queries.meaning import answer_form

register = template.Library()


@register.filter
def answer_key(answer: str) -> str:
    """What names an answer in a form."""
    return key_of([answer_form(answer)])


@register.filter
def checks_in_words(share: Share | None) -> str:
    """How many checks were right: "2 of 3: says little; between 21% and 94%"."""
    return quality.in_words(share or Share(0, 0))
