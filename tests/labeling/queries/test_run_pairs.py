import pytest
from scipy.stats import spearmanr

from labeling.queries import run_pairs
from labeling.queries.run_pairs import finished_runs, pair_of, settings_of
from tests import factories


def make_scored_run(pool, questions, scores, *, picked=(), ineligible=(), **fields):
    """A run that gave the questions these scores and picked those of these numbers, in that order."""
    run = factories.make_run(pool=pool, **fields)
    for i, (question, score) in enumerate(zip(questions, scores, strict=True)):
        reason = "too_few_readable" if i in ineligible else ""
        factories.make_score(
            run=run, question=question, acquisition_score=score, set_size=int(score), eligible=not reason,
            ineligible_reason=reason,
        )  # fmt: skip
    for rank, i in enumerate(picked, 1):
        factories.make_pick(run=run, question=questions[i], rank=rank)
    return run


def test_each_run_says_where_it_places_the_others_picks(pool, django_assert_num_queries):
    questions = factories.make_questions(pool=pool, n=6)
    first = make_scored_run(pool, questions, [6, 5, 4, 3, 3, 1], picked=[0, 1])
    second = make_scored_run(pool, questions, [1, 9, 2, 8, 8, 9], picked=[1, 5], ineligible=[0])

    with django_assert_num_queries(5):
        pair = pair_of(first, second)

    (both,) = pair.both
    (mine,) = pair.only_first
    (theirs,) = pair.only_second
    assert (both.question, both.first.rank, both.second.rank) == (questions[1], 2, 1)
    assert (both.second.place, both.second.tied) == (1, 1)
    assert (mine.question, mine.first.rank, mine.first.place) == (questions[0], 1, 1)
    assert (mine.second.rank, mine.second.place, mine.second.why_not) == (None, None, "too_few_readable")
    assert (theirs.question, theirs.first.place, theirs.first.tied, theirs.first.set_size) == (questions[5], 6, 0, 1)
    assert (pair.n_first, pair.n_second, pair.n_both, pair.n_only_first, pair.n_only_second) == (2, 2, 1, 1, 1)
    assert pair.jaccard == pytest.approx(1 / 3)
    # of all 15 x 15 pairs of selections of 2 of 6: the same 1 of 15, one shared 8 of 15
    assert pair.by_chance == pytest.approx(1 / 15 + 8 / 15 / 3)
    expected = spearmanr([6, 5, 4, 3, 3, 1], [1, 9, 2, 8, 8, 9]).statistic
    assert pair.correlation == pytest.approx(expected)
    assert pair.n_common == 6


def test_a_question_that_only_one_run_looked_at_has_no_place_in_the_other(pool):
    questions = factories.make_questions(pool=pool, n=3)
    first = make_scored_run(pool, questions, [3, 2, 1], picked=[0])
    second = make_scored_run(pool, questions[1:], [1, 1], picked=[0])

    pair = pair_of(first, second)

    assert pair.only_first[0].second.why_not == "not among its questions"
    assert pair.n_common == 2
    assert pair.correlation is None  # the second gives all the same score


def test_runs_without_scores_or_picks_can_be_held_against_each_other(pool):
    pair = pair_of(factories.make_run(pool=pool), factories.make_run(pool=pool))

    assert (pair.n_both, pair.jaccard, pair.correlation, pair.shown) == (0, 1.0, None, [])


@pytest.mark.parametrize("n", [3, 60])
def test_the_queries_do_not_grow_and_long_lists_are_cut(n, pool, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(run_pairs, "MOST_SHOWN", 10)
    questions = factories.make_questions(pool=pool, n=2 * n)
    first = make_scored_run(pool, questions, range(2 * n), picked=range(n))
    second = make_scored_run(pool, questions, range(2 * n), picked=range(n, 2 * n))

    with django_assert_num_queries(5):
        pair = pair_of(first, second)

    assert pair.n_only_first == n
    assert [each.first.rank for each in pair.only_first] == list(range(1, min(n, 10) + 1))


def test_settings_that_differ_come_first(pool):
    config = {"strategy": "const", "alpha": "0.1", "budget": 8, "seed": 1}
    model = factories.make_policy_model(name="Tiny")
    first = factories.make_run(pool=pool, config=config, policy_model=model, q_hat=-0.25)
    second = factories.make_run(pool=pool, config=config | {"alpha": "0.2"}, policy_model=model, q_hat_infinite=True)

    lines = settings_of(first, second)

    assert [(line.name, line.first, line.second) for line in lines if line.differs] == [
        ("Alpha", "0.1", "0.2"),
        ("Threshold", "-0.25", "infinite"),
    ]
    assert [line.name for line in lines][:2] == ["Alpha", "Threshold"]
    assert ("Answers from", "Tiny") in [(line.name, line.first) for line in lines]


def test_only_finished_runs_of_the_pool_can_be_compared(pool):
    old, new = factories.make_run(pool=pool), factories.make_run(pool=pool)
    factories.make_run(pool=pool, status="failed")
    factories.make_run()

    assert finished_runs(pool) == [new, old]
