"""The story of a training, told from its events."""

import math

import pytest

from selector.curriculum import CURRICULA, RewardEvent
from selector.curriculum.history import Standing, TrainingHistory, moments
from selector.errors import InvalidConfig

RIGHT, WRONG = 1.0, 0.0


def standing(*rewards):
    history = TrainingHistory(CURRICULA["random"](["q", "other"]))
    for step, reward in enumerate(rewards):
        history.add(RewardEvent("q", (reward,), step))
    assert history.standings()["other"] is Standing.UNTRIED
    return history.standings()["q"]


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([], "untried"),
        ([None, math.nan], "untried"),
        ([RIGHT] * 7, "learning"),
        ([RIGHT] * 8, "done"),
        ([WRONG] * 8, "stuck"),
        ([WRONG] * 15 + [RIGHT], "stuck"),
        ([WRONG] * 14 + [RIGHT] * 2, "learning"),
        ([WRONG] * 16 + [RIGHT] * 16, "done"),
        ([RIGHT] * 8 + [WRONG] * 2, "learning"),
        ([RIGHT] * 8 + [WRONG] * 3, "forgotten"),
        ([RIGHT] * 8 + [WRONG] * 20, "forgotten"),
        ([RIGHT] * 8 + [WRONG] * 20 + [RIGHT] * 16, "done"),
    ],
)
def test_standing_goes_by_the_newest_rewards(rewards, expected):
    assert standing(*rewards).value == expected


def test_moments_tell_what_was_believed_and_how_many_groups_differed():
    events = [
        RewardEvent("a", (1.0,), 0, "e1"),
        RewardEvent("a", (0.0,), 0, "e2"),
        RewardEvent("b", (0.0, 0.0), 0, "e3"),
        RewardEvent("b", (0.0, 0.0), 0, "e3"),
        RewardEvent("nobody", (1.0, 1.0), 0, "e4"),
        RewardEvent("b", (0.0, 0.0), 3, "e5"),
    ]

    first, second = moments(TrainingHistory(CURRICULA["random"](["a", "b", "c", "d"])), events)

    assert (first.step, first.n_rollouts, first.share_tried, first.useful) == (0, 4, 0.5, 0.5)
    assert (second.step, second.n_rollouts, second.share_tried, second.useful) == (3, 6, 0.5, 0.0)
    assert first.mean == pytest.approx((1 / 2 + 1 / 4 + 1 / 2 + 1 / 2) / 4)
    assert second.spread < first.spread
    assert second.evidence == (0, 0, 1, 2.5, 4)
    assert second.standings == {
        Standing.UNTRIED: 2,
        Standing.LEARNING: 2,
        Standing.DONE: 0,
        Standing.STUCK: 0,
        Standing.FORGOTTEN: 0,
    }


def test_a_moment_comes_whenever_so_many_steps_are_over():
    events = [RewardEvent("q", (1.0,), step) for step in range(25)]

    def told(events, **options):
        return list(moments(TrainingHistory(CURRICULA["random"](["q"])), events, **options))

    assert [moment.step for moment in told(events, every=10)] == [9, 19, 24]
    assert told([]) == []
    with pytest.raises(InvalidConfig, match="every"):
        told(events, every=0)
