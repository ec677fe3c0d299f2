"""`assay rank --race`: the same picks, what they cost, and what a race cannot say."""

import json
from dataclasses import replace

import pytest

from selector.cli import main
from tests.selector.cli.test_rank_votes import read_lines, write_calibration, write_votes
from tests.selector.simulation import simulate_votes

COSTS = ("tokens_used", "tokens_full", "rollouts_used", "rollouts_full")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("race")
    pool = simulate_votes(400, seed=1)
    lengths = {"prompt_tokens": 100, "trajectory_tokens": 500}
    pool = [
        replace(each, cluster=row % 4, truth=None, outcome_tokens=(400 + row,) * 20, **lengths)
        for row, each in enumerate(pool)
    ]
    write_votes(folder / "pool.jsonl", pool)
    write_votes(folder / "bare.jsonl", [replace(each, outcome_tokens=None, prompt_tokens=None) for each in pool])
    write_votes(folder / "few.jsonl", pool[:80])
    write_calibration(folder / "calibration.jsonl", simulate_votes(150, seed=2, prefix="c"))
    return folder


def rank(folder, name, *options, pool="pool.jsonl"):
    status = main(
        [
            "rank", "--votes", str(folder / pool), "--calibration-votes", str(folder / "calibration.jsonl"),
            "--budget", "4", "--alpha", "0.3", "--out", str(folder / f"{name}.jsonl"),
            "--report", str(folder / f"{name}.json"), "--scores", str(folder / f"{name}.scores"), *options,
        ]
    )  # fmt: skip
    assert status == 0
    return read_lines(folder / f"{name}.jsonl"), json.loads((folder / f"{name}.json").read_text())


@pytest.mark.parametrize("options", [(), ("--preset", "paper"), ("--strategy", "v2"), ("--strategy", "v5")])
def test_a_race_writes_the_same_picks(folder, options):
    whole, _ = rank(folder, "off", "--race", "off", *options)
    raced, report = rank(folder, "exact", "--race", "exact", *options)

    for pick in whole:
        pick |= {"tied_with": None, "tie_break_reason": ""}
    assert raced == whole
    assert report["tokens_used"] < report["tokens_full"]
    assert report["rollouts_used"] < report["rollouts_full"]


def test_costs_are_counted_from_recorded_lengths(folder):
    _, off = rank(folder, "off", "--race", "off")
    _, raced = rank(folder, "exact", "--race", "exact")
    one_chain = 500 + 0.25 * 100
    probes = 20 * (16 + 0.25 * 30) + 0.25 * (100 + 500)
    full = sum(one_chain + probes + 20 * (400 + row) for row in range(400))

    assert off["tokens_used"] == off["tokens_full"] == raced["tokens_full"] == round(full)
    assert off["rollouts_used"] == off["rollouts_full"] == 400 * 40
    assert raced["rollouts_used"] == 400 * 40 - raced["n_undrawn"]
    assert raced["race"]["cost_model"]["basis"] == "recorded"
    assert sum(raced["race"]["questions_by_outcomes_drawn"].values()) == 400
    assert raced["race"]["questions_by_outcomes_drawn"]["20"] == raced["n_complete"]


def test_lengths_that_are_not_recorded_are_said_to_be_assumed(folder):
    _, report = rank(folder, "bare", "--race", "exact", pool="bare.jsonl")

    assert report["race"]["cost_model"]["basis"] == "partly_recorded"
    assert report["race"]["calibration"]["tokens_used"] > 0


def test_scores_say_what_is_known_of_each_question(folder):
    picks, _ = rank(folder, "exact", "--race", "exact")
    rows = {row["id"]: row for row in read_lines(folder / "exact.scores")}

    for row in rows.values():
        is_complete = row["outcomes_drawn"] == 20
        assert (row["set_size"] is not None) == is_complete
        assert row["set_size_at_least"] <= row["set_size_at_most"]
        if is_complete and not row["ineligible"]:
            assert row["set_size_at_least"] == row["set_size"] == row["set_size_at_most"]
    assert all(rows[pick["id"]]["outcomes_drawn"] == 20 for pick in picks)
    assert any(row["set_size"] is None for row in rows.values())


def test_the_report_tells_nothing_of_answers_that_were_not_drawn(folder):
    _, report = rank(folder, "exact", "--race", "exact")

    assert sum(report["set_size_histogram"].values()) == report["n_complete"]
    assert report["comparison"]["measured_on"] == "probes"
    assert report["calibration"]["measured_on"] == "calibration"
    assert report["calibration"]["coverage_check"]["available"]
    assert report["race"]["replacements"]


def test_a_raced_calibration_gives_the_same_threshold_and_no_coverage_check(folder):
    _, whole = rank(folder, "off", "--race", "off")
    _, raced = rank(folder, "both", "--race", "exact", "--race-calibration")

    assert raced["q_hat"] == whole["q_hat"]
    assert raced["calibration"]["coverage_check"]["available"] is False
    assert "raced" in raced["calibration"]["coverage_check"]["reason"]
    assert raced["calibration"]["n_absent"] is None
    costs = raced["race"]["calibration"]
    assert costs["raced"]
    assert costs["tokens_used"] < costs["tokens_full"]


def test_controls_are_the_same_and_keep_their_probability(folder):
    whole, _ = rank(folder, "off", "--race", "off", "--control-share", "0.25")
    raced, _ = rank(folder, "exact", "--race", "exact", "--control-share", "0.25")

    assert [pick["id"] for pick in raced] == [pick["id"] for pick in whole]
    assert [pick["inclusion_probability"] for pick in raced] == [pick["inclusion_probability"] for pick in whole]


@pytest.mark.parametrize("strategy", ["entropy", "v3", "v4", "v6", "random"])
def test_strategies_that_need_every_answer_say_so(folder, capsys, strategy):
    status = main(
        [
            "rank", "--votes", str(folder / "pool.jsonl"), "--calibration-votes", str(folder / "calibration.jsonl"),
            "--budget", "4", "--out", str(folder / "none.jsonl"), "--strategy", strategy, "--race", "exact",
        ]
    )  # fmt: skip

    assert status == 1
    assert "cannot be raced" in capsys.readouterr().err
    assert not (folder / "none.jsonl").exists()


@pytest.mark.parametrize(
    "options",
    [
        ("pool.jsonl", "--calibration", "c.jsonl", "--model", "m", "--race", "probabilistic"),
        ("--votes", "p", "--calibration-votes", "c", "--race-calibration"),
        ("--votes", "p", "--calibration-votes", "c", "--race", "exact", "--race-error", "0.1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["rank", *options, "--budget", "4", "--out", "x.jsonl"])

    assert stopped.value.code == 2
    assert "--race" in capsys.readouterr().err


def test_a_probabilistic_race_states_its_budget_and_audits_itself(folder):
    _, exact = rank(folder, "exact", "--race", "exact", pool="few.jsonl")
    options = ("--race", "probabilistic", "--race-error", "0.1", "--race-audit", "6")
    _, report = rank(folder, "probable", *options, pool="few.jsonl")

    race = report["race"]
    assert report["tokens_used"] < exact["tokens_used"]
    assert race["error_budget"] == 0.1
    assert 0 < race["error_spent"]["most"] <= 0.1
    assert race["n_dropped"] > race["audit"]["n_completed"] > 0
    low, high = race["audit"]["missed"]["interval"]
    assert low <= race["audit"]["missed"]["estimate"] <= high
    assert report["fingerprint"] != exact["fingerprint"]
