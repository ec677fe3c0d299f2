"""Published figures, to the digits given, and each formula against a slow, obvious one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaln, digamma
from scipy.stats import beta as beta_distribution
from scipy.stats import betabinom, binom

from selector.curriculum.insight import Insight, difficulty_weight, mutual_information

counts = st.floats(0.05, 400)


def beta_entropy(a, b):
    return betaln(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b) + (a + b - 2) * digamma(a + b)


def information_by_entropies(a, b, k):
    """H(a, b) minus its expectation after K rollouts."""
    return beta_entropy(a, b) - sum(
        math.comb(k, s) * math.exp(betaln(a + s, b + k - s) - betaln(a, b)) * beta_entropy(a + s, b + k - s)
        for s in range(k + 1)
    )


def information_by_integration(a, b, k):
    """H(S) minus the expected entropy of a binomial, on a grid of quantiles of the belief."""
    outcome = sum(-p * math.log(p) for p in (betabinom(k, a, b).pmf(s) for s in range(k + 1)) if p > 0)
    rates = beta_distribution.ppf((np.arange(20_000) + 0.5) / 20_000, a, b)
    return outcome - float(binom(k, rates).entropy().mean())


def information(a, b, k):
    return float(mutual_information(np.array([float(a)]), np.array([float(b)]), k)[0])


@pytest.mark.parametrize(
    ("a", "b", "k", "printed"),
    [
        (1, 1, 8, "0.766390"),
        (3, 5, 8, "0.343379"),
        (17, 1, 8, "0.161249"),
        (40, 40, 8, "0.047653"),
        (1, 1, 1, "0.193147"),
    ],
)
def test_mutual_information_as_published(a, b, k, printed):
    assert f"{information(a, b, k):.6f}" == printed


def test_one_rollout_of_an_unknown_question_tells_ln_2_less_a_half():
    assert information(1, 1, 1) == pytest.approx(math.log(2) - 0.5, abs=1e-15)


def test_scores_after_one_visit_as_published():
    curriculum = Insight(["q"])
    s = np.arange(9.0)

    found = curriculum.score(1 + s, 9 - s)

    assert [f"{score:.4f}" for score in found] == (
        ["0.0210", "0.0440", "0.0609", "0.0681", "0.0650", "0.0536", "0.0377", "0.0214", "0.0080"]
    )


def test_score_of_an_unseen_question_as_published():
    assert f"{Insight(['q']).score(np.ones(1), np.ones(1))[0]:.5f}" == "0.16993"


def test_the_weight_peaks_where_published():
    grid = np.linspace(0, 1, 100_001)

    assert round(grid[difficulty_weight(grid, eta=3.0, mu=0.3).argmax()], 3) == 0.416
    assert round(grid[difficulty_weight(grid, eta=3.0, mu=3.0).argmax()], 3) == 0.926  # the appendix's mu: a misprint


@given(a=counts, b=counts, k=st.integers(1, 24))
def test_mutual_information_equals_the_difference_of_entropies(a, b, k):
    assert information(a, b, k) == pytest.approx(information_by_entropies(a, b, k), abs=1e-9)


@pytest.mark.parametrize(("a", "b", "k"), [(1, 1, 8), (2.5, 7, 8), (30, 12, 16), (9, 9, 1)])
def test_mutual_information_equals_the_integral_over_rates(a, b, k):
    assert information(a, b, k) == pytest.approx(information_by_integration(a, b, k), abs=2e-4)


@given(a=st.floats(1e-3, 1e9), b=st.floats(1e-3, 1e9), k=st.integers(1, 64))
def test_mutual_information_is_neither_negative_nor_more_than_the_outcome_holds(a, b, k):
    assert 0 <= information(a, b, k) <= math.log(k + 1) + 1e-12


@pytest.mark.parametrize("n", [1e3, 1e5, 1e7])
def test_mutual_information_of_heavy_beliefs_follows_its_limit(n):
    assert information(n / 2, n / 2, 8) == pytest.approx(0.5 * math.log1p(8 / n), rel=0.02)
