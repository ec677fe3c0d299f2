"""What a pool decides for itself."""

import pytest

from selector.answers import AnswerPolicy, Verdict, exact_verdict
from selector.errors import InvalidConfig

YES, NO = Verdict.EQUIVALENT, Verdict.DIFFERENT


@pytest.mark.parametrize(
    ("settings", "gold", "answer", "verdict"),
    [
        ({}, "28\\%", "28", YES),
        ({}, "28\\%", "0.28", YES),
        ({}, "28", "0.28", NO),
        ({"percent": "number"}, "28\\%", "0.28", NO),
        ({"percent": "number"}, "28\\%", "28", YES),
        ({"percent": "fraction"}, "28\\%", "28", NO),
        ({"percent": "fraction"}, "28\\%", "\\frac{7}{25}", YES),
        ({"percent": "sign"}, "28\\%", "28", NO),
        ({"percent": "sign"}, "28\\%", "28 percent", YES),
        ({}, "5 km", "5", YES),
        ({}, "5", "5 apples", YES),
        ({"units": "required"}, "5 km", "5", NO),
        ({"units": "required"}, "5 km", "5 kilometers", YES),
        ({"units": "required"}, "\\$5", "5", NO),
        ({"units": "required"}, "90^\\circ", "90", NO),
        ({"units": "required"}, "90^\\circ", "\\frac{\\pi}{2}", YES),
        ({}, "5 km", "5 m", NO),
        ({}, "\\sqrt2", "1.41421356", NO),
        ({"tolerance": "1e-6"}, "\\sqrt2", "1.41421356", YES),
        ({"tolerance": "0.01"}, "\\frac{100}{3}", "33.3", YES),
        ({"tolerance": "0.01"}, "100", "101", YES),
        ({"tolerance": "0.01"}, "100", "101.1", NO),
        ({"tolerance": "0.01"}, "x", "1.001x", NO),
        ({"tolerance": "0.01"}, "(100, 5)", "(100.5, 5)", YES),
        ({}, "A", "a", YES),
        ({"case": "keep"}, "A", "a", NO),
        ({"case": "keep"}, "Paris", "paris", NO),
        ({}, "Paris", "paris", YES),
    ],
)
def test_the_policy_decides(settings, gold, answer, verdict):
    policy = AnswerPolicy(**settings)

    assert exact_verdict(gold, answer, policy=policy) is verdict
    if "tolerance" not in settings:
        assert exact_verdict(answer, gold, policy=policy) is verdict


def test_a_policy_round_trips_through_json():
    policy = AnswerPolicy(percent="number", units="required", tolerance="0.01", case="keep")

    assert AnswerPolicy.from_json(policy.to_json()) == policy
    assert AnswerPolicy.from_json({}) == AnswerPolicy()


@pytest.mark.parametrize(
    ("setting", "value"),
    [("percent", "maybe"), ("units", ""), ("tolerance", "-1"), ("tolerance", "1"), ("tolerance", "x"), ("case", "no")],
)
def test_a_setting_that_means_nothing_is_refused_by_name(setting, value):
    with pytest.raises(InvalidConfig) as refused:
        AnswerPolicy(**{setting: value})
    assert refused.value.setting == setting

    with pytest.raises(InvalidConfig):
        AnswerPolicy.from_json({"colour": "blue"})
