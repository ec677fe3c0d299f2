"""Units and currencies: splitting them off a value, their many names, and lengths, times and masses in one measure."""

from __future__ import annotations

import re
from fractions import Fraction

_F = Fraction
# name -> (canonical name, dimension, size in the dimension's measure)
_TABLE: dict[str, tuple[str, str, Fraction]] = {}


def _define(canonical: str, dimension: str, size: int | Fraction, *names: str) -> None:
    for name in (canonical, *names):
        _TABLE[name] = (canonical, dimension, _F(size))


_define("mm", "length", _F(1, 1000), "millimeter", "millimetre")
_define("cm", "length", _F(1, 100), "centimeter", "centimetre")
_define("dm", "length", _F(1, 10), "decimeter", "decimetre")
_define("m", "length", 1, "meter", "metre")
_define("km", "length", 1000, "kilometer", "kilometre")
_define("in", "length", _F(254, 10_000), "inch", "inche", '"')
_define("ft", "length", _F(3048, 10_000), "foot", "feet")
_define("yd", "length", _F(9144, 10_000), "yard")
_define("mi", "length", _F(1_609_344, 1000), "mile")
_define("ms", "time", _F(1, 1000), "millisecond")
_define("s", "time", 1, "sec", "second")
_define("min", "time", 60, "minute")
_define("h", "time", 3600, "hr", "hour")
_define("day", "time", 86_400)
_define("week", "time", 604_800)
_define("month", "month", 1)
_define("year", "month", 12, "yr")
_define("mg", "mass", _F(1, 1000), "milligram")
_define("g", "mass", 1, "gram", "gramme")
_define("kg", "mass", 1000, "kilogram", "kilo")
_define("t", "mass", 1_000_000, "tonne")
_define("lb", "pound mass", 1)
_define("oz", "pound mass", _F(1, 16), "ounce")
_define("ml", "volume", _F(1, 1000), "mL", "milliliter", "millilitre")
_define("cl", "volume", _F(1, 100), "cL", "centiliter", "centilitre")
_define("l", "volume", 1, "L", "liter", "litre")
for _name in str.split(
    "N J W V A K C F Pa Hz kHz kPa kJ kW kN mol rad ohm mph kph kmh ha acre radian gallon degree unit"
):
    _define(_name, _name, 1)
_define("°C", "°C", 1)
_define("°F", "°F", 1)
_define("sq", "sq", 1, "square")
_define("cu", "cu", 1, "cubic")

_CURRENCY_SIGNS = {"\\$": "$", "€": "€", "£": "£", "¥": "¥", "₹": "₹", "₽": "₽"}
_CURRENCY_WORDS = {
    **dict.fromkeys(("dollar", "dollars", "usd", "us dollars"), "$"),
    **dict.fromkeys(("euro", "euros", "eur"), "€"),
    **dict.fromkeys(("pound sterling", "pounds sterling", "gbp"), "£"),
    **dict.fromkeys(("yen", "jpy"), "¥"),
    **dict.fromkeys(("rupee", "rupees", "inr", "rs", "rs."), "₹"),
    **dict.fromkeys(("yuan", "rmb", "cny"), "yuan"),
    **dict.fromkeys(("ruble", "rubles", "rouble", "roubles"), "₽"),
}
_MULTIPLIERS: dict[str, Fraction] = {
    "hundred": _F(100),
    "thousand": _F(1000),
    "million": _F(10**6),
    "billion": _F(10**9),
    "trillion": _F(10**12),
    "dozen": _F(12),
    "halves": _F(1, 2),
    "third": _F(1, 3),
    "fourth": _F(1, 4),
    "fifth": _F(1, 5),
    "sixth": _F(1, 6),
    "eighth": _F(1, 8),
    "tenth": _F(1, 10),
    "hundredth": _F(1, 100),
    "thousandth": _F(1, 1000),
}
_STOP_WORDS = set(
    str.split(
        "and or is are was were be not no more less than least most about approximately around at if when "
        "for unless only but from to in on by as with without the a an mod modulo times plus minus over "
        "choose where every each between either neither nor both can cannot impossible infinitely because "
        "since all none any other squared cubed factorial fewer greater larger smaller higher lower base binary "
        "octal decimal hexadecimal pair pairs score gross fold per percent negative positive half"
    )
)
_SUFFIX = re.compile(
    r"(?P<value>.*?[\d)}\]!]|.*?\\pi|.*?\\infty|.*?[a-z](?=\s))(?P<gap>\s*)"
    r"(?P<unit>(?:[A-Za-z]+\.?|\")(?:\^(?:\d|\{-?\d\}))?"
    r"(?:(?:\s+|\s*/\s*|\s*\\cdot\s+|-)[A-Za-z]+\.?(?:\^(?:\d|\{-?\d\}))?)*)"
)
_MATHS_WORDS = set(
    str.split("sin cos tan cot sec csc arcsin arccos arctan ln log lg exp sqrt pi infinity infty inf e i x y z n k")
)
_PLAIN_NUMBER = re.compile(
    r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:\s*/\s*\d+|(?:\s*\\times\s*|\s*\\cdot\s*)10\^\{?-?\d+\}?)?|"
    r"[-+]?\d*\s*\\frac\s*\{?\d+\}?\s*\{?\d+\}?|.*(?:\\pi|\\sqrt\s*(?:\[\d\]\s*)?\{?\d+\}?)"
)


def split_currency(text: str) -> tuple[str, str]:
    """Return the text without its currency, and the currency's sign ("" without one)."""
    for spelling, sign in _CURRENCY_SIGNS.items():
        if spelling in text:
            rest = text.replace("US" + spelling, spelling).replace(spelling, " ", 1).strip()
            rest = re.sub(r"^([-+])\s+", r"\1", rest)
            return (rest, sign) if rest else (text, "")
    lowered = text.lower()
    for word, sign in _CURRENCY_WORDS.items():
        if lowered.endswith(" " + word) or (lowered.endswith(word) and text[: -len(word)][-1:].isdigit()):
            return text[: -len(word)].strip(), sign
        if lowered.startswith(word) and text[len(word) :].lstrip()[:1].isdigit():
            return text[len(word) :].strip(), sign
    return text, ""


def split_multiplier(text: str) -> tuple[str, Fraction]:
    """Return the text without a closing "million", "tenths" and their like, and what they multiply by."""
    factor = _F(1)
    while True:
        head, _, word = text.rpartition(" ")
        known = _MULTIPLIERS.get(word.lower()) or _MULTIPLIERS.get(word.lower().removesuffix("s"))
        if not head or known is None:
            return text, factor
        text, factor = head.strip(), factor * known


def split_unit(text: str, *, single_letters: bool) -> tuple[str, str]:
    """Return the value's text and its unit in canonical spelling ("" without one).

    A unit is a known name, or up to three ordinary words after a number. ``single_letters`` allows "5 m", which in an
    expression would be five times m.
    """
    if len(text) > 300:
        return text, ""
    match = _SUFFIX.fullmatch(text)
    if match is None:
        return text, ""
    value, gap, unit = match["value"].strip(), match["gap"], match["unit"]
    words = re.findall(r'[A-Za-z]+|"', unit)
    if value[-1:].isalpha() and not value.endswith(("\\pi", "\\infty")) and not all(map(is_known, words)):
        return text, ""
    if any(word.lower() in _STOP_WORDS and word != "in" for word in words[:1]) or words[0] in _MATHS_WORDS:
        return text, ""
    if words[0] == "in" and len(words) > 1:
        return text, ""
    if len(words) == 1 and len(words[0]) == 1 and words[0] != '"':
        allowed = single_letters and is_known(words[0]) and gap and _PLAIN_NUMBER.fullmatch(value)
        return (value, canonical_unit(unit)) if allowed else (text, "")
    if all(is_known(word) or (word == "per" and index) for index, word in enumerate(words)):
        bare_product = not gap and all(len(word) < 3 for word in words) and not value[-1:].isdigit()
        return (text, "") if bare_product else (value, canonical_unit(unit))
    ordinary = gap and all(len(word) >= 3 or word in ("of", "per", "in") for word in words) and len(words) <= 4
    barred = _MATHS_WORDS.union(_STOP_WORDS - {"the", "to", "in"})
    is_unit = ordinary and words[0].lower() not in _STOP_WORDS and barred.isdisjoint(map(str.lower, words))
    return (value, canonical_unit(unit)) if is_unit else (text, "")


def is_known(word: str) -> bool:
    """Tell whether a word is the name of a unit."""
    return _lookup(word) is not None


def canonical_unit(unit: str) -> str:
    """Return a unit in one spelling: ``square meters`` and ``m^{2}`` are ``m^2``, ``km per hour`` is ``km/h``."""
    text = re.sub(r"\s*\\cdot\s*|-", " ", unit)
    text = re.sub(r"\^\{(-?\d)\}", r"^\1", text)
    text = re.sub(r"\s+per\s+|\s*/\s*", " / ", text)
    text = text.replace(".", "")
    text = re.sub(r"\b(?:square|sq)\s+([A-Za-z]+)", r"\1^2", text)
    text = re.sub(r"\b(?:cubic|cu)\s+([A-Za-z]+)", r"\1^3", text)
    parts = []
    for part in text.split():
        name, caret, exponent = part.partition("^")
        known = _lookup(name)
        parts.append((known[0] if known else singular(name)) + caret + exponent)
    joined = " ".join(parts).replace(" / ", "/")
    return {"mph": "mi/h", "kph": "km/h", "kmh": "km/h"}.get(joined, joined)


def singular(word: str) -> str:
    """Return an ordinary word lower-cased and without a plural s."""
    lowered = word.lower()
    return lowered[:-1] if lowered.endswith("s") and not lowered.endswith("ss") and len(lowered) > 3 else lowered


def conversion(left: str, right: str) -> Fraction | None:
    """Return how many ``right`` one ``left`` is, for units of the same dimension; None where nothing is known."""
    if left == right:
        return Fraction(1)
    sizes = []
    for unit in (left, right):
        name, _, exponent = unit.partition("^")
        known = _lookup(name)
        if known is None or (exponent and not exponent.isdigit()):
            return None
        n = int(exponent or 1)
        sizes.append((known[1], n, known[2] ** n))
    (left_dimension, left_n, left_size), (right_dimension, right_n, right_size) = sizes
    return left_size / right_size if (left_dimension, left_n) == (right_dimension, right_n) else None


def _lookup(word: str) -> tuple[str, str, Fraction] | None:
    if word in _TABLE:
        return _TABLE[word]
    if len(word) < 2:
        return None
    lowered = word.lower()
    return _TABLE.get(lowered) or (_TABLE.get(lowered[:-1]) if len(lowered) > 3 and lowered.endswith("s") else None)
