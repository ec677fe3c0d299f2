import pytest

from labeling.queries.run_results import (
    comparison_of,
    coverage_check_in_words,
    not_picked,
    notices_of,
    picks_of,
    threshold_in_words,
)
from tests import factories

REPORT = {
    "strategy": {"key": "const", "title": "CONST"},
    "set_size_histogram": {"1": 5, "4": 2},
    "calibration": {
        "smallest_useful_alpha": {"alpha": "0.25", "note": "chosen after seeing the data"},
        "coverage_check": {
            "available": True, "n_fitted": 20, "n_counted": 20, "hits": 18, "coverage": 0.9, "band": [0.7, 1.0],
            "below_band": False,
        },
    },
    "comparison": {
        "tests": {
            "entropy": {"pool_mean": 0.5, "calibration_mean": 0.1, "p_value": 0.001},
            "unread_share": {"pool_mean": 0.0, "calibration_mean": 0.0, "p_value": 1.0},
        },
        "unlike": ["entropy"],
    },
    "warnings": [
        {"code": "degenerate_calibration", "message": "The calibration is degenerate."},
        {"code": "weak_model", "message": "The model is weak."},
    ],
    "pool": {"ineligible": {"too_few_readable": {"n": 3, "ids": []}}},
    "set_aside": [{"where": "pool", "id": "q"}, {"where": "calibration", "id": "c"}],
}  # fmt: skip
CONFIG = {"alpha": "0.1", "lam": 0.02}


@pytest.fixture
def run(pool):
    return factories.make_run(pool=pool, config=CONFIG, report=REPORT, q_hat=-0.1)


@pytest.mark.parametrize("n", [1, 20])
def test_picks_with_their_questions_and_reasons_take_one_query(run, pool, n, django_assert_num_queries):
    for rank, question in enumerate(factories.make_questions(pool=pool, n=n), 1):
        factories.make_pick(run=run, question=question, rank=rank, cluster=0, taken_by="cluster")

    with django_assert_num_queries(1):
        lines = [(line.pick.question.text, line.why) for line in picks_of(run)]

    assert len(lines) == n


def test_a_pick_says_why(run, pool):
    first, second, third = (
        factories.make_pick(run=run, question=factories.make_question(pool=pool), rank=rank, **fields)
        for rank, fields in enumerate(
            [
                {"cluster": 2, "taken_by": "cluster", "tied_with": 3, "tie_break": "distinct_probe_answers"},
                {"cluster": 1, "taken_by": "cluster", "set_size": 1},
                {"cluster": 1, "taken_by": "global_order", "tied_with": 1, "set_size": 0},
            ],
            1,
        )
    )

    assert [line.why for line in picks_of(run)] == [
        [
            "The best of cluster 2 (CONST).",
            "By the threshold 2 answers are plausible.",
            "3 other questions have the same score in cluster 2: its probes gave more distinct answers.",
        ],
        [
            "The best of cluster 1 (CONST).",
            "By the threshold 1 answer is plausible.",
            "No other question in cluster 1 has the same score.",
        ],
        [
            "The best that the clusters left over (CONST).",
            "By the threshold no answer is plausible.",
            "1 other question has the same score in the pool: they were all picked.",
        ],
    ]
    assert {first.rank, second.rank, third.rank} == {1, 2, 3}


def test_the_threshold_is_explained(run):
    words = threshold_in_words(run)

    assert "-0.1" in words
    assert "10.0% of the votes or more (12.0% where the votes are most spread)" in words
    assert "at least 0.9 of the time" in words


def test_an_infinite_threshold_says_that_coverage_cannot_be_had(run):
    run.q_hat, run.q_hat_infinite = None, True

    assert "infinite" in threshold_in_words(run)
    assert "Coverage of 0.9 cannot be had" in threshold_in_words(run)


def test_only_a_degenerate_calibration_offers_another_alpha_with_its_caveat(run):
    degenerate, weak = notices_of(run)

    assert (degenerate.offered_alpha, degenerate.offered_note) == ("0.25", "chosen after seeing the data")
    assert (weak.code, weak.offered_alpha) == ("weak_model", "")


def test_the_coverage_check_is_put_in_words(run):
    assert "cover 18 of 20 right answers" in coverage_check_in_words(run)
    assert "not below the band" in coverage_check_in_words(run)

    run.report["calibration"]["coverage_check"] = {"available": False, "reason": "half of the calibration set is 2"}
    assert coverage_check_in_words(run) == "Not available: half of the calibration set is 2."


def test_measures_that_differ_between_pool_and_calibration_are_marked(run):
    assert [(line.name, line.is_alike) for line in comparison_of(run)] == [
        ("Entropy of the answers", False),
        ("Share of unread completions", True),
    ]


def test_questions_that_could_not_be_picked_are_counted_by_reason(run):
    assert not_picked(run) == [("could not be asked", 1), ("too few readable answers", 3)]


def test_a_run_without_a_report_shows_nothing_instead_of_failing(pool):
    run = factories.make_run(pool=pool)

    assert (threshold_in_words(run), coverage_check_in_words(run)) == ("", "")
    assert (notices_of(run), comparison_of(run), not_picked(run)) == ([], [], [])
