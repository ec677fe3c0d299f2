"""Every English string that a person sees is marked for translation, and a marked one really comes out translated."""

import ast
import re
import struct
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.template.base import Lexer, TokenType
from django.test import Client
from django.urls import reverse
from django.utils import translation

from labeling.forms import JoinForm
from labeling.models import Pool, Role, User
from labeling.queries.event_words import EVENTS
from tests import factories

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))

# Templates: what may stand unmarked.
NAMES = {"Assay", "UTC", "GRPOTrainer", "TRL", "verl", "JSONL"}  # names and units are the same in every language
UNREAD = {"code", "kbd", "pre", "script", "style"}  # what machines write or read
LABELS = {"aria-label", "aria-roledescription", "title", "placeholder", "alt", "data-label", "label"}
LABELS |= {
    "data-reference-name",
    "data-choices",
    "data-across",
    "data-both",
    "data-first",
    "data-second",
}  # words in pictures
ADDRESSED = {"in_form", "more"}  # template arguments that are ids or queries
IDS = {"undo-form"}
SHOWN_ARGUMENTS = {"add", "default", "default_if_none", "pluralize", "yesno"}  # filters that show their argument

# Python: where people's words come from. Not the commands (a terminal), the workers (a log, and what is stored with a
# run), the API's own descriptions, and the engine's words.
PLACES = ("forms", "models", "views", "queries", "actions", "templatetags", "imports")
UNREAD_FILES = {"commands.py", "first_seen.py", "records.py"}  # a terminal, SQL, and what only a programmer can cause
WORDED_PYTHON = sorted(
    path for place in PLACES for path in (ROOT / "labeling" / place).glob("*.py") if path.name not in UNREAD_FILES
)
WORDED_PYTHON += [ROOT / "labeling" / name for name in ("middleware.py", "policies.py", "exports/checking.py")]

SCRIPTS = sorted(
    path for path in (ROOT / "labeling" / "static" / "labeling").rglob("*.js") if "vendor" not in path.parts
)
UNREAD_IN_SCRIPTS = {"use strict", "Enter", "Escape", "Home", "End", "tbody tr", "thead th", "select, textarea"}
UNREAD_LITERALS = {  # stages by their stored names, headers, and names that are stored
    "opening the model",
    "pool: reading internals",
    "reading internals",
    "reading answers",
    "grouping calibration answers",
    "grouping pool answers",
    "slot.",
    "text/csv; charset=utf-8",
    "unnamed settings",
    "Checks of round 0",
    'attachment; filename="comparison-0.json"',
    'attachment; filename="run-0-scores.csv"',
    "0: the question contains 0, which some trainers replace by a picture or sound.",
}


def words_in(text: str) -> bool:
    """Whether there is a word in it: more than a symbol, a unit or a name."""
    for name in NAMES:
        text = text.replace(name, "")
    return re.search(r"[^\W\d_]{2,}|\b[aI]\b", text) is not None


class Page(HTMLParser):
    """The text and the labels of what is left of a template."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []
        self.unread: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        labels = LABELS | ({"value"} if tag == "option" and dict(attrs).get("value", "") not in ("", "-") else set())
        for name, value in attrs:
            if name == "data-choices" and value:
                value = re.sub(r"\w+:", "", value)  # size:Set size,cluster:Cluster
            if name in labels and value and words_in(value):
                self.found.append((self.getpos()[0], f"{name}={value}"))
        if tag in UNREAD:
            self.unread.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.unread and self.unread[-1] == tag:
            self.unread.pop()

    def handle_data(self, data: str) -> None:
        if not self.unread and words_in(data):
            line = self.getpos()[0] + data[: len(data) - len(data.lstrip())].count("\n")
            self.found.append((line, data.strip()))


def unmarked_in(source: str) -> list[tuple[int, str]]:
    """The line and text of everything in a template that people read and no translation tag holds."""
    left, found, inside = [], [], None
    for token in Lexer(source).tokenize():
        content = token.contents
        name = content.split()[0] if token.token_type == TokenType.BLOCK else ""
        if inside and name == f"end{inside}":
            inside = None
        elif name in {"comment", "blocktranslate"} or (name == "block" and content.endswith("_attributes")):
            inside = name
        elif token.token_type == TokenType.TEXT and not inside:
            left.append(content)
            continue
        elif not inside:
            found += [(token.lineno, text) for text in shown_arguments(token.token_type, content)]
        left.append("\n" * content.count("\n"))
    page = Page()
    page.feed("".join(left))
    page.close()
    return sorted(found + page.found)


def shown_arguments(kind: TokenType, content: str) -> Iterator[str]:
    """Literals of a tag or a variable that are shown, without ``_(…)`` around them."""
    for filter_name, text in re.findall(r"""\|(\w+):["']([^"']*)["']""", content):
        if filter_name == "pluralize":
            yield f"{filter_name}:{text}"  # a plural by hand is no plural in most languages
        elif filter_name in SHOWN_ARGUMENTS and words_in(text) and text not in IDS:
            yield text
    if re.search(r"\|pluralize(?!:)", content):
        yield "pluralize"
    if kind == TokenType.BLOCK and content.split()[0] in {"include", "with"}:
        for argument, text in re.findall(r"""\s(\w+)=["']([^"']*)["']""", content):
            if argument not in ADDRESSED and words_in(text):
                yield f"{argument}={text}"


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_every_word_of_a_template_is_marked(template: Path) -> None:
    unmarked = unmarked_in(template.read_text())

    assert not unmarked, "\n".join(f"{template.relative_to(ROOT)}:{line}: {text}" for line, text in unmarked)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>\n  Plain words</p>", [(2, "Plain words")]),
        ("<p>{% if x %}{{ x }} of {{ y }}{% endif %}</p>", [(1, "of")]),
        ('<a title="Words" href="/">{{ x }}</a>', [(1, "title=Words")]),
        ('{{ x|default:"no words" }}', [(1, "no words")]),
        ("{{ n }} {{ n|pluralize }}", [(1, "pluralize")]),
        ('{% include "a.html" with label="Words" %}', [(1, "label=Words")]),
        ('{% load i18n %}<p title="{% translate \'Words\' %}">{% translate "Words" %} · {{ x }}</p>', []),
        ("{% blocktranslate with n=n %}<b>{{ n }}</b> words{% endblocktranslate %}", []),
        ("<code>assay probe</code>{% comment %}words{% endcomment %}", []),
        ('<main{% block main_attributes %} class="reading"{% endblock %}>words</main>', [(1, "words")]),
    ],
)
def test_unmarked_words_are_found_where_they_are(source: str, expected: list[tuple[int, str]]) -> None:
    assert unmarked_in(source) == expected


# Python


class Literals(ast.NodeVisitor):
    """Literals that read as prose and are given to no translation function; docstrings and names are none."""

    PROSE = re.compile(r"[^\W\d_]{2,}[,;:]? [^\W\d_]{2,}|^[A-Z][a-z]+ |[a-z]{3,}\.$")
    WORDED = {"label", "help_text", "empty_label"}  # of forms and models: there one word is prose too
    MARKING = {"_", "gettext", "gettext_lazy", "ngettext", "ngettext_lazy"}
    SILENT = {"getLogger", "exception", "TypeError"}  # a log, and a programmer's mistake

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called not in self.MARKING | self.SILENT:
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        words = node.value.value if isinstance(node.value, ast.Constant) else None
        if node.arg in self.WORDED and isinstance(words, str) and words_in(words):
            self.found.append((node.value.lineno, words))
        else:
            self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if any(ast.unparse(base) == "models.TextChoices" for base in node.bases):
            choices = [each.value for each in node.body if isinstance(each, ast.Assign)]
            labels = [each.elts[1] for each in choices if isinstance(each, ast.Tuple)]
            literals = [each for each in labels if isinstance(each, ast.Constant) and words_in(each.value)]
            self.found += [(each.lineno, each.value) for each in literals]
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._look(node, "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values))

    def visit_Constant(self, node: ast.Constant) -> None:
        self._look(node, node.value if isinstance(node.value, str) else "")

    def _look(self, node: ast.expr, text: str) -> None:
        if self.PROSE.search(text) and text not in UNREAD_LITERALS:
            self.found.append((node.lineno, text))


def unmarked_prose_in(source: str) -> list[tuple[int, str]]:
    literals = Literals()
    literals.visit(ast.parse(source))
    return sorted(literals.found)


@pytest.mark.parametrize("path", WORDED_PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_sentence_in_python_is_marked(path: Path) -> None:
    unmarked = unmarked_prose_in(path.read_text())

    assert not unmarked, "\n".join(f"{path.relative_to(ROOT)}:{line}: {text}" for line, text in unmarked)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""Words of a module."""\nx = f(f"{n} more words")', [(2, "0 more words")]),
        ('x = _("more words"), ngettext("one word", "%(n)s words", n)', []),
        ('x = forms.CharField(label="Name")', [(1, "Name")]),
        ('class A(models.TextChoices):\n    B = "b", "Name"\n    C = "c", _("Name")', [(2, "Name")]),
    ],
)
def test_unmarked_prose_is_found_where_it_is(source: str, expected: list[tuple[int, str]]) -> None:
    assert unmarked_prose_in(source) == expected


def test_whatever_is_recorded_has_words() -> None:
    recorded = {
        node.args[0].value
        for path in (ROOT / "labeling").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "record_event"
        if isinstance(node.args[0], ast.Constant)
    }

    assert len(recorded) > 40
    assert recorded <= EVENTS.keys()


# Scripts


def unmarked_in_script(source: str) -> list[tuple[int, str]]:
    """The line and text of every string that reads as prose and stands outside gettext and ngettext."""
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])  # noqa: E731
    source = re.sub(r"(?m)(^|\s)//.*$", blank, source)
    source = re.sub(r'\bn?gettext\((?:"(?:[^"\\]|\\.)*"(?:,\s*)?)+', blank, source)
    return [
        (source.count("\n", 0, match.start()) + 1, match[2])
        for match in re.finditer(r'(["`])((?:[^"`\\\n]|\\.)*)\1', source)
        if re.search(r"^[A-Z][a-z]+(?: [a-z]|$|\.)|[a-z]{2,},? [a-z]{2,}", match[2])
        and match[2] not in UNREAD_IN_SCRIPTS
        and not match[2].startswith(("#", "input:"))  # selectors
    ]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_every_sentence_of_a_script_is_marked(script: Path) -> None:
    unmarked = unmarked_in_script(script.read_text())

    assert not unmarked, "\n".join(f"{script.name}:{line}: {text}" for line, text in unmarked)


def test_unmarked_strings_of_a_script_are_found_where_they_are() -> None:
    source = """// some words
say(gettext("some words"), ngettext("%s word", "%s words", n));
say("some words", `${n} more words`);"""

    assert unmarked_in_script(source) == [(3, "some words"), (3, "${n} more words")]


# A language of its own, for these tests only


def write_catalog(path: Path, words: Mapping[str, str]) -> None:
    """A compiled gettext catalog: a table of originals, sorted, and one of translations; a zero joins plurals."""
    header = "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=(n != 1);\n"
    pairs = [(key.encode(), value.encode()) for key, value in sorted({"": header, **words}.items())]
    start = 7 * 4
    tables, texts = [b"", b""], b""
    at = start + 2 * 8 * len(pairs)
    for column in (0, 1):
        for pair in pairs:
            tables[column] += struct.pack("<2I", len(pair[column]), at + len(texts))
            texts += pair[column] + b"\0"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        struct.pack("<7I", 0x950412DE, 0, len(pairs), start, start + 8 * len(pairs), 0, 0)
        + tables[0]
        + tables[1]
        + texts
    )


@pytest.fixture
def esperanto(settings: Any, tmp_path: Path) -> Iterator[None]:
    write_catalog(
        tmp_path / "eo" / "LC_MESSAGES" / "django.mo",
        {
            "Log in": "Ensaluti",
            "Your name here": "Via nomo ĉi tie",
            "Annotator": "Prinotanto",
            "The name and password do not belong together. Both are case-sensitive.": "Nomo kaj pasvorto ne kongruas.",
            "%(n)s question\0%(n)s questions": "%(n)s demando\0%(n)s demandoj",
            "Only a manager of %(pool)s may do this. Ask one to do it or to invite you.": "Nur estro de %(pool)s.",
        },
    )
    write_catalog(tmp_path / "eo" / "LC_MESSAGES" / "djangojs.mo", {"Copied": "Kopiita"})
    settings.LANGUAGES = [("en", "English"), ("eo", "Esperanto")]
    settings.LOCALE_PATHS = [tmp_path]
    yield
    translation.activate("en")


@pytest.mark.django_db
def test_a_page_comes_out_in_the_language_that_the_browser_asks_for(esperanto: None, client: Client) -> None:
    page = client.get(reverse("login"), headers={"Accept-Language": "eo"})
    html = page.content.decode()

    assert page["Content-Language"] == "eo"
    assert '<html lang="eo" dir="ltr">' in html
    assert "<h1>Ensaluti</h1>" in html
    assert "Log in" not in re.sub(r"<!--.*?-->", "", html)


@pytest.mark.django_db
@pytest.mark.parametrize("language", ["en", "de", ""])
def test_other_languages_get_english(esperanto: None, client: Client, language: str) -> None:
    page = client.get(reverse("login"), headers={"Accept-Language": language})

    assert page["Content-Language"] == "en"
    assert "<h1>Log in</h1>" in page.content.decode()


@pytest.mark.django_db
def test_errors_labels_and_plurals_are_translated(esperanto: None, client: Client, pool: Pool, manager: User) -> None:
    factories.make_question(pool=pool)
    client.force_login(manager)
    wrong = Client().post(
        reverse("login"), {"username": "nobody", "password": "wrong"}, headers={"Accept-Language": "eo"}
    )
    home = client.get(reverse("home"), headers={"Accept-Language": "eo"})
    factories.make_question(pool=pool)
    more = client.get(reverse("home"), headers={"Accept-Language": "eo"})

    assert "Nomo kaj pasvorto ne kongruas." in wrong.content.decode()
    assert "1 demando<" in home.content.decode()
    assert "2 demandoj<" in more.content.decode()


@pytest.mark.django_db
def test_a_refusal_is_said_in_the_language_of_who_is_refused(
    esperanto: None, client: Client, pool: Pool, annotator: User
) -> None:
    client.force_login(annotator)

    refused = client.get(reverse("pool-people", args=[pool.slug]), headers={"Accept-Language": "eo"})

    assert refused.status_code == 403
    assert f"Nur estro de {pool}." in refused.content.decode()


def test_words_chosen_when_the_code_was_loaded_follow_the_language(esperanto: None) -> None:
    with translation.override("eo"):
        assert Role.ANNOTATOR.label == "Prinotanto"
        assert JoinForm().fields["username"].label == "Via nomo ĉi tie"
    assert Role.ANNOTATOR.label == "Annotator"


@pytest.mark.django_db
def test_scripts_get_their_words(esperanto: None, client: Client) -> None:
    words = client.get(reverse("javascript-catalog"), headers={"Accept-Language": "eo"})

    assert words["Content-Type"].startswith("text/javascript")
    assert '"Copied": "Kopiita"' in words.content.decode()
