"""Loading what an address is about, as the request may see it: what belongs to others is not found."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework.request import Request

from labeling import policies
from labeling.errors import NotAllowed
from labeling.models import ApiToken, CalibrationSet, ImportBatch, Pool, Slot
from labeling.queries.own_answers import own_annotation
from labeling.queries.queue import slot_for

Row = TypeVar("Row", bound=Model)


def pools_of(request: Request) -> QuerySet[Pool]:
    """The pools in which the person has some role; of those the token's, where it is bound to one."""
    pools = Pool.objects.visible_to(request.user)
    bound = bound_to(request)
    return pools if bound is None else pools.filter(pk=bound.pk)


def bound_to(request: Request) -> Pool | None:
    """The one pool that the request's token opens; None where it opens all of its owner's."""
    return request.auth.pool if isinstance(request.auth, ApiToken) else None


def check_unbound(request: Request) -> None:
    """Refuse a token of one pool what concerns every pool."""
    if bound_to(request) is not None:
        raise NotAllowed(
            "This token is bound to one pool. Use one for all of your pools to create what pools share.",
            code="token_of_one_pool",
        )


def pool_or_404(request: Request, slug: str) -> Pool:
    """A pool in which the person has some role."""
    return get_object_or_404(pools_of(request), slug=slug)


def managed_pool(request: Request, slug: str) -> Pool:
    """A pool of the person's; NotAllowed when they are in it without managing it."""
    pool = pool_or_404(request, slug)
    policies.check_can_manage(pool, request.user)
    return pool


def found(request: Request, rows: QuerySet[Row], pk: Any, *, pool: str) -> Row:
    """The row, whose pool lies along the path ``pool``, if the person has some role in that pool."""
    return get_object_or_404(rows.select_related(pool).filter(**{f"{pool}__in": pools_of(request)}), pk=pk)


def managed(request: Request, rows: QuerySet[Row], pk: Any, *, pool: str) -> Row:
    """The same, of a pool that the person manages."""
    row: Any = found(request, rows, pk, pool=pool)
    of: Any = row
    for step in pool.split("__"):
        of = getattr(of, step)
    policies.check_can_manage(of, request.user)
    return row


def shown_slot(request: Request, slot_id: int) -> Slot:
    """A question that the person has been given, also when it has gone to somebody else since."""
    slot = slot_for(user=request.user, slot_id=slot_id)
    if slot is None or slot.is_adjudication or not pools_of(request).filter(pk=slot.pool.pk).exists():
        raise Http404
    policies.check_can_annotate(slot.pool, request.user)
    return slot


def shown_dispute(request: Request, slot_id: int) -> Slot:
    """A disagreement that the adjudicator has been given; never one on a question they answered themselves."""
    slot = slot_for(user=request.user, slot_id=slot_id)
    if slot is None or not slot.is_adjudication or not policies.can_adjudicate(slot.pool, request.user):
        raise Http404
    if own_annotation(slot, request.user) is not None or not pools_of(request).filter(pk=slot.pool.pk).exists():
        raise Http404
    return slot


def managed_import(request: Request, import_id: Any) -> ImportBatch:
    """An import into a pool that the person manages, or into a calibration set that they may change."""
    batch = get_object_or_404(
        ImportBatch.objects.select_related("pool", "calibration_set__pool", "new_set_pool"), pk=import_id
    )
    into = batch.target_set
    _check_seen(request, batch.pool if into is None else into.pool)
    if into is not None:
        policies.check_can_change_set(into, request.user)
    elif batch.pool is not None:
        policies.check_can_manage(batch.pool, request.user)
    return batch


def managed_set(request: Request, set_id: int) -> CalibrationSet:
    """A calibration set of a pool that the person manages, or for every pool, for whoever manages some."""
    calibration_set = get_object_or_404(CalibrationSet.objects.select_related("pool"), pk=set_id)
    _check_seen(request, calibration_set.pool)
    if calibration_set.pool is None:
        policies.check_can_manage_shared(request.user)
    else:
        policies.check_can_manage(calibration_set.pool, request.user)
    return calibration_set


def _check_seen(request: Request, pool: Pool | None) -> None:
    if pool is not None and not pools_of(request).filter(pk=pool.pk).exists():
        raise Http404
