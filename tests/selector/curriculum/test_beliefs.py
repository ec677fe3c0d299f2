"""Beliefs: what counts as a success, what is left out, how evidence fades."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selector.curriculum import CURRICULA
from selector.curriculum.beliefs import Beliefs


def belief(curriculum, uid):
    row = curriculum.beliefs.row(uid)
    return curriculum.beliefs.a[row], curriculum.beliefs.b[row]


def test_a_success_is_a_reward_of_at_least_one():
    curriculum = CURRICULA["random"](["q"])

    curriculum.observe("q", [1.0, 0.1, 0.0, 0.999, 2.0, -1.0, True, np.float32(1)], 0)

    assert belief(curriculum, "q") == (1 + 4, 1 + 4)


def test_another_bar_for_success_can_be_set():
    curriculum = CURRICULA["random"](["q"], success_at=0.5)

    curriculum.observe("q", [0.5, 0.49], 0)

    assert belief(curriculum, "q") == (2, 2)


def test_missing_rewards_are_left_out_and_counted():
    curriculum = CURRICULA["random"](["q"], lam=0.5)

    curriculum.observe("q", [None, math.nan, 1.0, math.inf], 0)
    curriculum.observe("q", [None], 1)
    curriculum.observe("q", [], 2)

    assert belief(curriculum, "q") == (2, 1)
    assert curriculum.beliefs.n_missing == 4
    assert curriculum.beliefs.n_rollouts.tolist() == [1]
    assert curriculum.beliefs.last_step.tolist() == [0]


def test_stored_rollouts_are_where_beliefs_start():
    plain = CURRICULA["random"](["q", "r"], prior={"q": (6, 2)})
    halved = CURRICULA["random"](["q", "r"], prior={"q": (6, 2)}, prior_weight=0.5)
    as_published = CURRICULA["mopps"](["q", "r"], prior={"q": (6, 2)})

    assert belief(plain, "q") == (7, 3)
    assert belief(halved, "q") == (4, 2)
    assert belief(as_published, "q") == (1 + 3 * 6, 1 + 3 * 2)
    assert belief(plain, "r") == (1, 1)


@given(
    lam=st.floats(0, 1),
    visits=st.lists(st.lists(st.sampled_from([0.0, 1.0, 0.3, None]), max_size=5), max_size=6),
)
def test_updates_follow_the_published_rule(lam, visits):
    beliefs = Beliefs(["x", "q", "y"])
    a = b = 1.0
    for step, rewards in enumerate(visits):
        beliefs.observe("q", rewards, step, lam=lam, success_at=1.0)
        read = [reward for reward in rewards if reward is not None]
        if read:
            successes = sum(reward >= 1 for reward in read)
            a = lam * a + (1 - lam) * 1 + successes
            b = lam * b + (1 - lam) * 1 + len(read) - successes

    row = beliefs.row("q")
    assert (beliefs.a[row], beliefs.b[row]) == pytest.approx((a, b))
    assert np.delete(beliefs.a, row).tolist() == np.delete(beliefs.b, row).tolist() == [1, 1]
    assert (beliefs.a > 0).all()
    assert (beliefs.b > 0).all()


def test_a_late_report_fades_nothing():
    beliefs = Beliefs(["q"])
    beliefs.observe("q", [1.0], 5, lam=0.5, success_at=1.0)

    beliefs.observe("q", [1.0], 3, lam=0.5, success_at=1.0)

    assert beliefs.a.tolist() == [3]
    assert beliefs.last_step.tolist() == [5]
