"""Taking, showing and answering a question costs the same whatever the pool, the round, and what one has answered."""

from uuid import uuid4

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from labeling.actions.annotation import claim_slot, submit_annotation
from labeling.actions.claiming import _OPEN
from labeling.models import Question, Slot
from tests import factories


def n_queries_of_a_pair(client, round, annotator, *, after):
    """How many queries it takes to be given a question, and to answer it and be shown the next."""
    for _ in range(after):
        slot = claim_slot(user=annotator, round=round)
        submit_annotation(slot=slot, answer="7", idempotency_key=uuid4(), by=annotator)
    htmx = {"headers": {"HX-Request": "true"}}
    with CaptureQueriesContext(connection) as claiming:
        given = client.post(reverse("annotate", args=[round.pk]), **htmx)
    form = {"answer": "7", "idempotency_key": str(uuid4())}
    with CaptureQueriesContext(connection) as answering:
        shown = client.post(f"{given['HX-Push-Url']}submit/", form, **htmx)
    assert given.status_code == shown.status_code == 200
    assert shown["HX-Push-Url"] != given["HX-Push-Url"]
    return len(claiming), len(answering)


def test_the_queries_are_as_many_for_a_large_pool_as_for_a_small_one(pool, annotator, client, settings):
    settings.ASSAY_UNDO_SECONDS = 10_000  # what can be taken back is looked up, on a slow machine too
    client.force_login(annotator, backend="django.contrib.auth.backends.ModelBackend")
    first_round = factories.make_round(pool=pool, n_questions=2, overlap=2)
    n_queries_of_a_pair(client, first_round, annotator, after=0)  # what a session asks for once
    small_round = factories.make_round(pool=pool, n_questions=7, overlap=2)
    small = n_queries_of_a_pair(client, small_round, annotator, after=5)

    Question.objects.bulk_create(
        Question(pool=pool, uid=f"more{n}", fingerprint=f"f{n}", text=f"{n}?", answer_kind="number") for n in range(500)
    )
    picked = list(Question.objects.filter(uid__startswith="more")[:30])
    large_round = factories.make_round(run=factories.make_run(pool=pool, questions=picked), overlap=2)
    large = n_queries_of_a_pair(client, large_round, annotator, after=5)

    assert large == small


def test_the_next_question_comes_out_of_an_index_in_order(pool, annotator):
    factories.make_round(pool=pool, n_questions=3)
    if connection.vendor != "sqlite":
        return  # PostgreSQL reads a small table as a whole, rightly

    with CaptureQueriesContext(connection) as asked:
        rows = _OPEN.rows(round=1, purpose=Slot.Purpose.LABEL.value, user=annotator.pk)
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + asked.captured_queries[0]["sql"])
        plan = [row[3] for row in cursor.fetchall()]

    assert len(rows) <= 1
    assert "slot_queue" in plan[0]
    assert not any("TEMP B-TREE FOR ORDER BY" in step for step in plan)
    assert not any(step.startswith("SCAN") for step in plan)
