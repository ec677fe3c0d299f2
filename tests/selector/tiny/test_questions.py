"""The tiny model's questions and the files of the demo."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from selector.rewards import read_boxed
from selector.tiny.questions import (
    FAMILIES,
    demo_sets,
    draw_question,
    question_key,
    write_demo_files,
    write_solution,
)
from selector.tiny.train import draw_training_questions

DEMO = Path(__file__).parents[3] / "labeling" / "demo"
STEP = re.compile(r"(\d+)([-+*/])(\d+)=(\d+)")


def test_every_step_is_right_and_the_last_one_is_the_answer() -> None:
    rng = random.Random(1)
    for _ in range(2000):
        question = draw_question(rng)
        for step in question.steps:
            left, operator, right, result = STEP.fullmatch(step).groups()  # type: ignore[union-attr]
            exact = {
                "+": int(left) + int(right),
                "-": int(left) - int(right),
                "*": int(left) * int(right),
                "/": int(left) / int(right),
            }
            assert exact[operator] == int(result) >= 0
        assert question.steps[-1].endswith(f"={question.answer}")
        for terse in (True, False):
            assert read_boxed(write_solution(question, terse=terse)) == question.answer


def test_a_bare_question_has_the_value_of_its_expression() -> None:
    rng = random.Random(2)
    bare = [question for question in (draw_question(rng) for _ in range(1000)) if question.is_bare]

    assert len(bare) > 250
    for question in bare:
        expression = re.search(r"[-0-9+*/()]+", question.text)
        assert expression is not None
        assert eval(expression.group()) == int(question.answer)


def test_families_come_in_their_shares() -> None:
    rng = random.Random(3)
    counts = Counter(draw_question(rng).family for _ in range(6000))

    for name, family in FAMILIES.items():
        assert counts[name] / 6000 == pytest.approx(family.share, abs=0.02)


def test_the_demo_sets_share_no_question_and_the_pool_has_its_duplicates() -> None:
    sets = demo_sets()
    keys = {name: {question_key(question.text) for question in drawn} for name, drawn in sets.items()}
    texts = Counter(question.text for question in sets["pool"])

    assert {name: len(drawn) for name, drawn in sets.items()} == {"pool": 304, "calibration": 300, "held_out": 300}
    for one, other in itertools.combinations(keys.values(), 2):
        assert not one & other
    assert sorted(texts.values())[-2:] == [1, 2]
    assert 304 - len(keys["pool"]) >= 2  # the exact duplicate and the one that differs in its case
    assert sets == demo_sets()


def test_the_training_stream_never_holds_a_question_of_the_demo() -> None:
    excluded = {question_key(question.text) for drawn in demo_sets().values() for question in drawn}
    stream = draw_training_questions(random.Random(7))

    drawn = {question_key(next(stream).text) for _ in range(6_000)}

    assert not drawn & excluded
    everything = random.Random(7)
    assert {question_key(draw_question(everything).text) for _ in range(6_000)} & excluded


def test_the_files_of_the_demo_are_what_the_generator_writes(tmp_path: Path) -> None:
    write_demo_files(tmp_path)

    for path in tmp_path.iterdir():
        assert path.read_bytes() == (DEMO / path.name).read_bytes()
    assert len(list(tmp_path.iterdir())) == 4
    assert set(json.loads((DEMO / "pool.jsonl").read_text(encoding="utf-8").splitlines()[0])) == {"question"}
