from datetime import timedelta
from time import monotonic, sleep

import pytest
from django.utils import timezone

from labeling.models import SelectionRun, StoredVerdict
from labeling.runs.lease import LeaseLost, claim, claim_next

Status = SelectionRun.Status


@pytest.fixture
def run(new_run, scripted_model) -> SelectionRun:
    return new_run(policy_model=scripted_model())


def let_lapse(run: SelectionRun) -> None:
    SelectionRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_of_two_claims_one_wins(run):
    first, second = claim(run.pk), claim(run.pk)

    assert first is not None
    assert second is None
    run.refresh_from_db()
    assert (run.status, run.lease_token, run.attempts) == (Status.RUNNING, first.token, 1)


def test_the_run_that_waited_longest_comes_first(run, new_run, scripted_model):
    new_run(policy_model=scripted_model())

    assert claim_next().pk == run.pk


def test_a_lapsed_run_is_taken_over_and_its_old_worker_can_write_nothing(run):
    old = claim(run.pk)
    let_lapse(run)
    new = claim_next()

    with pytest.raises(LeaseLost), old.saving():
        StoredVerdict.objects.create(key="k", verdict="different")
    with pytest.raises(LeaseLost):
        old.end(Status.FINISHED)

    assert old.is_lost
    assert not StoredVerdict.objects.exists()
    run.refresh_from_db()
    assert (run.status, run.lease_token, run.attempts) == (Status.RUNNING, new.token, 2)


def test_saving_something_clears_the_count_of_attempts(run):
    with claim(run.pk).saving():
        pass

    run.refresh_from_db()
    assert run.attempts == 0


@pytest.mark.parametrize("status", [Status.FINISHED, Status.FAILED, Status.CANCELLED])
def test_an_ended_run_is_not_claimed(run, status):
    claim(run.pk).end(status)

    assert claim(run.pk) is None
    assert claim_next() is None


@pytest.mark.django_db(transaction=True)
def test_the_heartbeat_keeps_the_lease_and_notices_its_loss(run, settings):
    settings.ASSAY_LEASE_SECONDS = 0.3
    lease = claim(run.pk)
    until = run.lease_until = SelectionRun.objects.get(pk=run.pk).lease_until

    with lease.heartbeat():
        sleep(0.5)
        run.refresh_from_db()
        assert run.lease_until > until
        assert not lease.is_lost

        SelectionRun.objects.filter(pk=run.pk).update(lease_token="somebody else's")
        deadline = monotonic() + 5
        while not lease.is_lost and monotonic() < deadline:
            sleep(0.05)

    assert lease.is_lost
