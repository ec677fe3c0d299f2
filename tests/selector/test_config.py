from fractions import Fraction

import pytest

from selector.config import PRESETS, SelectionConfig
from selector.errors import InvalidConfig


@pytest.mark.parametrize("preset", PRESETS)
def test_json_round_trip_keeps_everything(preset):
    config = SelectionConfig.preset(preset, budget=8, alpha="0.2", n_clusters=4)

    again = SelectionConfig.from_json(config.to_json())

    assert again == config
    assert again.fingerprint() == config.fingerprint()


def test_presets_differ_as_documented():
    recommended, paper, reference = (SelectionConfig.preset(name, budget=8) for name in PRESETS)

    assert (recommended.grouping, recommended.unread, recommended.min_readable) == ("equivalence", "symbol", 0.5)
    assert (paper.grouping, paper.unread, paper.min_readable) == ("exact_string", "dropped", 0.0)
    assert (paper.absent_truth, paper.quantile, paper.ties) == ("infinite", "exact_rank", "probes")
    assert (reference.absent_truth, reference.quantile) == ("zero_frequency", "numpy_higher")
    assert (reference.ties, reference.min_readable) == ("file_order", 0.0)
    for config in (recommended, paper, reference):
        assert (config.alpha, config.lam, config.n_outcomes, config.n_probes) == ("0.1", 0.02, 20, 20)


@pytest.mark.parametrize(("given", "kept"), [("0.1", "0.1"), (".10", "0.1"), (0.1, "0.1"), ("1e-2", "0.01")])
def test_alpha_is_kept_as_an_exact_decimal(given, kept):
    config = SelectionConfig.preset(budget=1, alpha=given)

    assert config.alpha == kept
    assert config.alpha_fraction == Fraction(kept)


def test_every_setting_changes_the_fingerprint():
    config = SelectionConfig.preset(budget=8)
    changes = {
        "budget": 9, "strategy": "v2", "alpha": "0.2", "lam": 0.1, "n_outcomes": 8, "n_probes": 8, "n_clusters": 2,
        "seed": 1, "min_readable": 0.1, "exclude_repeats": False, "unread": "dropped", "ties": "file_order",
    }  # fmt: skip

    fingerprints = {config.replace(**{name: value}).fingerprint() for name, value in changes.items()}

    assert len(fingerprints | {config.fingerprint()}) == len(changes) + 1


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("budget", 0), ("budget", True), ("budget", "8"), ("alpha", "0"), ("alpha", "1"), ("alpha", "1/3"),
        ("alpha", "nan"), ("alpha", "-0.1"), ("alpha", True), ("lam", -1), ("lam", float("nan")), ("lam", "x"),
        ("n_outcomes", -1), ("n_clusters", 0), ("seed", -1), ("seed", 2**32), ("min_readable", 1.5),
        ("strategy", "best"), ("unread", "kept"), ("quantile", "numpy"), ("preset_name", "mine"), ("colour", "red"),
    ],
)  # fmt: skip
def test_a_setting_that_means_nothing_is_named(setting, value):
    with pytest.raises(InvalidConfig) as caught:
        SelectionConfig.from_json({"budget": 8, setting: value})

    assert caught.value.setting == setting.replace("preset_name", "preset")


def test_no_answers_at_all_is_refused():
    with pytest.raises(InvalidConfig, match="n_outcomes"):
        SelectionConfig.preset(budget=1, n_outcomes=0, n_probes=0)


def test_unknown_preset_is_named():
    with pytest.raises(InvalidConfig, match="one of recommended, paper, reference"):
        SelectionConfig.preset("best", budget=1)
