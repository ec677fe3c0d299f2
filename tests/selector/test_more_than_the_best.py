"""Selection beyond the best of each cluster: larger budgets, random controls, second rounds, runs without evidence."""

import json
from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from selector.config import SelectionConfig
from selector.errors import FingerprintMismatch, InvalidConfig, MissingEvidence, PoolTooSmall
from selector.picking import draw_controls
from selector.pipeline import run_selection
from selector.votes import QuestionVotes
from tests.selector.simulation import simulate_votes

CALIBRATION = simulate_votes(60, seed=1, prefix="c")
POOL = [replace(question, cluster=row % 5, truth=None) for row, question in enumerate(simulate_votes(40, seed=2))]
BARE = [QuestionVotes(question.uid, (), (), cluster=question.cluster) for question in POOL]
EMBEDDINGS = np.random.default_rng(3).normal(size=(40, 6)).astype(np.float32)


def run(pool=POOL, calibration=CALIBRATION, *, embeddings=None, labeled=(), **settings):
    config = SelectionConfig.preset(**{"budget": 8, "alpha": "0.3", **settings})
    return run_selection(pool, calibration, config=config, embeddings=embeddings, labeled=labeled)


def uids(result):
    return [pick.uid for pick in result.picks]


def cluster_of(uid):
    return next(question.cluster for question in POOL if question.uid == uid)


def test_a_budget_larger_than_the_clusters_is_shared_and_topped_up():
    picks = run(budget=23).picks

    assert Counter(pick.cluster for pick in picks if pick.taken_by == "cluster") == dict.fromkeys(range(5), 4)
    assert [pick.taken_by for pick in picks[20:]] == ["global_order"] * 3
    assert len({pick.uid for pick in picks}) == 23


def test_the_whole_pool_can_be_picked():
    assert sorted(uids(run(budget=40))) == sorted(question.uid for question in POOL)


def test_so_many_of_each_cluster_can_be_asked_for():
    unclustered = [replace(question, cluster=None) for question in POOL]

    result = run(unclustered, embeddings=EMBEDDINGS, budget=10, per_cluster=3)

    assert result.report["clusters"]["n"] == 4  # 10 picks, three of each
    sizes = Counter(result.labels.tolist())
    counts = Counter(pick.cluster for pick in result.picks)
    assert all(count <= 3 or count <= sizes[cluster] for cluster, count in counts.items())
    assert max(Counter(pick.cluster for pick in result.picks if pick.taken_by == "cluster").values()) <= 3


def test_so_many_of_each_cluster_means_nothing_without_clusters():
    with pytest.raises(InvalidConfig, match="does not pick from clusters"):
        SelectionConfig.preset(budget=8, strategy="v2", per_cluster=2)


@pytest.mark.parametrize(
    ("share", "budget", "n"), [("0", 8, 0), ("0.1", 8, 1), ("0.25", 8, 2), ("1", 8, 8), (0.5, 5, 3)]
)
def test_a_share_of_controls_is_rounded_up(share, budget, n):
    assert SelectionConfig.preset(budget=budget, control_share=share).n_controls == n


@pytest.mark.parametrize("share", ["-0.1", "1.1", "half", True, "1/4"])
def test_a_share_that_means_nothing_is_named(share):
    with pytest.raises(InvalidConfig) as caught:
        SelectionConfig.preset(budget=8, control_share=share)

    assert caught.value.setting == "control_share"


def test_settings_at_their_defaults_leave_fingerprints_as_they_were():
    config = SelectionConfig.preset(budget=8)

    assert config.fingerprint() == "146c16087bb977ec"
    assert config.replace(control_share="0.0").fingerprint() == config.fingerprint()
    others = {config.replace(control_share="0.1").fingerprint(), config.replace(per_cluster=2).fingerprint()}
    assert len(others | {config.fingerprint()}) == 3


def test_every_set_of_controls_is_drawn_as_often_as_any_other():
    """Over seeds: each of the eligible with probability n / eligible, and each pair equally often."""
    names = [f"q{row}" for row in range(9)]
    is_eligible = np.array([True] * 6 + [False] * 3)
    n_seeds = 6000

    drawn = Counter(frozenset(draw_controls(names, is_eligible, 2, seed)) for seed in range(n_seeds))

    assert set(drawn) == {frozenset(pair) for pair in combinations(range(6), 2)}
    expected, spread = n_seeds / 15, (n_seeds * 1 / 15 * 14 / 15) ** 0.5
    assert all(abs(count - expected) < 4.5 * spread for count in drawn.values())


def test_inclusion_probabilities_are_how_often_controls_are_drawn():
    """Whole runs over many seeds: whatever the strategy wants, the recorded probability is the frequency."""
    pool, settings = POOL[:12], {"budget": 5, "strategy": "entropy", "labeled": [POOL[0].uid]}
    n_seeds = 600
    drawn: Counter[str] = Counter()
    probabilities = set()
    for seed in range(n_seeds):
        picks = run(pool, [], control_share="0.4", seed=seed, **settings).picks
        controls = [pick for pick in picks if pick.taken_by == "control"]
        drawn.update(pick.uid for pick in controls)
        probabilities |= {pick.inclusion_probability for pick in controls}
        assert len(controls) == 2
        assert len({pick.uid for pick in picks}) == 5

    (probability,) = probabilities
    n_eligible = run(pool, [], **settings).report["pool"]["n_eligible"]
    assert probability == 2 / n_eligible
    assert len(drawn) == n_eligible
    spread = (n_seeds * probability * (1 - probability)) ** 0.5
    assert all(abs(count - n_seeds * probability) < 4.5 * spread for count in drawn.values())


def test_labels_of_controls_estimate_the_pool():
    """The mean of a measure over controls is, over seeds, its mean over the eligible questions."""
    means = []
    for seed in range(200):
        result = run(POOL, [], budget=6, control_share="0.5", strategy="entropy", seed=seed)
        sizes = dict(zip(result.scores.table.uids, result.scores.n_distinct.tolist(), strict=True))
        means.append(np.mean([sizes[pick.uid] for pick in result.picks if pick.taken_by == "control"]))
    eligible = [size for size, reason in zip(result.scores.n_distinct, result.ineligible, strict=True) if not reason]

    assert np.mean(means) == pytest.approx(np.mean(eligible), abs=4.5 * np.std(means) / len(means) ** 0.5)


def test_controls_are_named_in_picks_and_report():
    result = run(control_share="0.25")

    rows = [pick.to_json() for pick in result.picks]
    controls = [row["id"] for row in rows if row["taken_by"] == "control"]
    probability = 2 / result.report["pool"]["n_eligible"]
    assert result.report["controls"] == {"n": 2, "inclusion_probability": probability, "ids": controls}
    assert [row["inclusion_probability"] for row in rows] == [None] * 6 + [probability] * 2
    assert run().report["controls"] == {"n": 0, "inclusion_probability": None, "ids": []}


def test_all_controls_is_a_random_sample():
    result = run(control_share="1")

    assert {pick.taken_by for pick in result.picks} == {"control"}


def test_what_is_labeled_is_not_picked_and_told():
    first = uids(run())

    result = run(labeled=[*first, "elsewhere"])

    assert not set(uids(result)) & set(first)
    assert result.report["pool"]["ineligible"]["already_labeled"]["ids"] == sorted(first)
    assert result.report["labeled"] == {"given": 9, "in_pool": 8}
    assert result.report["fingerprint"] != run().report["fingerprint"]


def test_a_second_round_takes_from_clusters_without_labels_first():
    labeled = [question.uid for question in POOL if question.cluster in (0, 1)][:6]

    picks = run(budget=3, labeled=labeled).picks

    assert sorted(pick.cluster for pick in picks) == [2, 3, 4]


def test_labeled_questions_use_up_the_share_of_their_cluster():
    labeled = [question.uid for question in POOL if question.cluster == 0][:2]

    picks = run(budget=8, labeled=labeled).picks  # ten in all, two of each of five clusters

    assert Counter(pick.cluster for pick in picks) == {1: 2, 2: 2, 3: 2, 4: 2}


def test_a_second_round_makes_a_cluster_for_each_label_and_pick():
    unclustered = [replace(question, cluster=None) for question in POOL]
    first = run(unclustered, embeddings=EMBEDDINGS, budget=4)

    second = run(unclustered, embeddings=EMBEDDINGS, budget=4, labeled=uids(first))

    assert second.report["clusters"]["n"] == 8
    label_of = dict(zip(second.scores.table.uids, second.labels.tolist(), strict=True))
    from_clusters = [label_of[pick.uid] for pick in second.picks if pick.taken_by == "cluster"]
    assert not {label_of[uid] for uid in uids(first)} & set(from_clusters)
    assert len(set(from_clusters)) == len(from_clusters) == 4


def test_a_budget_beyond_what_is_left_is_refused():
    labeled = [question.uid for question in POOL[:35]]

    with pytest.raises(PoolTooSmall, match="5 of them eligible"):
        run(budget=6, labeled=labeled)


def test_labels_from_elsewhere_change_nothing():
    assert [pick.to_json() for pick in run(labeled=["other"]).picks] == [pick.to_json() for pick in run().picks]


@pytest.mark.parametrize("strategy", ["random", "v1", "full"])
def test_a_strategy_that_needs_no_answers_runs_without_any(strategy):
    result = run(BARE, [], strategy=strategy)

    report = result.report
    assert (report["q_hat"], report["q_hat_infinite"], report["calibration"], report["comparison"]) == (
        None, False, None, None,
    )  # fmt: skip
    assert (report["settings"]["n_outcomes"], report["settings"]["n_probes"]) == (0, 0)
    assert report["set_size_histogram"] == {}
    assert report["warnings"] == []
    assert report["strategy"]["cost"] == {"outcomes": 0, "trajectories": 0, "probes": 0, "forward_passes": 0}
    assert all(pick.prediction_set == () for pick in result.picks)
    json.dumps(report, allow_nan=False)


def test_random_picks_the_same_with_and_without_answers():
    assert uids(run(BARE, [], strategy="random")) == uids(run(strategy="random", min_readable=0.0))


def test_votes_without_calibration_are_enough_where_no_threshold_is_needed():
    result = run(POOL, [], strategy="entropy")

    assert result.calibration is None
    assert result.scores.set_size.tolist() == [0] * 40
    assert result.acquisition_scores.tolist() == run(strategy="entropy").acquisition_scores.tolist()


@pytest.mark.parametrize(("pool", "strategy", "need"), [(POOL, "const", "calibration"), (BARE, "entropy", "votes")])
def test_a_strategy_without_what_it_needs_says_how_to_get_it(pool, strategy, need):
    with pytest.raises(MissingEvidence, match=need) as caught:
        run(pool, [], strategy=strategy)

    assert "--" in str(caught.value)


def test_answers_of_two_settings_do_not_mix_without_calibration_either():
    mixed = [replace(question, fingerprint="ab"[row % 2]) for row, question in enumerate(POOL)]

    with pytest.raises(FingerprintMismatch):
        run(mixed, [], strategy="entropy")


def test_no_answers_are_needed_in_the_settings_of_random_alone():
    assert SelectionConfig.preset(budget=1, strategy="random", n_outcomes=0, n_probes=0).n_outcomes == 0
