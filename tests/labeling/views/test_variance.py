"""The variance of labeled questions, read off stored answers."""

import re

import pytest
from django.core.management import call_command
from django.urls import reverse

from labeling.models import CalibrationSet, GoldAnswer, Pool, RecordedVotes, RolloutScores, SelectionRun
from labeling.queries import variance as queries
from tests import factories
from tests.labeling.views.conftest import HOSTILE, HX

pytestmark = pytest.mark.django_db
ANSWERS = {"always right": ["7"] * 4, "always wrong": ["8", "", "9", "8"], "useful": ["7", "7.0", "8", ""]}


def record(row, answers, fingerprint="recorded"):
    RecordedVotes.objects.create(
        question_fingerprint=row.fingerprint,
        question_uid=row.uid,
        generation_fingerprint=fingerprint,
        votes={"id": row.uid, "probe_answers": [], "outcome_answers": answers},
    )


def labeled_run(pool: Pool, answers: list[list[str] | None], **fields: object) -> SelectionRun:
    """A run whose picks all have the gold answer 7; where there are answers, they are recorded."""
    questions = [factories.make_question(pool=pool, text=f"{HOSTILE} {i}") for i in range(len(answers))]
    run = factories.make_run(pool=pool, questions=questions, generation_fingerprint="recorded", **fields)
    round = factories.make_round(run=run)
    for question, given in zip(questions, answers, strict=True):
        GoldAnswer.objects.create(question=question, round=round, answer="7", source=GoldAnswer.Source.SINGLE)
        if given is not None:
            record(question, given)
    return run


def page(client, pool, **query):
    return client.get(reverse("pool-variance", args=[pool.slug]), query)


def test_the_page_tells_which_questions_the_model_gets_right_now_and_then(pool, manager, login):
    labeled_run(pool, [ANSWERS["useful"], ANSWERS["always right"], ANSWERS["always wrong"], ANSWERS["useful"], None])

    response = page(login(manager), pool)

    html = response.content.decode()
    figures = response.context["variance"].report
    assert figures["categories"] == {"useful": 2, "always_right": 1, "always_wrong": 1, "constant": 0}
    assert (figures["mean"], figures["mean_best"]) == (0.5, 0.75)  # an unread answer earns nothing
    assert "1 question has no stored answers" in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert HOSTILE not in html
    table = re.search(r'data-chart="variance".*?</table>', html, re.S).group()
    assert [re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r"<tr><td.*?</tr>", table)] == [
        ["0", "0", "always", "wrong", "1"], ["0.5", "0.25", "useful", "2"], ["1", "0", "always", "right", "1"],
    ]  # fmt: skip


def test_the_questions_can_be_had_by_category_and_page(pool, manager, login):
    run = labeled_run(pool, [ANSWERS["always wrong"]] * 60 + [ANSWERS["useful"]])
    client = login(manager)

    first = page(client, pool, category="always_wrong")

    assert {line.category for line in first.context["page"]} == {"always_wrong"}
    assert f"?page=2&amp;run={run.pk}&amp;category=always_wrong" in first.content.decode()
    assert len(page(client, pool, category="always_wrong", page=2).context["page"]) == 10
    assert "There are none" in page(client, pool, category="always_right").content.decode()


def test_without_labels_runs_or_stored_answers_it_says_what_is_missing(pool, manager, login):
    client = login(manager)
    assert "No run has finished yet" in page(client, pool).content.decode()

    factories.make_run(pool=pool, n_picks=2, calibration_set=factories.make_calibration_set(pool=pool, n_items=1))
    html = page(client, pool).content.decode()
    assert "No question has a gold answer yet" in html
    assert "Variance of Calibration" in html

    labeled_run(pool, [None, None])
    assert "None of the 2 questions" in page(client, pool).content.decode()


def test_answers_are_graded_once(pool, manager, login, monkeypatch, django_assert_max_num_queries):
    labeled_run(pool, [ANSWERS["useful"]] * 30)
    client = login(manager)
    first = page(client, pool).context["variance"]
    assert RolloutScores.objects.count() == 30

    monkeypatch.setattr("labeling.engine.variance.rewards_of", None)

    with django_assert_max_num_queries(20):
        assert page(client, pool).context["variance"] == first


def test_long_grading_shows_how_far_it_is_and_goes_on(pool, manager, login, monkeypatch):
    monkeypatch.setattr(queries.variance_of_pool, "__kwdefaults__", {"seconds": 0})
    run = labeled_run(pool, [ANSWERS["useful"], ANSWERS["always right"], ANSWERS["always wrong"]])
    client, url = login(manager), reverse("pool-variance", args=[pool.slug])

    plain = client.get(url).content.decode()
    part = client.get(url, {"run": run.pk}, **HX)

    assert "1 of 3" in plain
    assert f'href="{url}?run={run.pk}"' in plain  # without JavaScript
    assert "2 of 3" in part.content.decode()
    assert "<html" not in part.content.decode()
    done = client.get(url, {"run": run.pk}, **HX)
    assert done["HX-Redirect"] == f"{url}?run={run.pk}"
    assert client.get(url).context["variance"].n_graded == 3


def test_a_run_can_be_chosen_and_another_pools_cannot(pool, manager, login, outsider):
    older = labeled_run(pool, [ANSWERS["useful"]])
    question = pool.questions.get()
    newer = factories.make_run(pool=pool, generation_fingerprint="other")
    record(question, ANSWERS["always right"], fingerprint="other")
    elsewhere = factories.make_run(pool=factories.make_pool(manager=outsider))
    client = login(manager)

    assert page(client, pool).context["run"] == newer
    assert page(client, pool, run=older.pk).context["variance"].report["categories"]["useful"] == 1
    assert page(client, pool, run=elsewhere.pk).status_code == 404
    assert page(client, pool, run="x").status_code == 404


@pytest.fixture
def sealed(pool: Pool) -> CalibrationSet:
    calibration_set = factories.make_calibration_set(pool=pool)
    for number in range(3):
        item = factories.make_calibration_item(
            calibration_set=calibration_set, text=f"SEALED-QUESTION-{number}", answer="918273645"
        )
        record(item, ["918273645", "1", "1"])
    return calibration_set


def test_a_calibration_set_is_shown_as_a_whole_only(pool, manager, sealed, login):
    factories.make_run(pool=pool, calibration_set=sealed, generation_fingerprint="recorded")

    response = login(manager).get(reverse("set-variance", args=[sealed.pk]))

    html = response.content.decode()
    assert response.context["variance"].report["categories"]["useful"] == 3
    for secret in ("SEALED-QUESTION", "918273645", *sealed.items.values_list("uid", flat=True)):
        assert f">{secret}" not in html
    assert not response.context["variance"].lines


def test_a_shared_set_shows_only_runs_of_pools_one_manages(pool, manager, outsider, login):
    shared = factories.make_calibration_set(n_items=1)
    factories.make_run(pool=factories.make_pool(manager=outsider), calibration_set=shared)

    assert "No run has finished yet" in login(manager).get(reverse("set-variance", args=[shared.pk])).content.decode()


def test_a_set_of_another_pool_is_not_found(pool, manager, annotator, sealed, outsider, login):
    elsewhere = factories.make_calibration_set(pool=factories.make_pool(manager=outsider))

    assert login(manager).get(reverse("set-variance", args=[elsewhere.pk])).status_code == 404
    assert login(annotator).get(reverse("set-variance", args=[sealed.pk])).status_code == 403


def test_answers_of_a_model_run_are_read_from_its_completions(pool, manager, login):
    from labeling.models import StoredCompletion

    run = labeled_run(pool, [None], policy_model=factories.make_policy_model(), config={"n_outcomes": 3, "n_probes": 0})
    question = pool.questions.get()
    for index, text in enumerate(["It is \\boxed{7}.", "\\boxed{8}", "no answer", "\\boxed{7} is not asked for"]):
        StoredCompletion.objects.create(
            question_fingerprint=question.fingerprint,
            generation_fingerprint=run.generation_fingerprint,
            kind="outcome",
            index=index,
            text=text,
            n_tokens=5,
            n_prompt_tokens=5,
            finish_reason="stop",
        )

    (line,) = page(login(manager), pool).context["variance"].lines

    assert (line.n_runs, line.category) == (3, "useful")
    assert line.mean == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("keep", "n_rows", "told"),
    [("all", "5", ""), ("useful", "3", "1 always right, 1 always wrong"), ("not_always_right", "4", "1 always right")],
)
def test_an_export_keeps_the_part_asked_for(keep, n_rows, told, pool, manager, login, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    labeled_run(pool, [ANSWERS["useful"], ANSWERS["always right"], ANSWERS["always wrong"], ANSWERS["useful"], None])

    response = login(manager).post(
        reverse("export-new", args=[pool.slug]), {"format": "jsonl", "keep": keep}, follow=True
    )

    html = response.content.decode()
    assert f"JSONL, {n_rows} questions" in html
    assert told in html
    assert ("no stored rollouts" in html) == (keep != "all")


def test_the_command_exports_a_part_and_says_what_was_left_out(pool, tmp_path, capsys):
    labeled_run(pool, [ANSWERS["useful"], ANSWERS["always right"], None])
    options = ("export", "--pool", pool.name, "--format", "jsonl", "--out", str(tmp_path))

    call_command(*options, "--keep", "useful")

    out = capsys.readouterr().out
    assert "2 questions" in out
    assert "1 was left out (1 always right); 1 has no stored rollouts" in out
