"""Tokens, time left and money of a run, by what came in of late."""

import pytest

from selector.generation.contract import Completion, CompletionKind
from selector.spending import Spending, duration

TRAJECTORY, PROBE, OUTCOME = CompletionKind.TRAJECTORY, CompletionKind.PROBE, CompletionKind.OUTCOME


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def spending(clock):
    return Spending(clock)


def hear(spending, clock, seconds, kind, n, n_tokens):
    clock.now += seconds
    spending.hear([Completion("q", kind, i, "", n_tokens, 9, "stop") for i in range(n)])


def test_nothing_heard_is_nothing_said(spending):
    spending.expect({OUTCOME: 10})

    assert spending.describe() == spending.total() == ""
    assert spending.seconds_left() is None


def test_time_before_the_first_stage_counts_for_nothing(spending, clock):
    clock.now = 500.0
    spending.start()
    hear(spending, clock, 10, TRAJECTORY, 5, 100)

    assert spending.seconds == 10
    assert spending.tokens_per_second == 50


def test_the_rate_is_that_of_the_last_minute(spending, clock):
    spending.start()
    for _ in range(10):
        hear(spending, clock, 10, OUTCOME, 1, 100)
    for _ in range(6):
        hear(spending, clock, 10, OUTCOME, 10, 100)

    assert spending.tokens_per_second == 100
    assert spending.tokens == 10 * 100 + 60 * 100


def test_what_is_to_come_is_foretold_from_chains(spending, clock):
    spending.start()
    spending.expect({TRAJECTORY: 10, PROBE: 100, OUTCOME: 200})
    hear(spending, clock, 20, TRAJECTORY, 10, 240)  # two seconds each, 120 tokens a second

    assert spending.seconds_left() == pytest.approx(100 * 24 / 120 + 200 * 2)

    spending.start()
    hear(spending, clock, 50, PROBE, 50, 9)  # slower than was thought: one second each

    assert spending.seconds_left() == pytest.approx(50 * 1 + 200 * 2)


def test_money_and_what_a_race_may_leave_are_said(spending, clock):
    spending.gpu_price, spending.n_gpus = 3.0, 2
    spending.expect({OUTCOME: 3601}, is_at_most=True)
    spending.start()
    hear(spending, clock, 1, OUTCOME, 1, 100)

    assert spending.describe() == "100 tokens/s; all of it at most 60 min more; 100 tokens so far, 0.00 spent"
    hear(spending, clock, 3599, OUTCOME, 1, 100)
    assert spending.cost == pytest.approx(6.0)
    assert spending.total() == "The model generated 200 tokens in 60 min, for 6.00."


@pytest.mark.parametrize(
    ("seconds", "words"), [(20, "20 s"), (600, "10 min"), (7200, "2.0 h"), (3 * 86400, "3.0 days")]
)
def test_lengths_of_time_in_words(seconds, words):
    assert duration(seconds) == words
