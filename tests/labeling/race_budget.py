"""Eight processes spend one budget at once by every way there is. Run by test_concurrency.py; prints what happened.

The database is DATABASE_URL's, empty: tables are made here. Managers open rounds that together want far more than was
granted, buy further answers and close rounds; annotators answer, disagree and give up, so that adjudications and
replacements want units too. Each process checks after each of its steps, in one statement, that no more is taken than
was granted and that no unit is taken twice.
"""

import json
import multiprocessing
import os
import random
import sys
import traceback
from collections import Counter
from uuid import uuid4

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labeling.settings")

import django

django.setup()  # before anything that imports models

from django.db import connection, connections  # noqa: E402

from labeling.actions.annotation import claim_slot, mark_unanswerable, submit_annotation  # noqa: E402
from labeling.actions.budgets import add_units  # noqa: E402
from labeling.actions.extra_answers import buy_answer  # noqa: E402
from labeling.actions.rounds import close_round, open_round  # noqa: E402
from labeling.errors import Conflict  # noqa: E402
from labeling.models import AuditEvent, Budget, QuestionScore, Role, Round, SelectionRun, Slot, User  # noqa: E402
from labeling.queries.pools import budget_row  # noqa: E402
from tests import factories  # noqa: E402
from tests.labeling.race import ONE_SNAPSHOT  # noqa: E402
from tests.labeling.tables import make_tables  # noqa: E402

N_PROCESSES = 8
N_STEPS = 15
N_RUNS = 8
GRANTED = 20


def spend(number: int, barrier, results) -> None:
    """Take steps at random; report how often each was done or refused, and what was wrong."""
    rng, done, wrong = random.Random(number), Counter(), []
    try:
        user, manager = User.objects.get(username=f"annotator{number}"), User.objects.get(username="manager")
        budget = Budget.objects.get()
        barrier.wait()
        for step in range(N_STEPS):
            try:
                name = one_step(rng, user, manager, budget, is_first=step == 0)
            except Conflict as refused:
                name = f"refused: {refused.code}"
            done[name] += 1
            with connection.cursor() as cursor:
                cursor.execute(ONE_SNAPSHOT)
                granted, spent, taken, distinct, _ = cursor.fetchone()
            if spent > granted or taken > granted or taken != distinct:
                wrong.append([granted, spent, taken, distinct])
        results.put({"done": done, "wrong": wrong, "errors": []})
    except Exception:
        results.put({"done": done, "wrong": wrong, "errors": [traceback.format_exc()]})


def one_step(rng: random.Random, user: User, manager: User, budget: Budget, *, is_first: bool) -> str:
    """Do one thing that moves units; return its name."""
    way = "open" if is_first else rng.choice(["open", "buy", "close", "add", *["answer"] * 8])
    live = list(Round.objects.filter(status=Round.Status.LIVE))
    if way == "open":
        run = rng.choice(list(SelectionRun.objects.all()))
        open_round(run=run, budget=budget, overlap=2, by=manager)
    elif way == "buy" and live:
        round = rng.choice(live)
        slots = Slot.objects.filter(round=round, purpose=Slot.Purpose.LABEL).exclude(state=Slot.State.VOID)
        slot = rng.choice(list(slots.select_related("question")))
        buy_answer(round=round, question=slot.question, asked_before=2, by=manager)
    elif way == "close" and len(live) > 1:
        close_round(round=rng.choice(live), by=manager)
    elif way == "add":
        add_units(budget=budget, units=1, by=manager)
    elif slot := claim_slot(user=user, pool=budget.pool):
        if rng.random() < 0.5:
            mark_unanswerable(slot=slot, reason="ill_posed", idempotency_key=uuid4(), by=user)
        else:
            answer = str(rng.randint(1, 2))
            submit_annotation(slot=slot, answer=answer, idempotency_key=uuid4(), by=user)
        way = "answer"
    else:
        way = "nothing to answer"
    return way


def main() -> None:
    make_tables()
    manager = factories.make_user(username="manager")
    pool = factories.make_pool(manager=manager)
    for number in range(N_PROCESSES):
        factories.make_user(username=f"annotator{number}", pool=pool, roles=(Role.ANNOTATOR,))
    for _ in range(N_RUNS):
        questions = factories.make_questions(pool=pool, n=6)
        run = factories.make_run(pool=pool, questions=questions[:3])
        for place, question in enumerate(questions, 1):
            measured = {"set_size": 2, "acquisition_score": 2.0, "entropy": 0.5, "n_readable": 9, "n_distinct": 2}
            QuestionScore.objects.create(run=run, question=question, place=place, **measured)
    budget = factories.make_budget(pool=pool, units=GRANTED)
    connections.close_all()
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(N_PROCESSES), context.Queue()
    workers = [context.Process(target=spend, args=(number, barrier, results)) for number in range(N_PROCESSES)]
    for worker in workers:
        worker.start()
    reports = [results.get(timeout=240) for _ in workers]
    for worker in workers:
        worker.join()
    row = budget_row(budget=budget)
    done: Counter[str] = Counter()
    for report in reports:
        done.update(report["done"])
    json.dump(
        {
            "errors": [error for report in reports for error in report["errors"]],
            "wrong": [each for report in reports for each in report["wrong"]],
            "done": done,
            "n_replaced": AuditEvent.objects.filter(action="question.replaced").count(),
            "n_adjudications": AuditEvent.objects.filter(action="adjudication.opened").count(),
            "granted": row.granted,
            "spent": row.spent,
            "adds_up": row.granted == row.spent + row.reserved + row.held + row.free and row.free >= 0,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
