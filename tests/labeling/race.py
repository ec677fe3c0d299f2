"""Eight processes empty the queue of one pool at once. Run by test_concurrency.py; prints what happened as JSON.

Arguments: number of slots, overlap. The database is DATABASE_URL's, empty and migrated here. Every tenth question is
answered differently by everybody, so that with overlap 2 adjudications compete for fewer units than they want.
"""

import json
import multiprocessing
import os
import sys
import time
import traceback
from collections import Counter
from uuid import uuid4

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labeling.settings")

import django

django.setup()  # before anything that imports models

from django.core.management import call_command  # noqa: E402
from django.db import connections  # noqa: E402

from labeling.actions.annotation import claim_slot, submit_annotation  # noqa: E402
from labeling.actions.settling import sweep_rounds  # noqa: E402
from labeling.models import Annotation, BudgetUnit, GoldAnswer, Pool, Role, Slot, User  # noqa: E402
from labeling.queries.queue import empty_queue  # noqa: E402
from tests import factories  # noqa: E402

N_PROCESSES = 8
SPARE_UNITS = 3


def annotate(username: str, barrier, results) -> None:
    """Claim and answer until nothing is left for this person; report claims, seconds, false alarms and errors."""
    seconds: list[float] = []
    found = {"username": username, "n_claimed": 0, "false_empty": 0, "errors": []}
    try:
        user, pool = User.objects.get(username=username), Pool.objects.get()
        barrier.wait()
        while True:
            started = time.monotonic()
            slot = claim_slot(user=user, pool=pool)
            if slot is not None:
                answer = username if slot.priority % 10 == 0 else str(slot.priority)
                submit_annotation(slot=slot, answer=answer, idempotency_key=uuid4(), by=user)
                seconds.append(time.monotonic() - started)
                found["n_claimed"] += 1
                time.sleep(0.02)  # nobody thinks faster than that
                continue
            why = empty_queue(user=user, pool=pool).code
            if why == "free":
                found["false_empty"] += 1
            elif why != "held":
                break
            time.sleep(0.05)
    except Exception:
        found["errors"].append(traceback.format_exc())
    results.put({**found, "p99_seconds": sorted(seconds)[int(len(seconds) * 0.99)] if seconds else 0.0})


def main(n_slots: int, overlap: int) -> None:
    call_command("migrate", verbosity=0)
    pool = factories.make_pool()
    # the last two processes are two tabs of one person
    names = [f"annotator{min(number, N_PROCESSES - 2)}" for number in range(N_PROCESSES)]
    for name in sorted(set(names)):
        factories.make_user(username=name, pool=pool, roles=(Role.ANNOTATOR,))
    questions = [factories.make_question(pool=pool, answer_kind="text") for _ in range(n_slots // overlap)]
    run = factories.make_run(pool=pool, questions=questions)
    round = factories.make_round(run=run, overlap=overlap, units=n_slots + SPARE_UNITS)
    connections.close_all()
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(N_PROCESSES), context.Queue()
    workers = [context.Process(target=annotate, args=(name, barrier, results)) for name in names]
    started = time.monotonic()
    for worker in workers:
        worker.start()
    reports = [results.get(timeout=240) for _ in workers]
    for worker in workers:
        worker.join()
    seconds = time.monotonic() - started
    sweep_rounds()
    counted = Annotation.objects.filter(surplus=False)
    per_person = Counter(Annotation.objects.values_list("annotator", "slot__question"))
    units = Counter(Slot.objects.exclude(state=Slot.State.VOID).values_list("unit", flat=True))
    json.dump(
        {
            "errors": [error for report in reports for error in report["errors"]],
            "false_empty": sum(report["false_empty"] for report in reports),
            "n_people_at_work": sum(report["n_claimed"] > 0 for report in reports),
            "n_slots_done": Slot.objects.filter(purpose="label", state="done").count(),
            "n_counted": counted.count(),
            "n_surplus": Annotation.objects.filter(surplus=True).count(),
            "most_times_one_person_saw_a_question": max(per_person.values()),
            "most_slots_per_unit": max(units.values()),
            "n_units_taken": len(units),
            "n_units_granted": BudgetUnit.objects.count(),
            "n_gold": GoldAnswer.objects.filter(round=round).count(),
            "n_adjudications": Slot.objects.filter(purpose="adjudication").count(),
            "seconds": seconds,
            "p99_seconds": max(report["p99_seconds"] for report in reports),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
