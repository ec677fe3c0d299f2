"""SHIFT against the rule written out one step at a time."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selector.errors import MissingEvidence
from selector.strategies import STRATEGIES, Evidence
from tests.selector.internals.simulated import evidence_of, simulate_internals

SHIFTS = ["shift", "shift_norm", "shift_spread"]


def by_hand(internals, budget, weigh, spread):
    """Follow F.1 with loops."""
    uids = sorted(internals.uids, key=lambda uid: hashlib.sha256(uid.encode()).digest())
    row = {uid: i for i, uid in enumerate(internals.uids)}
    q, phi = {}, {}
    for uid in uids:
        s, e = (getattr(internals, name)[row[uid]].astype(float) for name in ("start", "end"))
        q[uid] = np.log(1 + np.sqrt(sum((e - s) ** 2)))
        joined = np.array([*s, *(e - s)])
        length = np.sqrt(sum(joined**2))
        phi[uid] = joined / length if length else joined
    picked = [max(uids, key=lambda uid: q[uid])]
    while len(picked) < budget:
        left = [uid for uid in uids if uid not in picked]

        def gain(uid):
            nearest = min(np.sqrt(sum((phi[uid] - phi[other]) ** 2)) for other in picked) if spread else 1.0
            return nearest * (q[uid] if weigh else 1.0)

        picked.append(max(left, key=gain))
    return picked


def choose(key, internals, budget, chosen=(), candidates=None):
    strategy, evidence = STRATEGIES[key](), evidence_of(internals)
    scores = strategy.acquisition_scores(evidence, 0)
    rows = [i for i in range(len(internals)) if i not in chosen] if candidates is None else candidates
    found = strategy.choose(
        evidence,
        scores,
        candidates=np.array(rows, np.intp),
        chosen=np.array(chosen, np.intp),
        budget=budget,
        seed=0,
    )
    return scores, found


@given(seed=st.integers(0, 10_000), n=st.integers(1, 25), budget=st.integers(1, 25))
def test_the_greedy_set_is_that_of_the_rule_written_out(seed, n, budget):
    internals = simulate_internals([f"q{i}" for i in range(n)], seed=seed)
    budget = min(budget, n)

    for key, weigh, spread in (("shift", True, True), ("shift_spread", False, True)):
        _, found = choose(key, internals, budget)
        assert [internals.uids[row] for row in found] == by_hand(internals, budget, weigh, spread)


def test_the_ablation_without_diversity_leaves_it_to_the_scores():
    internals = simulate_internals([f"q{i}" for i in range(12)], seed=3)

    scores, found = choose("shift_norm", internals, 5)

    assert found is None
    best = np.argsort(-scores)[:5]
    assert [internals.uids[row] for row in best] == by_hand(internals, 5, weigh=True, spread=False)


def test_scores_are_the_logarithm_of_one_plus_the_distance_travelled():
    internals = replace(
        simulate_internals(["a", "b", "c"], depth=2),
        start=np.array([[0, 0], [1, 1], [5, 5]], np.float32),
        end=np.array([[3, 4], [1, 1], [5, 5 + np.e - 1]], np.float32),
    )

    scores, _ = choose("shift", internals, 1)

    np.testing.assert_allclose(scores, [np.log(6), 0, 1], rtol=1e-6)


def test_an_exact_duplicate_and_an_empty_chain_come_last():
    internals = simulate_internals([f"q{i}" for i in range(6)], seed=1)
    start, end = internals.start.copy(), internals.end.copy()
    first = int(choose("shift", internals, 1)[1][0])
    twin, empty = [row for row in range(6) if row != first][:2]
    start[twin], end[twin] = start[first], end[first]
    start[empty] = end[empty] = 0

    _, found = choose("shift", replace(internals, start=start, end=end), 6)

    assert len({first, twin} & set(found[:4].tolist())) == 1  # whichever of the two comes first by hash
    assert set(found[4:].tolist()) - {first, twin} == {empty}


def test_a_second_round_goes_on_where_the_first_stopped():
    internals = simulate_internals([f"q{i}" for i in range(20)], seed=5)

    _, together = choose("shift", internals, 9)
    _, first = choose("shift", internals, 4)
    _, second = choose("shift", internals, 5, chosen=first.tolist())

    assert [*first, *second] == together.tolist()


@pytest.mark.parametrize("key", SHIFTS)
def test_without_internals_it_says_what_is_missing(key):
    evidence = evidence_of(simulate_internals(["a"]))

    with pytest.raises(MissingEvidence) as caught:
        STRATEGIES[key]().acquisition_scores(Evidence(evidence.scores), 0)

    assert "--engine transformers" in str(caught.value)
