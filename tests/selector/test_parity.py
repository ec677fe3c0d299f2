"""The published code and the paper's rule, on recorded votes: thresholds, set sizes and selected ids."""

import json

import pytest

from selector.config import SelectionConfig
from selector.pipeline import run_selection
from selector.votes import read_votes


@pytest.fixture(scope="module", params=["1", "2", "3"])
def recorded(request, shared_data):
    folder = shared_data / "parity"
    expected = json.loads((folder / f"{request.param}_expected.json").read_text())
    pool = read_votes(folder / f"{request.param}_pool.jsonl")
    return expected, pool, read_votes(folder / f"{request.param}_calibration.jsonl", calibration=True)


def select(recorded, preset):
    expected, pool, calibration = recorded
    config = SelectionConfig.preset(
        preset, budget=expected["budget"], alpha=str(expected["alpha"]), lam=expected["lam"]
    )
    result = run_selection(pool, calibration, config=config)
    size = dict(zip(result.scores.table.uids, result.scores.set_size.tolist(), strict=True))
    return result, [size[question.uid] for question in pool], expected[preset]


def test_reference_reproduces_the_published_code(recorded):
    result, set_sizes, expected = select(recorded, "reference")

    assert result.calibration.q_hat == pytest.approx(expected["threshold"], abs=1e-12, rel=0)
    assert result.calibration.nonconformity_scores.tolist() == pytest.approx(expected["scores"], abs=1e-12, rel=0)
    assert result.scores.entropy.tolist() == pytest.approx(expected["entropy"], abs=1e-12, rel=0)
    assert set_sizes == expected["set_size"]
    assert [pick.uid for pick in result.picks] == expected["selected"]


def test_paper_reproduces_the_rule_of_the_paper(recorded):
    result, set_sizes, expected = select(recorded, "paper")

    assert result.calibration.q_hat == pytest.approx(expected["threshold"], abs=1e-12, rel=0)
    assert set_sizes == expected["set_size"]
    assert result.calibration.n_absent == expected["scores"].count(None)
