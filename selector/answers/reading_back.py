"""Say how an answer is read, in the words of the person who wrote it, and what to beware of."""

from __future__ import annotations

import re

from selector.answers.canonical import infer_kind
from selector.answers.comparing import may_be_known_outside
from selector.answers.contract import AnswerPolicy, ReadAs
from selector.answers.readings import read
from selector.answers.rendering import render
from selector.answers.spelling import MAX_LENGTH, clean
from selector.answers.views import Choice, Scalar, Unparsed, Words
from selector.answers.wording import is_prose

_GUESSABLE = {"yes", "no", "true", "false", "correct", "incorrect", "increases", "decreases", "even", "odd"}
_NOT_AN_ANSWER = {"proof", "notfound", "not found", "see solution", "none", "n/a", "na", "null", "omitted"}


def read_back(answer: str, kind: str | None, policy: AnswerPolicy) -> ReadAs:
    """Return the text a grader works on, the kind, whether it is readable, and warnings for whoever wrote it."""
    text = clean(answer)
    if not text:
        return ReadAs(text="", kind=kind or "text", readable=False, warnings=("There is nothing to read.",))
    found = kind or infer_kind(answer)
    views = read(text, kind)
    warnings = []
    if len(text) > MAX_LENGTH:
        warnings.append(f"Longer than {MAX_LENGTH} characters: compared as text only.")
    if any(isinstance(view, Unparsed) for view in views):
        warnings.append("Not read to its end as mathematics: other spellings of it may not be recognised.")
    words = next((view.text for view in views if isinstance(view, Words)), "")
    if words.casefold() in _NOT_AN_ANSWER:
        warnings.append("This is not an answer.")
    elif words.casefold() in _GUESSABLE:
        warnings.append("Guessable: one of two answers is right by chance half of the time.")
    elif found == "choice" and any(isinstance(view, Choice) for view in views):
        warnings.append("Guessable: a letter is right by chance at least one time in ten.")
    elif words and (is_prose(text) and " " in words):
        warnings.append("Prose: only the same words will be accepted.")
    for view in views:
        if isinstance(view, Scalar) and (view.unit or view.currency):
            dropped = "may be left out" if policy.units == "optional" else "must be given"
            warnings.append(f"Carries the unit {view.unit or view.currency}; in other answers it {dropped}.")
        if isinstance(view, Scalar) and view.percent:
            warnings.append("Carries a percent sign: " + _PERCENT[policy.percent])
    if re.search(r"[\x00-\x08\x0b-\x1f\ud800-\udfff]", answer):
        warnings.append("Holds characters that cannot be shown, perhaps from a backslash that was not escaped.")
    readable = found == "text" or not isinstance(views[0], Words | Unparsed) or may_be_known_outside(text)
    choice = next((view for view in views if isinstance(view, Choice)), None)
    written = render((choice,)) if choice and found == "choice" else render(views)
    return ReadAs(
        text=written if len(written) <= 400 else text[:400], kind=found, readable=readable, warnings=tuple(warnings)
    )


_PERCENT = {
    "either": "28% is also accepted as 28 and as 0.28.",
    "number": "28% is also accepted as 28.",
    "fraction": "28% is also accepted as 0.28.",
    "sign": "without the sign it is not accepted.",
}
