"""Answers meant to hang a grader or fill its memory, all in one interpreter."""

import resource
import time

import pytest

from selector.answers import Grader, Verdict, group_answers

HOSTILE = {
    "tower": "9^{9^{9^9}}",
    "tower of a tower": "2^{2^{35}}",
    "power of a sum": "(1+x)^{100000}",
    "wide power": "(a+b+c+d+e+f+g)^{40}",
    "factorial": "100000000!",
    "factorial of a factorial": "((100000!)!)!",
    "binomial": "\\binom{1000000000}{500000000}",
    "huge power": "10^{1000000000}",
    "exponent": "1e999999999",
    "tiny": "1e-99999",
    "exponentials": "e^{e^{e^{e^e}}}",
    "sine of a huge number": "\\sin(10^{10^{10}})",
    "megabyte of digits": "1" * 1_000_000,
    "megabyte of terms": "x+" * 500_000,
    "megabyte of blanks": " " * 1_000_000 + "6",
    "digits": "9" * 3999,
    "braces": "{" * 5000 + "1" + "}" * 5000,
    "brackets": "(" * 3000 + "1" + ")" * 3000,
    "unclosed": "\\{" * 2000,
    "fractions": "\\frac{1}{" * 500 + "2" + "}" * 500,
    "few fractions": "\\frac{1}{1+" * 30 + "x" + "}" * 30,
    "roots": "\\sqrt{1+" * 35 + "2" + "}" * 35,
    "boxes": "\\boxed{" * 3000 + "}" * 3000,
    "texts": "\\text{" * 600 + "a" + "}" * 600,
    "bars": "|" * 2000,
    "signs": "-" * 3999 + "5",
    "exponents": "2" + "^2" * 500,
    "backslashes": "\\" * 3999,
    "dollars": "$" * 3999,
    "commas": "1," * 1900,
    "unions": "(1,2)\\cup" * 300 + "(1,2)",
    "relations": "<".join("abcdefgh" * 100),
    "variables": "+".join(f"x_{{{i}}}" for i in range(500)),
    "products": "".join(f"(x+{i})" for i in range(60)),
    "many roots": "+".join(f"\\sqrt{{{i}}}" for i in range(2, 300)),
    "poles": "+".join(f"\\frac{{1}}{{x+{i}}}" for i in range(40)),
    "sines": "+".join(f"\\sin^{{20}}({i}x)" for i in range(1, 9)),
    "large radicand": "\\sqrt{" + "1" * 500 + "}",
    "units": "5 " + "m/" * 120 + "s",
    "matrix": "\\begin{pmatrix}" + "1&" * 500 + "1\\end{pmatrix}",
    "nul": "5\x00",
    "lone surrogate": "\ud800 5",
    "emoji": "😀" * 1000,
    "integral": "\\int_0^{\\infty} e^{-x^{x^x}} dx",
}


@pytest.fixture(scope="module")
def grader():
    with Grader() as grader:
        grader.warm()
        yield grader


@pytest.mark.parametrize("name", HOSTILE)
def test_comes_back_in_time_and_equals_nothing_else(grader, name):
    hostile = HOSTILE[name]
    others = ["5", "x", "(1,2)", f"{hostile} + 1" if len(hostile) < 5000 else hostile[:-1]]
    for other in others if name != "integral" else others[:1]:  # which takes a worker its whole time
        start, busy = time.monotonic(), time.process_time()
        verdict = grader.compare(other, hostile)
        seconds, busy_seconds = time.monotonic() - start, time.process_time() - busy

        allowed = {"units": "5", "unions": "(1,2)"}.get(name)
        assert verdict is not Verdict.EQUIVALENT or other == allowed
        assert busy_seconds < 1.5
        assert seconds < 2 + 60 * (seconds - busy_seconds > 2)  # waiting for a worker's restart is not counted
        assert grader.compare(hostile, other) is verdict


def test_memory_stays_bounded(grader):
    group_answers(list(HOSTILE.values()), grader=None)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_500_000  # kB, of the whole test process


def test_reading_and_grouping_come_back(grader):
    start = time.process_time()
    for hostile in HOSTILE.values():
        grader.read_as(hostile)

    assert time.process_time() - start < 10
