"""The strategies that read votes, each against a slow and obvious computation."""

from collections import Counter
from itertools import permutations
from math import comb, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selector.config import SelectionConfig
from selector.pipeline import score
from selector.strategies import STRATEGIES, Evidence
from selector.strategies.care_proxy import advantage_gap
from selector.strategies.cec import neighbour_mean
from selector.votes import VoteTable

NO_CALIBRATION = -np.inf


def evidence_of(rows, embeddings=None):
    """Return the evidence of questions with these outcome answers (-1 unread), all of one length."""
    codes = np.array(rows, np.int16)
    uids = tuple(f"q{row}" for row in range(len(codes)))
    table = VoteTable(uids, codes, np.full(len(codes), -1, np.int16), (("a",) * 9,) * len(codes), n_probes=0)
    return Evidence(score(table, NO_CALIBRATION, SelectionConfig.preset(budget=1)), embeddings)


def scores_of(key, rows, seed=0):
    return STRATEGIES[key]().acquisition_scores(evidence_of(rows), seed)


def entropy_of(answers):
    readable = [answer for answer in answers if answer >= 0]
    shares = [count / len(readable) for count in Counter(readable).values()]
    return -sum(p * log(p) for p in shares) / log(len(readable)) if len(shares) > 1 else 0.0


def advantages(rewards):
    rewards = np.asarray(rewards, float)
    spread = rewards.std()
    return (rewards - rewards.mean()) / spread if spread else np.zeros(len(rewards))


vote_rows = st.integers(1, 12).flatmap(
    lambda n: st.lists(st.lists(st.integers(-1, 4), min_size=n, max_size=n), min_size=1, max_size=8)
)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 20])
def test_the_advantage_gap_equals_grpo_advantages_written_out(n):
    for x in range(n + 1):
        for y in range(n - x + 1):
            pseudo = [1] * x + [0] * (n - x)
            truth = [0] * x + [1] * y + [0] * (n - x - y)
            expected = np.linalg.norm(advantages(pseudo) - advantages(truth))

            assert advantage_gap(n, x, y) == pytest.approx(expected, abs=1e-9)


def test_advantage_gaps_worked_by_hand():
    # n = 8, x = 4, y = 2: D^2 = 16 + 2 * 8 * 8 / sqrt(4 * 4 * 2 * 6)
    assert advantage_gap(8, 4, 2) == pytest.approx((16 + 128 / 192**0.5) ** 0.5)
    assert advantage_gap(8, 8, 0) == 0
    assert advantage_gap(8, 6, 0) == pytest.approx(8**0.5)  # nobody is right: the advantages only vanish


@given(vote_rows)
def test_care_proxy_equals_a_plain_loop(rows):
    found = scores_of("care_proxy", rows)

    for row, answers in enumerate(rows):
        n = len(answers)
        sizes = sorted(Counter(answer for answer in answers if answer >= 0).values(), reverse=True)
        expected = 0.0
        for size in sizes[1:]:
            pseudo = [1] * sizes[0] + [0] * (n - sizes[0])
            truth = [0] * sizes[0] + [1] * size + [0] * (n - sizes[0] - size)
            expected += size / n * np.linalg.norm(advantages(pseudo) - advantages(truth))
        assert found[row] == pytest.approx(expected, abs=1e-6)


@given(vote_rows, st.integers(0, 3))
def test_scf_ranks_what_it_keeps_before_what_it_drops(rows, seed):
    found = scores_of("scf", rows, seed)

    for answers, value in zip(rows, found.tolist(), strict=True):
        counts = Counter(answer for answer in answers if answer >= 0)
        majority = max(counts.values(), default=0)
        kept = majority > 2 and majority / counts.total() < 0.9
        assert (0 <= value < 1) == kept
        assert -1 <= value < 1


def test_scf_thresholds_are_exact():
    nine_of_ten, eight_of_ten = [0] * 9 + [1], [0] * 8 + [1] * 2
    twice, thrice = [0, 0, 1, 1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 1, 1, 2, 3, 4, 5, 6]

    found = scores_of("scf", [nine_of_ten, eight_of_ten, twice, thrice])

    assert (found >= 0).tolist() == [False, True, False, True]


def test_ews_draws_as_often_as_the_entropies_say():
    """Of all orders of drawing without replacement, each as often as its weights make it (sequential draws)."""
    rows = [[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 2, 3], [0, 0, 0, 0]]
    weights = [entropy_of(answers) + 1e-6 for answers in rows]
    n_seeds = 6000
    seen = Counter(tuple(np.argsort(-scores_of("ews", rows, seed)).tolist()[:2]) for seed in range(n_seeds))

    for first, second in permutations(range(4), 2):
        rest = sum(weights) - weights[first]
        expected = weights[first] / sum(weights) * weights[second] / rest
        spread = (expected * (1 - expected) / n_seeds) ** 0.5
        assert seen[first, second] / n_seeds == pytest.approx(expected, abs=4.5 * spread + 1e-3)


def test_ews_without_disagreement_draws_uniformly():
    rows = [[0, 0, 0]] * 4
    firsts = Counter(int(np.argmax(scores_of("ews", rows, seed))) for seed in range(2000))

    assert min(firsts.values()) > 400


@given(st.integers(1, 30), st.integers(0, 5))
def test_the_mean_over_neighbours_equals_a_plain_loop(n, seed):
    rng = np.random.default_rng(seed)
    embeddings, values = rng.normal(size=(n, 3)).astype(np.float32), rng.random(n)

    found = neighbour_mean(embeddings, values, tuple(f"q{row}" for row in range(n)))

    for row in range(n):
        distances = np.linalg.norm(embeddings.astype(float) - embeddings[row].astype(float), axis=1)
        nearest = [other for other in np.argsort(distances) if other != row][:10]
        weights = np.exp(-distances[nearest])
        expected = weights @ values[nearest] / weights.sum() if nearest else 0.0
        assert found[row] == pytest.approx(expected, abs=1e-6)


def test_far_neighbours_still_have_a_mean():
    embeddings = np.array([[0.0], [1e5], [3e5]], np.float32)

    found = neighbour_mean(embeddings, np.array([0.0, 1.0, 0.0]), ("a", "b", "c"))

    assert found.tolist() == pytest.approx([1.0, 0.0, 1.0])


def blobs(seed=0):
    """Four groups of ten questions; in two of them the model is torn."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0, 0], [20, 0], [0, 20], [20, 20]], float)
    embeddings = np.concatenate([centre + rng.normal(size=(10, 2)) for centre in centres]).astype(np.float32)
    rows = [[0, 1, 2, 3] if row < 20 else [0, 0, 0, 0] for row in range(40)]
    return evidence_of(rows, embeddings)


def choose(evidence, *, budget, chosen=()):
    strategy = STRATEGIES["cec"]()
    candidates = np.array([row for row in range(len(evidence)) if row not in chosen])
    scores = strategy.acquisition_scores(evidence, 0)
    return strategy.choose(
        evidence, scores, candidates=candidates, chosen=np.array(chosen, np.intp), budget=budget, seed=0
    ).tolist()


def test_cec_takes_the_question_nearest_to_the_middle_of_each_uncertain_region():
    evidence = blobs()

    picks = choose(evidence, budget=2)

    assert sorted(row // 10 for row in picks) == [0, 1]
    weights = STRATEGIES["cec"]().acquisition_scores(evidence, 0)[:, None] + 1e-6
    for row in picks:  # the middle as the weights of the whole cluster make it, certain questions counting for nothing
        group = slice(row // 10 * 10, row // 10 * 10 + 10)
        centre = (weights[group] * evidence.embeddings[group]).sum(0) / weights[group].sum()
        distances = np.linalg.norm(evidence.embeddings[group] - centre, axis=1)
        assert int(np.argmin(distances)) == row % 10


def test_a_second_round_of_cec_leaves_regions_with_labels_alone():
    evidence = blobs()
    first = choose(evidence, budget=1)

    second = choose(evidence, budget=1, chosen=first)

    assert {row // 10 for row in first + second} == {0, 1}


def test_cec_on_equal_embeddings_repeats_nobody():
    evidence = evidence_of([[0, 1]] * 6, np.ones((6, 2), np.float32))

    picks = choose(evidence, budget=4)

    assert len(set(picks)) == len(picks) >= 1


def test_full_picks_everything():
    assert STRATEGIES["full"]().n_picks(3, 40) == 40


def test_the_number_of_rewards_with_variance_is_what_the_gap_counts():
    """D is positive exactly where the pseudo-label or the truth makes rewards differ."""
    n = 6
    positive = sum(advantage_gap(n, x, y) > 0 for x in range(n + 1) for y in range(n - x + 1))

    assert positive == comb(n + 2, 2) - 3  # all but (0, 0), (n, 0) and (0, n)
