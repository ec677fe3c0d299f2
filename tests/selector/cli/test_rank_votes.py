"""`assay rank` from recorded answers."""

import json
from dataclasses import replace

import numpy as np
import pytest

from selector.cli import main
from tests.selector.simulation import simulate_votes

PICK_FIELDS = {"id", "rank", "cluster", "set_size", "acquisition_score", "prediction_set", "tied_with"}
REPORT_FIELDS = {
    "q_hat", "q_hat_infinite", "alpha", "calibration", "set_size_histogram", "settings", "fingerprint", "tokens",
    "seconds",
}  # fmt: skip
CALIBRATION_FIELDS = {"n", "n_absent", "smallest_attainable_alpha", "degenerate", "coverage_check"}


def write_votes(path, votes):
    path.write_text("".join(json.dumps(question.to_json()) + "\n" for question in votes), encoding="utf-8")
    return path


def write_calibration(path, votes):
    path.write_text("".join(json.dumps({**question.to_json(), "truth": question.truth}) + "\n" for question in votes))
    return path


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def files(tmp_path):
    pool = [replace(question, cluster=row % 4, truth=None) for row, question in enumerate(simulate_votes(60, seed=1))]
    write_votes(tmp_path / "pool.jsonl", pool)
    write_calibration(tmp_path / "calibration.jsonl", simulate_votes(90, seed=2, prefix="c"))
    return tmp_path


def rank(folder, *options, pool="pool.jsonl", calibration="calibration.jsonl", budget="4"):
    return main(
        [
            "rank", "--votes", str(folder / pool), "--calibration-votes", str(folder / calibration),
            "--budget", budget, "--out", str(folder / "picks.jsonl"), "--report", str(folder / "report.json"),
            "--alpha", "0.3", *options,
        ]
    )  # fmt: skip


def test_picks_and_report_have_the_promised_fields(files):
    assert rank(files, "--scores", str(files / "scores.jsonl")) == 0

    picks, scores = read_lines(files / "picks.jsonl"), read_lines(files / "scores.jsonl")
    report = json.loads((files / "report.json").read_text())
    assert len(picks) == 4
    assert all(set(pick) >= PICK_FIELDS for pick in picks)
    assert all(isinstance(pick["tied_with"], int) for pick in picks)
    assert all(set(each) == {"answer", "frequency"} for pick in picks for each in pick["prediction_set"])
    assert set(report) >= REPORT_FIELDS
    assert set(report["calibration"]) >= CALIBRATION_FIELDS
    assert sum(report["set_size_histogram"].values()) == len(scores) == 60
    assert sorted(pick["cluster"] for pick in picks) == [0, 1, 2, 3]


def test_running_again_gives_the_same_but_for_the_seconds(files):
    found = []
    for _ in range(2):
        assert rank(files) == 0
        report = json.loads((files / "report.json").read_text())
        report.pop("seconds")
        found.append((report, (files / "picks.jsonl").read_bytes()))

    assert found[0] == found[1]


def test_no_temporary_file_is_left(files):
    rank(files)

    assert sorted(path.name for path in files.iterdir()) == [
        "calibration.jsonl", "picks.jsonl", "pool.jsonl", "report.json",
    ]  # fmt: skip


@pytest.mark.parametrize("preset", ["recommended", "paper", "reference"])
def test_every_preset_runs(files, preset):
    assert rank(files, "--preset", preset) == 0
    assert json.loads((files / "report.json").read_text())["preset"] == preset


def test_shuffled_rows_and_embeddings_give_the_same_picks(files):
    votes = [replace(question, truth=None) for question in simulate_votes(60, seed=1)]
    vectors = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    order = np.random.default_rng(1).permutation(60)
    found = []
    for rows in (range(60), order):
        write_votes(files / "plain.jsonl", [votes[row] for row in rows])
        np.save(files / "x.npy", vectors[list(rows)])
        assert rank(files, "--embeddings", str(files / "x.npy"), pool="plain.jsonl") == 0
        report = json.loads((files / "report.json").read_text())
        found.append(((files / "picks.jsonl").read_bytes(), {**report, "seconds": None}))

    assert found[0] == found[1]


def test_fewer_outcomes_can_be_asked_for(files):
    assert rank(files, "--outcomes", "10", "--probes", "0") == 0

    settings = json.loads((files / "report.json").read_text())["settings"]
    assert (settings["n_outcomes"], settings["n_probes"]) == (10, 0)


def test_tokens_are_those_the_rows_name(files):
    votes = [
        replace(question, cluster=0, prompt_tokens=10, trajectory_tokens=5, outcome_tokens=(2,) * 20)
        for question in simulate_votes(20, seed=1)
    ]
    write_votes(files / "pool.jsonl", votes)

    assert rank(files) == 0

    tokens = json.loads((files / "report.json").read_text())["tokens"]
    assert tokens == {"prompt": 200, "trajectories": 100, "outcomes": 800}


def refused(capsys, files, *options, **named):
    status = rank(files, *options, **named)
    error = capsys.readouterr().err
    assert status == 1
    assert "Traceback" not in error
    assert not (files / "picks.jsonl").exists()
    return [line for line in error.splitlines() if line.startswith("assay: ")]


def test_a_pool_smaller_than_the_budget(files, capsys):
    (line,) = refused(capsys, files, budget="61")

    assert "60 questions" in line
    assert "budget asks for 61" in line


def test_a_calibration_set_too_small_for_alpha(files, capsys):
    (line,) = refused(capsys, files, "--alpha", "0.01")

    assert "has 90 questions" in line
    assert "at least 99" in line


def test_calibration_generated_with_other_settings(files, capsys):
    for name, fingerprint in (("pool.jsonl", "aaaa"), ("calibration.jsonl", "bbbb")):
        rows = [{**row, "fingerprint": fingerprint} for row in read_lines(files / name)]
        (files / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    (line,) = refused(capsys, files)

    assert "aaaa" in line
    assert "bbbb" in line


def broken_line(text):
    return lambda lines: [*lines[:6], text, *lines[7:]]


@pytest.mark.parametrize(
    ("damage", "line", "words"),
    [
        (lambda lines: [], 1, "empty"),
        (broken_line(b'{"id": "q7", "probe'), 7, "ends in the middle"),
        (broken_line(b'{"id": "q\xe9", "probe_answers": [], "outcome_answers": []}'), 7, "UTF-8"),
        (broken_line(b'{"id": "\\ud800", "probe_answers": [], "outcome_answers": []}'), 7, "d800"),
        (broken_line(b"[1, 2]"), 7, "row"),
        (broken_line(b'{"id": "q7", "probe_answers": ["\\frac{1}{2}"], "outcome_answers": []}'), 7, "form feed"),
        (broken_line(b'{"id": "q7", "probe_answers": 3, "outcome_answers": []}'), 7, "probe_answers is 3"),
        (broken_line(b'{"id": "' + b"x" * (50 << 20) + b'"}'), 7, "52,428,811 bytes"),
    ],
    ids=["empty", "broken", "latin-1", "surrogate", "list", "frac", "no list", "50 MB"],
)
def test_a_bad_file_is_refused_by_line(files, capsys, damage, line, words):
    path = files / "pool.jsonl"
    path.write_bytes(b"\n".join(damage(path.read_bytes().splitlines())))

    (found,) = refused(capsys, files)

    assert f"pool.jsonl, line {line}: " in found
    assert words in found
    assert len(found) < 500


def test_a_byte_order_mark_and_numbers_among_answers_are_fine(files):
    path = files / "pool.jsonl"
    lines = path.read_bytes().splitlines()
    first = json.loads(lines[0])
    first["probe_answers"][0] = 7
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join([json.dumps(first).encode(), *lines[1:]]))

    assert rank(files) == 0


def test_a_missing_file_is_named(files, capsys):
    (line,) = refused(capsys, files, pool="nowhere.jsonl")

    assert "nowhere.jsonl" in line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--alpha", "2"], "alpha is '2'"),
        (["--lam", "-1"], "lam is -1"),
        (["--outcomes", "30"], "at most the 20"),
        (["--probes", "10"], "cannot be thinned out"),
        (["--clusters", "9"], "4 clusters of their own"),
        (["--embeddings", "nowhere.npy"], "nowhere.npy"),
        (["--out", "/proc/nowhere/picks.jsonl"], "output"),
    ],
)
def test_a_setting_that_cannot_be_had_is_named(files, capsys, options, words):
    (line,) = refused(capsys, files, *options)

    assert words in line


def test_votes_without_text_or_cluster_need_embeddings(files, capsys):
    write_votes(files / "pool.jsonl", simulate_votes(60, seed=1))

    (line,) = refused(capsys, files)

    assert "--embeddings" in line
    assert "v2" in line


def test_embeddings_of_another_shape(files, capsys):
    np.save(files / "x.npy", np.zeros((59, 3), np.float32))

    (line,) = refused(capsys, files, "--embeddings", str(files / "x.npy"))

    assert "of 60 rows" in line


def test_pickled_embeddings_are_refused(files, capsys):
    np.save(files / "x.npy", np.array([{"a": 1}] * 60, dtype=object), allow_pickle=True)

    (line,) = refused(capsys, files, "--embeddings", str(files / "x.npy"))

    assert ".npy file of numbers" in line


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["rank"],
        ["rank", "--budget", "4", "--out", "x"],
        ["rank", "pool", "--budget", "4", "--out", "x"],
        ["rank", "pool", "--calibration", "c", "--budget", "4", "--out", "x"],
        ["rank", "--votes", "v", "--budget", "4", "--out", "x"],
        ["rank", "--votes", "v", "--calibration-votes", "c", "--model", "m", "--budget", "4", "--out", "x"],
        ["rank", "--votes", "v", "--calibration-votes", "c", "--budget", "many", "--out", "x"],
        ["probe", "pool", "--out", "x"],
        ["rank", "pool", "--calibration", "c", "--model", "m", "--budget", "4", "--out", "x", "--map", "question"],
    ],
)
def test_wrong_usage_exits_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 2
    assert "usage: assay" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["rank"], ["probe"], ["grade"], ["read"]])
def test_help_is_there(command, capsys):
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])

    assert caught.value.code == 0
    assert "usage: assay" in capsys.readouterr().out


def test_recorded_votes_reproduce_the_published_thresholds(shared_data, tmp_path):
    for name in ("1", "2", "3"):
        expected = json.loads((shared_data / "parity" / f"{name}_expected.json").read_text())
        for preset in ("reference", "paper"):
            status = main(
                [
                    "rank", "--preset", preset, "--votes", str(shared_data / "parity" / f"{name}_pool.jsonl"),
                    "--calibration-votes", str(shared_data / "parity" / f"{name}_calibration.jsonl"),
                    "--alpha", str(expected["alpha"]), "--lam", str(expected["lam"]),
                    "--budget", str(expected["budget"]), "--out", str(tmp_path / "picks.jsonl"),
                    "--report", str(tmp_path / "report.json"), "--scores", str(tmp_path / "scores.jsonl"),
                ]
            )  # fmt: skip
            report = json.loads((tmp_path / "report.json").read_text())
            size = {row["id"]: row["set_size"] for row in read_lines(tmp_path / "scores.jsonl")}
            pool = read_lines(shared_data / "parity" / f"{name}_pool.jsonl")
            picks = [pick["id"] for pick in read_lines(tmp_path / "picks.jsonl")]

            assert status == 0
            assert report["q_hat"] == pytest.approx(expected[preset]["threshold"], abs=1e-12, rel=0)
            assert [size[row["id"]] for row in pool] == expected[preset]["set_size"]
            assert picks == expected[preset].get("selected", picks)
