"""One pool with something of everything, whose questions and answers try to break out of the page."""

import hashlib
import json
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.files.base import ContentFile
from django.test import Client

from labeling.actions import adjudication, annotation, people, pools, rounds
from labeling.actions.curricula import RewardReport, create_curriculum, observe
from labeling.actions.exports import create_snapshot
from labeling.actions.imports import preview_import
from labeling.actions.tokens import create_token
from labeling.models import (
    Annotation,
    Comparison,
    Export,
    Pool,
    PracticeAnswer,
    Reveal,
    Role,
    Round,
    SelectionRun,
    Slot,
    User,
)
from selector.comparing.comparison import compare_strategies
from selector.config import SelectionConfig
from tests import factories
from tests.selector.simulation import simulate_votes

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> $\\href{javascript:alert(3)}{x}$ [y](javascript:alert(4))"
)
HX = {"HTTP_HX_REQUEST": "true"}
REPORT = {
    "strategy": {"title": "set size by cluster"},
    "calibration": {
        "n": 40,
        "n_absent": 3,
        "smallest_attainable_alpha": 0.0976,
        "degenerate": True,
        "smallest_useful_alpha": {"alpha": "0.15", "note": "chosen after seeing the data"},
        "coverage_check": {
            "available": True,
            "band": [0.8, 1.0],
            "below_band": False,
            "n_fitted": 20,
            "hits": 18,
            "n_counted": 20,
            "coverage": 0.9,
        },
    },
    "set_size_histogram": {"1": 5, "3": 2},
    "warnings": [{"code": "degenerate_calibration", "message": "Every answer ever seen is in the sets."}],
    "comparison": {
        "unlike": ["entropy"],
        "tests": {"entropy": {"pool_mean": 0.4, "calibration_mean": 0.2, "p_value": 0.001}},
    },
    "pool": {"ineligible": {"too_few_readable": {"n": 2}}},
}


@dataclass
class World:
    """What the tests need to name."""

    pool: Pool
    run: SelectionRun
    comparison: Comparison
    round: Round
    held: Slot  # by the annotator
    dispute: Slot  # by the adjudicator
    kwargs: dict[str, dict[str, Any]]  # by URL name, where the URL takes any


def make_finished_run(*, pool: Pool, n_picks: int = 1, **fields: object) -> SelectionRun:
    """A finished run with a report, hostile picks, and a map."""
    run = factories.make_run(
        pool=pool,
        generation_fingerprint="f" * 64,
        config={"alpha": "0.1", "budget": n_picks, "lam": 0.02},
        q_hat=-0.2,
        report=REPORT,
        calibration_set=fields.pop("calibration_set", None),
        questions=[
            factories.make_question(pool=pool, text=f"{HOSTILE} What is {i} + 1?", answer_kind="number")
            for i in range(n_picks)
        ],
        **fields,
    )
    for pick in run.picks.all():
        pick.prediction_set = [{"answer": "7</code><script>x()</script>", "frequency": 0.625}]
        pick.cluster, pick.tied_with, pick.tie_break, pick.taken_by = 1, 3, "distinct_probe_answers", "cluster"
        pick.save()
        run.scores.create(
            question=pick.question,
            set_size=2,
            acquisition_score=2.0,
            entropy=0.5,
            n_readable=20,
            n_distinct=3,
            cluster=1,
            x=0.1,
            y=-0.25,
        )
    return run


def make_comparison(*, run: SelectionRun, **fields: object) -> Comparison:
    """A finished comparison of strategies on made-up answers to the run's questions, three of which are labeled."""
    questions = [score.question for score in run.scores.select_related("question")]
    made = simulate_votes(len(questions), seed=2, n_probes=4, n_outcomes=4)
    votes = [replace(each, uid=question.uid) for each, question in zip(made, questions, strict=True)]
    keys, budget = ["const", "random", "entropy", "v2", "scf", "shift"], fields.pop("budget", 2)
    result = compare_strategies(
        votes,
        simulate_votes(20, seed=1, prefix="c", n_probes=4, n_outcomes=4),
        strategies=keys,
        config=SelectionConfig.preset(budget=budget, alpha="0.3", n_probes=4, n_outcomes=4, min_readable=0.0),
        embeddings=np.random.default_rng(0).normal(size=(len(votes), 4)).astype(np.float32),
        truths={each.uid: each.truth for each in votes[:3]},
        n_bootstrap=3,
        n_random=20,
    )
    return Comparison.objects.create(
        run=run, strategies=keys, budget=budget, n_bootstrap=3, status="finished", result=result, **fields
    )


def make_export(*, pool: Pool, directory: Path) -> Export:
    """An export of one file, without the trainers' graders having been asked."""
    content = b'{"question": "1 + 2", "answer": "3"}\n'
    (directory / "train.jsonl").write_bytes(content)
    return Export.objects.create(
        snapshot=create_snapshot(pool=pool, by=None),
        format="jsonl",
        directory=str(directory),
        files=[{"name": "train.jsonl", "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}],
        sha256="0" * 64,
    )


@pytest.fixture(autouse=True)
def _no_collected_static_files(settings):
    settings.WHITENOISE_AUTOREFRESH = True  # else it warns that collectstatic has not been run


@pytest.fixture
def world(pool, manager, annotator, other_annotator, adjudicator, outsider, settings, tmp_path) -> World:
    settings.MEDIA_ROOT = tmp_path
    factories.make_pool(name="Elsewhere", manager=outsider)
    pools.save_guideline(pool=pool, text=f"Write numbers. {HOSTILE}", by=manager)
    calibration_set = factories.make_calibration_set(pool=pool, n_items=2)
    factories.make_policy_model(name="tiny", engine="transformers", model="assay-tiny")
    run = make_finished_run(pool=pool, n_picks=4, calibration_set=calibration_set)
    budget = factories.make_budget(pool=pool, units=20)
    round = rounds.open_round(run=run, budget=budget, overlap=2, by=manager)
    for user, answers in ((annotator, ("3", "12")), (other_annotator, ("3", f"13 {HOSTILE}"))):
        for answer in answers:
            slot = annotation.claim_slot(round=round, user=user)
            annotation.submit_annotation(
                slot=slot,
                answer=answer,
                note=HOSTILE,
                confirm_unreadable=True,
                idempotency_key=uuid.uuid4(),
                by=user,
            )
    revealed = Annotation.objects.filter(annotator=annotator).order_by("id")[0]
    Reveal.objects.create(annotation=revealed, answers=[HOSTILE, "3", r"\frac{7}{2}"], own=1)
    practised = PracticeAnswer.objects.create(
        round=round, item=calibration_set.items.first(), annotator=annotator, answer=HOSTILE, against=HOSTILE
    )
    held = annotation.claim_slot(round=round, user=annotator)
    annotation.save_draft(slot=held, draft={"answer": HOSTILE, "unsure": True, "note": HOSTILE}, by=annotator)
    dispute = adjudication.claim_adjudication(round=round, user=adjudicator)
    assert held is not None
    assert dispute is not None
    lines = [json.dumps({"id": "n1", "question": HOSTILE}), '{"broken', json.dumps({"question": ""})]
    batch = preview_import(
        file=ContentFile("\n".join(lines).encode()), filename=f"{HOSTILE}.jsonl", pool=pool, by=manager
    )
    export = make_export(pool=pool, directory=tmp_path)
    comparison = make_comparison(run=run)
    curriculum = create_curriculum(pool=pool, snapshot=export.snapshot, kind="insight", name=HOSTILE[:100], by=manager)
    reports = [RewardReport(f"{step}", export.snapshot.rows[0]["uid"], [1.0, 0.0], step) for step in range(3)]
    observe(curriculum=curriculum, reports=reports, by=manager)
    api_token, _ = create_token(pool=pool, name=HOSTILE[:100], by=manager)
    invitation, token = people.create_invitation(pool=pool, role=Role.ANNOTATOR, by=manager)
    of_pool, of_run, of_round = {"pool_slug": pool.slug}, {"run_id": run.pk}, {"round_id": round.pk}
    of_question = {**of_round, "question_id": dispute.question_id}
    of_comparison = {"comparison_id": comparison.pk}
    of_slot, of_import = {"slot_id": held.pk}, {"import_id": batch.pk}
    of_curriculum = {"curriculum_id": curriculum.pk}
    return World(
        pool=pool,
        run=run,
        comparison=comparison,
        round=round,
        held=held,
        dispute=dispute,
        kwargs={
            **dict.fromkeys(
                [
                    "pool", "pool-questions", "pool-guideline", "pool-people", "invitation-new", "member-remove",
                    "pool-import", "votes-import", "pool-runs", "run-new", "budget-new", "pool-export", "export-new",
                    "pool-variance",
                ],
                of_pool,
            ),
            **dict.fromkeys(["run", "run-progress", "run-cancel", "run-retry", "run-complete"], of_run),
            **dict.fromkeys(["run-scores", "round-new"], of_run),
            "run-pair": of_pool,
            "run-question": {**of_run, "question_id": dispute.question_id},
            **dict.fromkeys(["pool-comparisons", "comparison-new"], of_pool),
            **dict.fromkeys(
                [
                    "comparison", "comparison-progress", "comparison-cancel", "comparison-retry", "comparison-json",
                ],
                of_comparison,
            ),
            **dict.fromkeys(["round", "round-status", "annotate", "adjudicate"], of_round),
            **dict.fromkeys(
                ["slot", "slot-draft", "slot-read-as", "slot-submit", "slot-unanswerable", "slot-skip"], of_slot
            ),
            **dict.fromkeys(["slot-undo", "slot-revise", "slot-flag", "slot-guideline"], of_slot),
            "round-guideline": of_round,
            **dict.fromkeys(["practice", "answer-buy"], of_round),
            **dict.fromkeys(["question-answers", "answers-meaning"], of_question),
            "practice-answer": {"answer_id": practised.pk},
            "slot-reveal": {"slot_id": revealed.slot_id},
            **dict.fromkeys(["import-preview", "import-commit", "import-discard"], of_import),
            "set-variance": {"set_id": calibration_set.pk},
            **dict.fromkeys(["pool-curricula", "curriculum-new"], of_pool),
            "curriculum": of_curriculum,
            "token-revoke": {"token_id": api_token.pk},
            "budget": {"budget_id": budget.pk},
            "budget-add": {"budget_id": budget.pk},
            "adjudication": {"slot_id": dispute.pk},
            "export-file": {"export_id": export.pk, "filename": export.files[0]["name"]},
            "join": {"token": token},
            "invitation-revoke": {"invitation_id": invitation.pk},
        },
    )  # fmt: skip


@pytest.fixture
def login():
    """Return a function that gives a client logged in as the user."""

    def as_user(user: User | None) -> Client:
        client = Client()
        if user is not None:
            client.force_login(user)
        return client

    return as_user
