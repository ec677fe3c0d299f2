"""Take a picture of every page, at desk and phone width, in light and dark, of an application full of made-up data.

    .venv/bin/python tests/journeys/screenshots.py OUTPUT_DIR [--only NAME ...] [--gallery DIR | --axe]

It ends with status 1 where a page complains in its console, scrolls sideways or, with --axe, has a violation of
serious or critical impact in axe-core; --axe takes no pictures. --gallery keeps small copies of the pictures in DIR,
with a page that shows them: `make screenshots` makes docs/screenshots.

It uses a database of its own below OUTPUT_DIR and the system's Chromium (CHROMIUM names another).
"""

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[2]
MOST_HEIGHT = 2400  # of a kept picture, in pixels
WIDTHS = {"desk": (1280, 900), "phone": (390, 844)}
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FINGERPRINT = "5d1f7c02a9b34e10" * 4
ANOTHER_FINGERPRINT = "9c40e2b7715fa8d3" * 4


def made_up_question(rng: random.Random) -> tuple[str, str, list[str]]:
    """Return a question, its answer, and wrong answers that a model might give."""
    a, b, c = rng.randint(2, 9), rng.randint(2, 9), rng.randint(2, 12)
    kind = rng.randrange(8)
    if kind == 0:
        return (
            rf"Let $f(x) = \frac{{{a}x + {b}}}{{x - {c}}}$ for $x \neq {c}$. "
            "For how many integers $n$ is $f(n)$ an integer?",
            str(2 * sum((a * c + b) % d == 0 for d in range(1, a * c + b + 1))),
            [str(a + b), str(c), str(a * c + b), str(2 * c)],
        )
    if kind == 1:
        return (
            rf"Evaluate $$\int_0^{{{a}}} \left({b}x^2 + {c}\right)\,dx.$$ "
            "Give your answer as a fraction in lowest terms.",
            rf"\frac{{{b * a**3 + 3 * c * a}}}{{3}}",
            [rf"\frac{{{b * a**3}}}{{3}}", str(b * a * a + c), rf"\frac{{{b * a**3 + c * a}}}{{3}}", str(a * b * c)],
        )
    if kind == 2:
        return (
            f"A shop sells pencils at ${a}.{b}0 each and notebooks at ${c}. Ivy buys {b} pencils and {a} notebooks and "
            f"pays with a $200 bill. How much change does she get, in dollars?",
            f"{200 - b * (a + b / 10) - a * c:g}",
            [f"{200 - b * a - a * c}", f"{b * (a + b / 10) + a * c:g}", f"{200 - a * c}"],
        )
    if kind == 3:
        return (
            rf"The sequence $(u_n)$ satisfies $u_1 = {a}$ and $u_{{n+1}} = u_n + {b}n$ "
            rf"for all $n \ge 1$. Find $u_{{{c}}}$.",
            str(a + b * c * (c - 1) // 2),
            [str(a + b * c), str(a + b * c * (c + 1) // 2), str(a + b * (c - 1)), str(a * c)],
        )
    if kind == 4:
        return (
            rf"What is the determinant of $\begin{{pmatrix}} {a} & {b} \\ {c} & {a + c} \end{{pmatrix}}$?",
            str(a * (a + c) - b * c),
            [str(a * (a + c) + b * c), str(b * c - a * (a + c)), str(a * c - b)],
        )
    if kind == 5:
        return (
            f"In how many ways can {a + 3} people sit around a round table if {b} of them insist on sitting together? "
            "Seatings that differ by a rotation are the same.",
            str(a * b * 6),
            [str(a * 24), str(b * 120), str(a * b), "720", "144"],
        )
    if kind == 6:
        return (
            f"A fair die is rolled {a} times. What is the probability that the product of the rolls is divisible by "
            f"${b}$?",
            rf"\frac{{{a}}}{{{a + b}}}",
            [rf"1 - \left(\frac{{1}}{{2}}\right)^{{{a}}}", rf"\frac{{1}}{{{b}}}", "0.5", rf"\frac{{{b}}}{{36}}"],
        )
    return (
        rf"Solve for $x$: $\log_{{{a}}}(x + {b}) + \log_{{{a}}}(x - {b}) = 2$.",
        rf"\sqrt{{{a * a + b * b}}}",
        [rf"\pm\sqrt{{{a * a + b * b}}}", str(a + b), rf"\sqrt{{{a * a - b}}}"],
    )


def made_up_votes(rng: random.Random, truth: str, wrong: list[str]) -> dict[str, list[str]]:
    """Votes of a model that sometimes knows, sometimes wavers, and rarely has no idea."""
    skill = rng.choice([0.9, 0.75, 0.5, 0.35, 0.25, 0.15, 0.1])
    answers = [truth if rng.random() < skill else rng.choice([*wrong, *wrong, ""]) for _ in range(40)]
    return {"outcome_answers": answers[:20], "probe_answers": answers[20:]}


def seed_labeled_pool(by: Any, n: int = 160) -> Any:
    """Make a pool whose questions were all labeled, with answers of a model that mostly knows or never does."""
    from django.core.files.base import ContentFile

    from labeling.actions import budgets, people, rounds
    from labeling.actions.imports import commit_import, preview_import
    from labeling.models import GoldAnswer, Pick, RecordedVotes, SelectionRun

    rng = random.Random(23)
    made = {question[0]: question for question in (made_up_question(rng) for _ in range(4 * n))}
    pool = people.create_pool(name="Entrance exams 2024", by=by, description="Labeled in three rounds last autumn.")
    lines = [json.dumps({"id": f"ex-{i:03}", "question": text}) for i, text in enumerate(list(made)[:n])]
    file = ContentFile("\n".join(lines).encode())
    commit_import(batch=preview_import(file=file, filename="exams.jsonl", pool=pool, by=by), by=by)
    run = SelectionRun.objects.create(
        pool=pool,
        generation_fingerprint=ANOTHER_FINGERPRINT,
        status="finished",
        created_by=by,
        config={"n_outcomes": 8},
    )
    questions = list(pool.questions.all())
    for rank, question in enumerate(questions, start=1):
        Pick.objects.create(run=run, question=question, rank=rank, set_size=2, acquisition_score=2.0)
    budget = budgets.grant_budget(pool=pool, name="Autumn 2024", units=n, by=by)
    round = rounds.open_round(run=run, budget=budget, overlap=1, by=by)
    for number, question in enumerate(questions):
        _, truth, wrong = made[question.text]
        GoldAnswer.objects.create(question=question, round=round, answer=truth, source=GoldAnswer.Source.SINGLE)
        skill = rng.choice([0, 0, 0, 1, 1, 1, 1, 0.1, 0.3, 0.6, 0.85])
        answers = [truth if rng.random() < skill else rng.choice([*wrong, ""]) for _ in range(8)]
        if number % 27:  # a few were never asked
            RecordedVotes.objects.create(
                question_fingerprint=question.fingerprint,
                question_uid=question.uid,
                generation_fingerprint=ANOTHER_FINGERPRINT,
                votes={"id": question.uid, "probe_answers": [], "outcome_answers": answers},
            )
    return pool


def seed_curriculum(pool: Any, by: Any, n_steps: int = 90) -> Any:
    """Make a curriculum over the pool's labeled questions, most of which a made-up trainer comes to solve."""
    from labeling.actions.curricula import RewardReport, create_curriculum, observe, propose
    from labeling.actions.exports import create_snapshot

    rng = random.Random(29)
    snapshot = create_snapshot(pool=pool, by=by)
    curriculum = create_curriculum(pool=pool, snapshot=snapshot, kind="insight", name="Qwen 7B, lr 1e-6", by=by)
    skill = {row["uid"]: rng.choice([0.0, 0.05, 0.2, 0.4, 0.7, 0.9]) for row in snapshot.rows}
    for step in range(n_steps):
        reports = []
        for uid in propose(curriculum=curriculum, k=16, by=by).uids:
            rewards = [float(rng.random() < skill[uid]) for _ in range(8)]
            skill[uid] += 0.25 * skill[uid] * (1 - skill[uid])
            reports.append(RewardReport(f"{step}-{uid}", uid, rewards, step))
        for uid in rng.sample(sorted(skill), 2):
            skill[uid] *= 0.6  # what is not visited is forgotten
        observe(curriculum=curriculum, reports=reports, by=by)
    return curriculum


def seed_reveals(round: Any) -> dict[str, Any]:
    """Show everybody in the round the model's answers after theirs; return an answer undecided and one changed."""
    from labeling.actions.reveals import change_answer, keep_answer, reveal_after
    from labeling.models import Annotation

    made = [reveal_after(each) for each in Annotation.objects.filter(slot__round=round).order_by("id")]
    reveals = [each for each in made if each is not None]
    undecided = max((each for each in reveals if each.own is not None), key=lambda each: len(each.answers))
    reveals.remove(undecided)
    changed = next(each for each in reveals if each.annotation.note and len(each.answers) > 1)
    for each in reveals:
        by = each.annotation.annotator
        if each == changed:
            position = (each.own + 1) % len(each.answers) if each.own is not None else 0
            why = "I had missed a case"
            change_answer(reveal=each, chosen=position, why=why, idempotency_key=uuid.uuid4(), by=by)
        else:
            keep_answer(reveal=each, by=by)
    return {"undecided": undecided.annotation, "changed": changed.annotation}


def seed_shown_first(pool: Any, by: Any, annotator: Any) -> Any:
    """Open a round of one question beside which the model's answers stand from the start; return the slot held."""
    from labeling.actions import annotation, budgets, people, rounds
    from labeling.models import Pick, Question, RecordedVotes, Role, SelectionRun

    people.add_member(pool=pool, user=annotator, role=Role.ANNOTATOR, by=None)
    text = "Revenue rose from \\$4.2 billion to \\$5.0 billion. By what percentage did it grow, to one decimal?"
    question = Question.objects.create(pool=pool, uid="fi-001", fingerprint="5f" * 32, text=text, answer_kind="percent")
    RecordedVotes.objects.create(
        question_fingerprint=question.fingerprint,
        question_uid=question.uid,
        generation_fingerprint=FINGERPRINT,
        votes={"id": question.uid, "probe_answers": ["16%"], "outcome_answers": ["19.0%", "19.05%", "16.0%", "0.8"]},
    )
    run = SelectionRun.objects.create(
        pool=pool, generation_fingerprint=FINGERPRINT, status="finished", created_by=by, config={"n_outcomes": 4}
    )
    Pick.objects.create(run=run, question=question, rank=1, set_size=3, acquisition_score=3.0)
    budget = budgets.grant_budget(pool=pool, name="Trial", units=2, by=by)
    round = rounds.open_round(run=run, budget=budget, blindness="shown_first", by=by)
    return annotation.claim_slot(round=round, user=annotator)


def seed_quality(by: Any, people_here: dict[str, Any]) -> dict[str, Any]:
    """Make a round with checks and practice, answered by four people of whom one errs often; return its pages."""
    from labeling.actions import adjudication, annotation, budgets, people, practice, revising, rounds
    from labeling.models import (
        CalibrationItem,
        CalibrationSet,
        GoldAnswer,
        Pick,
        Question,
        Role,
        SelectionRun,
        Slot,
        User,
    )

    rng = random.Random(5)
    made = {question[0]: question for question in (made_up_question(rng) for _ in range(400))}
    texts = list(made)
    pool = people.create_pool(name="Number theory", by=by, description="Twelve questions, answered by four people.")
    pool.answer_policy = {"units": "required"}
    pool.save()
    keys = CalibrationSet.objects.create(name="Number theory keys", pool=pool, created_by=by)
    for i, text in enumerate(texts[:60]):
        CalibrationItem.objects.create(
            calibration_set=keys, uid=f"nk-{i}", fingerprint=f"{i:04}" + "c" * 60, text=text, answer=made[text][1]
        )
    run = SelectionRun.objects.create(
        pool=pool,
        generation_fingerprint=FINGERPRINT,
        status="finished",
        created_by=by,
        calibration_set=keys,
        config={"n_outcomes": 4},
    )
    for rank, text in enumerate(texts[60:72], start=1):
        question = Question.objects.create(pool=pool, uid=f"nt-{rank}", fingerprint=f"{rank:04}" + "d" * 60, text=text)
        Pick.objects.create(run=run, question=question, rank=rank, set_size=3, acquisition_score=3.0)
    budget = budgets.grant_budget(pool=pool, name="Spring", units=29, by=by)
    round = rounds.open_round(
        run=run, budget=budget, overlap=2, check_rate=0.5, n_practice=2, practice_may_be_skipped=True, by=by
    )
    errors = {"ana": 0.02, "ben": 0.1, "cem": 0.5, "dora": 0.1}
    annotators = []
    for name in errors:
        user = people_here.get(name) or User.objects.create_user(name)
        people.add_member(pool=pool, user=user, role=Role.ANNOTATOR, by=by)
        annotators.append(user)
    people.add_member(pool=pool, user=people_here["ada"], role=Role.ADJUDICATOR, by=by)
    newcomer = User.objects.create_user("nils")
    people.add_member(pool=pool, user=newcomer, role=Role.ANNOTATOR, by=by)
    for user in (*annotators, newcomer):
        while item := practice.next_practice(round=round, user=user):
            given = practice.answer_practice(round=round, item_id=item.pk, by=user, answer=made[item.text][2][0])
            if user == newcomer:
                break
    at_work = list(annotators)
    while at_work:
        user = at_work.pop(0)
        slot = annotation.claim_slot(round=round, user=user)
        if slot is None:
            continue
        at_work.append(user)
        _, truth, wrong = made[slot.asked.text]
        errs = rng.random() < errors[user.username]
        annotation.submit_annotation(
            slot=slot,
            answer=rng.choice(wrong) if errs else truth,
            confident=not (errs and rng.random() < 0.7),
            note="The second case is easily forgotten." if errs else "",
            confirm_unreadable=True,
            idempotency_key=uuid.uuid4(),
            by=user,
        )
    agreed = GoldAnswer.objects.filter(round=round, source="agreement").order_by("id").first()
    revised = Slot.objects.filter(round=round, question=agreed.question, purpose="label").first()
    revising.revise(
        slot=revised,
        by=revised.holder,
        answer=f"{agreed.answer} \\text{{ cm}}",
        why="The question asks for a length.",
        confirm_unreadable=True,
        idempotency_key=uuid.uuid4(),
    )
    dispute = adjudication.claim_adjudication(user=people_here["ada"], round=round)
    split = GoldAnswer.objects.filter(round=round, source="agreement").order_by("id").last()
    here = f"/rounds/{round.pk}"
    return {
        "round-quality": ("mira", f"{here}/"),
        "round-quality-new": ("mira", f"/runs/{run.pk}/round/new/"),
        "people-quality": ("mira", f"/pools/{pool.slug}/people/"),
        "question-answers": ("mira", f"{here}/questions/{agreed.question_id}/"),
        "question-answers-agreed": ("mira", f"{here}/questions/{split.question_id}/"),
        "practice": ("nils", f"{here}/practice/"),
        "practice-answer": ("nils", f"/practice/{given.pk}/"),
        "adjudication-quality": ("ada", f"/adjudications/{dispute.pk}/"),
    }


def seed() -> dict[str, Any]:
    """Fill the database through the application's own actions; return the pages to take, by name."""
    from django.core.files.base import ContentFile
    from django.utils import timezone

    from labeling.actions import adjudication, annotation, budgets, comparisons, people, pools, rounds, runs, tokens
    from labeling.actions.imports import calibration_set_to_fill, commit_import, preview_import
    from labeling.actions.policy_models import create_policy_model
    from labeling.engine.comparing import listed_strategies
    from labeling.models import Comparison, Question, RecordedVotes, Role, SelectionRun, Slot, User
    from labeling.runs.worker import work

    people_here = [User.objects.create_user(name, is_staff=name == "mira") for name in ("mira", "ana", "ben", "ada")]
    mira, ana, ben, ada = people_here
    pool = people.create_pool(
        name="Olympiad warm-ups",
        by=None,
        description="Competition questions without answer keys, from four collections.",
    )
    for user, role in ((mira, Role.MANAGER), (ana, Role.ANNOTATOR), (ben, Role.ANNOTATOR), (ada, Role.ADJUDICATOR)):
        people.add_member(pool=pool, user=user, role=role, by=None)
    other = people.create_pool(
        name="Finance word problems", by=mira, description="Statements of listed companies, 2024."
    )
    pools.save_guideline(
        pool=pool,
        by=mira,
        text="Give the final answer only, in lowest terms.\n\nWrite fractions as 3/4 or $\\frac{3}{4}$; do not round. "
        "Leave units out unless the question asks for them.\n\n"
        "If a question has several answers, mark it as unanswerable.",
    )

    rng = random.Random(11)
    made: dict[str, tuple[str, str, list[str]]] = {}
    while len(made) < 340:
        question = made_up_question(rng)
        made.setdefault(question[0], question)
    asked, known = list(made.values())[:220], list(made.values())[220:]
    lines = [json.dumps({"id": f"ow-{i:03}", "question": text}) for i, (text, _, _) in enumerate(asked)]
    lines[6] = lines[6][:-9]
    lines[9] = json.dumps({"id": "ow-009", "question": ""})
    lines[12] = json.dumps({"id": "ow-012b", "question": asked[3][0]})
    batch = preview_import(file=ContentFile("\n".join(lines).encode()), filename="warmups.jsonl", pool=pool, by=mira)
    commit_import(batch=batch, by=mira)
    pending = preview_import(
        file=ContentFile(
            "\n".join([*lines[:40], '{"id": "new-1", "question": "What is $2^{10}$?"}', "{broken"]).encode()
        ),
        filename="warmups-second-delivery.jsonl",
        pool=pool,
        by=mira,
    )
    calibration = calibration_set_to_fill(name="Olympiad keys 2023", pool=None, by=mira)
    rows = [
        json.dumps({"id": f"cal-{i:03}", "question": text, "answer": truth}) for i, (text, truth, _) in enumerate(known)
    ]
    calibration = commit_import(
        batch=preview_import(
            file=ContentFile("\n".join(rows).encode()), filename="keys-2023.jsonl", calibration_set=calibration, by=mira
        ),
        by=mira,
    ).calibration_set
    for each in [*Question.objects.filter(pool=pool), *calibration.items.all()]:
        _, truth, wrong = made[each.text]
        RecordedVotes.objects.create(
            question_fingerprint=each.fingerprint,
            question_uid=each.uid,
            generation_fingerprint=FINGERPRINT,
            votes={"id": each.uid, **made_up_votes(rng, truth, wrong)},
        )
    create_policy_model(
        name="assay-tiny", engine="transformers", model="assay-tiny", temperature=1.0, max_tokens=80, by=mira
    )
    server = create_policy_model(
        name="Qwen3 4B on the cluster", engine="openai", model="Qwen/Qwen3-4B", base_url="http://gpu-3:8000/v1", by=mira
    )

    asked_of = {"pool": pool, "calibration_set": calibration, "budget": 8, "by": mira}
    degenerate = runs.create_run(**asked_of, generation_fingerprint=FINGERPRINT, alpha="0.02")
    finished = runs.create_run(**asked_of, generation_fingerprint=FINGERPRINT, alpha="0.2")
    raced = runs.create_run(**asked_of, generation_fingerprint=FINGERPRINT, alpha="0.2")
    history = [{"outcomes": 220 * n, "open": 220 - 11 * n, "decided": n // 2} for n in range(11)]
    SelectionRun.objects.filter(pk=raced.pk).update(race="exact")
    work(once=True)
    SelectionRun.objects.filter(pk=raced.pk).update(race_history=history, policy_model=server)
    finished.refresh_from_db()
    started = timezone.now().isoformat()
    everything = [key for key, _ in listed_strategies()]
    comparing = {"run": finished, "strategies": everything, "budget": 8, "n_bootstrap": 60, "by": mira}
    compared = comparisons.create_comparison(**comparing)
    work(once=True)
    comparing_now = comparisons.create_comparison(**comparing)
    Comparison.objects.filter(pk=comparing_now.pk).update(
        status="running",
        stage="resampling",
        stages=[
            {"name": "reading answers", "done": 1, "total": 1, "done_before": 0, "seconds": 0.4, "started_at": started},
            {"name": "resampling", "done": 37, "total": 120, "done_before": 0, "seconds": 6.1, "started_at": started},
        ],
        lease_token="seed",
        started_at=timezone.now(),
        lease_until=timezone.now() + timedelta(days=1),
    )
    running, failed, cancelled = (runs.create_run(**asked_of, policy_model=server, alpha="0.1") for _ in range(3))
    now = timezone.now()
    stages = [
        {
            "name": f"calibration: {name}",
            "done": done,
            "total": total,
            "done_before": 0,
            "started_at": (now - timedelta(seconds=seconds)).isoformat(),
            "seconds": seconds,
        }
        for name, done, total, seconds in (
            ("trajectories", 120, 120, 41.2),
            ("probes", 2400, 2400, 63.0),
            ("outcomes", 1730, 2400, 97.0),
        )
    ]
    SelectionRun.objects.filter(pk=running.pk).update(
        status="running",
        stage="calibration: outcomes",
        stages=stages,
        lease_token="seed",
        started_at=now,
        lease_until=now + timedelta(days=1),
    )
    SelectionRun.objects.filter(pk=failed.pk).update(
        status="failed",
        stages=stages[:2],
        error_code="engine_unavailable",
        started_at=now,
        finished_at=now,
        error="The server at http://gpu-3:8000/v1 does not answer (connection refused). "
        "Start it, or correct its address, then retry.",
    )
    SelectionRun.objects.filter(pk=cancelled.pk).update(status="cancelled", stages=stages, finished_at=now)

    budget = budgets.grant_budget(pool=pool, name="Spring 2025", units=40, by=mira)
    round = rounds.open_round(run=finished, budget=budget, overlap=2, by=mira)
    for user, n in ((ana, 5), (ben, 5)):
        for i in range(n):
            slot = annotation.claim_slot(round=round, user=user)
            truth = made[slot.question.text][1]
            if i == 2:
                truth = made[slot.question.text][2][0] if user is ben else truth
            annotation.submit_annotation(
                slot=slot,
                answer=truth,
                idempotency_key=uuid.uuid4(),
                by=user,
                seconds_spent=[95, 140, 610, 48, 210][i] * (1.0 if user is ana else 1.7),
                confident=i != 2,
                note="The second root does not satisfy the domain." if i == 2 else "",
            )
    held = annotation.claim_slot(round=round, user=ana)
    annotation.save_draft(slot=held, draft={"answer": made[held.question.text][1], "unsure": True, "note": ""}, by=ana)
    dispute = adjudication.claim_adjudication(round=round, user=ada)
    done = Slot.objects.filter(holder=ana, state="done").first()
    _, token = people.create_invitation(pool=pool, role=Role.ANNOTATOR, by=mira, note="Karim, from the maths circle")
    annotation.claim_slot(round=round, user=ben)
    revealed = seed_reveals(round)
    shown_first = seed_shown_first(other, mira, ana)
    judged = comparisons.create_comparison(**comparing | {"strategies": ["const", "random", "entropy", "v2"]})
    work(once=True)
    labeled = seed_labeled_pool(mira)
    curriculum = seed_curriculum(labeled, mira)
    tokens.create_token(pool=labeled, name="the cluster in Oslo", by=mira, expires_in=timedelta(days=90))
    tokens.create_token(name="nightly exports", by=mira, scopes=["read", "export"])
    quality = seed_quality(mira, {user.username: user for user in people_here})
    p = f"/pools/{pool.slug}"
    return quality | {
        "login": (None, "/login/"),
        "login-link": (None, "/login/?sesame=abc"),
        "join": (None, f"/join/{token}/"),
        "home-manager": ("mira", "/"),
        "home-annotator": ("ana", "/"),
        "pool": ("mira", f"{p}/"),
        "pool-empty": ("mira", f"/pools/{other.slug}/"),
        "pool-annotator": ("ana", f"{p}/"),
        "pool-new": ("mira", "/pools/new/"),
        "import": ("mira", f"{p}/import/"),
        "import-preview": ("mira", f"/imports/{pending.pk}/"),
        "import-committed": ("mira", f"/imports/{batch.pk}/"),
        "votes-import": ("mira", f"{p}/votes/"),
        "questions": ("mira", f"{p}/questions/"),
        "people": ("mira", f"{p}/people/"),
        "guideline": ("mira", f"{p}/guideline/"),
        "models": ("mira", "/models/"),
        "model-new": ("mira", "/models/new/"),
        "calibration-sets": ("mira", "/calibration-sets/"),
        "calibration-import": ("mira", "/calibration-sets/import/"),
        "runs": ("mira", f"{p}/runs/"),
        "run-new": ("mira", f"{p}/runs/new/"),
        "run-finished": ("mira", f"/runs/{finished.pk}/"),
        "run-raced": ("mira", f"/runs/{raced.pk}/"),
        "run-degenerate": ("mira", f"/runs/{degenerate.pk}/"),
        "run-running": ("mira", f"/runs/{running.pk}/"),
        "run-failed": ("mira", f"/runs/{failed.pk}/"),
        "run-question": ("mira", f"/runs/{finished.pk}/questions/{finished.picks.get(rank=2).question_id}/"),
        "run-pair": ("mira", f"{p}/runs/compare/?run={finished.pk}&run={degenerate.pk}"),
        "run-pair-choose": ("mira", f"{p}/runs/compare/"),
        "comparisons": ("mira", f"{p}/comparisons/"),
        "comparison-new": ("mira", f"{p}/comparisons/new/"),
        "comparison-finished": ("mira", f"/comparisons/{compared.pk}/?a=const&b=entropy"),
        "comparison-judged": ("mira", f"/comparisons/{judged.pk}/"),
        "comparison-running": ("mira", f"/comparisons/{comparing_now.pk}/"),
        "budget-new": ("mira", f"{p}/budgets/new/"),
        "budget": ("mira", f"/budgets/{budget.pk}/"),
        "round-new": ("mira", f"/runs/{finished.pk}/round/new/"),
        "round": ("mira", f"/rounds/{round.pk}/"),
        "round-annotator": ("ana", f"/rounds/{round.pk}/"),
        "round-adjudicator": ("ada", f"/rounds/{round.pk}/"),
        "slot": ("ana", f"/slots/{held.pk}/"),
        "slot-done": ("ana", f"/slots/{done.pk}/"),
        "slot-shown-first": ("ana", f"/slots/{shown_first.pk}/"),
        "reveal": (revealed["undecided"].annotator.username, f"/slots/{revealed['undecided'].slot_id}/reveal/"),
        "reveal-decided": (revealed["changed"].annotator.username, f"/slots/{revealed['changed'].slot_id}/reveal/"),
        "round-shown-first": ("mira", f"/rounds/{shown_first.round_id}/"),
        "adjudication": ("ada", f"/adjudications/{dispute.pk}/"),
        "variance": ("mira", f"/pools/{labeled.slug}/variance/"),
        "variance-few": ("mira", f"{p}/variance/"),
        "variance-none": ("mira", f"/pools/{other.slug}/variance/"),
        "variance-set": ("mira", f"/calibration-sets/{calibration.pk}/variance/"),
        "curricula": ("mira", f"/pools/{labeled.slug}/curricula/"),
        "curricula-none": ("mira", f"{p}/curricula/"),
        "curriculum-new": ("mira", f"/pools/{labeled.slug}/curricula/new/"),
        "curriculum": ("mira", f"/curricula/{curriculum.pk}/"),
        "export": ("mira", f"{p}/export/"),
        "tokens": ("mira", f"/tokens/?pool={labeled.slug}&scopes=curriculum"),
        "tokens-none": ("ana", "/tokens/"),
        "api": ("mira", "/api/v1/"),
        "api-list": ("mira", f"/api/v1{p}/runs/"),
        "api-upload": ("mira", f"/api/v1{p}/imports/"),
        "api-refused": (None, "/api/v1/pools/"),
        "not-found": ("mira", "/pools/nowhere/"),
        "not-allowed": ("ana", f"{p}/export/"),
    }


def session_of(username: str) -> str:
    """Return the key of a new session in which the person is logged in."""
    from importlib import import_module

    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY

    from labeling.models import User

    user = User.objects.get(username=username)
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return session.session_key


@contextmanager
def server(environment: dict[str, str]) -> Iterator[str]:
    """Serve the application on a free port; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(100):
            try:
                urlopen(f"http://127.0.0.1:{port}/login/", timeout=2).close()
                break
            except OSError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def visit(address: str, pages: dict[str, Any], out: Path | None, widths: list[str], schemes: list[str]) -> list[str]:
    """Take pictures, or without ``out`` look for barriers; return what is wrong with each page."""
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=CHROMIUM_FLAGS
        )
        for width in widths:
            for scheme in schemes:
                for username in sorted({user or "" for user, _ in pages.values()}):
                    context = browser.new_context(
                        viewport=dict(zip(("width", "height"), WIDTHS[width], strict=True)),
                        color_scheme=scheme,
                        reduced_motion="reduce",  # no colour is caught while it fades
                    )
                    if username:
                        context.add_cookies([{"name": "sessionid", "value": session_of(username), "url": address}])
                    page = context.new_page()
                    page.on("console", partial(_note, found, page))
                    page.on("pageerror", partial(_note, found, page))
                    for name, (user, path) in pages.items():
                        if (user or "") != username:
                            continue
                        page.goto(address + path)
                        page.wait_for_timeout(
                            700 if name.startswith(("run-", "slot", "variance", "comparison", "curriculum")) else 150
                        )
                        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                        if wide > 0:
                            found.append(f"{name}: {width} scrolls sideways by {wide} pixels")
                        if out is None:
                            found += [f"{name}: {width}: {barrier}" for barrier in barriers(page)]
                        else:
                            page.screenshot(path=out / f"{name}-{width}-{scheme}.png", full_page=True)
                    context.close()
        browser.close()
    return found


def write_gallery(out: Path, gallery: Path, pages: dict[str, Any]) -> None:
    """Keep small copies of the pictures, and a page that shows them: the desk in light, the phone in dark."""
    from PIL import Image

    gallery.mkdir(parents=True, exist_ok=True)
    for old in gallery.glob("*.webp"):
        old.unlink()
    rows = [
        "# Every page and state",
        "",
        "Made by `make screenshots` of an application full of made-up data: at a desk in light colours, on a phone in "
        "dark ones.",
        "",
    ]
    for name in sorted(pages):
        rows += [f"## {name}", ""]
        for width, scheme in (("desk", "light"), ("phone", "dark")):
            kept = gallery / f"{name}-{width}.webp"
            with Image.open(out / f"{name}-{width}-{scheme}.png") as picture:
                shown = picture.convert("RGB").crop((0, 0, picture.width, min(picture.height, MOST_HEIGHT)))
                shown.save(kept, quality=60, method=6)
            rows.append(f'<img src="{kept.name}" width="{640 if width == "desk" else 240}" alt="{name}, {width}">')
        rows.append("")
    (gallery / "README.md").write_text("\n".join(rows))


def barriers(page: Any) -> list[str]:
    """Return what axe-core finds of serious or critical impact, with the first elements it is found in."""
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page).response["violations"]
    page.emulate_media(color_scheme="dark")  # which changes colours and nothing else
    violations += Axe().run(page, options={"runOnly": ["color-contrast"]}).response["violations"]
    page.emulate_media(color_scheme="light")
    return [
        f"{each['id']} ({each['impact']}, {len(each['nodes'])} times): "
        + "; ".join(node["html"][:160] for node in each["nodes"][:3])
        for each in violations
        if each["impact"] in {"serious", "critical"}
    ]


def _note(found: list[str], page: Any, complaint: Any) -> None:
    of_itself = getattr(complaint, "location", {}).get("url") == page.url
    is_refusal = of_itself and "Failed to load resource" in complaint.text  # a page may be of a refusal
    if getattr(complaint, "type", "error") in {"error", "warning"} and not is_refusal:
        found.append(f"{page.url}: {getattr(complaint, 'text', complaint)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="Names of pages.")
    parser.add_argument("--width", choices=WIDTHS, action="append")
    parser.add_argument("--scheme", choices=["light", "dark"], action="append")
    parser.add_argument("--gallery", type=Path, help="Folder for small copies and a page that shows them.")
    parser.add_argument("--axe", action="store_true", help="Look for barriers with axe-core; no pictures.")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    os.environ |= {
        "ASSAY_VAR": str(arguments.out / "var"),
        "DJANGO_SETTINGS_MODULE": "labeling.settings",
        "HF_HUB_OFFLINE": "1",
        "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "ASSAY_DEBUG": "0",
        "ASSAY_SECRET_KEY": "of-made-up-data",
        "ASSAY_ALLOWED_HOSTS": "127.0.0.1",
        "ASSAY_HTTPS": "0",
    }
    sys.path.insert(0, str(ROOT))
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    listing = arguments.out / "pages.json"
    if listing.exists():
        pages = json.loads(listing.read_text())
    else:
        pages = seed()
        listing.write_text(json.dumps(pages))
    pages = {name: page for name, page in pages.items() if not arguments.only or name in arguments.only}
    with server(dict(os.environ)) as address:
        out = None if arguments.axe else arguments.out
        schemes = arguments.scheme or ["light", "dark"] if out else ["light"]  # barriers are looked for in both at once
        found = visit(address, pages, out, arguments.width or list(WIDTHS), schemes)
    if arguments.gallery:
        write_gallery(arguments.out, arguments.gallery, pages)
    print("\n".join(sorted(set(found))) or "Nothing wrong.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
