"""Saving what a run found: everything at once, and only while the lease is held."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone

from labeling.engine.selection import Selected
from labeling.models import Pick, QuestionScore, SelectionRun
from labeling.runs.lease import Lease


@transaction.atomic
def save_results(lease: Lease, selected: Selected, report: Mapping[str, object]) -> None:
    """Finish the run with its scores, picks, threshold and report. Raises LeaseLost, and then nothing is saved."""
    lease.end(
        SelectionRun.Status.FINISHED,
        q_hat=selected.q_hat,
        q_hat_infinite=selected.q_hat_infinite,
        report=report,
        race_history=selected.race_history,
        finished_at=timezone.now(),
    )
    QuestionScore.objects.bulk_create(selected.scores, batch_size=1000)
    Pick.objects.bulk_create(selected.picks)
