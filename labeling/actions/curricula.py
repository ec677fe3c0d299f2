"""Curricula: make one for a snapshot, hand questions to a trainer, take in the rewards it reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from labeling import policies
from labeling.audit import record_event
from labeling.engine.answers import policy_of
from labeling.engine.curricula import OpenCurriculum, curriculum_kinds, fresh_curriculum, open_curriculum
from labeling.engine.variance import rollout_scores
from labeling.errors import Conflict, EngineFailure, LabelingError
from labeling.models import (
    Curriculum,
    DatasetSnapshot,
    GoldAnswer,
    Pool,
    Proposal,
    Question,
    RewardEvent,
    SelectionRun,
    User,
)

IDS_PER_QUERY = 500  # SQLite allows few more variables in one query


@dataclass(frozen=True)
class RewardReport:
    """Rewards as somebody reported them; ``step`` None: the step of the latest proposal."""

    event_id: str
    uid: str
    rewards: Sequence[float | None]
    step: int | None = None


@dataclass
class Received:
    """What became of the reports of one request. ``rejected``: (position, code, message)."""

    n_accepted: int = 0
    n_repeated: int = 0
    rejected: list[tuple[int, str, str]] = field(default_factory=list)


def create_curriculum(
    *,
    pool: Pool,
    snapshot: DatasetSnapshot,
    kind: str,
    name: str,
    by: User | None,
    seed: int = 0,
    options: dict[str, Any] | None = None,
    uses_stored_rollouts: bool = True,
) -> Curriculum:
    """Make a curriculum over the questions of a snapshot, whose beliefs start from the pool's stored rollouts.

    Raises LabelingError for a kind that does not exist and a name that is taken, EngineFailure for options that mean
    nothing. Rollouts that were not graded before are graded first, in no transaction, and that is kept.
    """
    policies.check_can_manage(pool, by)
    kinds = [each.key for each in curriculum_kinds()]
    if kind not in kinds:
        raise LabelingError(
            _("There is no curriculum %(kind)s. There are: %(kinds)s.")
            % {"kind": f"{kind!r}", "kinds": ", ".join(kinds)},
            code="no_such_curriculum",
        )
    name = name.strip()
    if not name:
        raise LabelingError(
            _("The curriculum has no name. Give it one, such as the training run's."), code="name_missing"
        )
    taken = Conflict(
        _("%(pool)s has a curriculum %(name)s already. Choose another name.") % {"pool": pool, "name": f"{name!r}"},
        code="name_taken",
    )
    if Curriculum.objects.filter(pool=pool, name=name).exists():
        raise taken
    curriculum = Curriculum(
        pool=pool,
        snapshot=snapshot,
        kind=kind,
        name=name,
        seed=seed,
        options=options or {},
        prior=_stored_rollouts(snapshot) if uses_stored_rollouts else {},
        created_by=by,
    )
    curriculum.state = fresh_curriculum(curriculum).state()  # and so options that mean nothing are refused here
    with transaction.atomic():
        try:
            with transaction.atomic():
                curriculum.save()
        except IntegrityError as error:  # somebody was faster
            raise taken from error
        record_event("curriculum.created", target=curriculum, by=by, pool=pool, kind=kind, questions=snapshot.n_rows)
    return curriculum


@transaction.atomic
def propose(*, curriculum: Curriculum, k: int, by: User | None, idempotency_key: str = "") -> Proposal:
    """Choose k different questions to roll out now; a key that was used before gets the same questions again.

    Raises EngineFailure when there are no k questions, and Conflict where the key asked for another number before.
    """
    policies.check_can_manage(curriculum.pool, by)
    locked = _locked(curriculum)
    if idempotency_key:
        earlier = Proposal.objects.filter(curriculum=locked, idempotency_key=idempotency_key).first()
        if earlier is not None and len(earlier.uids) != k:
            raise Conflict(
                _(
                    "The key %(idempotency_key)s has been used to ask for %(n_uids)s questions, and now for %(k)s. "
                    "Use a new key for each proposal, and the same key only to ask for the same again."
                )
                % {"idempotency_key": f"{idempotency_key!r}", "n_uids": len(earlier.uids), "k": k},
                code="key_reused",
            )
        if earlier is not None:
            return earlier
    opened = open_curriculum(locked)
    uids = opened.propose(k)
    _save_state(locked, opened)
    return Proposal.objects.create(curriculum=locked, idempotency_key=idempotency_key, uids=uids)


@transaction.atomic
def refill(*, curriculum: Curriculum, by: User | None) -> tuple[list[str], list[str]]:
    """Return questions to roll out in place of those the curriculum dropped, and those of the batch to train on."""
    policies.check_can_manage(curriculum.pool, by)
    locked = _locked(curriculum)
    opened = open_curriculum(locked)
    more, kept = opened.refill()
    _save_state(locked, opened)
    return more, kept


@transaction.atomic
def observe(*, curriculum: Curriculum, reports: Sequence[RewardReport], by: User | None) -> Received:
    """Take in rewards. A report whose id came before counts once; one that cannot be is rejected, the others count.

    Requests for one curriculum wait for each other, so that its state holds every stored reward exactly once.
    """
    policies.check_can_manage(curriculum.pool, by)
    locked = _locked(curriculum)
    opened = open_curriculum(locked)
    known = _known_ids(locked, [report.event_id for report in reports])
    latest_step = max(0, locked.proposals.count() - 1)
    received = Received()
    new: list[RewardEvent] = []
    for position, report in enumerate(reports):
        if report.event_id in known:
            received.n_repeated += 1
            continue
        step = latest_step if report.step is None else report.step
        try:
            opened.observe(report.uid, report.rewards, step)
        except EngineFailure as error:
            received.rejected.append((position, error.code, error.message))
            continue
        known.add(report.event_id)
        new.append(
            RewardEvent(
                curriculum=locked,
                event_id=report.event_id,
                question_uid=report.uid,
                step=step,
                rewards=list(report.rewards),
            )
        )
    if new:
        RewardEvent.objects.bulk_create(new, batch_size=IDS_PER_QUERY)
        _save_state(locked, opened)
    received.n_accepted = len(new)
    return received


def _locked(curriculum: Curriculum) -> Curriculum:
    return (
        Curriculum.objects.select_for_update(no_key=True, of=("self",))
        .select_related("snapshot", "pool")
        .get(pk=curriculum.pk)
    )


def _save_state(curriculum: Curriculum, opened: OpenCurriculum) -> None:
    curriculum.state = opened.state()
    curriculum.save(update_fields=["state"])


def _known_ids(curriculum: Curriculum, ids: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for start in range(0, len(ids), IDS_PER_QUERY):
        some = ids[start : start + IDS_PER_QUERY]
        found.update(curriculum.events.filter(event_id__in=some).values_list("event_id", flat=True))
    return found


def _stored_rollouts(snapshot: DatasetSnapshot) -> dict[str, list[int]]:
    """Return successes and failures by uid, of the rollouts that the questions' runs have stored."""
    counts: dict[str, list[int]] = {}
    answers = {row["uid"]: row["answer"] for row in snapshot.rows}
    by_run: dict[SelectionRun, list[Question]] = {}
    golds = GoldAnswer.objects.filter(question__pool=snapshot.pool).select_related(
        "question", "round__run__policy_model", "round__run__pool"
    )
    for gold in golds:
        if gold.question.uid in answers:
            by_run.setdefault(gold.round.run, []).append(gold.question)
    policy = policy_of(snapshot.pool)
    for run, questions in by_run.items():
        scores = rollout_scores(run, [(each, answers[each.uid]) for each in questions], policy=policy)
        for uid, rewards in scores.rewards.items():
            n_right = round(sum(rewards))
            counts[uid] = [n_right, len(rewards) - n_right]
    return counts
