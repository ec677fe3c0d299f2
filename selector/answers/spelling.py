"""Bring the many spellings of one answer to one: LaTeX commands, Unicode, wrappers, doubled backslashes, delimiters."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

ROW_BREAK = "\ue000"  # between the rows of an array
MAX_LENGTH = 4000  # characters; a longer answer is compared as text only

_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ",
        str.split(
            "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
            "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
        ),
        strict=True,
    )
)
_SIGNS = str.maketrans(
    {
        **{letter: f"\\{name} " for letter, name in _GREEK.items()},
        **dict.fromkeys("−–—﹣－‐‑‒", "-"),
        **dict.fromkeys("×✕⨯", "\\times "),
        **dict.fromkeys("·⋅∙•", "\\cdot "),
        **dict.fromkeys("≤⩽≦", "\\le "),
        **dict.fromkeys("≥⩾≧", "\\ge "),
        **dict.fromkeys("∅⌀", "\\emptyset "),
        **dict.fromkeys("°º˚", "^\\circ "),
        **dict.fromkeys("‘’′ʹ", "'"),
        **dict.fromkeys("“”″", '"'),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", ""),
        "÷": "\\div ",
        "±": "\\pm ",
        "∓": "\\mp ",
        "∞": "\\infty ",
        "√": "\\sqrt ",
        "∛": "\\sqrt[3] ",
        "≠": "\\ne ",
        "∈": "\\in ",
        "∪": "\\cup ",
        "∩": "\\cap ",
        "∖": "\\setminus ",
        "ℝ": "\\RR ",
        "ℤ": "\\ZZ ",
        "ℕ": "\\NN ",
        "∣": "|",
        "∶": ":",
        "⁄": "/",
        "∧": " and ",
        "∨": " or ",
        "，": ", ",
        "、": ", ",
        "；": "; ",
    }
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ⁽⁾", "0123456789+-n()")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋ₙ", "0123456789+-n")
_SUPERSCRIPT_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ⁽⁾]+")
_SUBSCRIPT_RUN = re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋ₙ]+")
_RADICAL = re.compile(r"([√∛])\s*(\d+(?:\.\d+)?)")

# A JSON writer that forgot to escape its backslashes: "\frac" became a form feed and "rac".
_SWALLOWED = [
    (re.compile("\x0c(?=rac|orall|box)"), r"\\f"),
    (re.compile("\x08(?=inom|eta|oxed|ar|egin|ig|mod)"), r"\\b"),
    (re.compile("\t(?=ext|imes|heta|frac|an|au|o\\b|riangle)"), r"\\t"),
    (re.compile("\r(?=ight|ho|m\\b)"), r"\\r"),
    (re.compile("\n(?=eq\\b|e\\b)"), r"\\n"),
]
_RENAMED = {
    **dict.fromkeys(("dfrac", "tfrac", "cfrac", "sfrac"), "frac"),
    **dict.fromkeys(("dbinom", "tbinom"), "binom"),
    **dict.fromkeys(("leq", "leqslant", "leqq"), "le"),
    **dict.fromkeys(("geq", "geqslant", "geqq"), "ge"),
    **dict.fromkeys(("neq", "not="), "ne"),
    **dict.fromkeys(("varnothing", "O"), "emptyset"),
    **dict.fromkeys(("ast", "bullet"), "cdot"),
    **dict.fromkeys(("arctg", "arctan"), "arctan"),
    **dict.fromkeys(("bigcup",), "cup"),
    **dict.fromkeys(("land", "wedge"), "land"),
    **dict.fromkeys(("lor", "vee"), "lor"),
    **dict.fromkeys(("Reals", "reals", "R"), "RR"),
    "tg": "tan",
    "ctg": "cot",
    "cosec": "csc",
    "varphi": "phi",
    "vartheta": "theta",
    "varepsilon": "epsilon",
    "backslash": "setminus",
    "smallsetminus": "setminus",
    "iff": "Leftrightarrow",
}
_PLAIN = {
    **dict.fromkeys(("mid", "vert", "lvert", "rvert", "Vert", "lVert", "rVert"), "|"),
    **dict.fromkeys(("lbrace", "lbrack"), "\\{"),
    **dict.fromkeys(("rbrace", "rbrack"), "\\}"),
    **dict.fromkeys(
        str.split(
            "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr middle displaystyle textstyle "
            "limits nolimits rm bf it mathstrut textnormal"
        ),
        "",
    ),
    **dict.fromkeys(("quad", "qquad", "thinspace", "space", "enspace", "newline", "hfill"), " "),
    "lbrack": "[",
    "rbrack": "]",
    "colon": ":",
    "lt": "<",
    "gt": ">",
    "percent": "\\%",
    "dollar": "\\$",
    "pounds": "£",
    "euro": "€",
    "land": " and ",
    "lor": " or ",
    "ldotp": ".",
    "prime": "'",
    "degree": "^\\circ ",
    "textcirc": "\\circ ",
    "textdegree": "^\\circ ",
    "textdollar": "\\$",
}
_COMMAND = re.compile(r"\\([A-Za-z]+)\s*")
_SPACING = re.compile(r"\\[,;:! ]|~|\\(?:hspace|vspace|phantom|hphantom|label|tag)\*?\s*\{[^{}]*\}")
_WRAPPER = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|texttt|textup|textsc|mathrm|mathbf|mathit|mathsf|mathtt|mathcal|boldsymbol|"
    r"bm|mbox|hbox|emph|operatorname\*?|boxed|fbox|underline|ensuremath|mathop|pmb|mathnormal)\s*\{([^{}]*)\}"
)
_BLACKBOARD = re.compile(r"\\(?:mathbb|mathbf|Bbb)\s*(?:\{\s*([RZNQC])\s*\}|([RZNQC])\b)")
_PLAIN_RELATIONS = {"<=": "\\le ", "=<": "\\le ", ">=": "\\ge ", "=>": "\\ge ", "!=": "\\ne ", "==": "="}
_PLAIN_RELATION = re.compile("[<>=!]=|=[<>]")
_BRACED_NAME = re.compile(r"(?<![\\A-Za-z}])\{([A-Za-z])\}(?=[_^])")
_THOUSANDS = re.compile(
    r"(?<=\d)(?:\{?(?:,|\\,|\\;|\\!|\\thinspace\s?)\}?){1,4}(?=\d{3}(?!\d))|(?<=\d)[\u202f\u2009\xa0](?=\d{3}(?!\d))"
)
_LEAD = re.compile(
    r"(?:(?:so|thus|hence|therefore)\b,?\s*)?(?:the\s+)?(?:final\s+|correct\s+)?answer\s*(?:is\s*:?|:|=)\s*|"
    r"####\s*|[=:]\s*|\\(?:therefore|implies|Rightarrow)\s*",
    re.IGNORECASE,
)
_FRAME = re.compile(r"\\\(|\\\)|\\\[(?![\dA-Za-z.]+(?:pt|em|ex|mm|cm)\])|(?<!\\)\\\]")
_MARKUP = re.compile(r"(\*\*|__|`)(.+)\1")


@lru_cache(maxsize=8192)
def clean(answer: str) -> str:
    """Return one spelling for the many: plain ASCII operators and a small set of LaTeX commands, single spaces.

    Meaning is kept: ``\\$`` is a currency sign, ``\\{`` a set's brace, digits grouped in thousands stay grouped.
    An answer past MAX_LENGTH is only stripped.
    """
    if len(answer) > MAX_LENGTH:
        return answer.strip()
    text = answer
    for pattern, repair in _SWALLOWED:
        text = pattern.sub(repair, text)
    text = _THOUSANDS.sub(",", _single_backslashes(text))
    if not text.isascii():
        text = _plain_unicode(text)
    text = _SPACING.sub(" ", text)
    if "\\" in text:
        text = _BLACKBOARD.sub(lambda match: f"\\{(match[1] or match[2]) * 2} ", text)
        text = _unwrapped(text)
        text = re.sub(r" +(?=[\^_])", "", _COMMAND.sub(_renamed, text))
    text = _BRACED_NAME.sub(r"\1", text)
    text = _without_delimiters(text)
    text = _PLAIN_RELATION.sub(lambda match: _PLAIN_RELATIONS[match[0]], text)
    return _trimmed(" ".join(text.split()))


def _plain_unicode(text: str) -> str:
    text = _RADICAL.sub(lambda match: match[1] + "{" + match[2] + "}", text)
    text = _SUPERSCRIPT_RUN.sub(lambda match: "^{" + match[0].translate(_SUPERSCRIPTS) + "}", text)
    text = _SUBSCRIPT_RUN.sub(lambda match: "_{" + match[0].translate(_SUBSCRIPTS) + "}", text)
    text = "".join(_plain_fraction(letter) for letter in text)
    text = text.translate(_SIGNS)
    return unicodedata.normalize("NFKC", text).translate(_SIGNS)


def _plain_fraction(letter: str) -> str:
    if not unicodedata.decomposition(letter).startswith("<fraction>"):
        return letter
    top, _, bottom = unicodedata.normalize("NFKC", letter).partition("⁄")
    return f"\\frac{{{top}}}{{{bottom}}}"


def _single_backslashes(text: str) -> str:
    """Undo escaping that was done twice; row breaks of an array that was escaped once are left alone."""
    while "\\\\" in text and ("\\begin" not in text or "\\\\begin" in text):
        text = text.replace("\\\\", "\\")
    return text.replace("\\\\", ROW_BREAK)


def _unwrapped(text: str) -> str:
    for _ in range(6):
        replaced = _WRAPPER.sub(r" \1 ", text)
        if replaced == text:
            return text
        text = replaced
    return text


def _renamed(match: re.Match[str]) -> str:
    name = _RENAMED.get(match[1], match[1])
    if name in _PLAIN:
        return _PLAIN[name]
    return f"\\{name} "


def _without_delimiters(text: str) -> str:
    text = _FRAME.sub(" ", text)
    if "$" not in text:
        return text
    bare = len(re.findall(r"(?<!\\)\$", text))
    stripped = text.strip()
    before_digits = len(re.findall(r"(?<!\\)\$\s?(?=[\d.])", text))
    if bare and before_digits == bare and not stripped.endswith("$"):
        return re.sub(r"(?<!\\)\$", r"\\$", text)
    if bare == 1 and re.fullmatch(r"[\d.,\s]+\$", stripped):
        return stripped[:-1] + "\\$"
    return re.sub(r"(?<!\\)\$", " ", text)


def _trimmed(text: str) -> str:
    if markup := _MARKUP.fullmatch(text):
        text = markup[2].strip()
    lead = _LEAD.match(text)
    if lead and lead.end() < len(text):
        text = text[lead.end() :]
    while text and (text[-1] in ",;:" or (text[-1] == "." and not text.endswith(".."))):
        text = text[:-1].rstrip()
    return text.strip()
