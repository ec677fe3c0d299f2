"""`assay curriculum`: a training read from its log."""

import json

import pytest

from selector.cli import main
from selector.curriculum import RewardEvent, RewardLog


@pytest.fixture
def log(tmp_path):
    log = RewardLog(tmp_path / "rewards.jsonl")
    for step in range(4):
        log.append([RewardEvent("easy", (1.0,) * 4, step), RewardEvent("hard", (0.0, None, 0.0, 0.0), step)])
        log.append([RewardEvent("mixed", (1.0, 0.0), step)])
    return log


def test_it_shows_the_training_every_so_many_steps(log, capsys):
    assert main(["curriculum", str(log.path), "--every", "2"]) == 0

    header, first, second = (line.split() for line in capsys.readouterr().out.splitlines())
    assert header == ["step", "rewards", "mean", "spread", "useful", "done", "stuck", "forgotten", "learning"]
    assert first[:2] + first[4:] == ["1", "18", "0.33", "1", "0", "0", "2"]
    assert second[:2] + second[4:] == ["3", "36", "0.33", "1", "1", "0", "1"]


def test_it_shows_moments_as_json(log, capsys):
    assert main(["curriculum", str(log.path), "--every", "100", "--json"]) == 0

    moment = json.loads(capsys.readouterr().out)
    assert moment["n_rollouts"] == 36
    assert moment["standings"] == {"untried": 0, "learning": 1, "done": 1, "stuck": 1, "forgotten": 0}


def test_it_shows_each_question(log, capsys):
    assert main(["curriculum", str(log.path), "--questions"]) == 0

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["uid"], row["standing"], row["rewards"]) for row in rows] == [
        ("easy", "done", 16),
        ("hard", "stuck", 12),
        ("mixed", "learning", 8),
    ]
    assert rows[2] == {"uid": "mixed", "standing": "learning", "mean": 0.5, "rewards": 8, "last_step": 3}


def test_it_names_lines_that_are_no_events(log, capsys):
    place = log.path.stat().st_size
    with log.path.open("a") as file:
        file.write("nonsense\n")

    assert main(["curriculum", str(log.path)]) == 0
    assert f"byte {place}: no reward event" in capsys.readouterr().err


def test_it_says_what_is_wrong_with_the_log(tmp_path, capsys):
    assert main(["curriculum", str(tmp_path / "none.jsonl")]) == 1
    assert "none.jsonl: No such file" in capsys.readouterr().err

    (tmp_path / "empty.jsonl").touch()
    assert main(["curriculum", str(tmp_path / "empty.jsonl")]) == 1
    assert "at least one reward event" in capsys.readouterr().err
