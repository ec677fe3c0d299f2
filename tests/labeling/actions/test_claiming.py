from datetime import timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.contrib import admin
from django.db import IntegrityError, transaction
from django.utils import timezone

from labeling.actions.adjudication import claim_adjudication
from labeling.actions.annotation import claim_slot, extend_lease, release_slot, save_draft, skip_slot, submit_annotation
from labeling.actions.people import remove_member
from labeling.actions.rounds import close_round, pause_round, resume_round
from labeling.admin import MembershipAdmin
from labeling.errors import Conflict, LabelingError, NotAllowed
from labeling.models import AuditEvent, Draft, Membership, Role, Skip, Slot
from labeling.queries.own_answers import own_draft
from labeling.queries.queue import empty_queue
from tests import factories


def answer(slot, by, text="1"):
    return submit_annotation(slot=slot, answer=text, idempotency_key=uuid4(), by=by)


def let_lapse(slot):
    Slot.objects.filter(pk=slot.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_a_claim_holds_the_first_pick_for_half_an_hour(pool, annotator):
    round = factories.make_round(pool=pool, n_questions=3)

    slot = claim_slot(user=annotator, round=round)

    assert (slot.priority, slot.holder, slot.state) == (1, annotator, Slot.State.LEASED)
    assert timedelta(minutes=29) < slot.lease_until - timezone.now() <= timedelta(minutes=30)
    assert AuditEvent.objects.get(action="slot.claimed").actor == annotator


def test_claiming_again_returns_the_same_slot_and_extends_it(pool, annotator):
    factories.make_round(pool=pool, n_questions=3)
    first = claim_slot(user=annotator, pool=pool)
    let_lapse(first)

    again = claim_slot(user=annotator, pool=pool)

    assert again == first
    assert again.lease_until > timezone.now()
    assert AuditEvent.objects.filter(action="slot.claimed").count() == 1


def test_a_paused_round_gives_nothing_new_but_leaves_what_is_held(pool, annotator, other_annotator, manager):
    round = factories.make_round(pool=pool, n_questions=2)
    held = claim_slot(user=annotator, pool=pool)
    pause_round(round=round, by=manager)

    assert claim_slot(user=annotator, pool=pool) == held
    assert claim_slot(user=other_annotator, pool=pool) is None
    assert empty_queue(user=other_annotator, pool=pool).code == "paused"
    resume_round(round=round, by=manager)
    assert claim_slot(user=other_annotator, pool=pool) is not None


def test_only_annotators_claim(pool, manager, adjudicator, outsider):
    factories.make_round(pool=pool)

    for user in (manager, adjudicator, outsider):
        with pytest.raises(NotAllowed):
            claim_slot(user=user, pool=pool)


def test_no_question_comes_twice_to_one_person(pool, annotator, other_annotator):
    factories.make_round(pool=pool, n_questions=3, overlap=2)
    seen = []

    while slot := claim_slot(user=annotator, pool=pool):
        seen.append(slot.question)
        skip_slot(slot=slot, by=annotator) if len(seen) == 2 else answer(slot, annotator)

    assert len(seen) == len(set(seen)) == 3
    why = empty_queue(user=annotator, pool=pool)
    assert why.code == "seen"
    assert "4 answers" in why.message


def test_a_question_answered_as_surplus_does_not_come_back(pool, annotator, other_annotator):
    factories.make_round(pool=pool, overlap=2)
    slot = claim_slot(user=annotator, pool=pool)
    let_lapse(slot)
    claim_slot(user=other_annotator, pool=pool)

    assert answer(slot, annotator).surplus

    assert claim_slot(user=annotator, pool=pool) is None
    assert empty_queue(user=annotator, pool=pool).code == "seen"


def test_a_question_answered_in_an_earlier_round_does_not_come_back(pool, annotator, manager):
    round = factories.make_round(pool=pool, overlap=2)
    answer(claim_slot(user=annotator, pool=pool), annotator)
    close_round(round=round, by=manager)
    factories.make_round(run=round.run)

    assert claim_slot(user=annotator, pool=pool) is None


def test_a_lapsed_slot_goes_to_the_next_person(pool, annotator, other_annotator):
    factories.make_round(pool=pool)
    slot = claim_slot(user=annotator, pool=pool)
    assert claim_slot(user=other_annotator, pool=pool) is None
    why = empty_queue(user=other_annotator, pool=pool)
    assert (why.code, why.n_held, why.next_free_at) == ("held", 1, slot.lease_until)

    let_lapse(slot)

    assert empty_queue(user=other_annotator, pool=pool).code == "free"
    assert claim_slot(user=other_annotator, pool=pool) == slot
    assert AuditEvent.objects.filter(action="slot.claimed")[0].details == {"lost_by": annotator.pk}


def test_the_queue_says_that_all_is_done(pool, annotator):
    assert empty_queue(user=annotator, pool=pool).code == "no_round"
    round = factories.make_round(pool=pool)
    answer(claim_slot(user=annotator, pool=pool), annotator)

    assert claim_slot(user=annotator, round=round) is None
    assert empty_queue(user=annotator, round=round).code == "all_done"


def test_a_skipped_slot_goes_back_and_skipping_again_changes_nothing(pool, annotator, other_annotator):
    factories.make_round(pool=pool)
    slot = claim_slot(user=annotator, pool=pool)

    skip_slot(slot=slot, by=annotator)
    claimed = claim_slot(user=other_annotator, pool=pool)
    skip_slot(slot=slot, by=annotator)

    slot.refresh_from_db()
    assert claimed == slot
    assert slot.holder == other_annotator
    assert Skip.objects.count() == 1
    assert AuditEvent.objects.filter(action="slot.skipped").count() == 1


def test_an_answered_question_cannot_be_skipped(pool, annotator):
    factories.make_round(pool=pool)
    slot = claim_slot(user=annotator, pool=pool)
    answer(slot, annotator)

    with pytest.raises(Conflict) as refused:
        skip_slot(slot=slot, by=annotator)
    assert refused.value.code == "already_answered"


def test_a_released_slot_is_free_and_keeps_the_draft(pool, annotator, other_annotator):
    factories.make_round(pool=pool)
    slot = claim_slot(user=annotator, pool=pool)
    save_draft(slot=slot, draft={"answer": "nearly"}, by=annotator)

    release_slot(slot=slot, by=annotator)
    release_slot(slot=slot, by=annotator)
    theirs = claim_slot(user=other_annotator, pool=pool)

    assert own_draft(theirs, other_annotator).content == {}
    release_slot(slot=theirs, by=other_annotator)
    mine = claim_slot(user=annotator, pool=pool)
    assert own_draft(mine, annotator).content == {"answer": "nearly"}


def test_extending_works_until_somebody_else_has_it(pool, annotator, other_annotator):
    factories.make_round(pool=pool)
    slot = claim_slot(user=annotator, pool=pool)
    let_lapse(slot)
    assert extend_lease(slot=slot, by=annotator).lease_until > timezone.now()
    let_lapse(slot)
    claim_slot(user=other_annotator, pool=pool)

    with pytest.raises(Conflict) as refused:
        extend_lease(slot=slot, by=annotator)

    assert refused.value.code == "slot_lost"


def test_drafts_are_saved_with_their_time_also_after_the_slot_is_lost(pool, annotator, other_annotator):
    factories.make_round(pool=pool)
    slot = claim_slot(user=annotator, pool=pool)
    let_lapse(slot)
    save_draft(slot=slot, draft={"answer": "4"}, by=annotator)
    slot.refresh_from_db()
    assert slot.lease_until > timezone.now()  # typing keeps it
    let_lapse(slot)
    claim_slot(user=other_annotator, pool=pool)

    draft = save_draft(slot=slot, draft={"answer": "42"}, by=annotator)

    assert draft.content == {"answer": "42"}
    assert timezone.now() - draft.saved_at < timedelta(minutes=1)
    assert own_draft(slot, other_annotator).content == {}
    slot.refresh_from_db()
    assert slot.holder == other_annotator


def test_a_draft_is_refused_to_strangers_and_beyond_measure(pool, annotator, other_annotator):
    factories.make_round(pool=pool)
    slot = claim_slot(user=annotator, pool=pool)

    with pytest.raises(NotAllowed):
        save_draft(slot=slot, draft={"answer": "1"}, by=other_annotator)
    with pytest.raises(LabelingError) as refused:
        save_draft(slot=slot, draft={"answer": "1" * 200_000}, by=annotator)

    assert refused.value.code == "draft_too_long"
    assert Draft.objects.get().content == {}


def test_querysets_are_scoped_to_the_person(pool, annotator, other_annotator, manager, outsider):
    round = factories.make_round(pool=pool, n_questions=2)
    slot = claim_slot(user=annotator, pool=pool)
    foreign = factories.make_round()

    assert list(Slot.objects.held_by(annotator)) == [slot]
    for user in (annotator, manager):
        assert list(type(round).objects.visible_to(user)) == [round]
    assert list(type(round).objects.managed_by(manager)) == [round]
    assert not type(round).objects.managed_by(annotator).exists()
    assert not type(round).objects.visible_to(outsider).exists()
    root = factories.make_user(is_superuser=True)
    assert set(type(round).objects.visible_to(root)) == {round, foreign}


@pytest.mark.parametrize(
    "broken",
    [
        {"state": "open", "holder": True, "lease_until": False},
        {"state": "leased", "holder": False, "lease_until": True},
        {"state": "leased", "holder": True, "lease_until": False},
        {"state": "done", "holder": False, "lease_until": False},
    ],
)
def test_the_database_refuses_a_slot_in_an_impossible_state(pool, annotator, broken):
    slot = factories.make_round(pool=pool).slots.get()

    with pytest.raises(IntegrityError), transaction.atomic():
        Slot.objects.filter(pk=slot.pk).update(
            state=broken["state"],
            holder=annotator if broken["holder"] else None,
            lease_until=timezone.now() if broken["lease_until"] else None,
        )


def test_the_database_refuses_a_second_held_slot_and_a_question_twice(pool, annotator):
    round = factories.make_round(pool=pool, n_questions=2, overlap=2)
    first, twin, other, _ = round.slots.order_by("priority", "id")
    factories.make_held_slot(round=round, user=annotator, slot=first)

    with pytest.raises(IntegrityError, match=r"holder|slot_one_held_at_a_time"), transaction.atomic():
        factories.make_held_slot(round=round, user=annotator, slot=other)
    Slot.objects.filter(pk=first.pk).update(state="done", lease_until=None)
    with pytest.raises(IntegrityError, match=r"holder|slot_question_once_per_person"), transaction.atomic():
        factories.make_held_slot(round=round, user=annotator, slot=twin)


def test_members_who_left_can_no_longer_claim(pool, annotator):
    factories.make_round(pool=pool)
    pool.memberships.filter(user=annotator, role=Role.ANNOTATOR).delete()

    with pytest.raises(NotAllowed):
        claim_slot(user=annotator, pool=pool)


@pytest.mark.parametrize("by_the_back_office", [False, True])
def test_who_is_removed_gives_the_question_back_and_cannot_hold_it(
    pool, annotator, other_annotator, manager, by_the_back_office
):
    round = factories.make_round(pool=pool)
    slot = claim_slot(user=annotator, round=round)
    save_draft(slot=slot, draft={"answer": "halfway"}, by=annotator)

    if by_the_back_office:
        superuser = factories.make_user(is_superuser=True, is_staff=True)
        request = SimpleNamespace(user=superuser)
        MembershipAdmin(Membership, admin.site).delete_model(request, pool.memberships.get(user=annotator))
    else:
        remove_member(pool=pool, user=annotator, role=Role.ANNOTATOR, by=manager)

    assert claim_slot(user=other_annotator, round=round) == slot
    for attempt in (
        lambda: save_draft(slot=slot, draft={"answer": "more"}, by=annotator),
        lambda: extend_lease(slot=slot, by=annotator),
        lambda: skip_slot(slot=slot, by=annotator),
        lambda: release_slot(slot=slot, by=annotator),
        lambda: answer(slot, annotator),
    ):
        with pytest.raises(NotAllowed):
            attempt()
    assert own_draft(slot, annotator).content == {"answer": "halfway"}


def test_a_removed_adjudicator_gives_the_disagreement_back_and_keeps_no_role_they_have_not_lost(pool, manager):
    both = factories.make_user(pool=pool, roles=(Role.ANNOTATOR, Role.ADJUDICATOR))
    round = factories.make_round(pool=pool, n_questions=2)
    dispute, question = round.slots.order_by("id")
    Slot.objects.filter(pk=dispute.pk).update(purpose=Slot.Purpose.ADJUDICATION)
    dispute, question = claim_adjudication(user=both, round=round), claim_slot(user=both, round=round)

    remove_member(pool=pool, user=both, role=Role.ADJUDICATOR, by=manager)

    dispute.refresh_from_db()
    question.refresh_from_db()
    assert (dispute.state, dispute.holder) == (Slot.State.OPEN, None)
    assert (question.state, question.holder) == (Slot.State.LEASED, both)
