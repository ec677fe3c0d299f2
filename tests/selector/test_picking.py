"""Which questions are picked: clusters, budget, ties. The vectorised choice is checked against a plain loop."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selector.config import SelectionConfig
from selector.errors import PoolTooSmall
from selector.picking import select
from selector.strategies import PoolScores
from selector.votes import VoteTable


def pool(set_sizes, *, from_probes=None, n_probe_answers=None):
    n = len(set_sizes)
    zeros = np.zeros(n, np.int64)
    table = VoteTable(
        uids=tuple(f"q{row}" for row in range(n)),
        codes=np.zeros((n, 4), np.int16),
        truth_codes=np.full(n, -1, np.int16),
        representatives=(("a",),) * n,
        n_probes=2,
    )
    return PoolScores(
        table=table,
        q_hat=np.full(n, -0.5),
        set_size=np.array(set_sizes),
        set_size_from_probes=zeros if from_probes is None else np.array(from_probes),
        n_probe_answers=zeros if n_probe_answers is None else np.array(n_probe_answers),
        n_readable=zeros + 4,
        n_distinct=zeros + 1,
        max_frequency=np.ones(n),
        entropy=np.zeros(n),
        worst_score=np.full(n, -1.0),
    )


def choose(scores, *, budget, labels, eligible=None, distances=None, per_cluster=None, preset="recommended"):
    n = len(scores.table)
    return select(
        scores,
        scores.set_size.astype(float),
        labels=np.array(labels),
        distances=None if distances is None else np.array(distances),
        is_eligible=np.ones(n, bool) if eligible is None else np.array(eligible),
        per_cluster=per_cluster or max(1, budget // len(set(labels))),
        config=SelectionConfig.preset(preset, budget=budget),
    )


def names(picks):
    return [pick.uid for pick in picks]


def test_the_best_of_each_cluster_comes_best_first():
    picks = choose(pool([1, 5, 2, 3]), budget=2, labels=[0, 0, 1, 1])

    assert names(picks) == ["q1", "q3"]
    assert [(pick.rank, pick.cluster, pick.set_size, pick.taken_by) for pick in picks] == [
        (1, 0, 5, "cluster"),
        (2, 1, 3, "cluster"),
    ]


def test_what_does_not_divide_comes_from_the_global_order():
    picks = choose(pool([5, 4, 3, 1, 1, 1]), budget=3, labels=[0, 0, 0, 1, 1, 1], per_cluster=1)

    assert names(picks)[0] == "q0"
    assert names(picks)[2] == "q1"
    assert [pick.taken_by for pick in picks] == ["cluster", "cluster", "global_order"]


def test_fewer_picks_than_clusters_keep_the_best_winners():
    assert names(choose(pool([1, 4, 3, 2]), budget=2, labels=[0, 1, 2, 3])) == ["q1", "q2"]


def test_a_short_cluster_is_topped_up():
    picks = choose(pool([9, 1, 2, 3]), budget=4, labels=[0, 1, 1, 1])

    assert sorted(names(picks)) == ["q0", "q1", "q2", "q3"]
    assert picks[-1].taken_by == "global_order"


def test_an_ineligible_question_is_never_picked():
    picks = choose(pool([9, 1, 2, 3]), budget=2, labels=[0, 0, 1, 1], eligible=[False, True, True, True])

    assert names(picks) == ["q3", "q1"]


def test_fewer_eligible_questions_than_the_budget_is_refused():
    with pytest.raises(PoolTooSmall) as caught:
        choose(pool([1, 1, 1]), budget=2, labels=[0, 0, 0], eligible=[True, False, False])

    assert (caught.value.n_eligible, caught.value.n_questions, caught.value.budget) == (1, 3, 2)


def first_by_hash(*uids):
    return min(uids, key=lambda uid: hashlib.sha256(uid.encode()).digest())


def test_ties_are_broken_in_the_documented_order():
    tied = [2, 2, 2]
    by_probes = choose(pool(tied, from_probes=[0, 1, 0]), budget=1, labels=[0, 0, 0], distances=[0, 9, 0])
    by_distinct = choose(pool(tied, n_probe_answers=[0, 1, 2]), budget=1, labels=[0, 0, 0], distances=[0, 0, 9])
    by_nearness = choose(pool(tied), budget=1, labels=[0, 0, 0], distances=[0.3, 0.1, 0.2])
    by_hash = choose(pool(tied), budget=1, labels=[0, 0, 0])
    by_row = choose(pool(tied), budget=1, labels=[0, 0, 0], preset="reference")

    assert [(picks[0].uid, picks[0].tie_break_reason) for picks in (by_probes, by_distinct, by_nearness)] == [
        ("q1", "set_size_from_probes"),
        ("q2", "distinct_probe_answers"),
        ("q1", "nearness_to_centre"),
    ]
    assert (by_hash[0].uid, by_hash[0].tie_break_reason) == (first_by_hash("q0", "q1", "q2"), "sha256_of_id")
    assert (by_row[0].uid, by_row[0].tie_break_reason) == ("q0", "file_order")
    assert all(picks[0].tied_with == 2 for picks in (by_probes, by_distinct, by_nearness, by_hash, by_row))


def test_a_pick_without_rivals_names_no_tie_break():
    (pick,) = choose(pool([3, 2, 2]), budget=1, labels=[0, 0, 0])

    assert (pick.tied_with, pick.tie_break_reason) == (0, "")


def test_reference_lists_picks_by_cluster():
    assert names(choose(pool([1, 5, 2, 3]), budget=2, labels=[1, 1, 0, 0], preset="reference")) == ["q3", "q1"]


@given(
    st.integers(1, 14).flatmap(
        lambda n: st.tuples(
            st.lists(st.tuples(*[st.integers(0, 3)] * 4, st.booleans()), min_size=n, max_size=n),
            st.integers(1, n),
            st.sampled_from([None, 2]),
        )
    )
)
def test_vectorised_choice_equals_a_plain_loop(case):
    rows, budget, two_each = case
    sizes, probes, distinct, labels, eligible = zip(*rows, strict=True)
    scores = pool(sizes, from_probes=probes, n_probe_answers=distinct)
    if sum(eligible) < budget:
        with pytest.raises(PoolTooSmall):
            choose(scores, budget=budget, labels=labels, eligible=eligible)
        return

    picks = choose(scores, budget=budget, labels=labels, eligible=eligible, per_cluster=two_each)

    def key(row):
        return -sizes[row], -probes[row], -distinct[row], hashlib.sha256(f"q{row}".encode()).digest()

    ordered = sorted((row for row in range(len(rows)) if eligible[row]), key=key)
    quota = two_each or max(1, budget // len(set(labels)))
    taken = dict.fromkeys(labels, 0)
    winners = []
    for row in ordered:
        if taken[labels[row]] < quota:
            taken[labels[row]] += 1
            winners.append(row)
    expected = winners[:budget]
    expected += [row for row in ordered if row not in expected][: budget - len(expected)]
    assert names(picks) == [f"q{row}" for row in expected]
    for pick in picks:
        row = int(pick.uid[1:])
        group = [other for other in ordered if pick.taken_by != "cluster" or labels[other] == labels[row]]
        assert pick.tied_with == sum(sizes[other] == sizes[row] for other in group) - 1
