"""Loading what a page is about, as the person asking may see it: the ids of others are not found."""

from uuid import UUID

from django.http import Http404
from django.shortcuts import get_object_or_404

from labeling import policies
from labeling.models import (
    ApiToken,
    Budget,
    CalibrationSet,
    Comparison,
    Curriculum,
    Export,
    ImportBatch,
    Invitation,
    Pool,
    Round,
    SelectionRun,
    Slot,
    User,
)
from labeling.queries.own_answers import own_annotation
from labeling.queries.queue import slot_for
from labeling.queries.tokens import tokens_for


def pool_or_404(user: User, pool_slug: str) -> Pool:
    """A pool in which the person has some role."""
    return get_object_or_404(Pool.objects.visible_to(user), slug=pool_slug)


def managed_pool(user: User, pool_slug: str) -> Pool:
    """A pool of the person's; NotAllowed when they are in it without managing it."""
    pool = pool_or_404(user, pool_slug)
    policies.check_can_manage(pool, user)
    return pool


def managed_run(user: User, run_id: int) -> SelectionRun:
    """A run of a pool that the person manages."""
    run = get_object_or_404(
        SelectionRun.objects.select_related("pool", "calibration_set", "policy_model").filter(
            pool__in=Pool.objects.visible_to(user)
        ),
        pk=run_id,
    )
    policies.check_can_manage(run.pool, user)
    return run


def managed_comparison(user: User, comparison_id: int) -> Comparison:
    """A comparison on a run of a pool that the person manages."""
    comparison = get_object_or_404(
        Comparison.objects.select_related("run__pool", "run__policy_model", "created_by")
        .defer("traceback", "run__report", "run__traceback")
        .filter(run__pool__in=Pool.objects.visible_to(user)),
        pk=comparison_id,
    )
    policies.check_can_manage(comparison.run.pool, user)
    return comparison


def managed_budget(user: User, budget_id: int) -> Budget:
    """A budget of a pool that the person manages."""
    budget = get_object_or_404(
        Budget.objects.select_related("pool").filter(pool__in=Pool.objects.visible_to(user)), pk=budget_id
    )
    policies.check_can_manage(budget.pool, user)
    return budget


def round_or_404(user: User, round_id: int) -> Round:
    """A round of a pool in which the person has some role."""
    return get_object_or_404(
        Round.objects.select_related("run__pool", "budget", "guideline").filter(
            run__pool__in=Pool.objects.visible_to(user)
        ),
        pk=round_id,
    )


def shown_slot(user: User, slot_id: int) -> Slot:
    """A question that the person has been given, also when it has gone to somebody else since.

    NotAllowed when they are no longer an annotator of its pool.
    """
    slot = slot_for(user=user, slot_id=slot_id)
    if slot is None or slot.is_adjudication:
        raise Http404
    policies.check_can_annotate(slot.pool, user)
    return slot


def shown_dispute(user: User, slot_id: int) -> Slot:
    """A disagreement that the adjudicator has been given; never one on a question they answered themselves."""
    slot = slot_for(user=user, slot_id=slot_id)
    if slot is None or not slot.is_adjudication or not policies.can_adjudicate(slot.pool, user):
        raise Http404
    if own_annotation(slot, user) is not None:
        raise Http404
    return slot


def managed_invitation(user: User, invitation_id: int) -> Invitation:
    """An invitation to a pool that the person manages."""
    invitation = get_object_or_404(
        Invitation.objects.select_related("pool").filter(pool__in=Pool.objects.visible_to(user)), pk=invitation_id
    )
    policies.check_can_manage(invitation.pool, user)
    return invitation


def managed_import(user: User, import_id: UUID) -> ImportBatch:
    """An import into a pool that the person manages, or into a calibration set that they may change."""
    batches = ImportBatch.objects.select_related("pool", "calibration_set__pool", "new_set_pool")
    batch = get_object_or_404(batches, pk=import_id)
    into = batch.target_set
    pool = batch.pool if into is None else into.pool
    if pool is not None and not Pool.objects.visible_to(user).filter(pk=pool.pk).exists():
        raise Http404
    if into is not None:
        policies.check_can_change_set(into, user)
    elif pool is not None:
        policies.check_can_manage(pool, user)
    return batch


def managed_calibration_set(user: User, set_id: int) -> CalibrationSet:
    """A calibration set of a pool that the person manages, or for every pool, for whoever manages some."""
    calibration_set = get_object_or_404(CalibrationSet.objects.select_related("pool"), pk=set_id)
    if calibration_set.pool is None:
        policies.check_can_manage_shared(user)
    elif not Pool.objects.visible_to(user).filter(pk=calibration_set.pool.pk).exists():
        raise Http404
    else:
        policies.check_can_manage(calibration_set.pool, user)
    return calibration_set


def managed_curriculum(user: User, curriculum_id: int) -> Curriculum:
    """A curriculum of a pool that the person manages."""
    curriculum = get_object_or_404(
        Curriculum.objects.select_related("pool", "snapshot")
        .defer("state")
        .filter(pool__in=Pool.objects.visible_to(user)),
        pk=curriculum_id,
    )
    policies.check_can_manage(curriculum.pool, user)
    return curriculum


def seen_token(user: User, token_id: int) -> ApiToken:
    """A token of the person's own, or of a pool that they manage."""
    return get_object_or_404(tokens_for(user, revoked=True), pk=token_id)


def managed_export(user: User, export_id: int) -> Export:
    """An export of a pool that the person manages."""
    export = get_object_or_404(
        Export.objects.select_related("snapshot__pool").filter(snapshot__pool__in=Pool.objects.visible_to(user)),
        pk=export_id,
    )
    policies.check_can_manage(export.snapshot.pool, user)
    return export
