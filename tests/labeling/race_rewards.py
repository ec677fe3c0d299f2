"""Eight processes report the same rewards to one curriculum at once. Run by test_concurrency.py; prints what happened.

The database is DATABASE_URL's, empty: tables are made here. Each process posts every event in an order of its own, and
asks for the questions of every step under the same keys as the others.
"""

import json
import multiprocessing
import os
import random
import sys
import traceback

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labeling.settings")

import django

django.setup()  # before anything that imports models

from django.db import connections  # noqa: E402
from django.test import Client  # noqa: E402

from labeling.actions.curricula import create_curriculum  # noqa: E402
from labeling.actions.tokens import create_token  # noqa: E402
from labeling.models import Curriculum, Proposal, RewardEvent  # noqa: E402
from tests import factories  # noqa: E402
from tests.labeling.tables import make_tables  # noqa: E402

N_PROCESSES = 8
N_EVENTS = 120
N_IN_ONE_REQUEST = 10
N_QUESTIONS = 6
N_REWARDS = 4


def report(number: int, token: str, address: str, barrier, results) -> None:
    """Post every event and ask for every step's questions; tell what was accepted, repeated and proposed."""
    found = {"accepted": 0, "repeated": 0, "rejected": 0, "proposed": {}, "errors": []}
    try:
        client = Client(headers={"Authorization": f"Bearer {token}", "Host": "localhost"})
        events = [
            {"id": f"e{n}", "uid": f"u{n % N_QUESTIONS}", "rewards": [1, 0, 1, 0], "step": n // N_QUESTIONS}
            for n in range(N_EVENTS)
        ]
        random.Random(number).shuffle(events)
        barrier.wait()
        for start in range(0, N_EVENTS, N_IN_ONE_REQUEST):
            body = {"events": events[start : start + N_IN_ONE_REQUEST]}
            response = client.post(address + "rewards/", body, content_type="application/json")
            answer = response.json()
            found["accepted"] += answer["accepted"]
            found["repeated"] += answer["repeated"]
            found["rejected"] += len(answer["rejected"])
            key = f"step {start // N_IN_ONE_REQUEST}"
            asked = {"k": 3, "idempotency_key": key}
            response = client.post(address + "propose/", asked, content_type="application/json")
            found["proposed"][key] = response.json()["uids"]
    except Exception:
        found["errors"].append(traceback.format_exc())
    results.put(found)


def main() -> None:
    make_tables()
    manager = factories.make_user(username="mira")
    pool = factories.make_pool(manager=manager)
    snapshot = factories.make_snapshot(pool=pool, n_rows=N_QUESTIONS)
    curriculum = create_curriculum(pool=pool, snapshot=snapshot, kind="mopps", name="run", by=manager)
    _, token = create_token(pool=pool, name="cluster", by=manager)
    address = f"/api/v1/curricula/{curriculum.pk}/"
    connections.close_all()
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(N_PROCESSES), context.Queue()
    workers = [
        context.Process(target=report, args=(number, token, address, barrier, results)) for number in range(N_PROCESSES)
    ]
    for worker in workers:
        worker.start()
    reports = [results.get(timeout=240) for _ in workers]
    for worker in workers:
        worker.join()
    beliefs = Curriculum.objects.get().state["beliefs"]["questions"]
    json.dump(
        {
            "errors": [error for each in reports for error in each["errors"]],
            "n_accepted": sum(each["accepted"] for each in reports),
            "n_repeated": sum(each["repeated"] for each in reports),
            "n_rejected": sum(each["rejected"] for each in reports),
            "n_events": RewardEvent.objects.count(),
            "n_rollouts_believed": sum(belief[2] for belief in beliefs.values()),
            "n_proposals": Proposal.objects.count(),
            "proposals_agree": all(each["proposed"] == reports[0]["proposed"] for each in reports),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
