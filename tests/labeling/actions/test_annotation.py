from uuid import uuid4

from labeling.actions.adjudication import claim_adjudication, decide
from labeling.actions.annotation import claim_slot, submit_annotation
from labeling.models import GoldAnswer
from labeling.queries.rounds import round_progress
from tests import factories


def test_happy_path(pool, annotator, other_annotator, adjudicator):
    round = factories.make_round(pool=pool, overlap=2, units=3)

    for user, answer in ((annotator, "1/2"), (other_annotator, "0.6")):
        slot = claim_slot(user=user, pool=pool)
        submit_annotation(slot=slot, answer=answer, idempotency_key=uuid4(), by=user)
    slot = claim_adjudication(user=adjudicator, round=round)
    decide(slot=slot, answer="0.5", idempotency_key=uuid4(), by=adjudicator)

    assert GoldAnswer.objects.get().answer == "1/2"
    assert round_progress(round=round).is_finished
