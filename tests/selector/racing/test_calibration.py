"""The race for the threshold ends with the very threshold that all answers give."""

import numpy as np
import pytest

from selector.calibration import calibrate
from selector.config import SelectionConfig
from selector.errors import CalibrationSetTooSmall
from selector.racing.calibration import race_calibration
from tests.selector.simulation import simulate_table

RULES = {
    "recommended": {},
    "paper": {},
    "reference": {},
    "recommended, but absent truths count as never given": {"absent_truth": "zero_frequency"},
}


@pytest.mark.parametrize("absent", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("alpha", ["0.1", "0.3", "0.5"])
@pytest.mark.parametrize("rules", RULES)
def test_the_threshold_is_the_same_to_the_last_bit(rules, alpha, absent):
    config = SelectionConfig.preset(rules.split(",")[0], budget=1, alpha=alpha, **RULES[rules])
    for seed in range(3):
        table = simulate_table(150, seed=seed, absent=absent)

        raced = race_calibration(table, config)

        assert raced.q_hat.hex() == calibrate(table, config).q_hat.hex()
        assert raced.n_dropped == calibrate(table, config).n_dropped


@pytest.mark.parametrize("lam", [0.0, 0.02, 0.5])
def test_thresholds_of_groups_are_the_same(lam):
    groups = ["number"] * 70 + ["set"] * 65 + ["tuple"] * 5
    config = SelectionConfig.preset("recommended", budget=1, alpha="0.2", groups="kind", lam=lam)
    for seed in range(3):
        table = simulate_table(140, seed=seed, absent=0.05)

        raced, whole = race_calibration(table, config, groups), calibrate(table, config, groups)

        assert raced.q_hat == whole.q_hat
        assert raced.group_q_hats == whole.group_q_hats


def test_fewer_answers_are_drawn_and_none_out_of_turn():
    table = simulate_table(400, seed=1)
    config = SelectionConfig.preset("recommended", budget=1, alpha="0.3")

    raced = race_calibration(table, config)

    assert raced.uids == table.uids
    assert 0 < raced.n_drawn.sum() < 0.9 * 400 * 20
    hidden = table.codes.copy()
    hidden[:, 20:][np.arange(20) >= raced.n_drawn[:, None]] = 99  # what was not drawn cannot have mattered
    changed = type(table)(table.uids, hidden, table.truth_codes, table.representatives, 20)
    assert race_calibration(changed, config).q_hat == raced.q_hat


def test_too_small_a_set_is_refused_as_without_a_race():
    with pytest.raises(CalibrationSetTooSmall):
        race_calibration(simulate_table(5, seed=1), SelectionConfig.preset("recommended", budget=1))
