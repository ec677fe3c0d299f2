import pytest
from django.db import OperationalError, connection

from labeling.models import SelectionRun
from labeling.runs import worker
from labeling.runs.lease import claim_next


@pytest.mark.django_db(transaction=True)
def test_a_worker_outlives_a_database_that_was_away(new_run, scripted_model, monkeypatch):
    run = new_run(policy_model=scripted_model())
    outages = iter([True, False])

    def claim_or_fail():
        if next(outages, False):
            connection.errors_occurred = True
            raise OperationalError("the server closed the connection unexpectedly")
        return claim_next()

    monkeypatch.setattr(worker, "claim_next", claim_or_fail)
    worker.work(
        should_stop=lambda: SelectionRun.objects.get(pk=run.pk).status == SelectionRun.Status.FINISHED, poll_seconds=0
    )

    run.refresh_from_db()
    assert run.status == SelectionRun.Status.FINISHED


@pytest.mark.django_db
def test_a_worker_that_works_once_does_not_hide_an_outage(monkeypatch):
    def fail():
        raise OperationalError("the server closed the connection unexpectedly")

    monkeypatch.setattr(worker, "claim_next", fail)

    with pytest.raises(OperationalError):
        worker.work(once=True)
