"""What holds for every answer: symmetry, exactness, no exceptions."""

from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from selector.answers import KINDS, Verdict, canonical_form, exact_verdict, group_answers, infer_kind
from selector.answers.contract import AnswerPolicy
from selector.answers.reading_back import read_back
from selector.answers.spelling import clean

PIECES = [
    *"0123456789xyabnABCfei+-*/^_=<>()[]{}|!,;:.%&~'\" $\\",
    *[
        "\\frac",
        "\\sqrt",
        "\\{",
        "\\}",
        "\\pm",
        "\\le",
        "\\cup",
        "\\infty",
        "\\pi",
        "\\text{",
        "\\left(",
        "\\in",
        "\\log_",
    ],
    *["\\sin", "^\\circ", "\\$", "\\%", "\\begin{pmatrix}", "\\end{pmatrix}", "\\\\", "\\mathbb{R}", "\\binom", "\\ne"],
    *[
        " and ",
        " or ",
        "km",
        " apples",
        "½",
        "√",
        "≤",
        "∞",
        "π",
        "×",
        "−",
        "²",
        "\x00",
        "\ud800",
        "\t",
        "million",
        "12:30",
    ],
]
answers = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
)
fractions = st.fractions(max_denominator=10**6)
SPELLINGS = [
    lambda value: f"{value.numerator}/{value.denominator}",
    lambda value: f"\\frac{{{value.numerator}}}{{{value.denominator}}}",
    lambda value: f"$\\dfrac{{{2 * value.numerator}}}{{{2 * value.denominator}}}$",
    lambda value: f"x = {value.numerator}/{value.denominator}",
    lambda value: f"\\left({value.numerator}\\right) \\div {value.denominator}",
    lambda value: f"{value.numerator}\\cdot {value.denominator}^{{-1}}",
]


@given(answers, st.sampled_from([None, *KINDS]))
@example("--" * 600 + "5", None)
@example("2^" * 300 + "2", None)
@example("\\sin" * 300 + "x", None)
@example("(" * 39 + "1,2" + ")" * 39, None)
@example("x=" * 11 + "1", None)
@settings(max_examples=250, deadline=None)
def test_any_text_is_read_without_an_error(answer, kind):
    assert infer_kind(answer) in KINDS
    assert bool(canonical_form(answer, kind)) == bool(clean(answer))
    read_back(answer, kind, AnswerPolicy())
    assert exact_verdict(answer, answer, kind) is (Verdict.EQUIVALENT if clean(answer) else Verdict.DIFFERENT)


@given(answers, answers, st.sampled_from([None, *KINDS]))
@settings(max_examples=250, deadline=None)
def test_verdicts_are_symmetric_and_agree_with_forms(left, right, kind):
    verdict = exact_verdict(left, right, kind)

    assert exact_verdict(right, left, kind) is verdict
    if canonical_form(left, kind) and canonical_form(left, kind) == canonical_form(right, kind):
        assert verdict is Verdict.EQUIVALENT


@given(fractions, fractions, st.sampled_from(SPELLINGS), st.sampled_from(SPELLINGS))
def test_fractions_are_compared_exactly(left, right, spell_left, spell_right):
    same = Verdict.EQUIVALENT if left == right else Verdict.DIFFERENT
    assert exact_verdict(spell_left(left), spell_right(left)) is Verdict.EQUIVALENT
    assert exact_verdict(spell_left(left), spell_right(right)) is same


@given(st.integers(-(10**9), 10**9), st.integers(0, 6))
def test_decimals_are_exact(digits, places):
    value = Fraction(digits, 10**places)
    sign = "-" if digits < 0 else ""
    text = f"{sign}{abs(digits) // 10**places}." + f"{abs(digits) % 10**places:0{places}d}" * (places > 0)

    assert exact_verdict(text, f"{value}") is Verdict.EQUIVALENT
    assert exact_verdict(text + "1", f"{value}") is Verdict.DIFFERENT


@given(st.integers(0, 10**15))
def test_thousands_separators_change_nothing(value):
    for comma in (",", "{,}", "\\,", "\u202f"):
        assert exact_verdict(str(value), f"{value:,}".replace(",", comma)) is Verdict.EQUIVALENT


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=6), st.randoms())
def test_sets_and_lists_have_no_order_and_tuples_have(values, rng):
    shuffled = rng.sample(values, len(values))
    listed, other = (", ".join(map(str, items)) for items in (values, shuffled))

    assert exact_verdict(listed, other) is Verdict.EQUIVALENT
    assert exact_verdict(f"\\{{{listed}\\}}", f"\\{{{other}\\}}") is Verdict.EQUIVALENT
    same = Verdict.EQUIVALENT if values == shuffled else Verdict.DIFFERENT
    assert exact_verdict(f"({listed})", f"({other})") is same


@given(st.lists(st.integers(-9, 9), min_size=3, max_size=3), st.integers(-9, 9).filter(bool))
def test_equations_are_compared_up_to_a_factor(coefficients, factor):
    a, b, c = coefficients
    equation = f"({a})x + ({b})y + ({c}) = 0"
    multiple = f"({a * factor})x + ({b * factor})y = ({-c * factor})"
    off = f"({a * factor})x + ({b * factor})y = ({-c * factor}) + 1"

    assert exact_verdict(equation, multiple) is Verdict.EQUIVALENT
    if a or b:
        assert exact_verdict(equation, off) is Verdict.DIFFERENT


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-9, 9))
def test_products_are_expanded(a, b, c):
    factored = f"(x - ({a}))(x - ({b}))(x - ({c}))"
    expanded = f"x^3 - ({a + b + c})x^2 + ({a * b + b * c + a * c})x - ({a * b * c})"

    assert exact_verdict(factored, expanded) is Verdict.EQUIVALENT
    assert exact_verdict(factored, expanded + " + 1") is Verdict.DIFFERENT


@given(st.integers(-20, 20), st.integers(1, 20), st.booleans(), st.booleans())
def test_intervals_are_the_inequalities_they_stand_for(low, width, low_closed, high_closed):
    high = low + width
    interval = f"{'[' if low_closed else '('}{low}, {high}{']' if high_closed else ')'}"
    marks = {True: "\\le", False: "<"}
    chain = f"{low} {marks[low_closed]} x {marks[high_closed]} {high}"
    flipped = f"{low} {marks[not low_closed]} x {marks[high_closed]} {high}"

    assert exact_verdict(interval, chain) is Verdict.EQUIVALENT
    assert exact_verdict(interval, flipped) is Verdict.DIFFERENT


@given(st.lists(answers, max_size=12))
@settings(deadline=None)
def test_classes_are_numbered_by_first_appearance(many):
    classes = group_answers(many)

    seen = [number for number in dict.fromkeys(classes) if number >= 0]
    assert seen == list(range(len(seen)))
    assert all((number < 0) == (not clean(answer)) for answer, number in zip(many, classes, strict=True))


@pytest.mark.parametrize("n_digits", [12, 15, 16, 17])
def test_a_machines_print_of_a_fraction_is_that_fraction_and_its_neighbour_is_not(n_digits):
    for value in (Fraction(1, 3), Fraction(2, 7), Fraction(-5, 11)):
        scaled = round(abs(value) * 10**n_digits)
        sign = "-" if value < 0 else ""
        assert exact_verdict(str(value), f"{sign}0.{scaled:0{n_digits}d}") is Verdict.EQUIVALENT
        assert exact_verdict(str(value), f"{sign}0.{scaled + 2:0{n_digits}d}") is Verdict.DIFFERENT
        assert exact_verdict(str(value), f"{sign}0.{scaled // 10**4:0{n_digits - 4}d}") is (
            Verdict.EQUIVALENT if n_digits - 4 >= 12 else Verdict.DIFFERENT
        )
