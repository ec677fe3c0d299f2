import numpy as np
from scipy.stats import kstest

from selector.seeds import question_rng, question_seed, question_uniform


def test_equal_names_give_equal_streams():
    first, again = question_rng(7, "outcomes", "q1"), question_rng(7, "outcomes", "q1")

    assert first.integers(0, 1 << 60, 5).tolist() == again.integers(0, 1 << 60, 5).tolist()


def test_run_stage_and_question_each_change_the_seed():
    seeds = {
        question_seed(*name) for name in [(0, "a", "q"), (1, "a", "q"), (0, "b", "q"), (0, "a", "r"), (0, "aq", "")]
    }

    assert len(seeds) == 5
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_seed_is_the_same_on_every_machine():
    assert question_seed(0, "outcomes", "q") == 1893043027
    assert question_uniform(0, "random", "q") == 0.5850967340075159


def test_uniform_draws_are_uniform():
    draws = [question_uniform(3, "random", f"q{i}") for i in range(5000)]

    assert kstest(draws, "uniform").pvalue > 0.001
    assert np.max(draws) < 1
