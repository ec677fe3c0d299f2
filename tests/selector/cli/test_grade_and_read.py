"""`assay grade` and `assay read`."""

import json

from selector.cli import main


def test_grade_adds_a_verdict_to_every_row(tmp_path, capsys):
    cases = [
        {"gold": "1/2", "answer": "0.5", "kind": "number", "source": "kept"},
        {"gold": "1/2", "answer": "0.6"},
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))

    assert main(["grade", str(path)]) == 0

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["verdict"] for row in rows] == ["equivalent", "different"]
    assert rows[0] == {**cases[0], "verdict": "equivalent"}


def test_read_says_what_a_grader_reads(capsys):
    assert main(["read", r"\frac{1}{2}", "--kind", "number"]) == 0
    assert "1" in capsys.readouterr().out


def test_read_says_when_there_is_nothing_to_read():
    assert main(["read", " "]) == 1


def test_a_missing_cases_file_is_named(tmp_path, capsys):
    assert main(["grade", str(tmp_path / "nowhere.jsonl")]) != 0
    assert "nowhere.jsonl" in capsys.readouterr().err
