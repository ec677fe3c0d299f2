"""Question text made into safe HTML: everything escaped, maths left in marked elements for the browser to typeset."""

import re
from functools import cache, lru_cache

from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

# A dollar opens maths when no space follows, and closes it when no space precedes and no digit follows:
# "$5 and $6" is money.
MATHS = re.compile(
    r"""
    \$\$(?P<dollars>.+?)\$\$
    | \\\[(?P<brackets>.+?)\\\]
    | \\\((?P<parentheses>.+?)\\\)
    | (?<![\\\d])\$(?!\s)(?P<dollar>(?:[^$\\]|\\.)+?)(?<![\s\\])\$(?!\d)
    | (?P<environment>
        \\begin\{(?P<name>(?:align|aligned|equation|gather|cases|array|[pbvBV]?matrix)\*?)\}.+?\\end\{(?P=name)\}
      )
    """,
    re.DOTALL | re.VERBOSE,
)
MOST_CHARACTERS = 20_000  # a longer text is shown as it is: looking for maths could take seconds
DISPLAYED = {"dollars", "brackets", "environment"}


@lru_cache(maxsize=2048)  # a page of the queue shows six questions, five of which it has shown before
def render_text(text: str, *, markdown: bool = False) -> SafeString:
    """Turn a question's text into HTML without trusting any of it.

    Plain text keeps its line breaks; Markdown has HTML and images off, since an image would fetch from elsewhere.
    Maths becomes ``<span class="math">`` holding its source, which stays readable where JavaScript is off.
    """
    if len(text) > MOST_CHARACTERS:
        return conditional_escape(text)
    if not markdown:
        return _render_plain(text)
    return mark_safe(_markdown().render(_brackets_to_dollars(text)))  # noqa: S308 (html=False escapes all it is given)


def render_answer(answer: str) -> SafeString:
    """Turn an answer into HTML: bare LaTeX as maths, words as words."""
    if len(answer) <= MOST_CHARACTERS and any(sign in answer for sign in "\\^_{") and "$" not in answer:
        return maths_element(answer, source=answer)
    return render_text(answer)


def _render_plain(text: str) -> SafeString:
    pieces: list[tuple[SafeString]] = []
    position = 0
    after_block = False
    for found in MATHS.finditer(text):
        group = next(name for name, value in found.groupdict().items() if value is not None and name != "name")
        words = text[position : found.start()]
        words = words.lstrip() if after_block else words
        after_block = group in DISPLAYED  # stands on a line of its own: the blanks around it would show as well
        pieces.append((_unescape_dollars(words.rstrip() if after_block else words),))
        pieces.append((maths_element(found[group], source=found[0], display=after_block),))
        position = found.end()
    pieces.append((_unescape_dollars(text[position:].lstrip() if after_block else text[position:]),))
    return format_html_join("", "{}", pieces)


def _unescape_dollars(text: str) -> SafeString:
    return conditional_escape(text.replace(r"\$", "$"))


def maths_element(tex: str, *, source: str, display: bool = False) -> SafeString:
    """Hold TeX for the browser; ``source`` is what a reader without JavaScript sees."""
    return format_html(
        '<span class="math {}" data-tex="{}">{}</span>', "block" if display else "inline", tex.strip(), source
    )


@cache
def _markdown() -> MarkdownIt:
    reader = (
        MarkdownIt("commonmark", {"html": False, "breaks": True})
        .enable("table")
        .disable(["image", "html_inline", "html_block"])
    )
    return reader.use(
        dollarmath_plugin,
        allow_space=False,
        allow_digits=False,
        allow_labels=False,
        double_inline=True,
        renderer=_markdown_maths,
    )


def _markdown_maths(tex: str, options: dict[str, bool]) -> str:
    # The plugin has put <span class="math inline"> or <div class="math block"> around this.
    return conditional_escape(tex.strip())


def _brackets_to_dollars(text: str) -> str:
    r"""Markdown reads ``\(`` as an escaped bracket, so maths written that way is respelled with dollars first."""

    def respell(found: re.Match[str]) -> str:
        if found["brackets"] is not None:
            return f"$${found['brackets'].strip()}$$"
        if found["parentheses"] is not None:
            return f"${found['parentheses'].strip()}$"
        return found[0]

    return MATHS.sub(respell, text)


def lettered(choices: list[str]) -> list[dict[str, str]]:
    """Name a question's choices A, B, C as its prompt does; the letter is the answer."""
    return [
        {"value": chr(ord("A") + i), "label": f"{chr(ord('A') + i)}.", "text": text} for i, text in enumerate(choices)
    ]
