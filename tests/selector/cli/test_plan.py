"""`assay plan` says what a run will cost before it starts; what it asks to find out is not asked again."""

import json

import pytest

from selector.cli import main
from selector.planning import Lengths, Workload, plan, raced_shares
from tests.selector.cli.stored import completions_in

SCRIPTED = ["--engine", "scripted", "--model", "any", "--outcomes", "4", "--probes", "3"]


@pytest.fixture
def folder(tmp_path):
    pool = [{"problem": f"What is {row} and {row}?", "id": f"p{row}"} for row in range(30)]
    calibration = [{"problem": f"And what of {row}?", "answer": str(row % 4)} for row in range(20)]
    for name, rows in (("pool", [*pool, {"problem": ""}, pool[0]]), ("calibration", calibration)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def run(folder, *options, calibration=True):
    known = ["--calibration", str(folder / "calibration.jsonl")] if calibration else []
    return main(["plan", str(folder / "pool.jsonl"), *known, *map(str, options)])


def told(capsys):
    return json.loads(capsys.readouterr().out)


def test_completions_tokens_time_and_money_are_said(folder, capsys):
    rate = ["--tokens-per-second", "100", "--gpu-price", "3", "--gpus", "2"]

    assert run(folder, "--budget", 4, "--answer-tokens", 100, *rate) == 0

    out = capsys.readouterr().out
    assert "pool.jsonl: 30 questions usable; set aside: 1 duplicate, 1 empty_question" in out
    assert ["full", "answers", "600", "400"] in [line.split() for line in out.splitlines()]
    assert "raced" in out
    assert "100 tokens a second" in out


def test_a_hand_worked_plan():
    work = Workload(n_pool=10, n_calibration=0, n_outcomes=2, n_probes=4, with_trajectories=True, n_clusters=10)
    lengths = Lengths(prompt=100, chain=200, probe_reply=10, outcome=300)

    found = plan(work, lengths, tokens_per_second=10, gpu_price=2.0, n_gpus=3)

    generated, read = 10 * (200 + 4 * 10 + 2 * 300), 10 * (100 + 4 * 30 + 100 + 200)
    hours = (generated + read / 4) / 10 / 3600
    assert found["full"] == {
        "tokens_generated": generated, "tokens_read": read, "hours": hours, "money": hours * 6,
    }  # fmt: skip
    assert found["raced"] == [found["full"]] * 2  # one question in each cluster: nothing to win
    assert found["completions"]["pool"] == {"trajectories": 10, "probes": 40, "outcomes": 20}


def test_races_save_more_in_larger_clusters():
    shares = [raced_shares(n) for n in (1, 3, 32, 300, 10_000)]

    assert shares == sorted(shares, reverse=True)
    assert all(0 < best <= worst <= 1 for best, worst in shares)


def test_a_strategy_that_needs_little_is_planned_so(folder, capsys):
    assert run(folder, "--strategy", "random", "--json", calibration=False) == 0
    assert sum(told(capsys)["completions"]["pool"].values()) == 0

    assert run(folder, "--strategy", "entropy", "--budget", 4, "--json", calibration=False) == 0
    found = told(capsys)
    assert found["completions"]["pool"]["trajectories"] == 0
    assert "raced" not in found


def test_a_sample_is_asked_for_once(folder, capsys):
    state = folder / "state"

    assert run(folder, "--budget", 4, *SCRIPTED, "--sample", 5, "--state", state, "--json") == 0

    found, n_stored = told(capsys), len(completions_in(state))
    assert found["sample"]["questions"] == 5
    assert found["sample"]["completions_made"] == n_stored > 0
    assert found["lengths"]["answer_basis"] == "measured"
    assert found["tokens_per_second"] > 0
    pool, cal = str(folder / "pool.jsonl"), str(folder / "calibration.jsonl")
    ranking = [
        "rank",
        pool,
        "--calibration",
        cal,
        "--budget",
        "4",
        "--alpha",
        "0.6",
        "--strategy",
        "v2",
        "--race",
        "off",
    ]
    assert main([*ranking, *SCRIPTED, "--state", str(state), "--out", str(folder / "picks.jsonl")]) == 0
    made = int(capsys.readouterr().err.split(" answers made")[0].split()[-1].replace(",", ""))
    assert made == len(completions_in(state)) - n_stored


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sample", "3", "--model", "m"], "--sample asks a model and keeps its answers: give --model and --state"),
        (["--gpu-price", "2"], "--gpu-price needs a rate"),
    ],
)
def test_options_that_do_not_go_together_are_refused(folder, capsys, options, message):
    with pytest.raises(SystemExit):
        run(folder, *options)

    assert message in capsys.readouterr().err
