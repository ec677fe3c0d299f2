"""Files through the browser: looked at first, then committed or discarded."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from labeling.models import CalibrationSet, ImportBatch, Question, RecordedVotes, SelectionRun
from tests import factories


@pytest.fixture(autouse=True)
def _files(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


def upload(*rows, name="pool.jsonl"):
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    return SimpleUploadedFile(name, "\n".join(lines).encode())


def test_a_file_is_looked_at_before_anything_changes(pool, manager, login):
    client = login(manager)
    rows = [{"id": "a", "question": "What is $1+1$?"}, '{"question": "bro', {"question": "What is $1+1$?"}]

    page = client.post(reverse("pool-import", args=[pool.slug]), {"file": upload(*rows)}, follow=True)

    html = page.content.decode()
    assert not Question.objects.exists()
    assert page.context["batch"].counts["new"] == 1
    assert "Same question as line 1" in html
    assert '<td class="number" data-label="Line">2</td>' in html
    assert 'data-tex="1+1"' in html


def test_committing_brings_the_questions_in(pool, manager, login):
    client = login(manager)
    client.post(reverse("pool-import", args=[pool.slug]), {"file": upload({"question": "Why?"})})

    response = client.post(reverse("import-commit", args=[ImportBatch.objects.get().pk]), follow=True)

    assert Question.objects.get().text == "Why?"
    assert "1 new, 0 changed, 0 unchanged" in response.content.decode()


def test_discarding_changes_nothing(pool, manager, login):
    client = login(manager)
    client.post(reverse("pool-import", args=[pool.slug]), {"file": upload({"question": "Why?"})})

    client.post(reverse("import-discard", args=[ImportBatch.objects.get().pk]))

    assert not Question.objects.exists()
    assert ImportBatch.objects.get().status == "discarded"


def test_columns_that_are_not_recognised_are_chosen_by_hand(pool, manager, login):
    client = login(manager)
    rows = [{"frage": "Wie viel ist 1+1?", "nummer": "n1"}]
    page = client.post(reverse("pool-import", args=[pool.slug]), {"file": upload(*rows)}, follow=True)
    assert "No row can be imported" in page.content.decode()

    url = reverse("import-preview", args=[ImportBatch.objects.get().pk])
    page = client.post(url, {"question": "frage", "uid": "nummer"}, follow=True)

    assert page.context["batch"].counts["new"] == 1
    client.post(reverse("import-commit", args=[ImportBatch.objects.get().pk]))
    assert Question.objects.get().uid == "n1"


def test_a_column_that_is_not_there_is_refused(pool, manager, login):
    client = login(manager)
    client.post(reverse("pool-import", args=[pool.slug]), {"file": upload({"question": "Why?"})})

    response = client.post(reverse("import-preview", args=[ImportBatch.objects.get().pk]), {"question": "made up"})

    assert response.status_code == 422


def test_an_empty_file_is_refused_on_the_form(pool, manager, login):
    response = login(manager).post(reverse("pool-import", args=[pool.slug]), {"file": upload()})

    assert response.status_code == 422
    assert "empty" in response.content.decode()


def test_a_calibration_set_is_made_by_its_first_file(pool, manager, login):
    client = login(manager)
    rows = [{"question": "What is 1+1?", "answer": "2"}]

    client.post(reverse("calibration-import"), {"name": "Keys", "pool": pool.pk, "file": upload(*rows)})
    client.post(reverse("import-commit", args=[ImportBatch.objects.get().pk]))

    assert CalibrationSet.objects.get(name="Keys").items.count() == 1
    assert "Keys" in client.get(reverse("calibration-sets")).content.decode()


def test_somebody_elses_calibration_import_is_not_found(pool, manager, outsider, login):
    factories.make_pool(manager=outsider)
    rows = [{"question": "What is 1+1?", "answer": "2"}]
    login(manager).post(reverse("calibration-import"), {"name": "Keys", "pool": pool.pk, "file": upload(*rows)})

    response = login(outsider).get(reverse("import-preview", args=[ImportBatch.objects.get().pk]))

    assert response.status_code == 404


def test_votes_from_another_machine_are_taken_in(pool, manager, login):
    factories.make_question(pool=pool, uid="a")
    votes = {"id": "a", "outcome_answers": ["1", "2"], "probe_answers": ["1"]}

    page = login(manager).post(
        reverse("votes-import", args=[pool.slug]),
        {"holds": "votes", "file": upload(votes), "fingerprint": "gpu-box"},
    )

    assert page.status_code == 200
    assert "The file is in" in page.content.decode()
    assert RecordedVotes.objects.count() == 1


def test_votes_of_unknown_questions_are_named_line_by_line(pool, manager, login):
    votes = {"id": "nobody", "outcome_answers": ["1"], "probe_answers": ["1"]}

    page = login(manager).post(
        reverse("votes-import", args=[pool.slug]), {"holds": "votes", "file": upload(votes), "fingerprint": "gpu-box"}
    )

    assert page.status_code == 422
    assert "Nothing was taken in" in page.content.decode()


def test_picks_from_another_machine_are_a_finished_run(pool, manager, login):
    factories.make_question(pool=pool, uid="a")
    pick = {
        "id": "a",
        "rank": 1,
        "cluster": 0,
        "set_size": 2,
        "acquisition_score": 2.0,
        "prediction_set": [{"answer": "1", "frequency": 0.5}],
        "tied_with": 0,
    }

    response = login(manager).post(reverse("votes-import", args=[pool.slug]), {"holds": "picks", "file": upload(pick)})

    assert response.status_code == 302
    assert response["Location"] == reverse("run", args=[SelectionRun.objects.get().pk])
    assert login(manager).get(response["Location"]).status_code == 200
