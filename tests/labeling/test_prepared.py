"""A prepared query gives what its queryset gives."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models import CharField, Count, DateTimeField, UUIDField
from django.utils import timezone

from labeling.actions.annotation import claim_slot, save_draft, submit_annotation
from labeling.models import Annotation, AuditEvent, Draft, Skip, Slot
from labeling.prepared import Parameter, Prepared, PreparedAbout, PreparedInsert, PreparedUpdate
from tests import factories


def test_instances_come_with_what_stands_beside_them(pool, annotator, django_assert_num_queries):
    factories.make_round(pool=pool, n_questions=2)
    slot = claim_slot(user=annotator, pool=pool)
    prepared = Prepared(lambda: Slot.objects.loaded().filter(pk=Parameter("slot")))

    prepared.rows(slot=slot.pk)
    with django_assert_num_queries(1):
        found = prepared.first(slot=slot.pk)
        beside = (found.round.run.pool, found.question, found.round.guideline, found.calibration_item)
    assert found == slot
    assert beside == (pool, slot.question, None, None)
    assert {field.attname: getattr(found, field.attname) for field in Slot._meta.fields} == {
        field.attname: getattr(slot, field.attname) for field in Slot._meta.fields
    }
    assert "report" in found.round.run.get_deferred_fields()
    found.lease_until = timezone.now()
    found.save()  # it knows that it is stored
    assert Slot.objects.get(pk=slot.pk).lease_until == found.lease_until


def test_columns_are_converted_as_their_fields_say(pool, annotator):
    factories.make_round(pool=pool)
    slot = claim_slot(user=annotator, pool=pool)
    save_draft(slot=slot, draft={"answer": "½"}, by=annotator)
    drafts = PreparedAbout(lambda slot: Draft.objects.about(slot).filter(author=Parameter("user")))

    assert drafts.first(slot, user=annotator.pk).content == {"answer": "½"}
    assert drafts.first(slot, user=annotator.pk + 1) is None
    times = Prepared(lambda: Draft.objects.filter(round=Parameter("round")).values_list("saved_at", "content"))
    assert times.rows(round=slot.round_id) == list(Draft.objects.values_list("saved_at", "content"))


def test_values_are_sent_as_their_fields_say(pool, annotator):
    round = factories.make_round(pool=pool)
    slot = claim_slot(user=annotator, pool=pool)
    annotation = submit_annotation(slot=slot, answer="4", idempotency_key=uuid4(), by=annotator)
    skip = Skip.objects.create(round=round, question=factories.make_question(pool=pool), user=annotator)
    skips = Prepared(lambda: Skip.objects.filter(created_at__gt=Parameter("since", DateTimeField())))
    with_key = Prepared(lambda: Annotation.objects.filter(idempotency_key=Parameter("key", UUIDField())))

    assert skips.rows(since=skip.created_at - timedelta(seconds=1)) == [skip]
    assert skips.rows(since=skip.created_at) == []
    assert with_key.rows(key=annotation.idempotency_key) == [annotation]


def test_rows_are_added_as_their_model_would_save_them(pool, annotator, django_assert_num_queries):
    factories.make_round(pool=pool)
    slot = claim_slot(user=annotator, pool=pool)
    answer = {"slot": slot, "annotator": annotator, "answer": "½", "version": 1}
    annotation = Annotation(**answer, idempotency_key=uuid4(), seconds_spent=1.5)
    with django_assert_num_queries(1):
        PreparedInsert(Annotation).add(annotation)
    assert annotation.pk is not None
    assert annotation.created_at is not None
    found = Annotation.objects.get(pk=annotation.pk)
    assert {field.attname: getattr(found, field.attname) for field in Annotation._meta.fields} == {
        field.attname: getattr(annotation, field.attname) for field in Annotation._meta.fields
    }
    with pytest.raises(TypeError, match="append-only"):
        annotation.save()  # it knows that it is stored

    events = PreparedInsert(AuditEvent)
    for details in ({"a": [1, None]}, {}):
        event = AuditEvent(action="x", target_type="y", target_id="1", details=details)
        events.add(event)
        assert AuditEvent.objects.get(pk=event.pk).details == details


def test_an_update_changes_what_its_queryset_finds_and_counts_it(pool, annotator):
    factories.make_round(pool=pool, n_questions=3)
    slot = claim_slot(user=annotator, pool=pool)
    update = PreparedUpdate(
        lambda: (
            Slot.objects.held_by(Parameter("user")).filter(round=Parameter("round")),
            {"state": Slot.State.OPEN, "holder": None, "lease_until": None, "priority": Parameter("priority")},
        )
    )
    assert update.run(user=annotator.pk + 1, round=slot.round_id, priority=7) == 0
    assert update.run(user=annotator.pk, round=slot.round_id, priority=7) == 1
    slot.refresh_from_db()
    assert (slot.state, slot.holder_id, slot.priority) == (Slot.State.OPEN, None, 7)
    assert Slot.objects.filter(priority=7).count() == 1


def test_the_sql_is_worked_out_once(pool, annotator):
    round = factories.make_round(pool=pool, n_questions=3)
    built = []

    def build():
        built.append(1)
        return Slot.objects.filter(round=Parameter("round")).order_by().values_list("state").annotate(Count("pk"))

    states = Prepared(build)
    assert states.rows(round=round.pk) == [("open", 3)]
    claim_slot(user=annotator, pool=pool)
    assert sorted(states.rows(round=round.pk)) == [("leased", 1), ("open", 2)]
    assert states.rows(round=round.pk + 1) == []
    assert len(built) == 1


def test_a_prepared_query_answers_as_the_one_it_was_made_from(pool, annotator, django_assert_num_queries):
    round = factories.make_round(pool=pool, n_questions=3)
    lapsed = factories.make_held_slot(round=round, user=annotator, lapsed=True)
    prepared = Prepared(
        lambda: Slot.objects.filter(
            round=Parameter("round"),
            state=Parameter("state", CharField()),
            lease_until__lte=Parameter("now", DateTimeField()),
        ).values_list("pk")
    )

    for _ in range(2):
        with django_assert_num_queries(1):
            assert prepared.rows(round=round.pk, state="leased", now=timezone.now()) == [(lapsed.pk,)]
    assert prepared.rows(round=round.pk, state="leased", now=lapsed.lease_until - timedelta(seconds=1)) == []
    assert prepared.rows(round=round.pk + 1, state="leased", now=timezone.now()) == []
