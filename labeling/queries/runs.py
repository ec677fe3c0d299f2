"""What pages and commands show of selection runs while they are under way."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, QuerySet
from django.utils import timezone

from labeling.engine.internals import needs_internals
from labeling.engine.selection import needs_trajectories, reads_answers
from labeling.models import GoldAnswer, Pool, Question, RecordedVotes, SelectionRun, Slot
from labeling.models.work import Work

Status = SelectionRun.Status
MODEL_STAGES = (
    "opening the model",
    *(f"{where}: {stage}" for where in ("calibration", "pool") for stage in ("trajectories", "probes", "outcomes")),
)
NO_WORKER_AFTER = timedelta(seconds=15)


@dataclass(frozen=True)
class StageLine:
    """One stage of a run. ``share`` of it done, from 0 to 1; ``rate`` in completions (or questions) a second and
    ``seconds_left`` while it is under way and something has been done."""

    name: str
    done: int
    total: int
    seconds: float
    share: float
    is_current: bool
    is_done: bool
    rate: float | None = None
    seconds_left: float | None = None


@dataclass(frozen=True)
class WorkProgress:
    """How far long work is. ``is_live``: it may still change by itself, so ask again."""

    status: str
    status_label: str
    is_live: bool
    is_stopping: bool  # cancelled, and the chunk in flight is being finished
    needs_worker: bool  # has waited for a while and nobody took it
    stages: list[StageLine]
    seconds: float
    error_code: str
    error: str


def model_stages(run: SelectionRun) -> list[str]:
    """The stages in which a run asks its model, in order."""
    config, answers = run.config, reads_answers(run.config)
    left_out = {
        "calibration": run.calibration_set_id is None or not answers,
        "trajectories": run.calibration_set_id is None and not needs_trajectories(config),
        "probes": not config["n_probes"] or not answers,
        "outcomes": not config["n_outcomes"] or not answers,
    }
    is_raced = run.race != SelectionRun.Race.OFF
    asked = [
        stage
        for stage in MODEL_STAGES
        if not any(left_out.get(part, False) for part in stage.split(": "))
        and not (is_raced and stage == MODEL_STAGES[-1])
    ]
    return [*asked, *(["pool: reading internals"] if needs_internals(config) else ())]


def runs_of(pool: Pool) -> QuerySet[SelectionRun]:
    """The pool's runs, newest first, with what a list shows of them; ``n_picks`` counts the picks."""
    return (
        SelectionRun.objects.filter(pool=pool)
        .select_related("calibration_set", "policy_model", "created_by")
        .annotate(n_picks=Count("picks"))
        .defer("report", "traceback")
    )


def run_progress(run: SelectionRun) -> WorkProgress:
    """Describe how far the run is; needs no query beyond the row itself."""
    asked = model_stages(run) if run.policy_model_id else ()
    is_raced = run.race != SelectionRun.Race.OFF
    stages = [*(["embedding"] if run.embedder else ()), *asked, "scoring", *(["racing"] if is_raced else ())]
    return work_progress(run, stages)


def work_progress(work: Work, expected: Sequence[str]) -> WorkProgress:
    """Describe how far the work is, whose stages are expected to be these; needs no query beyond the row itself."""
    now = timezone.now()
    is_live = work.status in {Status.QUEUED, Status.RUNNING}
    lapsed_at = work.lease_until if work.lease_until and work.lease_until <= now else None
    waits_since = lapsed_at or work.started_at or work.created_at
    return WorkProgress(
        status=work.status,
        status_label=work.get_status_display(),
        is_live=is_live,
        is_stopping=work.status == Status.RUNNING and work.cancel_requested,
        needs_worker=(work.status == Status.QUEUED or lapsed_at is not None) and now - waits_since > NO_WORKER_AFTER,
        stages=_stage_lines(work, expected, now if work.status == Status.RUNNING and not lapsed_at else None),
        seconds=sum(stage["seconds"] for stage in work.stages),
        error_code=work.error_code,
        error=work.error,
    )


def _stage_lines(run: Work, expected: Sequence[str], now: datetime | None) -> list[StageLine]:
    """The stages that were entered and those still to come. ``now`` is None unless a worker is at it."""
    entered = {stage["name"]: stage for stage in run.stages}
    lines = []
    for name in [*expected, *(name for name in entered if name not in expected)]:
        stage = entered.get(name)
        if stage is None:
            lines.append(StageLine(name, 0, 0, 0.0, 1.0 if run.status == Status.FINISHED else 0.0, False, False))
            continue
        done, total = stage["done"], stage["total"]
        is_current = now is not None and name == run.stage and done < total
        rate = left = None
        if now is not None and is_current and done > stage["done_before"]:
            elapsed = (now - datetime.fromisoformat(stage["started_at"])).total_seconds()
            rate = (done - stage["done_before"]) / max(elapsed, 0.001)
            left = (total - done) / rate
        lines.append(
            StageLine(
                name=name,
                done=done,
                total=total,
                seconds=stage["seconds"],
                share=done / total if total else 1.0,
                is_current=is_current,
                is_done=done >= total,
                rate=rate,
                seconds_left=left,
            )
        )
    return lines


def questions_spoken_for(pool: Pool) -> dict[str, str]:
    """The uids of questions not to be picked again, each with why: ``already_labeled`` or ``in_a_round``."""
    in_a_round = Question.objects.in_pool(pool).filter(
        pk__in=Slot.objects.filter(purpose=Slot.Purpose.LABEL).exclude(state=Slot.State.VOID).values("question")
    )
    labeled = GoldAnswer.objects.filter(question__pool=pool)
    reasons = dict.fromkeys(in_a_round.values_list("uid", flat=True), "in_a_round")
    return reasons | dict.fromkeys(labeled.values_list("question__uid", flat=True), "already_labeled")


def picks_gone_on_from(run: SelectionRun) -> set[str]:
    """The uids that earlier rounds picked, as far back as the run goes on from one."""
    earlier, uids = run.continues, set[str]()
    while earlier is not None:
        uids |= set(earlier.picks.values_list("question__uid", flat=True))
        earlier = earlier.continues
    return uids


def questions_chosen(pool: Pool, limit: int | None) -> list[tuple[str, str, object]]:
    """The uid, fingerprint and cluster in the metadata of a run's questions, in the order they came in.

    Under a limit always the same ones, whatever that order was.
    """
    found = pool.questions.order_by("pk").values_list("uid", "fingerprint", "metadata__cluster")
    if limit is None:
        return list(found)
    kept = set(sorted((row[0] for row in found), key=lambda uid: hashlib.sha256(uid.encode()).digest())[:limit])
    return [row for row in found if row[0] in kept]


def recorded_clusters(pool: Pool, generation_fingerprint: str) -> dict[str, object]:
    """The clusters in the votes recorded for the pool's questions, by question fingerprint; None where one has none."""
    recorded = RecordedVotes.objects.filter(
        generation_fingerprint=generation_fingerprint, question_fingerprint__in=pool.questions.values("fingerprint")
    )
    return dict(recorded.values_list("question_fingerprint", "votes__cluster"))


def runs_to_go_on_from(pool: Pool) -> QuerySet[SelectionRun]:
    """The finished runs of a pool, newest first."""
    return runs_of(pool).filter(status=Status.FINISHED).order_by("-created_at", "-id")


def recorded_settings_of(pool: Pool) -> list[tuple[str, int]]:
    """The generation fingerprints under which votes are recorded for the pool's questions, with how many have some."""
    return list(
        RecordedVotes.objects.filter(question_fingerprint__in=pool.questions.values("fingerprint"))
        .values_list("generation_fingerprint")
        .annotate(n=Count("pk"))
        .order_by("-n", "generation_fingerprint")
    )


def run_as_json(run: SelectionRun) -> dict[str, object]:
    """The run as commands print it; picks as in a picks file."""
    picks = [
        {
            "id": pick.question.uid,
            "rank": pick.rank,
            "cluster": pick.cluster,
            "set_size": pick.set_size,
            "acquisition_score": pick.acquisition_score,
            "prediction_set": pick.prediction_set,
            "tied_with": pick.tied_with,
            "tie_break_reason": pick.tie_break,
            "taken_by": pick.taken_by,
            "inclusion_probability": pick.inclusion_probability,
        }
        for pick in run.picks.select_related("question").order_by("rank")
    ]
    return {
        "run": run.pk,
        "status": run.status,
        "error": {"code": run.error_code, "message": run.error} if run.error_code else None,
        "picks": picks,
        "report": run.report,
    }
