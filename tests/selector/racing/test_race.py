"""The exact race picks what all answers would pick, in whatever order answers come and however often it stops."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selector.config import SelectionConfig
from selector.racing.bounds import NO_SET, Rules
from selector.racing.race import Plan, Race
from selector.racing.selection import replay, start_race
from selector.votes import UNDRAWN
from tests.selector.racing.pools import picks_of_all, picks_of_race, pool_table, some_selection


@pytest.mark.parametrize("seed", range(120))
def test_a_race_picks_what_all_answers_pick(seed):
    rng = np.random.default_rng(seed)
    table, q_hat, config, evidence = some_selection(rng)

    raced, _ = picks_of_race(table, q_hat, config, concurrency=int(rng.choice([1, 5, 64])), **evidence)

    assert raced == picks_of_all(table, q_hat, config, **evidence)


@settings(max_examples=80)
@given(st.data())
def test_any_small_pool_whatever_its_answers(data):
    n, n_probes, n_outcomes = data.draw(st.integers(2, 6)), data.draw(st.integers(0, 3)), data.draw(st.integers(1, 4))
    answers = st.lists(st.integers(-1, 3), min_size=n_probes + n_outcomes, max_size=n_probes + n_outcomes)
    codes = np.array(data.draw(st.lists(answers, min_size=n, max_size=n)), np.int16)
    table = replace(pool_table(np.random.default_rng(0), n, n_probes, n_outcomes), codes=codes)
    preset = data.draw(st.sampled_from(["recommended", "paper", "reference"]))
    config = SelectionConfig.preset(preset, budget=data.draw(st.integers(1, 2)))
    q_hat = data.draw(st.sampled_from([-0.5, -1 / 3, -0.25, -0.2, -0.1, 0.0, 0.01, float("inf")]))
    nobody = np.zeros(n, bool)
    labels = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)), np.intp)
    evidence = {
        "labels": labels, "distances": None, "is_barred": nobody, "is_labeled": nobody, "per_cluster": 1,
    }  # fmt: skip

    raced, _ = picks_of_race(table, q_hat, config, concurrency=3, **evidence)

    assert raced == picks_of_all(table, q_hat, config, **evidence)


def a_race(seed, *, n=120, budget=4, spare=1, concurrency=16):
    """Return a race of a middling pool, and the answers it can ask for."""
    rng = np.random.default_rng(seed)
    table = pool_table(rng, n, 6, 8)
    config = SelectionConfig.preset("recommended", budget=budget, n_probes=6, n_outcomes=8)
    labels = rng.integers(0, 4, size=n).astype(np.intp)
    plan = Plan(labels, dict.fromkeys(range(4), 1), budget, spare=spare)

    def start():
        return start_race(
            table,
            config,
            n_outcomes=8,
            q_hats=np.full(n, -0.12),
            distances=None,
            plan=plan,
            concurrency=concurrency,
        )

    return start, table.codes[:, 6:]


def finish(race, codes):
    while not race.done:
        for row, index in race.wanted():
            race.observe(row, index, int(codes[row, index]))
    return race.picks()


@pytest.mark.parametrize("seed", range(10))
def test_answers_may_come_in_any_order(seed):
    start, codes = a_race(seed)
    in_order, shuffled = start(), start()
    rng = np.random.default_rng(seed)
    in_flight = []

    while not shuffled.done:
        in_flight += shuffled.wanted()
        for _ in range(int(rng.integers(1, 6))):
            row, index = in_flight.pop(int(rng.integers(len(in_flight))))
            shuffled.observe(row, index, int(codes[row, index]))
            if not in_flight:
                break

    assert shuffled.picks() == finish(in_order, codes)


@pytest.mark.parametrize("n_rounds", [1, 3, 9])
def test_a_stopped_race_goes_on_where_it_was(n_rounds):
    start, codes = a_race(1)
    through, stopped = start(), start()
    finish(through, codes)
    for _ in range(n_rounds):
        for row, index in stopped.wanted():
            stopped.observe(row, index, int(codes[row, index]))
    stopped.wanted()  # in flight when the process dies

    resumed = start()
    resumed.load(json.loads(json.dumps(stopped.state())))

    assert finish(resumed, codes) == through.picks()
    assert resumed.codes.tolist() == through.codes.tolist()


def test_an_early_answer_waits_for_its_turn_and_survives_a_stop():
    start, codes = a_race(2)
    race = start()
    race.wanted()
    race.observe(5, 1, int(codes[5, 1]))

    assert race.n_drawn[5] == 0
    again = start()
    again.load(json.loads(json.dumps(race.state())))
    again.observe(5, 0, int(codes[5, 0]))
    assert again.n_drawn[5] == 2
    assert again.codes[5, 6:8].tolist() == codes[5, :2].tolist()


def test_nothing_is_asked_for_twice_and_repeated_answers_change_nothing():
    start, codes = a_race(3)
    race, asked = start(), []
    while not race.done:
        wanted = race.wanted()
        asked += wanted
        for row, index in wanted:
            race.observe(row, index, int(codes[row, index]))
            race.observe(row, index, -1)

    assert len(asked) == len(set(asked)) == int(race.n_drawn.sum())
    assert race.codes[:, 6:][race.codes[:, 6:] != UNDRAWN].tolist() == codes[race.codes[:, 6:] != UNDRAWN].tolist()


def test_what_never_came_is_wanted_again():
    start, _ = a_race(4)
    race = start()
    first = race.wanted()

    assert not set(race.wanted()) & set(first)
    race.forget_in_flight()
    assert race.wanted() == first


def test_a_race_asks_for_less_than_everything_and_draws_all_answers_of_its_picks():
    start, codes = a_race(5, n=400)
    race = start()

    picks = finish(race, codes)

    assert len(picks) == 4
    assert race.is_complete[picks].all()
    assert race.n_drawn.sum() < 0.7 * codes.size


@pytest.mark.parametrize("seed", range(5))
def test_the_spare_question_replaces_a_pick_without_starting_over(seed):
    start, codes = a_race(seed, n=300)
    race = start()
    first = finish(race, codes)
    spare = race.replacements()
    n_before = int(race.n_drawn.sum())
    gone = first[0]
    excluded = np.zeros(300, bool)
    excluded[gone] = True

    race.replan(replace(race.plan, excluded=excluded))
    second = finish(race, codes)

    (new,) = set(second) - set(first)
    assert set(first) - set(second) == {gone}
    assert new in spare
    assert race.plan.labels[new] == race.plan.labels[gone]
    assert race.n_drawn.sum() - n_before < 0.3 * codes.size


def test_what_is_in_flight_for_a_question_that_is_out_may_be_given_up():
    start, codes = a_race(6, n=300)
    race, in_flight, given_up = start(), [], []
    while not race.done:
        in_flight += race.wanted()
        come, in_flight = in_flight[:5], in_flight[5:]
        for row, index in come:
            race.observe(row, index, int(codes[row, index]))
        given_up += race.needless()

    assert given_up
    assert not set(race.picks()) & {row for row, _ in given_up}


def test_bounds_close_in_on_the_value():
    start, codes = a_race(7)
    race = start()
    row = 0
    before = race.bounds(row)
    for index in range(8):
        race.observe(row, index, int(codes[row, index]))
        after = race.bounds(row)
        assert before[0] <= after[0] <= after[1] <= before[1]
        before = after

    assert before[0] == before[1] >= NO_SET


def test_answers_are_grouped_when_their_turn_comes():
    names = [{"a": 0}]

    def code_of(row, answer):
        return -1 if not answer else names[row].setdefault(answer, len(names[row]))

    race = Race(
        np.zeros((1, 2), np.int16),
        n_outcomes=3,
        q_hats=np.array([np.inf]),
        places=[0],
        rules=Rules(0.02, "symbol", 5),
        plan=Plan(np.zeros(1, np.intp), {0: 1}, 1),
        final_sizes=lambda rows, codes: np.array([len(set(row) - {-1}) for row in codes.tolist()]),
        code_of=code_of,
    )
    for index, answer in [(2, "c"), (1, ""), (0, "b")]:
        race.observe(0, index, answer)

    assert race.codes.tolist() == [[0, 0, 1, -1, 2]]
    assert race.done
    assert race.bounds(0) == (3, 3)


def test_replaying_shows_how_many_clusters_are_decided():
    start, _ = a_race(8)
    table = pool_table(np.random.default_rng(8), 120, 6, 8)
    race, seen = start(), []

    replay(race, table, lambda *at: seen.append(at))

    assert seen[-1] == (4, 4)
    assert seen == sorted(seen)
