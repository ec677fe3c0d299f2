"""Say how an answer is read, in the words of the person who wrote it, and what to beware of."""

from __future__ import annotations

import re

from selector.answers.canonical import infer_kind
from selector.answers.comparing import may_be_known_outside
from selector.answers.contract import AnswerPolicy, ReadAs
from selector.answers.exact import exact_value
from selector.answers.numeric import log2_of, mentions_infinity
from selector.answers.readings import read
from selector.answers.rendering import render
from selector.answers.ring import as_rational
from selector.answers.spelling import MAX_LENGTH, clean
from selector.answers.views import Choice, Reading, Scalar, Several, Unparsed, Words
from selector.answers.wording import is_prose

_GUESSABLE = {"yes", "no", "true", "false", "correct", "incorrect", "increases", "decreases", "even", "odd"}
_NOT_AN_ANSWER = {
    *("proof", "notfound", "not found", "see solution", "none", "n/a", "na", "null", "omitted", "tbd"),
    *("idk", "no idea", "unknown", "i don't know", "don't know", "not sure"),
}
_MOST_LOG2 = 10**6  # of a number's size: past it no trainer's grader works the number out
_LONGEST_NAME = 3  # words of an answer such as "North by Northwest"; more make a sentence
_SENTENCE_WORDS = set(
    str.split(
        "about approximately approx around roughly nearly almost maybe perhaps probably between so is are was it i we "
        "that then because since if but depends assume let hence therefore thus"
    )
)


def read_back(answer: str, kind: str | None, policy: AnswerPolicy) -> ReadAs:
    """Return the text a grader works on, the kind, whether it is readable, and warnings for whoever wrote it."""
    text = clean(answer)
    if not text:
        return ReadAs(text="", kind=kind or "text", readable=False, warnings=("There is nothing to read.",))
    found = kind or infer_kind(answer)
    views = read(text, kind)
    warnings = []
    is_too_long = len(text) > MAX_LENGTH
    if is_too_long:
        warnings.append(f"Longer than {MAX_LENGTH} characters: compared as text only.")
    if any(isinstance(view, Unparsed) for view in views):
        warnings.append("Not read to its end as mathematics: other spellings of it may not be recognised.")
    words = next((view.text for view in views if isinstance(view, Words)), "")
    is_sentence = kind != "text" and found != "choice" and _is_sentence(views)
    valueless = "" if kind == "text" else _valueless(views)
    if valueless:
        warnings.append(valueless)
    is_answer = not is_sentence and not is_too_long and not valueless
    if text.casefold() in _NOT_AN_ANSWER or words.casefold() in _NOT_AN_ANSWER:
        is_answer = kind is not None
        warnings.append("This is not an answer.")
    elif not _closes(answer):
        is_answer = False
        warnings.append("Broken off: its braces, or its \\begin and \\end, do not match.")
    elif words and not any(map(str.isalnum, text)):
        is_answer = False
        warnings.append("It has no letter and no digit.")
    elif words.casefold() in _GUESSABLE:
        warnings.append("Guessable: one of two answers is right by chance half of the time.")
    elif found == "choice" and any(isinstance(view, Choice) for view in views):
        warnings.append("Guessable: a letter is right by chance at least one time in ten.")
    elif is_sentence or (words and is_prose(text) and " " in words):
        warnings.append("Prose: only the same words will be accepted.")
    for view in views:
        if isinstance(view, Scalar) and (view.unit or view.currency):
            dropped = "may be left out" if policy.units == "optional" else "must be given"
            warnings.append(f"Carries the unit {view.unit or view.currency}; in other answers it {dropped}.")
        if isinstance(view, Scalar) and view.percent:
            warnings.append("Carries a percent sign: " + _PERCENT[policy.percent])
    if re.search(r"[\x00-\x08\x0b-\x1f\ud800-\udfff]", answer):
        warnings.append("Holds characters that cannot be shown, perhaps from a backslash that was not escaped.")
    choice = next((view for view in views if isinstance(view, Choice) and found == "choice"), None)
    is_words = isinstance(views[0], Words | Unparsed) and choice is None
    is_known = found == "text" or not is_words or may_be_known_outside(text)
    written = render((choice,)) if choice else text if _has_words(views) else render(views)
    shown = written if len(written) <= 400 else text[:400]
    return ReadAs(text=shown, kind=found, readable=is_known and is_answer, warnings=tuple(warnings))


_PERCENT = {
    "either": "as 28% is accepted as 28 and as 0.28, so is this.",
    "number": "as 28% is accepted as 28, so is this.",
    "fraction": "as 28% is accepted as 0.28, so is this.",
    "sign": "without the sign it is not accepted.",
}


def _closes(answer: str) -> bool:
    """Tell whether braces and environments end: what does not cannot stand in a \\boxed{} either."""
    depth = 0
    for brace in re.findall(r"\\?[{}]", answer):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        if depth < 0:
            return False
    return depth == 0 and answer.count("\\begin") == answer.count("\\end")


def _has_words(views: Reading) -> bool:
    """Tell whether words are compared, which are shown as they were written: ``Paris (France)``."""
    first = views[0]
    return isinstance(first, Words) or (isinstance(first, Several) and any(map(_has_words, first.items)))


def _valueless(views: Reading) -> str:
    """Return why there is no number in what is written as one; "" where there is."""
    first = views[0]
    if isinstance(first, Several):
        return next(filter(None, map(_valueless, first.items)), "")
    if not isinstance(first, Scalar):
        return ""
    log2 = log2_of(first.node)
    exact = exact_value(first.node)
    if mentions_infinity(first.node) or (exact is not None and as_rational(exact) is not None):
        return ""
    if log2 is None and exact is None:
        return "Has no value: it divides by zero, say."
    if log2 is None or log2 > _MOST_LOG2:
        return "Too large to be worked out: only the same expression will be accepted."
    return ""


def _is_sentence(views: Reading) -> bool:
    """Tell prose, such as "about 5", "7 or so" or a proof, from a name, from names, and from other words."""
    first = views[0]
    if isinstance(first, Words):
        words = re.findall(r"[^\W_]+(?:['’]\w+)?", first.text.casefold())
        is_name = len(words) <= _LONGEST_NAME and _SENTENCE_WORDS.isdisjoint(words) and not re.search(r"\d", first.text)
        return not is_name and is_prose(first.text)
    return isinstance(first, Several) and first.style == "bag" and any(map(_is_sentence, first.items))
