"""What every strategy promises, checked for each one in the registry."""

import re
from pathlib import Path

import numpy as np
import pytest

from selector.config import SelectionConfig
from selector.pipeline import run_selection, score
from selector.strategies import STRATEGIES, Evidence, Strategy
from tests.selector.simulation import simulate_table, simulate_votes

DOCS = Path(__file__).resolve().parents[2] / "docs" / "strategies.md"
CALIBRATION = simulate_votes(120, seed=2, prefix="c")
POOL = simulate_votes(80, seed=3)
EMBEDDINGS = np.random.default_rng(4).normal(size=(80, 8)).astype(np.float32)

every_strategy = pytest.mark.parametrize("key", STRATEGIES)


def select(key, pool=POOL, embeddings=EMBEDDINGS, **settings):
    config = SelectionConfig.preset(budget=6, strategy=key, alpha="0.3", **settings)
    return run_selection(pool, CALIBRATION, config=config, embeddings=embeddings)


@every_strategy
def test_key_and_title_are_its_own(key):
    strategy = STRATEGIES[key]

    assert issubclass(strategy, Strategy)
    assert strategy.key == key
    assert sum(other.title == strategy.title for other in STRATEGIES.values()) == 1
    assert strategy.__module__ == f"selector.strategies.{key}"


@every_strategy
def test_scores_are_one_finite_number_a_question(key):
    table = simulate_table(30, seed=0).of(STRATEGIES[key].votes)
    scores = score(table, -0.2, SelectionConfig.preset(budget=1))

    found = STRATEGIES[key]().acquisition_scores(Evidence(scores), 0)

    assert found.shape == (30,)
    assert found.dtype == np.float64
    assert np.isfinite(found).all()


@every_strategy
def test_scores_change_nothing_and_repeat(key):
    table = simulate_table(30, seed=0).of(STRATEGIES[key].votes)
    scores = score(table, -0.2, SelectionConfig.preset(budget=1))
    before = table.codes.copy(), scores.set_size.copy()
    strategy = STRATEGIES[key]()

    first, again = strategy.acquisition_scores(Evidence(scores), 5), strategy.acquisition_scores(Evidence(scores), 5)

    assert first.tolist() == again.tolist() == STRATEGIES[key]().acquisition_scores(Evidence(scores), 5).tolist()
    assert (table.codes == before[0]).all()
    assert (scores.set_size == before[1]).all()


@every_strategy
def test_picks_fill_the_budget_without_repeats(key):
    picks = select(key).picks

    assert len({pick.uid for pick in picks}) == 6
    assert [pick.rank for pick in picks] == [1, 2, 3, 4, 5, 6]


@every_strategy
def test_picks_do_not_depend_on_the_order_of_rows(key):
    order = np.random.default_rng(0).permutation(len(POOL))

    shuffled = select(key, [POOL[row] for row in order], EMBEDDINGS[order])

    assert [pick.to_json() for pick in shuffled.picks] == [pick.to_json() for pick in select(key).picks]


@every_strategy
def test_empty_pools_and_unread_questions_score(key):
    table = simulate_table(3, seed=0).of(STRATEGIES[key].votes)
    table.codes[1] = -1
    config = SelectionConfig.preset(budget=1)

    for rows in ([], [1], [0, 1, 2]):
        found = STRATEGIES[key]().acquisition_scores(Evidence(score(table.rows(rows), -0.2, config)), 0)
        assert found.shape == (len(rows),)
        assert np.isfinite(found).all()


@every_strategy
def test_it_has_an_entry_in_the_documentation(key):
    entries = re.findall(r"^## `(\w+)`: (.+)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)

    assert dict(entries)[key] == STRATEGIES[key].title


def test_the_documentation_has_no_entry_too_many():
    entries = re.findall(r"^## `(\w+)`", DOCS.read_text(encoding="utf-8"), re.MULTILINE)

    assert entries == list(STRATEGIES)


@pytest.mark.parametrize("key", ["entropy", "v3"])
def test_entropy_counts_readable_answers_only(key):
    table = simulate_table(1, seed=0)
    table.codes[0] = [0] * 30 + [-1] * 10
    scores = score(table, -0.2, SelectionConfig.preset(budget=1))

    assert scores.entropy[0] > 0
    assert STRATEGIES[key]().acquisition_scores(Evidence(scores), 0).tolist() == [0.0]


def test_random_draws_differ_by_seed():
    first, second = ({pick.uid for pick in select("random", seed=seed).picks} for seed in (0, 1))

    assert first != second


def test_v1_takes_one_question_from_each_cluster():
    assert sorted(pick.cluster for pick in select("v1").picks) == [0, 1, 2, 3, 4, 5]


def test_v4_takes_two_from_each_of_half_as_many_clusters():
    assert sorted(pick.cluster for pick in select("v4").picks) == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(("key", "kept"), [("v5", "outcome_answers"), ("v6", "probe_answers")])
def test_v5_and_v6_see_one_kind_of_answer_only(key, kept):
    other = {"outcome_answers": "probe_answers", "probe_answers": "outcome_answers"}[kept]

    def blur(votes):
        from dataclasses import replace

        return [replace(question, **{other: ("z",) * 20}) for question in votes]

    config = SelectionConfig.preset(budget=6, strategy=key, alpha="0.3")
    seen = run_selection(POOL, CALIBRATION, config=config, embeddings=EMBEDDINGS)
    blurred = run_selection(blur(POOL), blur(CALIBRATION), config=config, embeddings=EMBEDDINGS)

    assert blurred.calibration.q_hat == seen.calibration.q_hat
    assert [pick.uid for pick in blurred.picks] == [pick.uid for pick in seen.picks]
