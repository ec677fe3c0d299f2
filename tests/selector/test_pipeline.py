import json
from dataclasses import replace

import numpy as np
import pytest

from selector.answers import Grader
from selector.config import SelectionConfig
from selector.errors import CalibrationSetTooSmall, FingerprintMismatch, InvalidConfig, MissingEvidence, PoolTooSmall
from selector.pipeline import calibrate, run_selection, score
from selector.votes import QuestionVotes, build_table
from tests.selector.simulation import simulate_table, simulate_votes

CALIBRATION = simulate_votes(150, seed=1, prefix="c")
POOL = simulate_votes(200, seed=2)
EMBEDDINGS = np.random.default_rng(3).normal(size=(200, 16)).astype(np.float32)
GIVEN = [replace(question, cluster=row % 5) for row, question in enumerate(POOL)]


def run(pool=POOL, calibration=CALIBRATION, *, preset="recommended", embeddings=None, ineligible=None, **settings):
    config = SelectionConfig.preset(preset, **{"budget": 8, "alpha": "0.3", **settings})
    return run_selection(pool, calibration, config=config, embeddings=embeddings, ineligible=ineligible or {})


def rows(result):
    return [pick.to_json() for pick in result.picks]


@pytest.mark.parametrize("preset", ["recommended", "paper"])
@pytest.mark.parametrize("given", [True, False])
def test_shuffling_rows_changes_neither_picks_nor_report(preset, given):
    pool, embeddings = (GIVEN, None) if given else (POOL, EMBEDDINGS)
    before = run(pool, preset=preset, embeddings=embeddings)

    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(pool))
        calibration_order = np.random.default_rng(seed + 10).permutation(len(CALIBRATION))
        after = run(
            [pool[row] for row in order],
            [CALIBRATION[row] for row in calibration_order],
            preset=preset,
            embeddings=None if given else embeddings[order],
        )

        assert rows(after) == rows(before)
        assert json.dumps(after.report) == json.dumps(before.report)


def test_reference_follows_the_order_of_the_file():
    tied = [QuestionVotes(f"q{row}", ("a", "b"), ("a", "b"), cluster=0) for row in range(5)]
    settings = {"preset": "reference", "budget": 1, "n_probes": 2, "n_outcomes": 2, "alpha": "0.5"}
    calibration = [replace(question, truth="a") for question in tied]

    assert [run(pool, calibration, **settings).picks[0].uid for pool in (tied, tied[::-1])] == ["q0", "q4"]


def test_running_twice_gives_the_same_report():
    first, again = (run(embeddings=EMBEDDINGS) for _ in range(2))

    assert json.dumps(first.report, allow_nan=False) == json.dumps(again.report, allow_nan=False)
    assert rows(first) == rows(again)


def test_set_sizes_equal_a_plain_loop():
    config = SelectionConfig.preset(budget=1, lam=0.1)
    table = simulate_table(300, seed=5)

    scores = score(table, -0.15, config)

    for row, votes in enumerate(table.codes.tolist()):
        symbols = {vote: votes.count(vote) / 40 for vote in votes}
        entropy = -sum(p * np.log(p) for p in symbols.values()) / np.log(40)
        size = sum(-p + 0.1 * entropy <= -0.15 for vote, p in symbols.items() if vote >= 0)
        assert scores.set_size[row] == size
        assert scores.n_distinct[row] == len(set(votes) - {-1})


def test_equal_votes_score_equally_in_calibration_and_pool():
    """The threshold is an attained score, so the question that set it must be inside its own set."""
    config = SelectionConfig.preset("paper", budget=1, alpha="0.3")
    table = simulate_table(500, seed=6, absent=0.0)
    calibration = calibrate(table, config)
    at_threshold = np.flatnonzero(calibration.nonconformity_scores == calibration.q_hat)

    scores = score(table, calibration.q_hat, config)

    assert len(at_threshold)
    assert (scores.set_size[at_threshold] >= 1).all()


def test_calibration_worked_by_hand():
    votes = [
        QuestionVotes("right", ("a", "a"), ("a", "a"), truth="a"),  # -1
        QuestionVotes("split", ("a", "a"), ("a", "b"), truth="b"),  # -.25 + lam H
        QuestionVotes("absent", ("a", "a"), ("a", "a"), truth="z"),
        QuestionVotes("unread", ("", ""), ("", ""), truth="a"),
    ]
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25)) / np.log(4)
    table = build_table(votes, grouping="exact_string")

    paper = calibrate(table, SelectionConfig.preset("paper", budget=1, alpha="0.5"))
    reference = calibrate(table, SelectionConfig.preset("reference", budget=1, alpha="0.5"))

    assert paper.nonconformity_scores.tolist() == pytest.approx([-1, -0.25 + 0.02 * entropy, np.inf, np.inf])
    assert (paper.n, paper.n_absent, paper.n_dropped) == (4, 2, 0)
    assert paper.smallest_attainable_alpha == pytest.approx(3 / 5)
    assert paper.q_hat == np.inf  # rank ceil(5 / 2) = 3
    assert reference.nonconformity_scores.tolist() == pytest.approx([-1, -0.25 + 0.02 * entropy, 0.0])
    assert (reference.n, reference.n_dropped) == (3, 1)
    assert reference.q_hat == 0.0  # numpy's "higher" at level 2/3: rank 3 where the exact rank is 2


def test_an_infinite_threshold_is_told_and_written_as_null():
    weak = simulate_votes(100, seed=7, absent=0.5, prefix="c")

    report = run(calibration=weak, embeddings=EMBEDDINGS, alpha="0.1").report

    assert (report["q_hat"], report["q_hat_infinite"]) == (None, True)
    calibration = report["calibration"]
    assert calibration["degenerate"]
    assert calibration["smallest_attainable_alpha"] == (calibration["n_absent"] + 1) / 101
    assert calibration["smallest_useful_alpha"]["note"] == "chosen after seeing the data"
    codes = [warning["code"] for warning in report["warnings"]]
    assert codes[:3] == ["q_hat_infinite", "degenerate_calibration", "weak_model"]
    json.dumps(report, allow_nan=False)


def test_the_offered_alpha_is_not_degenerate():
    weak = simulate_votes(100, seed=7, absent=0.5, prefix="c")
    offered = run(calibration=weak, embeddings=EMBEDDINGS, alpha="0.1").report["calibration"]["smallest_useful_alpha"]

    again = run(calibration=weak, embeddings=EMBEDDINGS, alpha=offered["alpha"]).report

    assert not again["calibration"]["degenerate"]


def test_degenerate_can_be_finite():
    calibration = [QuestionVotes(f"c{i}", ("a",) * 39, ("b",), truth="b") for i in range(20)]
    pool = [QuestionVotes(f"q{i}", ("a",) * 20 + ("b",) * 18 + ("c",), ("c",), cluster=0) for i in range(5)]

    report = run(pool, calibration, n_probes=39, n_outcomes=1, budget=1).report

    assert report["q_hat_infinite"] is False
    assert report["calibration"]["degenerate"]


def test_a_question_with_few_readable_answers_is_not_picked_but_counts_in_the_histogram():
    blank = QuestionVotes("blank", ("a", *[""] * 19), (*(f"b{i}" for i in range(18)), "", ""))
    pool = [*POOL, blank]
    embeddings = np.vstack([EMBEDDINGS, EMBEDDINGS[:1]])

    strict = run(pool, embeddings=embeddings, strategy="v2")
    lenient = run(pool, embeddings=embeddings, strategy="v2", min_readable=0.0)

    assert strict.report["pool"]["ineligible"] == {"too_few_readable": {"n": 1, "ids": ["blank"]}}
    assert strict.report["pool"]["n_eligible"] == 200
    assert sum(strict.report["set_size_histogram"].values()) == 201
    assert lenient.report["pool"]["ineligible"] == {}


def test_half_readable_is_enough():
    half = QuestionVotes("half", ("a", "b"), ("", ""), cluster=0)
    calibration = [QuestionVotes(f"c{i}", ("a", "a"), ("a", "a"), truth="a") for i in range(9)]

    result = run([half], calibration, budget=1, n_probes=2, n_outcomes=2)

    assert [pick.uid for pick in result.picks] == ["half"]


def test_questions_of_the_calibration_set_and_repeats_are_not_picked():
    pool = [replace(question, text=f"question {row}", cluster=0) for row, question in enumerate(POOL)]
    calibration = [replace(CALIBRATION[0], text=" question  7 "), *CALIBRATION[1:]]
    pool[9] = replace(pool[9], text="question 8")

    recommended = run(pool, calibration, budget=198)
    reasons = dict(zip(recommended.scores.table.uids, recommended.ineligible, strict=True))

    assert reasons[pool[7].uid] == "in_calibration_set"
    assert sorted([reasons[pool[8].uid], reasons[pool[9].uid]]) == ["", "repeats_another"]
    assert recommended.report["pool"]["n_eligible"] == 198
    assert run(pool, calibration, preset="reference").report["pool"]["ineligible"] == {}


def test_equal_ids_without_text_say_nothing_about_equal_questions():
    calibration = [replace(question, uid=POOL[row].uid) for row, question in enumerate(CALIBRATION)]

    assert run(calibration=calibration, embeddings=EMBEDDINGS).report["pool"]["ineligible"] == {}


def test_a_question_ruled_out_by_the_caller_is_named_with_the_reason():
    best = run(embeddings=EMBEDDINGS).picks[0].uid

    result = run(embeddings=EMBEDDINGS, ineligible={best: "prompt_too_long"})

    assert best not in [pick.uid for pick in result.picks]
    assert result.report["pool"]["ineligible"]["prompt_too_long"]["ids"] == [best]


def test_prediction_sets_show_shares_of_all_votes():
    result = run(embeddings=EMBEDDINGS)

    for pick in result.picks:
        frequencies = [each.frequency for each in pick.prediction_set]
        assert len(frequencies) == pick.set_size
        assert frequencies == sorted(frequencies, reverse=True)
        assert all(0 < frequency <= 1 for frequency in frequencies)
        assert sum(frequencies) <= 1 + 1e-12
        question = next(question for question in POOL if question.uid == pick.uid)
        votes = [*question.probe_answers, *question.outcome_answers]
        for each in pick.prediction_set:
            assert each.frequency == votes.count(each.answer) / 40


def test_answers_are_grouped_by_equivalence_where_the_kind_is_known():
    calibration = [
        QuestionVotes(f"c{i}", ("1/2", "0.5"), ("1/2", "0.5"), truth="0.50", kind="number") for i in range(9)
    ]
    pool = [replace(question, uid=f"q{i}", truth=None, cluster=0) for i, question in enumerate(calibration)]
    config = SelectionConfig.preset(budget=1, n_probes=2, n_outcomes=2)

    with Grader() as grader:
        result = run_selection(pool, calibration, config=config, grader=grader)

    assert result.calibration.nonconformity_scores.tolist() == [-1.0] * 9
    assert result.picks[0].prediction_set[0].frequency == 1.0


@pytest.mark.parametrize(
    ("pool", "calibration"), [("a", "b"), ("a", None), (None, "b")], ids=["other", "unknown there", "unknown here"]
)
def test_answers_of_different_generation_settings_do_not_mix(pool, calibration):
    with pytest.raises(FingerprintMismatch):
        run(
            [replace(question, fingerprint=pool) for question in GIVEN],
            [replace(question, fingerprint=calibration) for question in CALIBRATION],
        )


def test_a_pool_of_two_settings_is_refused():
    mixed = [replace(question, fingerprint="ab"[row % 2]) for row, question in enumerate(GIVEN)]

    with pytest.raises(FingerprintMismatch):
        run(mixed, [replace(question, fingerprint="a") for question in CALIBRATION])


def test_a_shared_fingerprint_is_in_the_report():
    report = run(*([replace(each, fingerprint="abc") for each in votes] for votes in (GIVEN, CALIBRATION))).report

    assert report["fingerprints"]["generation"] == "abc"


def test_a_pool_smaller_than_the_budget_is_refused():
    with pytest.raises(PoolTooSmall, match="5 questions"):
        run(GIVEN[:5])


def test_a_calibration_set_too_small_for_alpha_is_refused():
    with pytest.raises(CalibrationSetTooSmall, match="needs at least 9"):
        run(GIVEN, CALIBRATION[:8], alpha="0.1")


def test_clusters_need_a_source():
    with pytest.raises(MissingEvidence, match="embeddings"):
        run(POOL)
    with pytest.raises(InvalidConfig, match="every question or for none"):
        run([*GIVEN[:-1], POOL[-1]])
    with pytest.raises(InvalidConfig, match="5 clusters of their own"):
        run(GIVEN, n_clusters=4)
    with pytest.raises(InvalidConfig, match="200 rows"):
        run(POOL, embeddings=EMBEDDINGS[:-1])
    with pytest.raises(InvalidConfig, match="finite"):
        run(POOL, embeddings=np.full((200, 2), np.nan, np.float32))


def test_uneven_votes_are_refused():
    with pytest.raises(InvalidConfig, match="19 outcomes and 20 probes for pool question"):
        run([replace(GIVEN[0], outcome_answers=GIVEN[0].outcome_answers[1:]), *GIVEN[1:]])


def test_a_strategy_needs_the_answers_it_uses():
    pool, calibration = ([replace(each, outcome_answers=()) for each in votes] for votes in (GIVEN, CALIBRATION))

    with pytest.raises(MissingEvidence, match="'v5' needs votes"):
        run(pool, calibration, n_outcomes=0, strategy="v5")


def test_given_clusters_share_the_budget():
    picks = run(GIVEN, budget=12).picks

    assert [pick.taken_by for pick in picks].count("cluster") == 10
    assert sorted(pick.cluster for pick in picks[:10]) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_a_number_of_clusters_can_be_asked_for():
    result = run(embeddings=EMBEDDINGS, n_clusters=4)

    assert result.report["clusters"] == {"n": 4, "source": "embeddings"}
    assert sorted(pick.cluster for pick in result.picks) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_pool_unlike_the_calibration_set_is_told():
    easy = [QuestionVotes(f"c{i}", ("a",) * 20, ("a",) * 20, truth="a") for i in range(100)]

    report = run(GIVEN, easy).report

    assert "pool_unlike_calibration" in [warning["code"] for warning in report["warnings"]]


def test_progress_names_every_stage():
    stages = []
    config = SelectionConfig.preset(budget=8, alpha="0.3")

    run_selection(GIVEN, CALIBRATION, config=config, progress=lambda stage, done, total: stages.append(stage))

    assert list(dict.fromkeys(stages)) == [
        "grouping calibration answers", "grouping pool answers", "calibrating and scoring", "clustering", "selecting",
        "checking",
    ]  # fmt: skip


def test_groups_have_thresholds_of_their_own():
    calibration = [replace(each, kind="number" if row % 2 else "text") for row, each in enumerate(CALIBRATION)]
    pool = [replace(each, kind=("number", "text", "set")[row % 3]) for row, each in enumerate(GIVEN)]

    result = run(pool, calibration, groups="kind")

    groups = result.report["groups"]
    assert {name: group["n"] for name, group in groups.items()} == {"number": 75, "text": 75, "other": 0}
    assert groups["other"]["q_hat"] == result.report["q_hat"]
    of_uid = {question.uid: question.kind for question in pool}
    expected = [groups[{"set": "other"}.get(of_uid[uid], of_uid[uid])]["q_hat"] for uid in result.scores.table.uids]
    assert result.scores.q_hat.tolist() == expected


def test_one_group_is_no_group():
    alike = [[replace(each, kind="number") for each in votes] for votes in (GIVEN, CALIBRATION)]

    assert rows(run(*alike, groups="kind")) == rows(run(*alike))
