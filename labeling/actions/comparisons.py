"""Comparisons of strategies: asking for one, cancelling it, and trying it again."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from labeling import policies
from labeling.actions import work
from labeling.audit import record_event
from labeling.engine.comparing import check_strategies
from labeling.errors import LabelingError
from labeling.models import Comparison, SelectionRun, User


@transaction.atomic
def create_comparison(
    *, run: SelectionRun, strategies: Sequence[str], budget: int, n_bootstrap: int = 100, by: User | None
) -> Comparison:
    """Queue a comparison of strategies on the answers of a finished run; a worker takes it up. It asks no model.

    ``by`` is None from the shell. Refused: a run that has not finished, a strategy that does not exist, a budget
    beyond the questions the run looked at.
    """
    policies.check_can_manage(run.pool, by)
    if run.status != SelectionRun.Status.FINISHED:
        raise LabelingError(
            _(
                "Run %(run)s is %(status)s; strategies are compared on the answers of a finished run. Wait for "
                "it, or choose another."
            )
            % {"run": run.pk, "status": run.get_status_display().lower()},
            code="invalid_comparison",
        )
    check_strategies(strategies)
    n_questions = run.scores.count()
    if not 1 <= budget <= n_questions:
        raise LabelingError(
            _(
                "Run %(run)s looked at %(n_questions)s questions; %(budget)s cannot be picked from them. Lower "
                "the budget."
            )
            % {"run": run.pk, "n_questions": n_questions, "budget": budget},
            code="invalid_comparison",
        )
    comparison = Comparison.objects.create(
        run=run, strategies=list(strategies), budget=budget, n_bootstrap=n_bootstrap, created_by=by
    )
    record_event("comparison.created", target=comparison, by=by, pool=run.pool, strategies=list(strategies))
    return comparison


@transaction.atomic
def cancel_comparison(comparison: Comparison, *, by: User | None) -> Comparison:
    """Stop a comparison, or take it out of the queue. Cancelling twice changes nothing."""
    policies.check_can_manage(comparison.run.pool, by)
    if work.cancel(comparison):
        record_event("comparison.cancelled", target=comparison, by=by, pool=comparison.run.pool)
    return comparison


@transaction.atomic
def retry_comparison(comparison: Comparison, *, by: User | None) -> Comparison:
    """Queue a failed or cancelled comparison again."""
    policies.check_can_manage(comparison.run.pool, by)
    work.retry(comparison)
    record_event("comparison.retried", target=comparison, by=by, pool=comparison.run.pool)
    return comparison
