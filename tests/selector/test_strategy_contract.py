"""What every strategy promises, checked for each one in the registry."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from selector.config import SelectionConfig
from selector.errors import MissingEvidence
from selector.pipeline import run_selection, score
from selector.strategies import STRATEGIES, Evidence, Need, Strategy
from selector.strategies.contract import INTERNAL_NEEDS
from tests.selector.internals.simulated import simulate_internals
from tests.selector.simulation import simulate_table, simulate_votes

DOCS = Path(__file__).resolve().parents[2] / "docs" / "strategies.md"
CALIBRATION = simulate_votes(120, seed=2, prefix="c")
POOL = simulate_votes(80, seed=3)
UIDS = [question.uid for question in POOL]
EMBEDDINGS = np.random.default_rng(4).normal(size=(80, 8)).astype(np.float32)
INTERNALS = simulate_internals(UIDS, seed=5)

every_strategy = pytest.mark.parametrize("key", STRATEGIES)
every_need = pytest.mark.parametrize(
    ("key", "need"), [(key, need) for key, strategy in STRATEGIES.items() for need in sorted(strategy.needs)]
)


def select(key, pool=POOL, embeddings=EMBEDDINGS, internals=INTERNALS, labeled=(), **settings):
    config = SelectionConfig.preset(**{"budget": 6, "strategy": key, "alpha": "0.3", **settings})
    return run_selection(pool, CALIBRATION, config=config, embeddings=embeddings, internals=internals, labeled=labeled)


def run_with(key, needs, **settings):
    """Run a strategy on the named kinds of evidence and nothing else."""
    has_votes, source = bool(needs & {Need.VOTES, Need.COMPLETE_VOTES}), STRATEGIES[key].votes

    def kept(votes):
        n_probes = 20 if has_votes and source != "outcomes" else 0
        n_outcomes = 20 if has_votes and source != "probes" else 0
        return [
            replace(
                each, probe_answers=each.probe_answers[:n_probes], outcome_answers=each.outcome_answers[:n_outcomes]
            )
            for each in votes
        ]

    pool = kept(POOL)
    counts = {"n_outcomes": len(pool[0].outcome_answers), "n_probes": len(pool[0].probe_answers)} if has_votes else {}
    config = SelectionConfig.preset(budget=6, strategy=key, alpha="0.3", **counts, **settings)
    return run_selection(
        pool,
        kept(CALIBRATION) if Need.CALIBRATION in needs else [],
        config=config,
        embeddings=EMBEDDINGS if Need.EMBEDDINGS in needs else None,
        internals=INTERNALS if needs & INTERNAL_NEEDS else None,
    )


def evidence_of(key, rows=None):
    """Return everything that can be known of these rows of a simulated table."""
    table = simulate_table(30, seed=0).of(STRATEGIES[key].votes)
    rows = list(range(30)) if rows is None else rows
    scores = score(table.rows(rows), -0.2, SelectionConfig.preset(budget=1))
    return Evidence(scores, EMBEDDINGS[rows], simulate_internals(table.uids, seed=6).take(scores.table.uids))


def choose(key, evidence, *, candidates, chosen=(), budget=5, seed=0):
    strategy = STRATEGIES[key]()
    return strategy.choose(
        evidence,
        strategy.acquisition_scores(evidence, seed),
        candidates=np.array(candidates, np.intp),
        chosen=np.array(chosen, np.intp),
        budget=budget,
        seed=seed,
    )


@every_strategy
def test_key_and_title_are_its_own(key):
    strategy = STRATEGIES[key]

    assert issubclass(strategy, Strategy)
    assert strategy.key == key
    assert sum(other.title == strategy.title for other in STRATEGIES.values()) == 1
    assert strategy.__module__ == f"selector.strategies.{key}"


@every_strategy
def test_scores_are_one_finite_number_a_question(key):
    found = STRATEGIES[key]().acquisition_scores(evidence_of(key), 0)

    assert found.shape == (30,)
    assert found.dtype == np.float64
    assert np.isfinite(found).all()


@every_strategy
def test_scores_change_nothing_and_repeat(key):
    evidence = evidence_of(key)
    before = evidence.scores.table.codes.copy(), evidence.scores.set_size.copy(), evidence.embeddings.copy()
    strategy = STRATEGIES[key]()

    first, again = strategy.acquisition_scores(evidence, 5), strategy.acquisition_scores(evidence, 5)

    assert first.tolist() == again.tolist() == STRATEGIES[key]().acquisition_scores(evidence, 5).tolist()
    assert (evidence.scores.table.codes == before[0]).all()
    assert (evidence.scores.set_size == before[1]).all()
    assert (evidence.embeddings == before[2]).all()


@every_strategy
def test_picks_fill_the_budget_without_repeats(key):
    n = STRATEGIES[key]().n_picks(6, len(POOL))

    picks = select(key).picks

    assert len({pick.uid for pick in picks}) == n
    assert [pick.rank for pick in picks] == list(range(1, n + 1))


@every_strategy
def test_picks_do_not_depend_on_the_order_of_rows(key):
    order = np.random.default_rng(0).permutation(len(POOL))
    labeled = UIDS[:4]

    shuffled = select(
        key,
        [POOL[row] for row in order],
        EMBEDDINGS[order],
        INTERNALS.take([UIDS[row] for row in order]),
        labeled=labeled[::-1],
    )

    assert [pick.to_json() for pick in shuffled.picks] == [
        pick.to_json() for pick in select(key, labeled=labeled).picks
    ]


@every_strategy
def test_a_set_is_chosen_from_the_candidates_whatever_the_order_of_rows(key):
    evidence, order = evidence_of(key), np.random.default_rng(1).permutation(30)
    place = np.argsort(order)
    candidates, chosen = list(range(3, 25)), [25, 26]

    rows = choose(key, evidence, candidates=candidates, chosen=chosen)

    if rows is None:  # the scores decide
        assert type(STRATEGIES[key]()).choose is Strategy.choose
        return
    assert len(rows) <= 5
    assert len(set(rows.tolist())) == len(rows)
    assert set(rows.tolist()) <= set(candidates)
    shuffled = choose(
        key, evidence_of(key, order.tolist()), candidates=place[candidates[::-1]], chosen=place[chosen[::-1]]
    )
    assert order[shuffled].tolist() == rows.tolist()


@every_strategy
def test_a_set_can_be_as_large_as_the_candidates_or_empty(key):
    evidence = evidence_of(key, list(range(6)))

    rows = [choose(key, evidence, candidates=range(6), budget=6), choose(key, evidence, candidates=[], budget=0)]

    assert all(found is None or len(found) <= n for found, n in zip(rows, (6, 0), strict=True))


@every_strategy
def test_empty_pools_and_unread_questions_score(key):
    for rows in ([], [1], [0, 1, 2]):
        evidence = evidence_of(key, rows)
        evidence.scores.table.codes[:] = -1
        found = STRATEGIES[key]().acquisition_scores(evidence, 0)
        assert found.shape == (len(rows),)
        assert np.isfinite(found).all()


@every_strategy
def test_what_it_declares_is_all_it_reads(key):
    """With the declared evidence alone it runs, and scores as it does with everything."""
    needs = STRATEGIES[key].needs

    result = run_with(key, needs)

    everything = select(key)
    assert len(result.picks) == len(everything.picks)
    assert result.acquisition_scores.tolist() == everything.acquisition_scores.tolist()
    has_calibration = Need.CALIBRATION in needs
    assert (result.calibration is not None) == has_calibration
    assert (result.report["calibration"] is not None) == has_calibration
    assert result.report["strategy"]["needs"] == [need for need in Need if need in needs]
    json.dumps(result.report, allow_nan=False)


@every_need
def test_a_need_that_is_missing_is_named_with_how_to_get_it(key, need):
    needs = STRATEGIES[key].needs - {need}
    if need in INTERNAL_NEEDS:
        needs -= INTERNAL_NEEDS  # one reading gives them all

    with pytest.raises(MissingEvidence) as caught:
        run_with(key, needs)

    assert caught.value.strategy == key
    assert caught.value.need in {need, *(INTERNAL_NEEDS if need in INTERNAL_NEEDS else ())}
    assert caught.value.how_to_get in str(caught.value)


@every_strategy
def test_a_second_round_goes_on_from_the_first(key):
    if STRATEGIES[key]().n_picks(4, 80) == 80:
        pytest.skip("takes everything in the first round")
    first = [pick.uid for pick in select(key, budget=4).picks]

    second = [pick.uid for pick in select(key, budget=5, labeled=first).picks]

    assert len(second) == 5
    assert not set(first) & set(second)
    if STRATEGIES[key].is_nested:
        assert first + second == [pick.uid for pick in select(key, budget=9).picks]


@every_strategy
def test_controls_are_drawn_whatever_chooses_the_rest(key):
    if STRATEGIES[key]().n_picks(4, 80) == 80:
        pytest.skip("takes everything")
    picks = select(key, budget=8, control_share="0.25").picks

    controls = [pick.uid for pick in picks if pick.taken_by == "control"]
    assert controls == [pick.uid for pick in select("random", budget=8, control_share="0.25").picks[-2:]]
    assert [pick.inclusion_probability for pick in picks] == [None] * 6 + [2 / 80] * 2


@every_strategy
def test_its_cost_is_what_it_needs(key):
    strategy = STRATEGIES[key]

    cost = strategy.cost(20, 10)

    assert cost.outcomes == (20 if strategy.needs_votes() and strategy.votes != "probes" else 0)
    assert cost.probes in ({0, 10} if strategy.needs_votes() and strategy.votes != "outcomes" else {0})
    assert bool(cost.outcomes + cost.probes) == strategy.needs_votes()
    assert cost.trajectories == int(cost.probes > 0 or bool(strategy.needs & INTERNAL_NEEDS))
    assert cost.forward_passes == int(bool(strategy.needs & INTERNAL_NEEDS))


@every_strategy
def test_a_reconstruction_says_so(key):
    strategy = STRATEGIES[key]
    text = DOCS.read_text(encoding="utf-8")
    entry = re.search(rf"^## `{key}`.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL).group()

    assert strategy.provenance in ("published", "reconstruction")
    assert ("reconstruction" in strategy.title.lower()) == (strategy.provenance == "reconstruction")
    assert strategy.provenance == "published" or "reconstruct" in entry.lower() or "rebuilt" in entry.lower()
    assert select(key).report["strategy"]["provenance"] == strategy.provenance


@every_strategy
def test_it_has_an_entry_in_the_documentation(key):
    entries = re.findall(r"^## `(\w+)`: (.+)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)

    assert dict(entries)[key] == STRATEGIES[key].title


def test_the_documentation_has_no_entry_too_many():
    entries = re.findall(r"^## `(\w+)`", DOCS.read_text(encoding="utf-8"), re.MULTILINE)

    assert entries == list(STRATEGIES)


@pytest.mark.parametrize("key", ["entropy", "v3"])
def test_entropy_counts_readable_answers_only(key):
    table = simulate_table(1, seed=0)
    table.codes[0] = [0] * 30 + [-1] * 10
    scores = score(table, -0.2, SelectionConfig.preset(budget=1))

    assert scores.entropy[0] > 0
    assert STRATEGIES[key]().acquisition_scores(Evidence(scores), 0).tolist() == [0.0]


def test_random_draws_differ_by_seed():
    first, second = ({pick.uid for pick in select("random", seed=seed).picks} for seed in (0, 1))

    assert first != second


def test_v1_takes_one_question_from_each_cluster():
    assert sorted(pick.cluster for pick in select("v1").picks) == [0, 1, 2, 3, 4, 5]


def test_v4_takes_two_from_each_of_half_as_many_clusters():
    assert sorted(pick.cluster for pick in select("v4").picks) == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(("key", "kept"), [("v5", "outcome_answers"), ("v6", "probe_answers")])
def test_v5_and_v6_see_one_kind_of_answer_only(key, kept):
    other = {"outcome_answers": "probe_answers", "probe_answers": "outcome_answers"}[kept]

    def blur(votes):
        return [replace(question, **{other: ("z",) * 20}) for question in votes]

    config = SelectionConfig.preset(budget=6, strategy=key, alpha="0.3")
    seen = run_selection(POOL, CALIBRATION, config=config, embeddings=EMBEDDINGS)
    blurred = run_selection(blur(POOL), blur(CALIBRATION), config=config, embeddings=EMBEDDINGS)

    assert blurred.calibration.q_hat == seen.calibration.q_hat
    assert [pick.uid for pick in blurred.picks] == [pick.uid for pick in seen.picks]
