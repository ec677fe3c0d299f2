"""From a file to the questions of a pool, at the shell."""

import json

import pytest
from django.core.management import CommandError

from labeling.models import (
    AuditEvent,
    CalibrationItem,
    CalibrationSet,
    ImportBatch,
    Pool,
    Question,
    RecordedVotes,
    StoredCompletion,
)
from tests import factories


def test_a_new_file_makes_the_pool_and_its_questions(command, write):
    path = write(
        {"id": "q1", "question": "What is $1+1$?", "topic": "sums", "answer": "2"},
        {"id": "q2", "question": "Which?", "choices": ["a", "b"]},
    )

    outcome = command("import_questions", path, "--pool", "Algebra", "--json")

    assert outcome.status == 0
    assert outcome.json["new"] == 2
    first, second = Question.objects.filter(pool__name="Algebra")
    assert (first.uid, first.text, first.metadata) == ("q1", "What is $1+1$?", {"topic": "sums"})
    assert (second.choices, second.answer_kind) == (["a", "b"], "choice")
    batch = ImportBatch.objects.get()
    assert (batch.status, batch.counts["new"], len(batch.sha256)) == ("committed", 2, 64)
    assert AuditEvent.objects.filter(action="import.committed").count() == 1


def test_the_json_report_is_as_documented(command, write):
    path = write({"question": "a"}, "{broken", {"question": "a "})

    report = command("import_questions", path, "--pool", "P", "--json").json

    assert list(report)[:5] == ["new", "unchanged", "changed", "duplicates", "rejected"]
    assert [report[name] for name in ("new", "unchanged", "changed", "duplicates")] == [1, 0, 0, 1]
    assert [(row["line"], row["code"]) for row in report["rejected"]] == [(2, "invalid_json")]
    assert list(report["rejected"][0])[:3] == ["line", "code", "message"]
    assert report["duplicate_rows"] == [
        {"line": 3, "code": "duplicate", "message": "Same question as line 1.", "duplicate_of_line": 1}
    ]


def test_the_same_file_again_changes_nothing(command, write):
    path = write({"question": "a", "n": 1.50}, {"id": "x", "question": "b"})
    command("import_questions", path, "--pool", "P", "--json")

    again = command("import_questions", path, "--pool", " p ", "--json")

    assert (again.status, again.json["new"], again.json["unchanged"]) == (0, 0, 2)
    assert Pool.objects.count() == 1
    assert Question.objects.count() == 2


def test_a_dry_run_says_the_same_and_writes_nothing(command, write):
    path = write({"question": "a"}, {"question": "b"})

    outcome = command("import_questions", path, "--pool", "P", "--dry-run", "--json")

    assert (outcome.status, outcome.json["new"]) == (0, 2)
    assert not Pool.objects.exists()
    assert not ImportBatch.objects.exists()


def test_a_file_without_a_usable_row_leaves_nothing_behind_and_exits_1(command, write):
    outcome = command("import_questions", write("{broken"), "--pool", "P", "--json")

    assert (outcome.status, outcome.json["rejected"][0]["code"]) == (1, "invalid_json")
    assert not Pool.objects.exists()
    assert not ImportBatch.objects.exists()


def test_the_report_for_people_names_the_first_rejected_rows(command, write):
    outcome = command("import_questions", write({"question": "a"}, *["{broken"] * 30), "--pool", "P")

    assert "Imported 1 new questions; 0 changed, 0 unchanged, 0 duplicates, 30 rejected." in outcome.out
    assert "line 2: Not JSON" in outcome.out
    assert "line 22: " not in outcome.out
    assert "and 10 more; --json lists them" in outcome.out


def test_columns_are_mapped_by_hand(command, write):
    path = write({"wording": "a", "code": "7"})

    assert command("import_questions", path, "--pool", "P", "--json").json["rejected"][0]["code"] == (
        "missing_question_column"
    )
    command("import_questions", path, "--pool", "P", "--map", "question=wording", "--map", "uid=code")

    assert [(question.uid, question.text) for question in Question.objects.all()] == [("7", "a")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--map", "question"], "FIELD=COLUMN"),
        (["--map", "question=nowhere"], "there is no column “nowhere”. Use one of: question"),
        (["--map", "topic=question"], "there is no field “topic”"),
    ],
)
def test_a_wrong_mapping_is_refused_in_words(command, write, arguments, message):
    with pytest.raises(CommandError) as raised:
        command("import_questions", write({"question": "a"}), "--pool", "P", *arguments)

    assert message in str(raised.value)


def test_a_missing_file_is_refused_in_words_and_in_json(command, tmp_path):
    with pytest.raises(CommandError, match="cannot be opened: No such file"):
        command("import_questions", tmp_path / "none.jsonl", "--pool", "P")
    outcome = command("import_questions", tmp_path / "none.jsonl", "--pool", "P", "--json")

    assert (outcome.status, outcome.json["new"], outcome.json["error"]["code"]) == (1, 0, "unreadable_file")


def test_eaten_latex_is_rejected_or_repaired(command, write):
    path = write('{"question": "What is $\\frac{1}{2}$?"}')

    rejected = command("import_questions", path, "--pool", "P", "--json").json["rejected"]
    command("import_questions", path, "--pool", "P", "--repair")

    assert r"\frac{1}{2}" in rejected[0]["message"]
    assert Question.objects.get().text == r"What is $\frac{1}{2}$?"


def test_a_changed_text_is_updated_and_known_metadata_kept(command, write):
    command("import_questions", write({"id": "q", "question": "a", "x": 1}), "--pool", "P", "--json")

    report = command("import_questions", write({"id": "q", "question": "b", "y": 2}), "--pool", "P", "--json").json

    question = Question.objects.get()
    assert (report["changed"], report["new"]) == (1, 0)
    assert (question.text, question.metadata) == ("b", {"x": 1, "y": 2})


def test_white_space_is_no_change(command, write):
    command("import_questions", write({"id": "q", "question": "a  b"}), "--pool", "P", "--json")

    assert (
        command("import_questions", write({"id": "q", "question": " a b"}), "--pool", "P", "--json").json["unchanged"]
        == 1
    )


@pytest.mark.parametrize("use", ["slot", "completion", "votes"])
def test_the_text_of_a_question_in_use_stays(command, write, use):
    command("import_questions", write({"id": "q", "question": "a"}), "--pool", "P", "--json")
    question = Question.objects.get()
    if use == "slot":
        factories.make_round(run=factories.make_run(pool=question.pool, questions=[question]))
    elif use == "completion":
        question_votes(question, stored=True)
    else:
        question_votes(question, stored=False)

    outcome = command("import_questions", write({"id": "q", "question": "b"}), "--pool", "P", "--json")
    metadata = command("import_questions", write({"id": "q", "question": "a", "x": 1}), "--pool", "P", "--json")

    assert (outcome.status, outcome.json["rejected"][0]["code"]) == (1, "question_in_use")
    assert metadata.json["changed"] == 1
    question.refresh_from_db()
    assert (question.text, question.metadata) == ("a", {"x": 1})


def question_votes(question, *, stored: bool) -> None:
    names = {"question_fingerprint": question.fingerprint}
    for generation in ("a", "b"):
        if stored:
            StoredCompletion.objects.create(
                **names, generation_fingerprint=generation, kind="outcome", index=0, text="7", n_tokens=1,
                n_prompt_tokens=1, finish_reason="stop",
            )  # fmt: skip
        else:
            RecordedVotes.objects.create(
                **names, question_uid=question.uid, generation_fingerprint=generation, votes={}
            )


def test_one_id_for_two_texts_and_one_text_under_two_ids(command, write):
    path = write({"id": "q", "question": "a"}, {"id": "q", "question": "b"}, {"id": "r", "question": "a"})

    report = command("import_questions", path, "--pool", "P", "--json").json

    assert [(row["line"], row["code"]) for row in report["rejected"]] == [(2, "duplicate_id")]
    assert "Line 1 has the same id" in report["rejected"][0]["message"]
    assert [(row["line"], row["duplicate_of_line"]) for row in report["duplicate_rows"]] == [(3, 1)]


def test_a_text_that_the_pool_has_under_another_id_is_a_duplicate(command, write):
    command("import_questions", write({"id": "q", "question": "a"}), "--pool", "P", "--json")

    report = command("import_questions", write({"id": "r", "question": "a"}), "--pool", "P", "--json").json

    assert (report["duplicates"], report["duplicate_rows"][0]["duplicate_of"]) == (1, "q")
    assert Question.objects.count() == 1


def test_nearly_equal_texts_only_warn(command, write):
    report = command(
        "import_questions", write({"question": "What is it?"}, {"question": "what is IT"}), "--pool", "P", "--json"
    ).json

    assert (report["new"], [row["code"] for row in report["warnings"]]) == (2, ["nearly_equal"])
    assert report["warnings"][0]["nearly_equal_to_line"] == 1


def test_ambiguous_columns_are_named(command, write):
    report = command("import_questions", write({"question": "a", "prompt": "b"}), "--pool", "P", "--json").json

    assert "taken from “question”; “prompt” could be meant too" in report["warnings"][0]["message"]


def test_questions_with_known_answers_are_named(command, write):
    command("import_calibration", write({"question": "a", "answer": 1}), "--set", "Shared", "--json")
    command("import_questions", write({"question": "b"}), "--pool", "Other", "--json")
    command("import_calibration", write({"question": "b", "answer": 1}), "--set", "Others", "--pool", "Other", "--json")

    report = command("import_questions", write({"question": "a"}, {"question": "b"}), "--pool", "P", "--json").json

    assert report["new"] == 2
    assert [(row["line"], row["code"]) for row in report["warnings"]] == [(1, "in_pool_and_calibration")]
    assert "“Shared”" in report["warnings"][0]["message"]


def test_many_rows_arrive_in_order_across_chunks(command, write):
    rows = [{"id": f"q{n}", "question": f"What is {n}?"} for n in range(1203)]
    command("import_questions", write(*rows), "--pool", "P", "--json")

    report = command("import_questions", write(*rows[::-1], {"question": "new"}), "--pool", "P", "--json").json

    assert list(Question.objects.order_by("id").values_list("uid", flat=True))[:1203] == [row["id"] for row in rows]
    assert (report["new"], report["unchanged"]) == (1, 1203)


def test_calibration_needs_answers_and_no_two_of_them(command, write):
    path = write(
        {"problem": "a", "ground_truth_answer": 7},
        {"problem": "b"},
        {"problem": "c", "ground_truth_answer": "so #### 1,018"},
        {"problem": "a ", "ground_truth_answer": "7"},
        {"problem": " a", "ground_truth_answer": "8"},
    )

    outcome = command("import_calibration", path, "--set", "C", "--json")

    assert outcome.status == 0
    assert list(CalibrationItem.objects.values_list("text", "answer")) == [("a", "7"), ("c", "1,018")]
    assert [(row["line"], row["code"]) for row in outcome.json["rejected"]] == [
        (2, "missing_answer"),
        (5, "conflicting_answer"),
    ]
    assert outcome.json["duplicates"] == 1


def test_a_corrected_answer_is_a_change_and_another_id_with_another_answer_a_conflict(command, write):
    command("import_calibration", write({"id": "a", "question": "q", "answer": "7"}), "--set", "C", "--json")

    changed = command(
        "import_calibration", write({"id": "a", "question": "q", "answer": "8"}), "--set", "C", "--json"
    ).json
    other = command(
        "import_calibration", write({"id": "b", "question": "q", "answer": "9"}), "--set", "C", "--json"
    ).json

    assert changed["changed"] == 1
    assert [row["code"] for row in other["rejected"]] == ["conflicting_answer"]
    assert CalibrationItem.objects.get().answer == "8"


def test_a_calibration_set_belongs_to_its_pool(command, write):
    command("import_questions", write({"question": "a"}), "--pool", "P", "--json")
    command("import_questions", write({"question": "a"}), "--pool", "Q", "--json")
    command("import_calibration", write({"question": "b", "answer": 1}), "--set", "C", "--pool", "p", "--json")

    refused = command(
        "import_calibration", write({"question": "c", "answer": 1}), "--set", "C", "--pool", "Q", "--json"
    )
    unknown = command(
        "import_calibration", write({"question": "c", "answer": 1}), "--set", "D", "--pool", "R", "--json"
    )

    assert CalibrationSet.objects.get().pool.name == "P"
    assert refused.json["error"]["code"] == "name_taken"
    assert "There are: “P”, “Q”" in unknown.json["error"]["message"]
    assert not CalibrationSet.objects.filter(name="D").exists()


def test_csv_cells_arrive_as_they_are(command, write):
    path = write("id;problem;answer", "1;What, then?;NA", "2;Why?;007", name="pool.csv")

    command("import_calibration", path, "--set", "C", "--json")

    assert list(CalibrationItem.objects.values_list("uid", "answer")) == [("1", "NA"), ("2", "007")]


def test_a_real_pool_is_imported_with_its_duplicates_named(command, shared_data):
    path = shared_data / "bigmath_pool.jsonl"

    report = command("import_questions", path, "--pool", "P", "--json").json
    again = command("import_questions", path, "--pool", "P", "--json").json

    assert (report["new"], report["duplicate_rows"][0]["line"]) == (1534, 1112)
    assert report["duplicate_rows"][0]["message"] == "Same question as line 1045."
    assert [row["line"] for row in report["rejected"]] == [1293]
    assert (again["new"], again["unchanged"]) == (0, 1534)


def test_a_real_calibration_set_is_imported(command, shared_data):
    path = shared_data / "bigmath_calibration.jsonl"

    report = command("import_calibration", path, "--set", "C", "--json").json
    repaired = command("import_calibration", path, "--set", "C", "--repair", "--json").json

    assert (report["new"], [row["line"] for row in report["rejected"]]) == (510, [36, 180])
    assert (repaired["new"], repaired["unchanged"], repaired["rejected"]) == (2, 510, [])


def test_memory_and_statements_do_not_grow_with_the_file(command, write, django_assert_max_num_queries):
    path = write(*[json.dumps({"question": f"What is {n}?"}) for n in range(2000)])

    with django_assert_max_num_queries(70):
        command("import_questions", path, "--pool", "P", "--json")


def test_a_pool_made_at_a_shell_gets_a_manager_or_a_word_about_it(command, write):
    path = write({"id": "q1", "question": "What is $1+1$?"})

    outcome = command("import_questions", path, "--pool", "Algebra")
    assert "Nobody manages “Algebra” yet" in outcome.stderr
    with pytest.raises(CommandError, match="no user 'mira'"):
        command("import_questions", path, "--pool", "Algebra", "--manager", "mira")

    mira = factories.make_user(username="mira")
    command("import_questions", path, "--pool", "Algebra", "--manager", "mira", "--dry-run")
    assert not Pool.objects.managed_by(mira).exists()
    outcome = command("import_questions", path, "--pool", "Algebra", "--manager", "mira")

    assert "Nobody manages" not in outcome.stderr
    assert Pool.objects.managed_by(mira).get().name == "Algebra"
    assert "Nobody manages" not in command("import_questions", path, "--pool", "Algebra").stderr
