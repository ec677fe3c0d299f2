"""`assay variance` from rewards and from recorded answers."""

import json

import pytest

from selector.cli import main
from tests.selector.cli.test_rank_votes import write_calibration
from tests.selector.simulation import simulate_votes


def write_lines(path, rows):
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def rewards(tmp_path):
    rows = [{"id": f"q{i}", "rewards": [1, 0, 1, 0] if i < 12 else [i % 2] * 4} for i in range(60)]
    return write_lines(tmp_path / "rewards.jsonl", rows)


def test_a_report_ids_and_pictures_are_written(rewards, tmp_path, capsys):
    report, ids, pictures = tmp_path / "report.json", tmp_path / "ids.txt", tmp_path / "pictures"

    status = main(
        ["variance", rewards, "--out", str(report), "--plots", str(pictures), "--keep", "useful", "--out-ids", str(ids)]
    )

    out = capsys.readouterr().out
    assert status == 0
    assert "useful" in out
    assert "20.0%" in out
    assert "Compute multiplier 1 to 2" in out
    written = json.loads(report.read_text())
    assert written["categories"] == {"useful": 12, "always_right": 24, "always_wrong": 24, "constant": 0}
    assert len(written["questions"]) == 60
    assert ids.read_text().split() == [f"q{i}" for i in range(12)]
    for name in ("variance.png", "runs.png"):
        assert (pictures / name).read_bytes().startswith(b"\x89PNG")


def test_recorded_answers_are_graded_against_the_truth(tmp_path, capsys):
    votes = simulate_votes(60, seed=3)
    path = write_calibration(tmp_path / "votes.jsonl", votes)

    assert main(["variance", str(path), "--out", str(tmp_path / "report.json")]) == 0

    report = json.loads((tmp_path / "report.json").read_text())
    right = {question.uid: sum(answer == question.truth for answer in question.outcome_answers) for question in votes}
    for each in report["questions"]:
        assert each["mean"] == pytest.approx(right[each["id"]] / each["runs"])


def test_votes_without_truth_are_refused(tmp_path, capsys):
    row = {"id": "a", "outcome_answers": ["1"], "probe_answers": []}
    path = write_lines(tmp_path / "votes.jsonl", [row])

    assert main(["variance", path]) == 1
    assert "truth is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"id": "b"}, "rewards is null"),
        ({"id": "b", "rewards": []}, "rewards is []"),
        ({"id": "b", "rewards": [1, "yes"]}, 'rewards[1] is "yes"'),
        ({"id": "b", "rewards": [1, None]}, "rewards[1] is null"),
        ({"id": "b", "rewards": [10**400]}, "rewards[0] is 1000"),
        ({"rewards": [1]}, "id is null"),
        ({"id": "a", "rewards": [1]}, "already on line 1"),
        ({"id": "b", "rewards": [1], "choices": -1}, "choices is -1"),
        ('{"id": "b", ', "line 2"),
    ],
)
def test_a_bad_row_is_named_by_its_line(row, told, tmp_path, capsys):
    path = write_lines(tmp_path / "rewards.jsonl", [{"id": "a", "rewards": [1, 0]}, row])

    assert main(["variance", path]) == 1

    err = capsys.readouterr().err
    assert told in err
    assert f"{path}, line 2" in err


def test_a_file_of_something_else_says_what_is_wanted(tmp_path, capsys):
    path = write_lines(tmp_path / "pool.jsonl", [{"id": "a", "question": "1 + 1?"}])

    assert main(["variance", path]) == 1
    assert "there is: id, question" in capsys.readouterr().err


def test_rewards_of_minus_one_and_one_are_scaled(tmp_path, capsys):
    path = write_lines(tmp_path / "r.jsonl", [{"id": f"q{i}", "rewards": [-1, 1, -1]} for i in range(60)])

    assert main(["variance", path]) == 0
    assert "--scale -1 1" in capsys.readouterr().out
    assert main(["variance", path, "--scale", "-1", "1", "--out", str(tmp_path / "o.json")]) == 0
    assert json.loads((tmp_path / "o.json").read_text())["mean"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("options", [["--keep", "useful"], ["--out-ids", "x"], ["--scale", "1", "0"]])
def test_options_that_do_not_fit_are_refused(options, rewards):
    with pytest.raises(SystemExit) as stop:
        main(["variance", rewards, *options])
    assert stop.value.code == 2
