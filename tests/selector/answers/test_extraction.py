"""The final answer of a completion."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selector.answers import extract_answer, extract_probe_answer


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        (r"so we get \boxed{12}.", "12"),
        (r"\boxed{1} no wait. In fact it is \boxed{2}", "2"),
        (r"\boxed{\frac{3}{4}}", r"\frac{3}{4}"),
        (r"\boxed{ \{1,2\} }", r"\{1,2\}"),
        (r"\boxed {7}", "7"),
        (r"\boxed{x=\boxed{5}}", "5"),
        (r"\boxed{840}.,\boxed{840}", "840"),
        (r"\boxed{1}, \boxed{2}", "1, 2"),
        (r"$\boxed{1}$ and $\boxed{2}$", "1, 2"),
        (r"\boxed{1} \text{ or } \boxed{2}", "1, 2"),
        (r"\boxed{1}\boxed{2}\boxed{3}", "1, 2, 3"),
        (r"<think>maybe \boxed{6}</think> The answer is \boxed{5}", "5"),
        (r"maybe \boxed{6}</think> I am not sure", ""),
        (r"<think> it is \boxed{6}", ""),
        (r"\boxed{}", ""),
        (r"\boxed{5", ""),
        (r"\boxed{5} and then \boxed{6", ""),
        (r"\boxed{5\}", ""),
        (r"\fbox{5}", "5"),
        (r"\fbox{5} but \boxed{6}", "6"),
        ("The answer is **73**", "73"),
        ("**Answer:** 5", "5"),
        ("Answer: 5", "5"),
        ("**Final Answer**\n\n12", "12"),
        ("The final answer is: $\\frac{1}{2}$. I hope it is right.", "\\frac{1}{2}"),
        ("#### 1,234", "1,234"),
        ("The answer is B. Note that A would be wrong.", "B"),
        ("I considered 5 but the answer is $6$.", "6"),
        ("The answer is 3.14. Rounded.", "3.14"),
        ("First the answer is 3. Then the answer is 4.", "4"),
        ("I do not know, perhaps 5", ""),
        ("", ""),
    ],
)
def test_reads_the_last_box_else_what_is_stated_else_nothing(completion, answer):
    assert extract_answer(completion) == answer


@pytest.mark.parametrize(
    ("continuation", "answer"),
    [
        ("12}", "12"),
        (r"\frac{3}{4}}.", r"\frac{3}{4}"),
        (r"\{1, 2\}} and", r"\{1, 2\}"),
        ("x^{2}", ""),
        ("12", ""),
        ("}", ""),
        ("", ""),
    ],
)
def test_a_probe_is_cut_at_the_balanced_brace(continuation, answer):
    assert extract_probe_answer(continuation) == answer


@given(st.text(alphabet=st.characters(blacklist_characters="{}\\"), min_size=1))
def test_what_is_boxed_is_read(text):
    assert extract_answer("so \\boxed{" + text + "} it is") == text.strip()
    assert extract_probe_answer(text + "}") == text.strip()


@given(st.text())
def test_any_text_is_read_without_an_error(text):
    assert isinstance(extract_answer(text), str)
    assert isinstance(extract_answer("\\boxed{" + text), str)
    assert isinstance(extract_probe_answer(text), str)


@pytest.mark.parametrize(
    "text",
    [
        " " * 1_000_000,
        "\\boxed{" * 100_000,
        "\\boxed{1} " * 100_000,
        "\\boxed{" * 50_000 + "}" * 50_000,
        "\\boxed{1}" + " " * 500_000 + "\\boxed{2}",
        "answer" + " " * 500_000 + "is" + "*" * 500_000,
        "final answer\n" * 50_000,
        "{" * 1_000_000,
        "$" * 1_000_000,
        "the answer is $" + "x" * 1_000_000,
    ],
    ids=range(10),
)
def test_a_megabyte_is_read_in_no_time(text):
    start = time.process_time()
    extract_answer(text)
    extract_probe_answer(text)
    assert time.process_time() - start < 2
