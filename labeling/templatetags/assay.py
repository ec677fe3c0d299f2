"""Template tags and filters of the pages."""

from collections.abc import Sequence

from django import template
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from labeling.models import Pool, User
from labeling.queries.event_words import EVENTS
from labeling.queries.round_waiting import names_in_words
from labeling.queries.rounds import QuestionState
from labeling.queries.run_results import REASONS
from labeling.rendering import render_answer, render_text

register = template.Library()


@register.filter
def question_text(text: str, pool: Pool) -> SafeString:
    """A question's text in its pool's format, safe to show."""
    return render_text(text, markdown=pool.text_format == Pool.TextFormat.MARKDOWN)


@register.filter
def answer_text(answer: object) -> SafeString:
    """An answer that may be bare LaTeX, as maths; words stay words."""
    return render_answer(str(answer))


@register.filter
def plain_text(text: str) -> SafeString:
    """Somebody's words with $maths$ in them."""
    return render_text(text)


@register.filter
def percent(part: float, whole: float = 1) -> float:
    """100 * part / whole with one decimal; 0 of nothing is 0."""
    return round(100 * float(part) / float(whole), 1) if whole else 0.0


@register.filter
def duration(seconds: float | None) -> str:
    """Seconds as a person says them: 8 s, 3 min 20 s, 1 h 5 min."""
    if seconds is None:
        return "–"
    whole = max(0, round(seconds))
    if whole < 60:
        return _("%(seconds)s s") % {"seconds": whole}
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        words = _("%(minutes)s min %(seconds)s s") if minutes < 10 and rest else _("%(minutes)s min")
        return words % {"minutes": minutes, "seconds": rest}
    hours, minutes = divmod(minutes, 60)
    words = _("%(hours)s h %(minutes)s min") if minutes else _("%(hours)s h")
    return words % {"hours": hours, "minutes": minutes}


@register.filter
def event_words(action: str) -> str:
    """``round.opened`` as "Round opened"."""
    return str(EVENTS.get(action, action))


STAGES = {
    "trajectories": gettext_lazy("chains of thought"),
    "probes": gettext_lazy("probes"),
    "outcomes": gettext_lazy("full answers"),
    "embedding": gettext_lazy("Finding questions that are alike"),
    "scoring": gettext_lazy("Calibrating and picking"),
    "opening the model": gettext_lazy("opening the model"),
    "reading internals": gettext_lazy("reading internals"),
    "reading answers": gettext_lazy("reading answers"),
    "grouping calibration answers": gettext_lazy("grouping calibration answers"),
    "grouping pool answers": gettext_lazy("grouping pool answers"),
    "choosing": gettext_lazy("choosing"),
    "comparing": gettext_lazy("comparing"),
    "resampling": gettext_lazy("resampling"),
    "racing": gettext_lazy("asking for full answers: those in, and those needed no more"),
}
PLACES = {"calibration": gettext_lazy("Calibration"), "pool": gettext_lazy("Pool")}
QUESTION_STATES = {  # words and tone
    QuestionState.ANSWERING: (gettext_lazy("Being answered"), ""),
    QuestionState.SETTLING: (gettext_lazy("Comparing answers"), ""),
    QuestionState.WAITING_FOR_UNIT: (gettext_lazy("Disagreement, budget spent"), "danger"),
    QuestionState.ADJUDICATING: (gettext_lazy("With an adjudicator"), "gold"),
    QuestionState.GOLD: (gettext_lazy("Gold"), "ok"),
    QuestionState.UNANSWERABLE: (gettext_lazy("Unanswerable"), ""),
    QuestionState.ENDED: (gettext_lazy("Ended unsettled"), ""),
}


@register.filter
def stage_words(name: str) -> str:
    """``pool: probes`` as "Pool: probes", in words that need no glossary."""
    where, _colon, stage = name.rpartition(": ")
    words = str(STAGES.get(stage, stage))
    if where:
        return _("%(where)s: %(stage)s") % {"where": PLACES.get(where, where), "stage": words}
    return words[:1].upper() + words[1:]


@register.filter
def question_state_words(state: QuestionState) -> str:
    return str(QUESTION_STATES[state][0])


@register.filter
def question_state_tone(state: QuestionState) -> str:
    """The chip's class."""
    return QUESTION_STATES[state][1]


@register.filter
def unlocalized(number: float) -> str:
    """A number as attributes want it, whatever the language."""
    return format(float(number), ".6g")


@register.simple_tag
def manages_any(user: User) -> bool:
    """Whether the person manages some pool, which decides what the header offers."""
    return user.is_authenticated and Pool.objects.managed_by(user).exists()


@register.filter
def names(people: Sequence[str]) -> str:
    """``ana, ben or 3 others``."""
    return names_in_words(people)


@register.filter
def ineligible_words(reason: str) -> str:
    """Why a question could not be picked, in words."""
    return str(REASONS.get(reason, reason))


STANDINGS = {
    "untried": gettext_lazy("untried"),
    "learning": gettext_lazy("learning"),
    "done": gettext_lazy("done"),
    "stuck": gettext_lazy("stuck"),
    "forgotten": gettext_lazy("forgotten"),
}


@register.filter
def standing_words(standing: str) -> str:
    """Where a question of a curriculum stands."""
    return str(STANDINGS[str(standing)])


@register.filter
def variance_tone(category: str) -> str:
    """The class of a variance category's chip."""
    return {"useful": "ok", "always_right": "gold", "always_wrong": "danger"}.get(category, "")
