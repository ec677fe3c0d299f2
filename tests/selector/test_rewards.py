"""The reward file, as trainers call it."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from selector import rewards
from selector.rewards import UnreadableGold, accuracy_reward, check_golds, compute_score, read_boxed

SOURCE = Path(rewards.__file__)
HOSTILE = (
    r"9^{9^{9^9}}",
    r"100000000!",
    r"(1+x)^{100000}",
    "{" * 5000 + "}" * 5000,
    "1" * 1_000_000,
    r"\sqrt{" * 3000 + "2" + "}" * 3000,
)


def boxed(answer: str) -> str:
    return f"Let me see. So \\boxed{{{answer}}}"


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        (r"\boxed{12}", "12"),
        (r"first \boxed{1} then \boxed{\frac{3}{4}}.", r"\frac{3}{4}"),
        (r"\boxed{12} and \boxed{13", "12"),
        (r"<think>\boxed{1}</think> it is \boxed{2}", "2"),
        (r"<think>\boxed{1}</think> it is one", ""),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        ("The answer is 12", ""),
        ("", ""),
    ],
)
def test_the_last_balanced_box_after_thinking_is_read(completion: str, answer: str) -> None:
    assert read_boxed(completion) == answer


def test_strings_and_chat_messages_are_graded_alike_with_the_arguments_of_trl() -> None:
    completions = [boxed("42"), boxed("41"), [{"role": "assistant", "content": boxed(r"\frac{84}{2}")}], "no box: 42"]
    kwargs = {
        "prompts": ["?"] * 4,
        "completion_ids": [[1]] * 4,
        "uid": list("abcd"),
        "trainer_state": None,
        "log_extra": print,
    }

    by_answer = accuracy_reward(completions=completions, answer=["42"] * 4, **kwargs)
    by_solution = accuracy_reward(completions=completions, solution=["$42$"] * 4, **kwargs)

    assert by_answer == by_solution == [1.0, 0.0, 1.0, 0.0]
    assert all(type(reward) is float for reward in by_answer)


def test_one_completion_is_graded_with_the_arguments_of_verl() -> None:
    extra = {"split": "train", "index": 0, "uid": "q", "answer_kind": "choice"}

    assert compute_score("assay", boxed(r"\text{(B)}"), "B", extra, reward_router_address=None) == 1.0
    assert compute_score("assay", boxed("A"), "B", extra) == 0.0
    assert compute_score(data_source="assay", solution_str=boxed("x+1"), ground_truth="1+x") == 1.0


@pytest.mark.parametrize(
    ("gold", "answer", "reward"),
    [
        ("8000", "8,000", 1.0),
        (r"9{,}500", "9500", 1.0),
        ("1,234", "1, 234", 0.0),
        ("016", "16", 1.0),
        ("0.5", r"\dfrac{1}{2}", 1.0),
        ("0.333", r"\frac{1}{3}", 0.0),
        (r"\frac{1}{12}", "0.0833333333333333", 1.0),
        (r"\frac{1}{2^{99}}", r"\frac{1}{2^{98}}", 0.0),
        (r"\$18.90", "18.90", 1.0),
        ("0.00001", "1e-5", 1.0),
        (r"x^2+2x+1", "(x+1)^2", 1.0),
        (r"\{1,2,3\}", r"\{3,2,1\}", 1.0),
        ("(1,2)", "(2,1)", 0.0),
        ("[0,1)", "(0,1]", 0.0),
        ("10 km", "10 m", 0.0),
        (r"\text{Evelyn}", r"\text{Carla}", 0.0),
        (r"\sqrt{2}", "1.41421356", 0.0),
        ("12345678901234567890", "12345678901234567891", 0.0),
    ],
)
def test_equal_answers_earn_the_reward_and_others_do_not(gold: str, answer: str, reward: float) -> None:
    assert accuracy_reward([boxed(answer)], answer=[gold]) == [reward]


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: text[:12])
def test_a_hostile_completion_earns_nothing_within_the_limit(hostile: str) -> None:
    accuracy_reward([boxed("x")], answer=["y"])  # a worker is running
    began = time.monotonic()

    assert accuracy_reward([boxed(hostile)], answer=["7"]) == [0.0]

    assert time.monotonic() - began < rewards.WALL_LIMIT_SECONDS + 1


def test_grading_goes_on_after_a_worker_was_ended() -> None:
    assert accuracy_reward([boxed(HOSTILE[0]), boxed("1+x")], answer=["x+1", "x+1"]) == [0.0, 1.0]


def test_an_unreadable_gold_is_named_before_training_and_refused_in_it() -> None:
    golds = ["7", "", "{1", r"\frac{1}{2}", "   ", "?!"]

    problems = check_golds(golds, ["", "", "", "", "", "text"])

    assert sorted(problems) == [1, 2, 4, 5]
    for gold in ("", "{1"):
        with pytest.raises(UnreadableGold, match=re.escape(repr(gold))):
            accuracy_reward([boxed("1")], answer=[gold])
    with pytest.raises(TypeError, match="'answer' or 'solution'"):
        accuracy_reward([boxed("1")], other=["1"])


def test_a_gold_of_the_wrong_type_is_named() -> None:
    assert "type int" in check_golds([7])[0]  # type: ignore[list-item]


def test_threads_are_graded_at_once() -> None:
    def grade(number: int) -> float:
        return compute_score("assay", boxed(f"{number}+x"), f"x+{number}")

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(grade, range(24))) == [1.0] * 24
    assert threading.active_count() < 50


def _grade_algebra(_: int) -> list[float]:
    return accuracy_reward([boxed("1+x"), boxed("x")], answer=["x+1", "x+1"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forked workers exist on POSIX only")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_and_daemonic_workers_grade() -> None:
    assert _grade_algebra(0) == [1.0, 0.0]  # the parent has a worker, which its children must leave alone
    with multiprocessing.get_context("fork").Pool(2) as daemons:
        assert daemons.map(_grade_algebra, range(4)) == [[1.0, 0.0]] * 4
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as spawned:
        assert spawned.submit(_grade_algebra, 0).result() == [1.0, 0.0]

    assert _grade_algebra(0) == [1.0, 0.0]


def test_the_file_works_away_from_the_project(tmp_path: Path) -> None:
    copied = tmp_path / "rewards.py"
    copied.write_bytes(SOURCE.read_bytes())
    program = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('custom_module', {str(copied)!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "sys.modules['custom_module'] = module\n"
        "spec.loader.exec_module(module)\n"
        "print(module.compute_score('assay', '\\\\boxed{1+x}', 'x+1', {}))\n"
        "assert not any(name.split('.')[0] in {'selector', 'labeling', 'numpy', 'torch'} for name in sys.modules)\n"
    )

    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert (ran.stdout, ran.stderr, ran.returncode) == ("1.0\n", "", 0)


def test_the_file_loads_without_being_registered_as_a_module() -> None:
    spec = importlib.util.spec_from_file_location("loaded_by_path", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    assert module.accuracy_reward([boxed("1+x")], answer=["x+1"]) == [1.0]


def test_a_gold_that_brings_its_own_box_is_what_stands_in_it():
    assert check_golds([r"\boxed{5}", r"$\boxed{\frac{1}{2}}$"]) == {}
    assert accuracy_reward([boxed("5"), boxed("6")], answer=[r"\boxed{5}", r"\boxed{5}"]) == [1.0, 0.0]
