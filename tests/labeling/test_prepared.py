"""A prepared query answers as the one it was made from."""

from datetime import timedelta

from django.db.models import CharField, DateTimeField
from django.utils import timezone

from labeling.models import Slot
from labeling.prepared import Parameter, Prepared
from tests import factories


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
