"""What is words rather than mathematics: prose, set phrases, letters of multiple-choice questions."""

from __future__ import annotations

import re
from fractions import Fraction

from selector.answers import regions
from selector.answers.syntax import number
from selector.answers.views import Choice, Region, Scalar, Several, View, Words

_EMPTY_SET = {
    *("no solution", "no solutions", "no real solution", "no real solutions", "there is no solution"),
    *("there are no solutions", "has no solution", "no roots", "no real roots", "empty set", "the empty set", "empty"),
    *("\\emptyset", "\\{\\}", "\\{ \\}", "{}", "{ }"),
}
_ALL_REALS = {"\\RR", "all real numbers", "all reals", "the real numbers", "real numbers", "RR", "any real number"}
_SAME_WORDS = {"does not exist": "dne", "doesn't exist": "dne", "not exist": "dne", "undefined": "undefined"}
_UNITS = str.split(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS = str.split("twenty thirty forty fifty sixty seventy eighty ninety")
_NUMBER_WORDS = {
    **{word: Fraction(value) for value, word in enumerate(_UNITS)},
    **{word: Fraction(10 * value) for value, word in enumerate(_TENS, 2)},
    **{
        f"{ten}-{unit}": Fraction(10 * tens + units)
        for tens, ten in enumerate(_TENS, 2)
        for units, unit in enumerate(_UNITS[1:10], 1)
    },
    "one hundred": Fraction(100),
    "one thousand": Fraction(1000),
    "one half": Fraction(1, 2),
    "one third": Fraction(1, 3),
    "two thirds": Fraction(2, 3),
    "one quarter": Fraction(1, 4),
    "one fourth": Fraction(1, 4),
    "three quarters": Fraction(3, 4),
    "three fourths": Fraction(3, 4),
}
_LETTER = r"(?:\(\s*([A-Ja-j])\s*\)|([A-J]))"
_ONE_CHOICE = re.compile(rf"(?:(?:option|choice|answer)\s+)?{_LETTER}(?P<rest>\s.*|[:.)].*)?", re.IGNORECASE)
_CHOICE_SET = re.compile(r"\\?[{(\[]\s*[A-J](?:\s*,\s*[A-J])+\s*\\?[})\]]")
_MANY_CHOICES = re.compile(r"\(?[A-J]\)?(?:\s*(?:,|;|and|or|&|\s)\s*(?:and\s+|or\s+)?\(?[A-J]\)?)+")
_LETTERS = re.compile(r"[^\W\d_]+")
_KNOWN_WORDS = set(
    str.split(
        "sin cos tan cot sec csc arcsin arccos arctan asin acos atan sinh cosh tanh ln log lg exp sqrt "
        "cbrt abs pi infinity infty inf and or alpha beta gamma delta epsilon theta lambda mu nu xi rho "
        "sigma tau phi chi psi omega"
    )
)
_SHORT_WORDS = set(str.split("no on of or to so it is in if at by as an am be do go he me my up us we"))
_PUNCTUATION = re.compile(
    r"(?<![\"“”‘’'`.,?;:])[\"“”‘’'`.,?;:]++(?=\s|$)|(?<!\S)[\"“”‘’'`(]++|\)(?=\s|$)|(?<=[a-z]{2})!$"
)


def plain_words(text: str) -> str:
    """Return text without punctuation around words, quotes, articles in front or doubled spaces."""
    bare = re.sub(r"[\\{}$]", " ", re.sub(r"\\([A-Za-z]+)", r" \1 ", text))
    bare = _PUNCTUATION.sub(" ", bare)
    return re.sub(r"^(?:the|a|an)\s+", "", " ".join(bare.split()), flags=re.IGNORECASE) or text


def is_prose(text: str) -> bool:
    """Tell whether text has words in it that no formula has."""
    bare = re.sub(r"_\s*\{[^{}]*\}|_\s*\w+|\\[A-Za-z]+", " ", text)
    has_operators = re.search(r"[-+*/^=<>_\\]", text) is not None
    for word in _LETTERS.findall(bare):
        if not word.isascii():
            return True
        if len(word) == 1 or word in _KNOWN_WORDS or word.lower() in ("and", "or"):
            continue
        if word.isupper() and len(word) <= 4 and word not in ("NO", "YES", "TRUE", "DNE"):
            continue
        if len(word) == 2 and word.lower() not in _SHORT_WORDS:
            continue
        if len(word) == 3 and has_operators and " " not in text.strip():
            continue
        if not has_operators or len(word) > 3 or " " in text.strip():
            if any(name in word for name in ("sin", "cos", "tan", "log", "sqrt")) and len(word) <= 6:
                continue
            return True
    return False


def set_phrase(text: str) -> list[View] | None:
    lowered = plain_words(text.replace("\\", "\x00")).lower().replace("\x00", "\\")
    if lowered in _EMPTY_SET or text in _EMPTY_SET:
        return [Several("set", ()), Region(())]
    if text in _ALL_REALS or lowered in _ALL_REALS:
        return [regions.ALL]
    if lowered in _NUMBER_WORDS:
        return [Scalar(number(_NUMBER_WORDS[lowered])), Words(lowered)]
    if lowered in _SAME_WORDS:
        return [Words(_SAME_WORDS[lowered])]
    return None


def choice_of(text: str) -> Choice | None:
    if len(text) > 400:
        return None
    if re.fullmatch(r"[A-H]{2,6}", text) and len(set(text)) == len(text):
        return Choice(frozenset(text))
    if _MANY_CHOICES.fullmatch(text) or _CHOICE_SET.fullmatch(text):
        letters = re.findall(r"[A-J]", text)
        return Choice(frozenset(letters)) if len(set(letters)) == len(letters) else None
    match = _ONE_CHOICE.fullmatch(text)
    if match is None:
        return Choice(frozenset(text)) if re.fullmatch(r"[a-h]", text) else None
    rest = (match["rest"] or "").strip()
    bracketed, bare = match[1], match[2]
    if bare and bare.islower() and len(text) > 1 and not text.lower().startswith(("option", "choice")):
        return None
    if bare and rest and rest[0] not in ":.)":
        return None
    rest = rest.lstrip(":.)- ").strip()
    if bracketed and rest and rest[0] in "+*/^=<>,":
        return None
    return Choice(frozenset(bracketed or bare), plain_words(rest))
