"""Triage: where the routes begin and end, worked by hand and on a pool whose truth is known."""

import numpy as np
import pytest

from selector.errors import InvalidConfig
from selector.triage import Route, correctness, majority, probe_ranks, ranking, triage
from selector.votes import QuestionVotes, build_table, canonical_order

D, W, A = Route.DISCARD, Route.WEAKLY_SUPERVISE, Route.ANNOTATE


def route(right, wrong, *, window=1, uncertainty=None, has_majority=None):
    n = len(right)
    uids = [f"q{i:02}" for i in range(n)]
    return triage(
        np.arange(n, dtype=float) if uncertainty is None else uncertainty,
        uids,
        probed_correctness={uid: p for uid, p in zip(uids, right, strict=True) if p is not None},
        probed_majority_wrong={uid: w for uid, w in zip(uids, wrong, strict=True) if w is not None},
        has_majority=np.ones(n, bool) if has_majority is None else np.array(has_majority),
        window=window,
    )


def test_the_routes_follow_the_probes():
    found = route([1, None, 0.9, None, 0.6, None, 0.2, None, 0], [0, None, 0, None, 0, None, 1, None, 1])

    assert found.routes == (D, D, D, W, W, W, A, A, A)
    assert (found.last_discarded, found.first_annotated) == (2, 6)


def test_routes_can_be_empty():
    assert set(route([0.8, 0.7, 0.6], [0, 0, 0]).routes) == {W}
    assert set(route([1, 1, 1], [0, 0, 0]).routes) == {D}
    assert set(route([0, 0, 0], [1, 1, 1]).routes) == {A}
    assert route([1, 1, 0.1], [0, 0, 1]).routes == (D, D, A)


def test_half_of_the_majorities_wrong_is_not_more_than_half():
    assert route([0.5, 0.5], [0, 1], window=2).routes == (W, W)


def test_a_window_averages_its_neighbours():
    found = route([1.0, 1.0, 0.4, 0.1, 0.1], [0, 0, 0, 1, 1], window=3)

    np.testing.assert_allclose(found.correctness, [1, 0.8, 0.5, 0.2, 0.1])
    np.testing.assert_allclose(found.majority_wrong, [0, 0, 1 / 3, 2 / 3, 1])
    assert found.routes == (D, W, W, A, A)


def test_a_curve_that_is_not_monotone_is_pooled():
    found = route([0.8, 1.0, 0.4, 0.5, 0.0], [0, 0, 1, 0, 1])

    np.testing.assert_allclose(found.correctness, [0.9, 0.9, 0.45, 0.45, 0])
    np.testing.assert_allclose(found.majority_wrong, [0, 0, 0.5, 0.5, 1])
    assert found.routes == (D, D, W, W, A)


def test_a_question_without_any_majority_is_annotated_not_supervised():
    found = route([0.95, 0.5, 0.5], [0, 0, 0], has_majority=[False, False, True])

    assert found.routes == (D, A, W)


def test_too_few_probes_are_refused():
    with pytest.raises(InvalidConfig) as caught:
        route([1, None, None], [0, None, None], window=2)

    assert "at least 2" in str(caught.value)


def test_routes_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(1)
    uids = [f"q{i}" for i in range(60)]
    uncertainty = rng.integers(0, 6, 60).astype(float)
    right = {uid: float(1 - u / 6) for uid, u in zip(uids, uncertainty, strict=True)}
    wrong = {uid: right[uid] < 0.5 for uid in uids}

    def routes(order):
        names = [uids[row] for row in order]
        found = triage(
            uncertainty[order],
            names,
            probed_correctness=right,
            probed_majority_wrong=wrong,
            has_majority=np.ones(60, bool),
        )
        return dict(zip(names, found.routes, strict=True))

    assert routes(np.arange(60)) == routes(rng.permutation(60))


def test_probes_are_spaced_evenly_over_the_whole_ranking():
    assert probe_ranks(9, 3).tolist() == [0, 4, 8]
    assert probe_ranks(3, 64).tolist() == [0, 1, 2]
    assert len(probe_ranks(2000)) == 64


def test_the_ranking_is_ascending_and_ties_go_by_hash():
    uids = [f"q{i}" for i in range(5)]

    found = ranking(np.array([1.0, 0.0, 1.0, 1.0, 0.0]), uids)

    by_hash = canonical_order(uids).tolist()
    assert found.tolist() == [r for r in by_hash if r in {1, 4}] + [r for r in by_hash if r in {0, 2, 3}]


def test_majorities_and_correctness_come_from_the_outcome_rollouts():
    votes = [
        QuestionVotes("a", ("9", "9"), ("1", "2", "2", ""), truth="2"),
        QuestionVotes("b", ("9", "9"), ("3", "4", "4", "3"), truth="4"),
        QuestionVotes("c", ("9", "9"), ("", "", "", ""), truth="9"),
    ]
    table = build_table(votes)

    found = majority(table)

    assert found.answers == ("2", "3", "")
    assert found.shares.tolist() == [0.5, 0.5, 0]
    assert correctness(table).tolist() == [0.5, 0.5, 0]
    assert (found.codes != table.truth_codes).tolist() == [False, True, True]
