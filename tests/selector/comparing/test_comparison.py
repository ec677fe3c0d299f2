"""A comparison picks what single selections pick, measures it right, and depends on nothing but evidence and seed."""

import json
from dataclasses import replace

import numpy as np
import pytest

from selector.comparing import costs
from selector.comparing.comparison import compare_strategies
from selector.comparing.measures import expected_clusters, mean_pairwise_distance
from selector.comparing.stability import resampled_votes
from selector.config import SelectionConfig
from selector.errors import CalibrationSetTooSmall, InvalidConfig, MissingEvidence, PoolTooSmall
from selector.pipeline import run_selection
from selector.seeds import question_rng
from selector.strategies import STRATEGIES, Cost
from selector.votes import build_table, canonical_order
from tests.selector.simulation import simulate_votes

POOL = simulate_votes(90, seed=2, n_probes=6, n_outcomes=8)
CALIBRATION = simulate_votes(60, seed=1, prefix="c", n_probes=6, n_outcomes=8)
EMBEDDINGS = np.random.default_rng(3).normal(size=(90, 8)).astype(np.float32)
CONFIG = SelectionConfig.preset(budget=7, alpha="0.3", n_probes=6, n_outcomes=8, seed=5)
ALL = list(STRATEGIES)


def compare(pool=POOL, calibration=CALIBRATION, **options):
    settings = {"strategies": ALL, "config": CONFIG, "embeddings": EMBEDDINGS, "n_bootstrap": 4, "n_random": 50}
    return compare_strategies(pool, calibration, **{**settings, **options})


def picks_of(found):
    return {each["key"]: each["picks"] for each in found["strategies"]}


@pytest.fixture(scope="module")
def found():
    return compare(truths={question.uid: question.truth for question in POOL})


@pytest.mark.parametrize("preset", ["recommended", "reference"])
def test_every_strategy_picks_what_it_picks_alone(preset):
    config = SelectionConfig.preset(preset, budget=7, alpha="0.3", n_probes=6, n_outcomes=8, seed=5)
    pool = [replace(question, truth=None) for question in POOL]

    compared = compare(pool, config=config, n_bootstrap=0)

    for each in compared["strategies"]:
        alone = run_selection(pool, CALIBRATION, config=config.replace(strategy=each["key"]), embeddings=EMBEDDINGS)
        uids = [pick.uid for pick in alone.picks]
        assert each["n_picks"] == len(uids)
        assert each["picks"] == (uids if len(uids) <= 7 else None), each["key"]
    assert len(compared["strategies"]) + len(compared["not_run"]) == len(STRATEGIES)
    assert {"const", "random", "entropy", "v6"} <= {each["key"] for each in compared["strategies"]}


def test_shuffled_rows_and_running_again_change_nothing(found):
    truths = {question.uid: question.truth for question in POOL}
    order = np.random.default_rng(0).permutation(len(POOL))
    calibration_order = np.random.default_rng(1).permutation(len(CALIBRATION))

    shuffled = compare(
        [POOL[row] for row in order],
        [CALIBRATION[row] for row in calibration_order],
        embeddings=EMBEDDINGS[order],
        truths=truths,
    )

    assert json.dumps(shuffled, allow_nan=False) == json.dumps(found, allow_nan=False)


def test_overlap_and_profiles_are_those_of_the_picks(found):
    picks, keys = picks_of(found), found["overlap"]["keys"]
    rate = {question.uid: question.outcome_answers.count(question.truth) / 8 for question in POOL}

    for i, a in enumerate(keys):
        for j, b in enumerate(keys):
            if picks[a] and picks[b]:
                both, either = set(picks[a]) & set(picks[b]), set(picks[a]) | set(picks[b])
                assert found["overlap"]["jaccard"][i][j] == len(both) / len(either)
    for key, uids in picks.items():
        if uids:
            assert found["profiles"]["share"]["means"][key] == pytest.approx(np.mean([rate[uid] for uid in uids]))
            assert sum(found["profiles"]["set_size"]["counts"][key]) == len(uids)
            sizes = [found["questions"][uid]["set_size"] for uid in uids]
            assert found["profiles"]["set_size"]["means"][key] == pytest.approx(np.mean(sizes))
            assert found["backtest"]["strategies"][key]["pass_rate"] == pytest.approx(np.mean([rate[u] for u in uids]))
    assert found["profiles"]["share"]["kind"] == "pass_rate"


def test_without_truths_the_majority_stands_in():
    unknown = compare(n_bootstrap=0)
    share = {}
    for question in POOL:
        readable = [answer for answer in question.outcome_answers if answer]
        share[question.uid] = max((readable.count(answer) for answer in readable), default=0) / 8

    assert unknown["profiles"]["share"]["kind"] == "majority_share"
    assert unknown["backtest"] is None
    for key, uids in picks_of(unknown).items():
        if uids:
            mean = np.mean([share[uid] for uid in uids])
            assert unknown["profiles"]["share"]["means"][key] == pytest.approx(mean)


def test_diversity_is_that_of_the_picks(found):
    row_of = {question.uid: row for row, question in enumerate(POOL)}

    for key, uids in picks_of(found).items():
        if uids:
            vectors = EMBEDDINGS[[row_of[uid] for uid in uids]]
            spread = found["diversity"]["strategies"][key]
            assert spread["mean_distance"] == pytest.approx(mean_pairwise_distance(vectors))
    assert found["diversity"]["strategies"]["const"]["n_clusters"] == found["diversity"]["n_clusters"] == 7


def test_expected_clusters_is_what_random_selections_cover():
    sizes = np.array([1, 4, 0, 15, 10])
    labels = np.repeat(np.arange(5), sizes)
    rng = np.random.default_rng(0)

    drawn = [len(set(labels[rng.choice(30, 6, replace=False)].tolist())) for _ in range(20_000)]

    assert expected_clusters(sizes, 6) == pytest.approx(np.mean(drawn), abs=0.02)


def resampled(question, order_of_draws):
    """The question with the answers at these places, as a slow reader of the same draws would take them."""
    answers = [*question.probe_answers, *question.outcome_answers]
    drawn = tuple(answers[place] for place in order_of_draws)
    return replace(question, probe_answers=drawn[:6], outcome_answers=drawn[6:])


def jaccard(first, second):
    return len({*first} & {*second}) / len({*first} | {*second})


def test_stability_is_that_of_selections_from_resampled_answers():
    config = CONFIG.replace(min_readable=0.0)
    keys = ["const", "entropy", "v2", "v5", "v6", "ews", "cec"]
    fast = compare(strategies=keys, config=config, n_bootstrap=3)
    slow = {key: [] for key in keys}
    order = canonical_order([question.uid for question in POOL])

    for draw in range(3):
        rng = question_rng(config.seed, "resampled_votes", str(draw))
        places = np.concatenate([rng.integers(0, 6, size=(90, 6)), 6 + rng.integers(0, 8, size=(90, 8))], axis=1)
        by_row = dict(zip(order.tolist(), places.tolist(), strict=True))
        again = [resampled(question, by_row[row]) for row, question in enumerate(POOL)]
        for key in keys:
            alone = run_selection(again, CALIBRATION, config=config.replace(strategy=key), embeddings=EMBEDDINGS)
            slow[key].append(jaccard(picks_of(fast)[key], [pick.uid for pick in alone.picks]))

    for key in keys:
        summary = fast["stability"]["votes"]["strategies"][key]
        assert summary["mean"] == pytest.approx(np.mean(slow[key])), key
        assert summary["standard_error"] == pytest.approx(np.std(slow[key], ddof=1) / np.sqrt(3))
        assert summary["interval"] == pytest.approx(np.quantile(slow[key], [0.025, 0.975]).tolist())


def test_stability_to_calibration_is_that_of_selections_calibrated_anew():
    fast = compare(strategies=["const", "v2", "v5", "entropy"], n_bootstrap=3)
    order = canonical_order([question.uid for question in CALIBRATION])
    slow = {key: [] for key in ("const", "v2", "v5")}

    for draw in range(3):
        rows = order[question_rng(CONFIG.seed, "resampled_calibration", str(draw)).integers(0, 60, size=60)]
        again = [replace(CALIBRATION[row], uid=f"c{i}") for i, row in enumerate(rows)]
        for key in slow:
            alone = run_selection(POOL, again, config=CONFIG.replace(strategy=key), embeddings=EMBEDDINGS)
            slow[key].append(jaccard(picks_of(fast)[key], [pick.uid for pick in alone.picks]))

    for key, values in slow.items():
        assert fast["stability"]["calibration"]["strategies"][key]["mean"] == pytest.approx(np.mean(values)), key
    assert fast["stability"]["calibration"]["strategies"]["entropy"] is None


def test_resampling_keeps_probes_among_probes_and_questions_apart():
    table = build_table(POOL)

    again = resampled_votes(table, question_rng(0, "any"))

    for row in range(len(table)):
        assert set(again.codes[row, :6].tolist()) <= set(table.codes[row, :6].tolist())
        assert set(again.codes[row, 6:].tolist()) <= set(table.codes[row, 6:].tolist())
    assert (again.codes != table.codes).any()


def test_what_does_not_look_at_answers_has_no_stability(found):
    assert found["stability"]["votes"]["strategies"]["random"] is None
    assert found["stability"]["votes"]["strategies"]["const"]["mean"] < 1


def test_a_strategy_that_lacks_something_is_named_with_the_reason():
    lacking = compare(embeddings=None, calibration=[], n_bootstrap=1)

    reasons = {each["key"]: each["reason"] for each in lacking["not_run"]}
    assert "calibration" in reasons["const"]
    assert "embeddings" in reasons["v1"]
    assert {"entropy", "random"} <= {each["key"] for each in lacking["strategies"]}
    assert lacking["calibration"] is None
    assert lacking["profiles"]["set_size"] is None
    assert lacking["diversity"] is None


def test_a_pool_of_which_nothing_can_be_picked_is_refused_by_the_full_pool_too():
    unread = [replace(question, probe_answers=("",) * 6, outcome_answers=("",) * 8) for question in POOL]

    with pytest.raises(PoolTooSmall):
        compare(unread, strategies=["full", "random"])
    with pytest.raises(PoolTooSmall):
        run_selection(unread, [], config=CONFIG.replace(strategy="full"))


def test_without_recorded_answers_truths_judge_nothing():
    bare = [replace(question, probe_answers=(), outcome_answers=()) for question in POOL]
    config = CONFIG.replace(strategy="random", n_probes=0, n_outcomes=0)

    compared = compare(bare, [], config=config, truths={question.uid: question.truth for question in POOL})

    json.dumps(compared, allow_nan=False)
    assert {each["key"] for each in compared["strategies"]} == {"random", "v1", "full"}
    assert compared["backtest"] is None
    assert {each["pass_rate"] for each in compared["questions"].values()} == {None}


@pytest.mark.parametrize("strategies", [["full"], ["random", "entropy", "scf", "ews", "care_proxy", "v2"]])
def test_a_pool_of_one_question_is_compared(strategies):
    config = CONFIG.replace(budget=1)

    compared = compare(POOL[:1], strategies=strategies, config=config, embeddings=EMBEDDINGS[:1])

    json.dumps(compared, allow_nan=False)
    assert {tuple(each["picks"]) for each in compared["strategies"]} == {(POOL[0].uid,)}
    assert compared["stability"]["expected"] == 1


def test_where_nothing_can_run_the_reason_is_raised():
    with pytest.raises(MissingEvidence):
        compare(strategies=["v1", "v3"], embeddings=None)
    with pytest.raises(CalibrationSetTooSmall):
        compare(strategies=["const"], config=CONFIG.replace(alpha="0.001"))


@pytest.mark.parametrize(("strategies", "n_bootstrap"), [(["nothing"], 1), ([], 1), (["const"], -1)])
def test_what_means_nothing_is_refused(strategies, n_bootstrap):
    with pytest.raises(InvalidConfig):
        compare(strategies=strategies, n_bootstrap=n_bootstrap)


def slow_tokens(cost, question):
    read, total = 0.0, 0.0
    if cost.trajectories:
        total += question.trajectory_tokens
    if cost.trajectories or cost.outcomes:
        read += question.prompt_tokens
    for _ in range(cost.probes):
        total += 16
        read += 30
    if cost.probes:
        read += question.prompt_tokens + question.trajectory_tokens
    for _ in range(cost.outcomes):
        total += sum(question.outcome_tokens) / len(question.outcome_tokens)
    for _ in range(cost.forward_passes):
        read += question.prompt_tokens + question.trajectory_tokens
    return total + read / 4


@pytest.mark.parametrize("cost", [Cost(20, 1, 20, 0), Cost(20, 0, 0, 0), Cost(0, 1, 20, 0), Cost(0, 1, 0, 1), Cost()])
def test_tokens_are_counted_question_by_question(cost):
    rng = np.random.default_rng(1)
    votes = [
        replace(
            question,
            prompt_tokens=int(rng.integers(50, 200)),
            trajectory_tokens=int(rng.integers(0, 900)),
            outcome_tokens=tuple(rng.integers(1, 900, 8).tolist()),
        )
        for question in POOL
    ]

    lengths = costs.lengths_of(votes)

    assert costs.tokens_of(cost, lengths) == pytest.approx(sum(slow_tokens(cost, question) for question in votes))
    assert set(lengths.sources.values()) == {"recorded"}


def test_lengths_that_were_not_counted_are_stood_in_for():
    votes = [
        replace(POOL[0], trajectory_tokens=100),
        replace(POOL[1], outcome_tokens=(10, 30)),
        POOL[2],
    ]

    lengths = costs.lengths_of(votes)

    assert lengths.prompt.tolist() == [costs.PROMPT_TOKENS] * 3
    assert lengths.chain.tolist() == [100, 20, 60]
    assert lengths.outcome.tolist() == [100, 20, 60]
    assert lengths.sources["prompt_tokens"] == "assumed"
    assert lengths.sources["outcome_tokens"] == "recorded for 1 of 3 questions"


def test_progress_is_told_and_may_stop_the_work():
    heard = []

    def stop(stage, done, total):
        heard.append(stage)
        if stage == "resampling" and done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(progress=stop)

    assert list(dict.fromkeys(heard)) == [
        "grouping calibration answers",
        "grouping pool answers",
        "choosing",
        "comparing",
        "resampling",
    ]
