"""Votes made on another machine become evidence, once and for good."""

import pytest

from labeling.actions.evidence_imports import import_votes
from labeling.errors import LabelingError, NotAllowed
from labeling.models import AuditEvent, RecordedVotes
from tests import factories


def votes(uid: str, *outcomes: str, **fields) -> dict:
    return {"id": uid, "probe_answers": ["1", ""], "outcome_answers": list(outcomes or ("1", "2")), **fields}


@pytest.fixture
def questions(command, write):
    """Two questions of a pool, q1 and q2, and a calibration set with one, c1."""
    path = write({"id": "q1", "question": "a"}, {"id": "q2", "question": "b", "choices": ["x", "y"]})
    command("import_questions", path, "--pool", "P")
    command("import_calibration", write({"id": "c1", "question": "c", "answer": "1"}), "--set", "C", "--pool", "P")


def test_votes_are_recorded_under_their_settings(questions, command, write):
    path = write(
        votes("q1", "1", 2, cluster=3, prompt_tokens=7, fingerprint="f1", text="a"),
        votes("q2", fingerprint="f1", kind="choice"),
    )

    outcome = command("import_votes", path, "--pool", "p", "--json")

    assert (outcome.status, outcome.json["new"], outcome.json["generation_fingerprints"]) == (0, 2, ["f1"])
    first = RecordedVotes.objects.get(question_uid="q1", generation_fingerprint="f1")
    assert first.votes == {
        "id": "q1", "cluster": 3, "prompt_tokens": 7, "probe_answers": ["1", ""], "outcome_answers": ["1", "2"],
    }  # fmt: skip
    assert AuditEvent.objects.filter(action="votes.imported").count() == 1


def test_the_report_for_people_names_the_settings_in_words(questions, command, write):
    outcome = command(
        "import_votes", write(votes("q1", fingerprint="f1"), votes("q2", fingerprint="f2")), "--pool", "P"
    )

    assert "Generation fingerprints: f1, f2.\n" in outcome.out


def test_the_same_votes_again_change_nothing(questions, command, write):
    path = write(votes("q1"), votes("q2"))
    command("import_votes", path, "--pool", "P", "--fingerprint", "f1")

    again = command("import_votes", path, "--pool", "P", "--fingerprint", "f1", "--json")
    elsewhere = command("import_votes", path, "--pool", "P", "--fingerprint", "f2", "--json")

    assert (again.status, again.json["new"], again.json["unchanged"]) == (0, 0, 2)
    assert elsewhere.json["new"] == 2


def test_other_votes_never_replace_evidence(questions, command, write):
    command("import_votes", write(votes("q1")), "--pool", "P")

    outcome = command("import_votes", write(votes("q1", "3", "3")), "--pool", "P", "--json")

    assert (outcome.status, outcome.json["rejected"][0]["code"]) == (1, "votes_differ")
    assert RecordedVotes.objects.get().votes["outcome_answers"] == ["1", "2"]


def test_a_question_is_found_by_its_text_where_the_id_is_unknown(questions, command, write):
    command("import_votes", write(votes("other", text="b", choices=["x", "y"])), "--pool", "P")

    assert RecordedVotes.objects.get().question_uid == "q2"


@pytest.mark.parametrize(
    ("row", "code", "message"),
    [
        (votes("q9"), "unknown_question", "no question “q9”. Import the questions first"),
        (votes("q1", text="z"), "question_differs", "has another text here"),
        ({"id": "q1", "outcome_answers": []}, "invalid_votes", "probe_answers is missing"),
        (votes("q1", "1"), "invalid_votes", "has 1 answers and the first row 2"),
        (votes("q1", True, "1"), "invalid_votes", "true; a text or a number is wanted"),
        (votes("q2"), "duplicate", "Line 1"),
        ("{broken", "invalid_json", "Not JSON"),
        (votes("q1", fingerprint="f" * 65), "invalid_votes", "64"),
    ],
)
def test_each_bad_row_is_named(questions, command, write, row, code, message):
    report = command("import_votes", write(votes("q2"), row), "--pool", "P", "--json").json

    [found] = report["rejected"] + report["duplicate_rows"]
    assert (found["line"], found["code"]) == (2, code)
    assert message in found["message"]
    assert report["new"] == 1


def test_calibration_votes_are_kept_without_the_truth(questions, command, write):
    command("import_votes", write(votes("c1", truth="1")), "--set", "c")

    assert "truth" not in RecordedVotes.objects.get(question_uid="c1").votes


def test_rows_from_several_settings_are_named(questions, command, write):
    report = command(
        "import_votes", write(votes("q1", fingerprint="f"), votes("q2", fingerprint="g")), "--pool", "P", "--json"
    )

    assert report.json["generation_fingerprints"] == ["f", "g"]
    assert [row["code"] for row in report.json["warnings"]] == ["several_settings"]


def test_an_unknown_pool_or_set_is_named(questions, command, write):
    path = write(votes("q1"))

    assert "There are: “P”" in command("import_votes", path, "--pool", "Q", "--json").json["error"]["message"]
    assert "There are: “C”" in command("import_votes", path, "--set", "D", "--json").json["error"]["message"]


def test_in_the_browser_managers_alone_upload_votes(pool, manager, annotator, upload):
    factories.make_question(pool=pool, uid="q1")

    report = import_votes(file=upload(votes("q1")), filename="votes.jsonl", pool=pool, by=manager)
    with pytest.raises(NotAllowed):
        import_votes(file=upload(votes("q1")), filename="votes.jsonl", pool=pool, by=annotator)
    with pytest.raises(LabelingError):
        import_votes(
            file=upload(votes("q1")), filename="v.jsonl", pool=pool,
            calibration_set=factories.make_calibration_set(), by=annotator,
        )  # fmt: skip

    assert report.new == 1


def test_simulated_votes_with_their_clusters_are_recorded(command, write, shared_data):
    rows = (shared_data / "parity" / "1_pool.jsonl").read_text().splitlines()[:300]
    ids = [f"{n:06d}" for n in range(300)]
    command("import_questions", write(*[{"id": uid, "question": f"Question {uid}"} for uid in ids]), "--pool", "P")

    outcome = command("import_votes", write(*rows, name="votes.jsonl"), "--pool", "P", "--json")

    assert (outcome.json["new"], outcome.json["rejected"]) == (300, [])
    assert RecordedVotes.objects.get(question_uid="000000").votes["cluster"] == 7
