from collections import Counter
from itertools import pairwise

import pytest

from labeling.queries import run_pictures
from labeling.queries.run_pictures import coverage_lines, pool_map, score_rows, set_sizes, truth_scores
from tests import factories


def test_set_sizes_have_no_gaps_and_say_how_many_were_picked(pool, django_assert_num_queries):
    run = factories.make_run(pool=pool, report={"set_size_histogram": {"1": 5, "4": 2}})
    for rank, size in enumerate((4, 4, 1), 1):
        factories.make_pick(run=run, question=factories.make_question(pool=pool), rank=rank, set_size=size)

    with django_assert_num_queries(1):
        lines = set_sizes(run)

    assert [(line.size, line.n_questions, line.n_picked) for line in lines] == [
        (1, 5, 1),
        (2, 0, 0),
        (3, 0, 0),
        (4, 2, 2),
    ]


def test_the_map_of_a_small_pool_shows_every_question(pool, django_assert_num_queries):
    run = factories.make_run(pool=pool)
    questions = factories.make_questions(pool=pool, n=3)
    for i, question in enumerate(questions):
        factories.make_score(run=run, question=question, set_size=i, x=float(i), y=-1.0)
    factories.make_pick(run=run, question=questions[1], rank=1)
    factories.make_score(run=run, question=factories.make_question(pool=pool))  # without an embedding

    with django_assert_num_queries(2):
        shown = pool_map(run)

    assert (shown.n_questions, shown.share, shown.n_picks_left_out) == (3, 1.0, 0)
    assert [(point["uid"], point["set_size"], point["rank"], point["x"]) for point in shown.points] == [
        (questions[0].uid, 0, None, 0.0),
        (questions[1].uid, 1, 1, 1.0),
        (questions[2].uid, 2, None, 2.0),
    ]


@pytest.mark.parametrize("n", [41, 240])
def test_the_map_of_a_large_pool_is_an_even_share_with_all_picks(n, pool, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(run_pictures, "MAP_POINTS", 20)
    run = factories.make_run(pool=pool)
    questions = factories.make_questions(pool=pool, n=n)
    for i, question in enumerate(questions):  # in an order as regular as can be
        factories.make_score(run=run, question=question, cluster=i % 4, x=float(i), y=0.0)
    for rank, question in enumerate(questions[5:10], 1):
        factories.make_pick(run=run, question=question, rank=rank)

    with django_assert_num_queries(2):
        shown = pool_map(run)

    others = [point for point in shown.points if point["rank"] is None]
    assert sorted(point["rank"] for point in shown.points if point["rank"]) == [1, 2, 3, 4, 5]
    assert shown.share == pytest.approx(20 / n)
    assert 13 <= len(others) <= 22
    clusters = Counter(point["cluster"] for point in others)
    assert min(clusters[cluster] for cluster in range(4)) >= 2
    assert max(b["x"] - a["x"] for a, b in pairwise(others)) <= 4 * n / 20


def test_a_map_says_how_many_picks_it_leaves_out(pool, monkeypatch):
    monkeypatch.setattr(run_pictures, "MAP_POINTS", 2)
    run = factories.make_run(pool=pool)
    for rank, question in enumerate(factories.make_questions(pool=pool, n=5), 1):
        factories.make_score(run=run, question=question, x=0.0, y=0.0)
        factories.make_pick(run=run, question=question, rank=rank)

    shown = pool_map(run)

    assert [point["rank"] for point in shown.points] == [1, 2]
    assert shown.n_picks_left_out == 3


def test_coverage_is_in_percent_and_alphas_that_could_not_be_checked_are_left_out(pool):
    def row(alpha, coverage, band, q_hat=-0.2):
        return {"alpha": alpha, "coverage": coverage, "band": band, "q_hat": q_hat, "mean_set_size": 1.5}

    alphas = [row(0.01, None, None), row(0.1, 0.75, [0.5, 1.0]), row(0.2, 0.5, [0.25, 1.0], None)]
    bins = [{"from": -1.0, "to": -0.95, "n": 3}]
    run = factories.make_run(pool=pool, report={"curve": {"alphas": alphas, "scores": bins}})

    first, second = coverage_lines(run)

    assert (first.alpha, first.wanted, first.covered, first.low, first.high) == (0.1, 90.0, 75.0, 50.0, 100.0)
    assert (first.q_hat, second.q_hat, second.mean_set_size) == (-0.2, None, 1.5)
    assert truth_scores(run) == bins


@pytest.mark.parametrize("report", [None, {}, {"curve": None}])
def test_a_run_without_the_figures_has_no_pictures_instead_of_failing(report, pool):
    run = factories.make_run(pool=pool, report=report)

    assert (set_sizes(run), coverage_lines(run), truth_scores(run), pool_map(run).points) == ([], [], [], [])


def test_the_file_of_scores_has_every_question(pool, django_assert_num_queries):
    run = factories.make_run(pool=pool)
    picked, other = factories.make_questions(pool=pool, n=2)
    factories.make_score(run=run, question=other, eligible=False, ineligible_reason="in_a_round")
    factories.make_score(run=run, question=picked, set_size=3, x=0.5, y=1.5)
    factories.make_pick(run=run, question=picked, rank=1)

    with django_assert_num_queries(1):
        head, *rows = score_rows(run)

    assert [dict(zip(head, row, strict=True))["id"] for row in rows] == [picked.uid, other.uid]
    first, second = (dict(zip(head, row, strict=True)) for row in rows)
    assert (first["rank"], first["question"], first["set_size"], first["x"]) == (1, picked.text, 3, 0.5)
    assert (second["rank"], second["eligible"], second["ineligible_reason"]) == (None, False, "in_a_round")
