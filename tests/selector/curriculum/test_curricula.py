"""What every curriculum promises, checked for each one in the registry."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from selector.curriculum import CURRICULA, Curriculum
from selector.errors import CurriculumMismatch, InvalidConfig, UnknownQuestion

DOCS = Path(__file__).resolve().parents[3] / "docs" / "curriculum.md"
UIDS = [f"q{i}" for i in range(60)]
every_curriculum = pytest.mark.parametrize("key", CURRICULA)


def train(curriculum, rates, steps, *, k=6, start=0):
    """Return what was proposed at each step of a scripted training."""
    rng = np.random.default_rng(start)
    proposed = []
    for step in range(start, start + steps):
        batch = curriculum.propose(k)
        while batch:
            proposed.append(batch)
            for uid in batch:
                curriculum.observe(uid, (rng.random(8) < rates[uid]).astype(float).tolist(), step)
            batch = curriculum.refill()
    return proposed


def some_rates(seed=0):
    return dict(zip(UIDS, np.random.default_rng(seed).beta(0.5, 0.5, len(UIDS)), strict=True))


@every_curriculum
def test_key_title_and_source_are_its_own(key):
    curriculum = CURRICULA[key]

    assert issubclass(curriculum, Curriculum)
    assert curriculum.key == key
    assert curriculum.__module__ == f"selector.curriculum.{key}"
    assert sum(other.title == curriculum.title for other in CURRICULA.values()) == 1
    assert curriculum.source


@every_curriculum
def test_proposes_different_questions_of_its_own(key):
    curriculum = CURRICULA[key](UIDS, seed=1)

    for batch in train(curriculum, some_rates(), 20):
        assert len(set(batch)) == len(batch)
        assert set(batch) <= set(UIDS)


@every_curriculum
def test_proposes_all_questions_when_asked_for_all(key):
    curriculum = CURRICULA[key](UIDS, seed=1)
    train(curriculum, some_rates(), 5)

    assert sorted(curriculum.propose(60)) == sorted(UIDS)


@every_curriculum
@pytest.mark.parametrize("k", [0, -1, 61, 1.5, "3"])
def test_refuses_to_propose_what_it_does_not_have(key, k):
    with pytest.raises(InvalidConfig, match="from 1 to 60"):
        CURRICULA[key](UIDS).propose(k)


@every_curriculum
def test_same_seed_same_proposals_whatever_the_order_of_the_questions(key):
    rates = some_rates()

    first = train(CURRICULA[key](UIDS, seed=3), rates, 15)

    assert train(CURRICULA[key](UIDS[::-1], seed=3), rates, 15) == first
    assert train(CURRICULA[key](UIDS, seed=4), rates, 15) != first


@every_curriculum
def test_a_restarted_trainer_goes_on_as_if_nothing_had_happened(key):
    rates, prior = some_rates(), {"q3": (7, 1), "q9": (0, 8)}
    whole, first = (CURRICULA[key](UIDS, seed=3, prior=prior) for _ in range(2))
    expected = train(whole, rates, 8) + train(whole, rates, 8, start=8)
    found = train(first, rates, 8)
    saved = json.dumps(first.state_dict(), allow_nan=False)

    second = CURRICULA[key](UIDS, seed=99)
    second.load_state_dict(json.loads(saved))

    assert json.dumps(second.state_dict()) == saved
    assert second.kept() == first.kept()
    assert found + train(second, rates, 8, start=8) == expected
    assert second.state_dict() == whole.state_dict()


@every_curriculum
def test_a_trainer_restarted_in_the_middle_of_a_batch_goes_on(key):
    def begin(curriculum):
        batch = curriculum.propose(6)
        for uid in batch[:3]:
            curriculum.observe(uid, [1.0] * 8, 0)
        return batch[3:]

    def finish(curriculum, rest):
        for uid in rest:
            curriculum.observe(uid, [1.0, 0.0], 0)
        return curriculum.refill(), curriculum.kept(), curriculum.propose(6)

    whole, stopped, resumed = (CURRICULA[key](UIDS, seed=2) for _ in range(3))
    expected = finish(whole, begin(whole))

    rest = begin(stopped)
    resumed.load_state_dict(json.loads(json.dumps(stopped.state_dict())))

    assert finish(resumed, rest) == expected


@every_curriculum
def test_questions_added_later_join_a_saved_state(key):
    old = CURRICULA[key](UIDS[:30], seed=0)
    train(old, some_rates(), 5)

    new = CURRICULA[key](UIDS, seed=0)
    new.load_state_dict(old.state_dict())

    assert new.beliefs.n_rollouts.sum() == old.beliefs.n_rollouts.sum()
    assert len(new.propose(60)) == 60


@every_curriculum
def test_refuses_the_state_of_other_questions_settings_or_curricula(key):
    old = CURRICULA[key](UIDS, seed=0)
    train(old, some_rates(), 2)
    other = next(name for name in CURRICULA if name != key)
    seen = old.beliefs.to_json()["questions"]

    for curriculum, words in (
        (CURRICULA[key]([uid for uid in UIDS if uid != next(iter(seen))]), next(iter(seen))),
        (CURRICULA[key](UIDS, lam=0.25), "0.25"),
        (CURRICULA[other](UIDS), other),
    ):
        before = curriculum.state_dict()
        with pytest.raises(CurriculumMismatch, match=words):
            curriculum.load_state_dict(old.state_dict())
        assert curriculum.state_dict() == before


@every_curriculum
def test_unknown_questions_are_named(key):
    curriculum = CURRICULA[key](UIDS)

    with pytest.raises(UnknownQuestion, match="'nobody'"):
        curriculum.observe("nobody", [1.0], 0)
    with pytest.raises(UnknownQuestion, match="'nobody'"):
        CURRICULA[key](UIDS, prior={"nobody": (1, 1)})


@every_curriculum
@pytest.mark.parametrize(
    "settings",
    [
        {"lam": -0.1},
        {"lam": 1.1},
        {"lam": float("nan")},
        {"lam": "1"},
        {"lam": True},
        {"prior_weight": -1},
        {"success_at": float("inf")},
        {"no_such_setting": 1},
    ],
)
def test_refuses_settings_that_mean_nothing(key, settings):
    with pytest.raises(InvalidConfig, match=next(iter(settings))):
        CURRICULA[key](UIDS, **settings)


@every_curriculum
@pytest.mark.parametrize("prior", [{"q1": (-1, 2)}, {"q1": (1, float("nan"))}, {"q1": (1,)}])
def test_refuses_priors_that_mean_nothing(key, prior):
    with pytest.raises(InvalidConfig, match="q1"):
        CURRICULA[key](UIDS, prior=prior)


@every_curriculum
def test_refuses_no_questions_and_questions_that_come_twice(key):
    with pytest.raises(InvalidConfig, match="at least one"):
        CURRICULA[key]([])
    with pytest.raises(InvalidConfig, match="'q7'"):
        CURRICULA[key]([*UIDS, "q7"])


@every_curriculum
@pytest.mark.parametrize(("rewards", "step"), [(["x"], 0), ([1.0], -1), ([1.0], 0.5), ([[1.0]], 0)])
def test_refuses_rewards_and_steps_that_mean_nothing(key, rewards, step):
    curriculum = CURRICULA[key](UIDS)
    before = curriculum.state_dict()

    with pytest.raises(InvalidConfig):
        curriculum.observe("q1", rewards, step)
    assert curriculum.state_dict() == before


@every_curriculum
def test_rewards_of_one_step_count_the_same_in_one_call_or_many(key):
    rewards = [1.0, 0.0, 0.5, 1.0]
    whole, split = (CURRICULA[key](UIDS, lam=0.5) for _ in range(2))
    for step in range(3):
        whole.observe("q1", rewards, step)
        for reward in rewards:
            split.observe("q1", [reward], step)

    assert split.state_dict() == whole.state_dict()


@every_curriculum
def test_it_has_an_entry_in_the_documentation(key):
    entries = dict(re.findall(r"^## `(\w+)`: (.+)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE))

    assert entries[key] == CURRICULA[key].title
    assert list(entries) == list(CURRICULA)


def test_random_is_uniform():
    curriculum = CURRICULA["random"](UIDS, seed=5)

    drawn = Counter(uid for _ in range(2000) for uid in curriculum.propose(6))

    assert len(drawn) == 60
    assert all(abs(count - 200) < 5 * 200**0.5 for count in drawn.values())
