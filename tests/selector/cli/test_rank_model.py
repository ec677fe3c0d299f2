"""`assay rank` and `assay probe` with an engine: resuming, stopping, what is set aside, what goes wrong."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from selector import probing
from selector.cli import main
from selector.generation.contract import CompletionKind, SetAside
from selector.generation.scripted import ScriptedEngine
from selector.rows import question_uid
from tests.conftest import ROOT
from tests.selector.cli.stored import completions_in

N_ANSWERS = ["--outcomes", "4", "--probes", "4"]
RACED = ["--outcomes", "12", "--race-concurrency", "16"]
SLOW = """
import sys
from selector import probing
from selector.cli import main
from selector.generation.scripted import ScriptedEngine
probing.open_engine = lambda kind, model, **options: ScriptedEngine(model, delay_seconds=0.02)
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def folder(tmp_path):
    pool = [{"problem": f"Question {row}", "id": f"p{row}"} for row in range(30)]
    calibration = [{"problem": f"Known {row}", "id": f"p{row}", "answer": str(1 + row % 4)} for row in range(20)]
    for name, rows in (("pool", pool), ("calibration", calibration)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32))
    return tmp_path


def arguments(folder, *options, out="picks.jsonl", state="state"):
    return [
        "rank", str(folder / "pool.jsonl"), "--calibration", str(folder / "calibration.jsonl"), "--budget", "4",
        "--engine", "scripted", "--model", "any", "--alpha", "0.6", *N_ANSWERS, "--embeddings", str(folder / "x.npy"),
        "--state", str(folder / state), "--out", str(folder / out), "--report", str(folder / f"{out}.report"), *options,
    ]  # fmt: skip


def rank(folder, *options, **named):
    return main(arguments(folder, *options, **named))


def report_of(folder, out="picks.jsonl"):
    return json.loads((folder / f"{out}.report").read_text())


def n_stored(folder, state="state"):
    return len(completions_in(folder / state))


def picks_in(path):
    """Return the picks, without what a race cannot know of them."""
    picks = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        {name: value for name, value in pick.items() if name not in ("tied_with", "tie_break_reason")} for pick in picks
    ]


def errors(capsys):
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("assay: ")]


def test_a_run_writes_picks_and_says_what_it_spent(folder):
    assert rank(folder) == 0

    report = report_of(folder)
    assert len((folder / "picks.jsonl").read_text().splitlines()) == 4
    assert report["generation"]["engine"] == "scripted"
    assert set(report["tokens"]) == {"trajectories", "probes", "outcomes"}
    assert {"trajectories", "probes", "outcomes", "selecting"} <= set(report["seconds"])
    assert report["calibration"]["n"] == 20
    assert report["pool"]["n"] == 30


def test_the_second_run_asks_for_nothing_and_reports_the_same(folder, capsys):
    rank(folder)
    stored, picks, report = n_stored(folder), (folder / "picks.jsonl").read_bytes(), report_of(folder)

    rank(folder)

    assert "0 answers made" in capsys.readouterr().err
    assert n_stored(folder) == stored
    assert (folder / "picks.jsonl").read_bytes() == picks
    assert {**report_of(folder), "seconds": 0} == {**report, "seconds": 0}


def test_without_a_state_the_answers_are_kept_beside_the_picks(folder):
    options = arguments(folder)
    where = options.index("--state")

    assert main(options[:where] + options[where + 2 :]) == 0
    assert n_stored(folder, "picks.jsonl.state") > 0


def start_slow(folder, **named):
    command = [sys.executable, "-c", SLOW, *arguments(folder, **named)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env={**os.environ})
    completions = folder / named.get("state", "state") / "completions" / "00000.jsonl.gz"
    deadline = time.monotonic() + 90
    while not (completions.exists() and completions.stat().st_size):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


def test_kill_9_loses_nothing_that_was_saved_and_changes_no_pick(folder):
    process = start_slow(folder)
    process.kill()
    process.communicate()
    stored = n_stored(folder)
    assert stored > 0
    assert not (folder / "picks.jsonl").exists()

    assert rank(folder) == 0
    assert rank(folder, out="whole.jsonl", state="fresh") == 0

    assert n_stored(folder) == n_stored(folder, "fresh") > stored
    assert (folder / "picks.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert {**report_of(folder), "seconds": 0} == {**report_of(folder, "whole.jsonl"), "seconds": 0}


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(folder):
    process = start_slow(folder)

    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "Traceback" not in error
    assert error.splitlines()[-1].endswith("Run the same command again to go on.")
    assert not (folder / "picks.jsonl").exists()
    assert rank(folder) == 0


def test_two_commands_do_not_share_a_state(folder, capsys):
    process = start_slow(folder)
    try:
        assert rank(folder) == 1
        (line,) = errors(capsys)
        assert "Another assay process is working in" in line
    finally:
        process.kill()
        process.communicate()


def test_a_state_of_other_settings_is_refused_by_name(folder, capsys):
    rank(folder)
    capsys.readouterr()

    assert rank(folder, "--temperature", "1.0") == 1

    (line,) = errors(capsys)
    assert "temperature 0.6, now 1.0" in line


def with_engine(monkeypatch, **options):
    engine = ScriptedEngine(**options)
    monkeypatch.setattr(probing, "open_engine", lambda kind, **given: engine)
    return engine


def test_a_server_that_fails_half_of_the_time_keeps_what_it_answered(folder, capsys, monkeypatch):
    with_engine(monkeypatch, fails_half=True)

    assert rank(folder) == 1

    (line,) = errors(capsys)
    assert "then try again" in line
    assert n_stored(folder) > 0
    assert not (folder / "picks.jsonl").exists()


def test_an_over_long_question_is_set_aside_by_name(folder, capsys, monkeypatch):
    with (folder / "pool.jsonl").open("a") as file:
        file.write(json.dumps({"problem": "word " * 200, "id": "long"}) + "\n")
    np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(31, 4)).astype(np.float32))
    with_engine(monkeypatch, max_prompt_words=100)

    assert rank(folder) == 0

    assert "Question long was set aside: The prompt has 200 words" in capsys.readouterr().err
    report = report_of(folder)
    assert list(report["set_aside"]) == ["long"]
    assert report["pool"]["ineligible"]["prompt_too_long"]["ids"] == ["long"]


def test_rows_that_cannot_be_used_are_named_and_the_rest_goes_on(folder, capsys):
    lines = (folder / "pool.jsonl").read_text().splitlines()
    lines[6] = '{"problem": "broken'
    lines.append(lines[0])
    (folder / "pool.jsonl").write_text("\n".join(lines))
    np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(31, 4)).astype(np.float32))

    assert rank(folder) == 0

    error = capsys.readouterr().err
    assert "pool.jsonl, line 7: " in error
    assert "pool.jsonl, line 31: The question p0 was already on line 1" in error
    report = report_of(folder)
    assert [(row["line"], row["code"] == "duplicate") for row in report["rejected_rows"]] == [(7, False), (31, True)]
    assert report["pool"]["n"] == 29


def test_a_calibration_file_without_answers_is_refused(folder, capsys):
    (folder / "calibration.jsonl").write_text(json.dumps({"problem": "What?"}) + "\n")

    assert rank(folder) == 1

    assert "calibration.jsonl, line 1" in errors(capsys)[0]


def test_a_pool_question_that_is_in_the_calibration_set_is_not_picked(folder):
    with (folder / "calibration.jsonl").open("a") as file:
        file.write(json.dumps({"problem": "Question  3", "id": "again", "answer": "1"}) + "\n")

    assert rank(folder, "--strategy", "v2") == 0

    assert report_of(folder)["pool"]["ineligible"] == {"in_calibration_set": {"n": 1, "ids": ["p3"]}}


def test_an_engine_that_does_not_exist_is_wrong_usage(folder):
    with pytest.raises(SystemExit) as caught:
        rank(folder, "--engine", "telepathy")

    assert caught.value.code == 2


def test_a_model_that_does_not_exist_is_named(folder, capsys):
    assert rank(folder, "--engine", "transformers", "--model", str(folder / "no-model")) == 1

    assert any("no-model" in line for line in errors(capsys))


def test_a_server_that_is_down_is_named(folder, capsys):
    assert rank(folder, "--engine", "openai", "--base-url", "http://127.0.0.1:9/v1") == 1

    assert any("127.0.0.1:9" in line for line in errors(capsys))


def test_probed_votes_rank_as_the_model_does(folder):
    settings = ["--engine", "scripted", "--model", "any", *N_ANSWERS]
    for name in ("pool", "calibration"):
        out = str(folder / f"{name}_votes.jsonl")
        assert main(["probe", str(folder / f"{name}.jsonl"), *settings, "--out", out]) == 0
    rank(folder)

    status = main(
        [
            "rank", "--votes", str(folder / "pool_votes.jsonl"),
            "--calibration-votes", str(folder / "calibration_votes.jsonl"), "--budget", "4", "--alpha", "0.6",
            "--embeddings", str(folder / "x.npy"), "--out", str(folder / "later.jsonl"),
        ]
    )  # fmt: skip

    assert status == 0
    assert picks_in(folder / "later.jsonl") == picks_in(folder / "picks.jsonl")


def test_probing_with_other_settings_is_noticed_later(folder, capsys):
    for name, temperature in (("pool", "0.6"), ("calibration", "1.0")):
        main(
            [
                "probe", str(folder / f"{name}.jsonl"), "--engine", "scripted", "--model", "any", *N_ANSWERS,
                "--temperature", temperature, "--out", str(folder / f"{name}_votes.jsonl"),
            ]
        )  # fmt: skip
    capsys.readouterr()

    status = main(
        [
            "rank", "--votes", str(folder / "pool_votes.jsonl"),
            "--calibration-votes", str(folder / "calibration_votes.jsonl"), "--budget", "4",
            "--out", str(folder / "later.jsonl"),
        ]
    )  # fmt: skip

    assert status == 1
    assert "Generate both with the same model and settings" in errors(capsys)[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--budget", "31"], "assay: The pool has 30 questions, 30 of them eligible; the budget asks for 31."),
        (["--alpha", "0.01"], "assay: The calibration set has 20 questions; alpha = 0.01 needs at least 99."),
        (["--seed", str(2**32)], "assay: seed is 4294967296; it must be a whole number from 0 to 4294967295."),
        (["--clusters", "31"], "assay: n_clusters is 31; it must be at most the number of questions, 30."),
        (["--embeddings", "nowhere.npy"], "assay: --embeddings is 'nowhere.npy'; it must be a .npy file"),
    ],
)
def test_what_cannot_succeed_is_refused_before_the_model_is_asked(folder, capsys, options, message):
    assert rank(folder, *options) == 1

    assert errors(capsys)[0].startswith(message)
    assert n_stored(folder) == 0


def test_an_embedder_with_a_mistyped_name_is_refused_before_the_model_is_asked(folder, capsys):
    given = arguments(folder, "--embedder", "no-such/embedder")
    at = given.index("--embeddings")

    assert main(given[:at] + given[at + 2 :]) == 1
    assert errors(capsys)[0].startswith("assay: No model 'no-such/embedder' at this machine or the model hub")
    assert n_stored(folder) == 0


def test_an_answer_that_is_left_out_is_named(folder, capsys):
    row = '{"problem": "How many?", "answer": true}\n'
    (folder / "odd.jsonl").write_text(row)

    assert main(["probe", str(folder / "odd.jsonl"), "--engine", "scripted", "--model", "any", *N_ANSWERS,
                 "--out", str(folder / "votes.jsonl")]) == 0  # fmt: skip

    assert "odd.jsonl, line 1: the answer was left out: Column “answer” is true" in capsys.readouterr().err


def test_a_model_that_does_not_exist_is_named_with_the_reason(folder, capsys):
    assert rank(folder, "--engine", "transformers", "--model", str(folder / "nowhere")) == 1

    (line,) = errors(capsys)
    assert f"No model '{folder / 'nowhere'}' at" in line
    assert "(there is no such directory)" in line


def test_a_server_without_an_address_is_wrong_usage(folder, capsys):
    with pytest.raises(SystemExit) as stopped:
        rank(folder, "--engine", "openai")

    assert stopped.value.code == 2
    assert "--base-url is missing" in capsys.readouterr().err


def test_a_model_is_asked_only_for_outcomes_that_the_picks_depend_on(folder, capsys):
    rank(folder, "--race", "off", out="whole.jsonl", state="whole")
    rank(folder, "--outcomes", "12", "--race", "off", out="whole.jsonl", state="whole")
    capsys.readouterr()

    assert rank(folder, "--outcomes", "12", "--race-concurrency", "16") == 0

    report, whole = report_of(folder), report_of(folder, "whole.jsonl")
    assert picks_in(folder / "picks.jsonl") == picks_in(folder / "whole.jsonl")
    assert report["race"]["mode"] == "exact"
    assert 0 < report["n_undrawn"] == report["rollouts_full"] - report["rollouts_used"]
    assert report["tokens"]["outcomes"] < whole["tokens"]["outcomes"]
    assert n_stored(folder) == n_stored(folder, "whole") - report["n_undrawn"]
    assert f"left {report['n_undrawn']} unasked" in capsys.readouterr().err


def test_a_raced_run_that_was_stopped_goes_on_and_asks_for_nothing_twice(folder, monkeypatch):
    rank(folder, *RACED, out="once.jsonl", state="once")
    made = []
    real = ScriptedEngine.complete

    def complete(self, requests, settings, seed):
        for result in real(self, requests, settings, seed):
            made.append((result.uid, result.kind, result.index))
            if len(made) == 500:
                os.kill(os.getpid(), signal.SIGTERM)
            yield result

    monkeypatch.setattr(ScriptedEngine, "complete", complete)
    assert rank(folder, *RACED) == 130
    assert len(made) < n_stored(folder, "once")
    assert not (folder / "picks.jsonl").exists()

    assert rank(folder, *RACED) == 0

    assert len(made) == len(set(made))
    assert (folder / "picks.jsonl").read_bytes() == (folder / "once.jsonl").read_bytes()


def test_a_question_that_is_refused_in_the_middle_of_a_race_is_not_picked(folder, monkeypatch):
    rank(folder, *RACED, out="before.jsonl", state="before")
    refused = picks_in(folder / "before.jsonl")[0]["id"]
    text = next(json.loads(line)["problem"] for line in (folder / "pool.jsonl").read_text().splitlines()
                if json.loads(line)["id"] == refused)  # fmt: skip
    key = question_uid(text, ())
    real = ScriptedEngine.complete

    def complete(self, requests, settings, seed):
        for result in real(self, requests, settings, seed):
            is_late = result.uid == key and result.kind is CompletionKind.OUTCOME and result.index > 2
            yield SetAside(key, "refused", "No more of this.") if is_late else result

    monkeypatch.setattr(ScriptedEngine, "complete", complete)
    assert rank(folder, *RACED) == 0

    assert refused not in {pick["id"] for pick in picks_in(folder / "picks.jsonl")}
    assert len(picks_in(folder / "picks.jsonl")) == 4
    assert report_of(folder)["set_aside"] == {refused: "No more of this."}


def test_options_of_the_engine_are_handed_on_and_unknown_ones_are_named(folder, capsys):
    handed_on = rank(folder, "--engine-option", 'answers=["7", "8"]')
    unknown = rank(folder, "--engine-option", "replicas=3", out="other.jsonl", state="other")

    assert (handed_on, unknown) == (0, 1)
    assert {row["text"].rstrip("}")[-1] for row in completions_in(folder / "state")} == {"7", "8"}
    assert "engine options is 'replicas'" in errors(capsys)[0]


def test_the_threshold_is_raced_for_too(folder, capsys):
    rank(folder, *RACED, out="whole.jsonl", state="whole")
    n_whole = n_stored(folder, "whole")
    capsys.readouterr()

    assert rank(folder, *RACED, "--race-calibration") == 0

    report, whole = report_of(folder), report_of(folder, "whole.jsonl")
    assert (report["q_hat"], picks_in(folder / "picks.jsonl")) == (whole["q_hat"], picks_in(folder / "whole.jsonl"))
    costs = report["race"]["calibration"]
    assert costs["raced"]
    n_left = costs["rollouts_full"] - costs["rollouts_used"]
    assert 0 < n_left == n_whole - n_stored(folder)
    assert "racing for the threshold" in capsys.readouterr().err

    before = n_stored(folder)
    picks = (folder / "picks.jsonl").read_bytes()
    assert rank(folder, *RACED, "--race-calibration") == 0
    assert n_stored(folder) == before
    assert (folder / "picks.jsonl").read_bytes() == picks
    assert {**report_of(folder), "seconds": 0} == {**report, "seconds": 0}


@pytest.mark.parametrize("options", [("--gpu-price", "nan"), ("--gpu-price", "-1"), ("--gpus", "0")])
def test_prices_and_numbers_without_meaning_are_refused(folder, options, capsys):
    with pytest.raises(SystemExit) as stopped:
        rank(folder, *options)

    assert stopped.value.code == 2
    assert options[0] in capsys.readouterr().err


def test_what_cannot_be_raced_is_refused_before_a_model_is_asked(folder, capsys):
    assert rank(folder, "--strategy", "random", "--race", "exact") == 1

    assert any("cannot be raced" in line for line in errors(capsys))
    assert not (folder / "state").exists()
