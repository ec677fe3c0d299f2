"""Freeze a pool's gold answers, and write them for a trainer."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling import policies
from labeling.audit import record_event
from labeling.engine.answers import policy_of
from labeling.engine.exports import GRADER_VERSION, RewardFileChecks, pass_rates, rewards_source, versions
from labeling.engine.variance import KEEPS, MIN_RUNS_TO_JUDGE, left_out, rollout_scores
from labeling.errors import LabelingError
from labeling.exports import CanonicalRow, ExportSettings, Manifest, Provenance, write_export
from labeling.exports.contract import BOXED_INSTRUCTION
from labeling.exports.writing import MANIFEST
from labeling.models import (
    Annotation,
    DatasetSnapshot,
    Export,
    GenerationSettings,
    GoldAnswer,
    ModelAnswers,
    Pick,
    Pool,
    Question,
    Round,
    SelectionRun,
    User,
)
from labeling.queries.variance import CATEGORIES


def create_snapshot(*, pool: Pool, by: User | None) -> DatasetSnapshot:
    """Freeze the pool's gold answers as they are now; the same answers again give the snapshot there is.

    Raises LabelingError when no question has a gold answer.
    """
    policies.check_can_manage(pool, by)
    rows = [row.to_json() for row in _canonical_rows(pool)]
    if not rows:
        raise LabelingError(
            _("No question of %(pool)s has a gold answer yet. Finish the labeling of a round first.") % {"pool": pool},
            code="nothing_to_export",
        )
    content = json.dumps({"rows": rows, "grader": GRADER_VERSION}, sort_keys=True).encode()
    with transaction.atomic():
        snapshot, is_new = DatasetSnapshot.objects.get_or_create(
            pool=pool,
            sha256=hashlib.sha256(content).hexdigest(),
            defaults={"rows": rows, "n_rows": len(rows), "grader_version": GRADER_VERSION, "created_by": by},
        )
        if is_new:
            record_event("snapshot.created", target=snapshot, by=by, pool=pool, rows=len(rows))
    return snapshot


def create_export(
    *,
    snapshot: DatasetSnapshot,
    format: str,
    by: User | None,
    out_dir: Path | None = None,
    instruction: str | None = None,
    keep: str = "all",
) -> Export:
    """Write a snapshot for one trainer; the same again writes the same bytes and gives the export there is.

    ``out_dir`` is below the media root by default. ``instruction`` is asked after each question; by default it is the
    one the run's model was asked with. ``keep`` leaves out questions by the variance of their stored rollouts:
    ``useful`` all on which the model is always right or always wrong, ``not_always_right`` only the former. Questions
    without stored rollouts stay in, and are counted. Raises ExportRefused, before anything is written, and
    LabelingError where ``keep`` leaves nothing.
    """
    policies.check_can_manage(snapshot.pool, by)
    if format not in Export.Format.values:
        raise LabelingError(
            _("There is no export format %(format)s. There are: %(formats)s.")
            % {"format": f"{format!r}", "formats": ", ".join(Export.Format.values)},
            code="no_such_format",
        )
    runs = _runs_of(snapshot)
    filtered = _filter(snapshot, keep)
    rows = [CanonicalRow.from_json(row) for row in snapshot.rows if row["uid"] not in filtered["left_out"]]
    if not rows:
        raise LabelingError(
            _(
                "Nothing is left to export: of %(n_rows)s questions with gold answers %(left_out)s. Keep all "
                "of them, or label others."
            )
            % {"n_rows": len(snapshot.rows), "left_out": filter_words(filtered)},
            code="nothing_to_export",
        )
    name = f"{snapshot.sha256[:12]}-{format}" + ("" if keep == "all" else f"-{keep}")
    directory = out_dir or settings.MEDIA_ROOT / "exports" / snapshot.pool.slug / name
    manifest = write_export(
        rows,
        format=format,
        out_dir=directory,
        settings=ExportSettings(instruction=_instruction_of(runs) if instruction is None else instruction),
        checks=RewardFileChecks(),
        rewards_source=rewards_source(),
        versions=versions(),
        provenance={
            "pool": snapshot.pool.name,
            "snapshot_sha256": snapshot.sha256,
            "answer_policy": snapshot.pool.answer_policy,
            "filter": filtered,
            "runs": [_run_as_json(run) for run in runs],
        },
    )
    return _record(snapshot, format, directory, manifest, filtered, by)


@transaction.atomic
def _record(
    snapshot: DatasetSnapshot,
    format: str,
    directory: Path,
    manifest: Manifest,
    filtered: dict[str, Any],
    by: User | None,
) -> Export:
    itself = {"name": MANIFEST, "bytes": len(manifest.to_bytes()), "sha256": manifest.sha256}
    export, is_new = Export.objects.get_or_create(
        snapshot=snapshot,
        format=format,
        directory=str(directory.resolve()),
        sha256=manifest.sha256,
        defaults={"files": [*manifest.files, itself], "filter": filtered, "created_by": by},
    )
    if is_new:
        record_event("export.created", target=export, by=by, pool=snapshot.pool, format=format, rows=manifest.n_rows)
    return export


def filter_words(filtered: dict[str, Any]) -> str:
    """Say what an export leaves out: "3 were left out (2 always right, 1 always wrong)"; "" where all is kept."""
    if filtered.get("keep", "all") == "all":
        return ""
    counts = Counter(filtered["left_out"].values())
    n, detail = counts.total(), ", ".join(f"{n} {CATEGORIES[category]}" for category, n in sorted(counts.items()))
    words = ngettext("%(n)s was left out", "%(n)s were left out", n) % {"n": n} + (f" ({detail})" if detail else "")
    if unknown := filtered["n_without_rollouts"]:
        stayed = ngettext(
            "%(n)s has no stored rollouts to tell by, and stayed in",
            "%(n)s have no stored rollouts to tell by, and stayed in",
            unknown,
        )
        words += "; " + stayed % {"n": unknown}
    return words


def _filter(snapshot: DatasetSnapshot, keep: str) -> dict[str, Any]:
    """Return which questions ``keep`` leaves out, with their category, and how many it cannot judge.

    A question is judged by the rollouts of the run that picked it, against its gold answer in the snapshot.
    """
    if keep not in KEEPS:
        raise LabelingError(
            _("One cannot keep %(keep)s. There are: %(keeps)s.") % {"keep": f"{keep!r}", "keeps": ", ".join(KEEPS)},
            code="no_such_filter",
        )
    filtered: dict[str, Any] = {"keep": keep, "left_out": {}}
    if keep == "all":
        return filtered
    gold_of = {row["uid"]: row["answer"] for row in snapshot.rows}
    by_run: dict[SelectionRun, list[Question]] = {}
    golds = GoldAnswer.objects.filter(question__pool=snapshot.pool).select_related(
        "question", "round__run__policy_model", "round__run__pool"
    )
    for gold in golds.order_by("question__uid"):
        if gold.question.uid in gold_of:
            by_run.setdefault(gold.round.run, []).append(gold.question)
    policy = policy_of(snapshot.pool)
    n_judged = 0
    for run, questions in by_run.items():
        scores = rollout_scores(run, [(each, gold_of[each.uid]) for each in questions], policy=policy)
        n_judged += sum(len(rewards) >= MIN_RUNS_TO_JUDGE for rewards in scores.rewards.values())
        filtered["left_out"] |= left_out(scores.rewards, keep)
    return filtered | {"n_without_rollouts": len(gold_of) - n_judged}


def _canonical_rows(pool: Pool) -> list[CanonicalRow]:
    golds = (
        GoldAnswer.objects.filter(question__pool=pool)
        .select_related("question", "round__run__policy_model", "round__run__pool")
        .annotate(
            n_annotations=Count(
                "question__slots__annotations",
                filter=Q(question__slots__annotations__in=Annotation.objects.counting().exclude(answer="")),
            ),
            was_shown=Exists(
                ModelAnswers.objects.filter(
                    run=OuterRef("round__run"), question_fingerprint=OuterRef("question__fingerprint")
                )
            ),
            was_changed=Exists(
                Annotation.objects.counting().filter(
                    slot__round=OuterRef("round"),
                    slot__question=OuterRef("question"),
                    origin=Annotation.Origin.AFTER_REVEAL,
                )
            ),
        )
        .order_by("question__uid")
    )
    by_run: dict[SelectionRun, dict[Question, str]] = {}
    for gold in golds:
        by_run.setdefault(gold.round.run, {})[gold.question] = gold.answer
    rates = {uid: rate for run, of_run in by_run.items() for uid, rate in pass_rates(run, of_run).items()}
    set_sizes = {
        (pick.run_id, pick.question_id): pick.set_size for pick in Pick.objects.filter(run__in=by_run).only("set_size")
    }
    return [
        CanonicalRow(
            uid=gold.question.uid,
            question=gold.question.text,
            answer=gold.answer,
            answer_kind=gold.answer_kind or gold.question.answer_kind,
            choices=tuple(gold.question.choices),
            metadata=gold.question.metadata,
            provenance=Provenance(
                set_size=set_sizes.get((gold.round.run_id, gold.question_id)),
                pass_rate=rates.get(gold.question.uid),
                n_annotations=gold.n_annotations,
                adjudicated=gold.source == GoldAnswer.Source.ADJUDICATION,
                blindness=_blindness(gold),
            ),
        )
        for gold in golds
    ]


def _blindness(gold: Any) -> str:
    """What the people behind a gold answer had seen of the model's answers when they gave theirs."""
    if gold.round.blindness == Round.Blindness.SHOWN_FIRST and gold.was_shown:
        return "shown_first"
    return "after_reveal" if gold.was_changed else "blind"


def _runs_of(snapshot: DatasetSnapshot) -> list[SelectionRun]:
    uids = [row["uid"] for row in snapshot.rows]
    return list(
        SelectionRun.objects.filter(
            rounds__gold_answers__question__pool=snapshot.pool, rounds__gold_answers__question__uid__in=uids
        )
        .select_related("policy_model")
        .distinct()
        .order_by("id")
    )


def _instruction_of(runs: list[SelectionRun]) -> str:
    """Return the instruction that the model of the latest run was asked with, where that is known."""
    for run in reversed(runs):
        known = GenerationSettings.objects.filter(pk=run.generation_fingerprint).first()
        if known is not None and "instruction" in known.parts:
            return str(known.parts["instruction"])
    return BOXED_INSTRUCTION


def _run_as_json(run: SelectionRun) -> dict[str, Any]:
    return {
        "config": run.config,
        "generation_fingerprint": run.generation_fingerprint,
        "model": run.policy_model.name if run.policy_model else None,
        "q_hat": run.q_hat,
        "q_hat_infinite": run.q_hat_infinite,
    }
