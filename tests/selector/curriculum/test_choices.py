"""Each curriculum against a slow, obvious one, on random beliefs."""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import betabinom

from selector.curriculum import CURRICULA
from selector.curriculum.contract import best_first
from selector.curriculum.mapp import probability_of_variance
from selector.errors import InvalidConfig
from tests.selector.curriculum.test_vectors import information_by_entropies

UIDS = [f"q{i}" for i in range(40)]
seeds = st.integers(0, 10_000)


def seen(key, seed, uids=UIDS, **settings):
    """A curriculum whose questions have been tried some times, one of them never."""
    rng = np.random.default_rng(seed)
    curriculum = CURRICULA[key](uids, seed=seed, **settings)
    for step in range(4):
        for uid in uids[1:]:
            if rng.random() < 0.7:
                curriculum.observe(uid, (rng.random(8) < rng.random()).astype(float).tolist(), step)
    return curriculum


def slow_scores(key, curriculum):
    """Scores by uid, one question after another, from the formulas as printed."""
    found = {}
    for uid, a, b in zip(curriculum.beliefs.uids, curriculum.beliefs.a, curriculum.beliefs.b, strict=True):
        m = a / (a + b)
        found[uid] = {
            "insight": lambda a=a, b=b, m=m: (
                m * (1 - m) * math.exp(-3 * (m - 0.3) ** 2) * information_by_entropies(a, b, 8)
            ),
            "inverse_evidence": lambda a=a, b=b: 1 / (a + b),
            "expected_difficulty": lambda m=m: -abs(m - 0.5),
        }[key]()
    return found


@pytest.mark.parametrize("key", ["insight", "inverse_evidence", "expected_difficulty"])
@settings(max_examples=25)
@given(seed=seeds, k=st.integers(1, 40))
def test_the_best_by_score_are_proposed_best_first(key, seed, k):
    curriculum = seen(key, seed, candidate_ratio=None)
    scores = slow_scores(key, curriculum)

    proposed = curriculum.propose(k)

    assert [scores[uid] for uid in proposed] == pytest.approx(sorted(scores.values(), reverse=True)[:k], abs=1e-9)


@pytest.mark.parametrize("key", ["insight", "inverse_evidence", "expected_difficulty", "mapp"])
@settings(max_examples=25)
@given(seed=seeds)
def test_scores_kept_from_step_to_step_are_those_computed_anew(key, seed):
    kept, fresh = seen(key, seed), seen(key, seed)
    rng = np.random.default_rng(seed)
    for step in range(4, 8):
        kept.propose(3)
        for uid in rng.choice(UIDS, 5, replace=False).tolist():
            rewards = rng.integers(0, 2, 8).astype(float).tolist()
            kept.observe(uid, rewards, step)
            fresh.observe(uid, rewards, step)

    assert kept.scores().tolist() == fresh.scores().tolist()
    assert fresh.scores().tolist() == [
        fresh.score(np.array([a]), np.array([b]))[0] for a, b in zip(fresh.beliefs.a, fresh.beliefs.b, strict=True)
    ]


@given(
    values=st.lists(st.sampled_from([0.0, 0.25, 0.5, -1.0, 3.0, -np.inf]), min_size=1, max_size=30),
    k=st.integers(1, 30),
)
def test_the_best_are_the_first_of_a_stable_sort(values, k):
    scores = np.array(values)
    k = min(k, len(values))

    assert best_first(scores, k).tolist() == sorted(range(len(values)), key=lambda place: -values[place])[:k]


def test_candidates_are_a_uniform_draw_of_the_wanted_size():
    best = CURRICULA["inverse_evidence"](UIDS, seed=0, candidate_ratio=4)
    for uid in UIDS[1:]:
        best.observe(uid, [1.0], 0)

    n_times = sum(UIDS[0] in best.propose(2) for _ in range(3000))

    assert abs(n_times - 3000 * 8 / 40) < 5 * math.sqrt(3000 * 0.2 * 0.8)


@pytest.mark.parametrize("key", ["insight", "inverse_evidence", "expected_difficulty"])
def test_ties_are_broken_at_random(key):
    curriculum = CURRICULA[key](UIDS, seed=0)

    first = Counter(curriculum.propose(1)[0] for _ in range(2000))

    assert len(first) == len(UIDS)
    assert max(first.values()) < 100


def test_insight_tries_every_question_before_any_twice():
    curriculum = CURRICULA["insight"](UIDS, seed=0, candidate_ratio=None)
    tried = []
    for step in range(10):
        batch = curriculum.propose(4)
        tried += batch
        for uid in batch:
            curriculum.observe(uid, [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], step)

    assert sorted(tried) == sorted(UIDS)


@settings(max_examples=25)
@given(seed=seeds, k=st.integers(1, 40), strategy=st.sampled_from(["topk", "threshold"]))
def test_mopps_takes_what_its_published_rule_takes(seed, k, strategy):
    curriculum, twin = (seen("mopps", seed, strategy=strategy, candidate_ratio=2) for _ in range(2))
    order = [twin.beliefs.uids[row] for row in twin.rng.permutation(40)][: 2 * k]
    draws = {}
    rows = [twin.beliefs.row(uid) for uid in order]
    for uid, draw in zip(order, twin.rng.beta(twin.beliefs.a[rows], twin.beliefs.b[rows]), strict=True):
        draws[uid] = float(draw)

    proposed = curriculum.propose(k)

    if strategy == "topk":
        assert proposed == sorted(draws, key=lambda uid: abs(draws[uid] - 0.5))[:k]
        return
    inside = [uid for uid in order if 0.3 <= draws[uid] <= 0.7]
    if len(inside) >= k:
        assert set(proposed) <= set(inside)
    else:
        outside = sorted(set(order) - set(inside), key=lambda uid: max(0.3 - draws[uid], draws[uid] - 0.7))
        assert set(proposed[: len(inside)]) == set(inside)
        assert proposed[len(inside) :] == outside[: k - len(inside)]


def test_mopps_takes_a_uniform_draw_of_those_inside():
    curriculum = CURRICULA["mopps"](UIDS, seed=0, strategy="threshold", prior=dict.fromkeys(UIDS[:10], (900, 900)))
    for uid in UIDS[10:]:
        curriculum.observe(uid, [0.0] * 3000, 0)

    taken = Counter(uid for _ in range(2000) for uid in curriculum.propose(3))

    assert set(taken) == set(UIDS[:10])
    assert all(abs(count - 600) < 5 * math.sqrt(600 * 0.7) for count in taken.values())


def test_mopps_draws_from_the_belief():
    curriculum = CURRICULA["mopps"](["low", "high"], seed=0, prior={"low": (2, 5), "high": (6, 1)}, prior_weight=1)
    rng = np.random.default_rng(1)
    share = np.mean(abs(rng.beta(3, 6, 200_000) - 0.5) < abs(rng.beta(7, 2, 200_000) - 0.5))

    found = sum(curriculum.propose(1) == ["low"] for _ in range(5000)) / 5000

    assert abs(found - share) < 0.035


@pytest.mark.parametrize(("a", "b", "k", "printed"), [(1, 1, 8, "0.77778")])
def test_probability_of_variance_as_published(a, b, k, printed):
    assert f"{probability_of_variance(np.array([a]), np.array([b]), k)[0]:.5f}" == printed


@given(a=st.floats(0.05, 500), b=st.floats(0.05, 500), k=st.integers(2, 32))
def test_probability_of_variance_is_that_of_the_beta_binomial(a, b, k):
    slow = 1 - betabinom(k, a, b).pmf(k) - betabinom(k, a, b).pmf(0)

    assert probability_of_variance(np.array([a]), np.array([b]), k)[0] == pytest.approx(slow, abs=1e-9)


def test_mapp_draws_one_after_another_in_proportion_to_v():
    uids = ["easy", "middle", "hard"]
    curriculum = CURRICULA["mapp"](uids, seed=0, prior={"easy": (40, 0), "middle": (4, 4), "hard": (0, 8)})
    beliefs = curriculum.beliefs
    v = dict(zip(beliefs.uids, probability_of_variance(beliefs.a, beliefs.b, 8), strict=True))
    n = 20_000

    found = Counter(tuple(curriculum.propose(2)) for _ in range(n))

    total = sum(v.values())
    for first, second in permutations(uids, 2):
        share = v[first] / total * v[second] / (total - v[first])
        assert abs(found[first, second] - n * share) < 5 * math.sqrt(n * share * (1 - share))


def test_mapp_still_proposes_questions_that_are_as_good_as_decided():
    curriculum = CURRICULA["mapp"](["q1", "q2"], prior={"q1": (1e18, 0), "q2": (0, 1e18)})

    assert sorted(curriculum.propose(2)) == ["q1", "q2"]


def roll_out(curriculum, batch, rewards, step=0):
    for uid in batch:
        curriculum.observe(uid, rewards[uid], step)


@given(seed=seeds, k=st.integers(1, 40), share=st.floats(0, 1))
def test_dynamic_sampling_fills_the_batch_with_questions_whose_rewards_differ(seed, k, share):
    rng = np.random.default_rng(seed)
    curriculum = CURRICULA["dynamic_sampling"](UIDS, seed=seed)
    rewards = {uid: [1.0, 0.0, 0.0] if rng.random() < share else [float(rng.integers(2))] * 3 for uid in UIDS}
    mixed = {uid for uid in UIDS if len(set(rewards[uid])) == 2}

    tried, batch = [], curriculum.propose(k)
    while batch:
        tried += batch
        roll_out(curriculum, batch, rewards)
        batch = curriculum.refill()

    assert len(set(tried)) == len(tried)
    assert curriculum.kept() == [uid for uid in tried if uid in mixed]
    assert len(curriculum.kept()) == min(k, len(mixed))
    assert curriculum.rollouts_spent == 3 * len(tried)
    assert curriculum.beliefs.n_rollouts.sum() == 3 * len(tried)


def test_dynamic_sampling_draws_uniformly():
    curriculum = CURRICULA["dynamic_sampling"](UIDS, seed=0)
    drawn = Counter(uid for _ in range(2000) for uid in curriculum.propose(4))

    assert all(abs(count - 200) < 5 * math.sqrt(200) for count in drawn.values())


def test_dynamic_sampling_does_not_judge_what_it_has_not_seen():
    curriculum = CURRICULA["dynamic_sampling"](UIDS, seed=0)
    awaited, single, dropped, missing = curriculum.propose(4)
    curriculum.observe(single, [1.0], 0)
    curriculum.observe(dropped, [0.0, 0.0], 0)
    curriculum.observe(missing, [None, None], 0)

    more = curriculum.refill()

    assert len(more) == 2
    assert not {awaited, single, dropped, missing} & set(more)
    assert curriculum.refill() == []
    assert curriculum.kept() == [single]
    assert curriculum.rollouts_spent == 5


def test_dynamic_sampling_keeps_no_more_than_were_asked_for():
    curriculum = CURRICULA["dynamic_sampling"](UIDS, seed=0)
    first = curriculum.propose(2)
    roll_out(curriculum, first, {uid: [0.0, 0.0] for uid in first})
    more = curriculum.refill()
    roll_out(curriculum, more, {uid: [0.0, 1.0] for uid in more})

    curriculum.observe(first[1], [1.0], 0)  # late, and now it differs

    assert curriculum.kept() == [first[1], more[0]]
    assert curriculum.refill() == []


def test_dynamic_sampling_goes_by_rewards_and_not_by_successes():
    curriculum = CURRICULA["dynamic_sampling"](UIDS, seed=0)
    graded, flat = curriculum.propose(2)
    roll_out(curriculum, [graded, flat], {graded: [0.1, 0.2], flat: [0.5, 0.5]})

    assert curriculum.kept() == [graded]


def test_dynamic_sampling_stops_refilling_at_its_limit():
    curriculum = CURRICULA["dynamic_sampling"](UIDS, seed=0, max_refills=2)
    flat = {uid: [0.0, 0.0] for uid in UIDS}

    sizes, batch = [], curriculum.propose(5)
    while batch:
        sizes.append(len(batch))
        roll_out(curriculum, batch, flat)
        batch = curriculum.refill()

    assert sizes == [5, 5, 5]
    assert curriculum.kept() == []
    assert len(curriculum.propose(5)) == 5
    roll_out(curriculum, curriculum.kept(), flat)
    assert curriculum.refill() == []


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("insight", {"rollouts": 0}),
        ("insight", {"rollouts": 1.5}),
        ("insight", {"eta": -1}),
        ("insight", {"mu": 3.0}),
        ("insight", {"candidate_ratio": 0}),
        ("mopps", {"strategy": "uniform"}),
        ("mopps", {"target": 1.5}),
        ("mopps", {"low": 0.8}),
        ("mopps", {"high": 1.2}),
        ("mapp", {"rollouts": 1}),
        ("dynamic_sampling", {"max_refills": -1}),
        ("dynamic_sampling", {"candidate_ratio": 16}),
        ("random", {"candidate_ratio": 16}),
        ("inverse_evidence", {"target": 0.5}),
    ],
)
def test_refuses_settings_that_mean_nothing(key, settings):
    with pytest.raises(InvalidConfig, match=next(iter(settings))):
        CURRICULA[key](UIDS, **settings)
