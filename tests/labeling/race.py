"""Sixteen clients empty the queue of one pool at once, watched; prints what happened as JSON.

    DATABASE_URL=sqlite:///race.sqlite3 python -m tests.labeling.race --slots 1000 --overlap 2 --kill-every 10

The database is DATABASE_URL's, empty: tables are made here. Sixteen clients are at work at any time, each a process of
its own; one answers ``--quota`` questions and ends, and the next comes in its place. The last two places are two tabs
of one person. With ``--kill-every N`` every N-th client is killed (SIGKILL) in the middle of its work and its person
never comes back, so that what it held must come free when its time runs out. A watcher counts units all the while.
Every tenth question is answered differently by everybody, so that with overlap 2 adjudications compete for fewer units
than they want. Run at a reduced size by test_concurrency.py.
"""

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from datetime import timedelta
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from uuid import uuid4

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labeling.settings")

import django

django.setup()  # before anything that imports models

from django.conf import settings  # noqa: E402
from django.db import connection, connections  # noqa: E402
from django.utils import timezone  # noqa: E402

from labeling.actions.annotation import claim_slot, submit_annotation  # noqa: E402
from labeling.actions.settling import sweep_rounds  # noqa: E402
from labeling.models import Annotation, BudgetUnit, GoldAnswer, Pool, Role, Slot, User  # noqa: E402
from labeling.queries.queue import empty_queue  # noqa: E402
from tests import factories  # noqa: E402
from tests.labeling.tables import make_tables  # noqa: E402

N_PLACES = 16
SPARE_UNITS = 3
LEASE_SECONDS_WITH_KILLS = 6  # short, so that what the dead held comes free while the race runs
IDLE, CLAIMING, HOLDING, SUBMITTING = range(4)
DOING = ["between questions", "claiming", "holding a question", "submitting"]
NOTHING_LEFT = 7  # exit code of a client that found no more work for its person
ONE_SNAPSHOT = """
    SELECT (SELECT count(*) FROM labeling_budgetunit),
           (SELECT count(*) FROM labeling_slot WHERE state = 'done'),
           (SELECT count(*) FROM labeling_slot WHERE state <> 'void'),
           (SELECT count(DISTINCT unit_id) FROM labeling_slot WHERE state <> 'void'),
           (SELECT coalesce(max(n), 0) FROM (
               SELECT count(*) AS n FROM labeling_annotation a JOIN labeling_slot s ON s.id = a.slot_id
               WHERE NOT a.surplus GROUP BY s.question_id) AS answers)
"""


class Blackboard:
    """What places are doing, in memory that no dead process can leave locked."""

    def __init__(self) -> None:
        self.doing = RawArray("i", N_PLACES)
        self.n_claimed = RawArray("i", N_PLACES)  # by the client that is there now
        self.is_over = RawArray("i", 1)


def annotate(place: int, username: str, quota: int, think: float, board: Blackboard, report: Path) -> None:
    """Claim and answer ``quota`` questions; write claims, seconds, false alarms and errors to ``report``."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    random.seed(report.name)
    found: dict = {"username": username, "seconds": [], "false_empty": 0, "errors": []}
    code = 0
    try:
        user, pool = User.objects.get(username=username), Pool.objects.get()
        while len(found["seconds"]) < quota:
            asked, started = timezone.now(), time.monotonic()
            board.doing[place] = CLAIMING
            slot = claim_slot(user=user, pool=pool)
            if slot is None:
                board.doing[place] = IDLE
                # free now and at the time of asking: nobody gives a question back in this race
                if Slot.objects.filter(purpose=Slot.Purpose.LABEL).open_at(asked).unseen_by(user).exists():
                    found["false_empty"] += 1
                if empty_queue(user=user, pool=pool).code not in {"free", "held"}:
                    code = NOTHING_LEFT
                    break
                time.sleep(0.1)
                continue
            board.doing[place] = HOLDING
            claimed = time.monotonic()
            time.sleep(think * random.uniform(0.5, 1.5))
            answer = username if slot.priority % 10 == 0 else str(slot.priority)
            board.doing[place] = SUBMITTING
            submitting = time.monotonic()
            submit_annotation(slot=slot, answer=answer, idempotency_key=uuid4(), by=user)
            board.doing[place] = IDLE
            found["seconds"].append(claimed - started + time.monotonic() - submitting)
            board.n_claimed[place] += 1
    except Exception:
        found["errors"].append(traceback.format_exc())
    report.write_text(json.dumps(found))
    os._exit(code)


def watch(board: Blackboard, report: Path) -> None:
    """Count units and answers in one statement, again and again, and write down the most that was ever seen."""
    seen = {"n_samples": 0, "n_overspent": 0, "n_units_shared": 0, "most_answers": 0}
    while True:
        is_last = bool(board.is_over[0])
        with connection.cursor() as cursor:
            cursor.execute(ONE_SNAPSHOT)
            granted, spent, taken, distinct, answers = cursor.fetchone()
        seen["n_samples"] += 1
        seen["n_overspent"] += spent > granted or taken > granted
        seen["n_units_shared"] += taken != distinct
        seen["most_answers"] = max(seen["most_answers"], answers)
        if is_last:
            break
        time.sleep(0.05)
    report.write_text(json.dumps(seen))
    os._exit(0)


class Race:
    """Keeps every place taken until nobody finds anything left, and kills who is to be killed."""

    def __init__(self, pool: Pool, options: argparse.Namespace, directory: Path) -> None:
        self.pool, self.options, self.directory = pool, options, directory
        self.context = multiprocessing.get_context("fork")
        self.board = Blackboard()
        self.people = [f"annotator{min(place, N_PLACES - 2)}" for place in range(N_PLACES)]
        self.clients: dict[int, multiprocessing.process.BaseProcess] = {}
        self.doomed: dict[int, int] = {}  # place -> claims after which its client is killed
        self.n_started = 0
        self.killed_while: Counter[str] = Counter()
        self.odd_ends: list[str] = []

    def run(self) -> None:
        for place in range(N_PLACES):
            self.seat(place)
        while self.clients:
            for place, client in list(self.clients.items()):
                if client.is_alive():
                    self.kill_if_due(place, client)
                    continue
                client.join()
                del self.clients[place]
                if client.exitcode == -signal.SIGKILL:
                    self.people[place] = self.new_person()
                if client.exitcode in (0, -signal.SIGKILL):
                    self.seat(place)
                elif client.exitcode != NOTHING_LEFT:
                    self.odd_ends.append(f"a client ended with {client.exitcode}")
            time.sleep(0.003)

    def seat(self, place: int) -> None:
        self.board.n_claimed[place] = 0
        self.board.doing[place] = IDLE
        self.n_started += 1
        if self.options.kill_every and self.n_started % self.options.kill_every == 0:
            self.doomed[place] = random.randrange(1, max(2, self.options.quota // 2))
        report = self.directory / f"client{self.n_started}.json"
        arguments = (place, self.people[place], self.options.quota, self.options.think, self.board, report)
        self.clients[place] = self.start(annotate, *arguments)

    def start(self, function, *arguments) -> multiprocessing.process.BaseProcess:
        process = self.context.Process(target=function, args=arguments)
        process.start()
        return process

    def kill_if_due(self, place: int, client: multiprocessing.process.BaseProcess) -> None:
        if place not in self.doomed or self.board.n_claimed[place] < self.doomed[place]:
            return
        del self.doomed[place]
        for _ in range(random.randrange(20)):  # the time of about one claim and one submission
            time.sleep(0.002)
        client.kill()
        self.killed_while[DOING[self.board.doing[place]]] += 1

    def new_person(self) -> str:
        name = f"annotator{N_PLACES + self.n_started}"
        factories.make_user(username=name, pool=self.pool, roles=(Role.ANNOTATOR,))
        connections.close_all()
        return name


def main(options: argparse.Namespace) -> dict:
    """Prepare, run and count."""
    make_tables()
    if options.kill_every:
        settings.ASSAY_SLOT_MINUTES = LEASE_SECONDS_WITH_KILLS / 60
    random.seed(0)
    pool = factories.make_pool()
    for place in range(N_PLACES - 1):
        factories.make_user(username=f"annotator{place}", pool=pool, roles=(Role.ANNOTATOR,))
    n_questions = options.slots // options.overlap
    questions = [factories.make_question(pool=pool, answer_kind="text") for _ in range(n_questions)]
    run = factories.make_run(pool=pool, questions=questions)
    round = factories.make_round(run=run, overlap=options.overlap, units=options.slots + SPARE_UNITS)
    connections.close_all()
    with tempfile.TemporaryDirectory() as directory:
        race = Race(pool, options, Path(directory))
        watcher = race.start(watch, race.board, Path(directory, "watcher.json"))
        started = time.monotonic()
        race.run()
        seconds = time.monotonic() - started
        sweep_rounds()
        race.board.is_over[0] = 1
        watcher.join()
        watched = json.loads(Path(directory, "watcher.json").read_text())
        reports = [json.loads(path.read_text()) for path in Path(directory).glob("client*.json")]
    waits = sorted(wait for report in reports for wait in report["seconds"])
    per_person = Counter(Annotation.objects.values_list("annotator", "slot__question"))
    units = Counter(Slot.objects.exclude(state=Slot.State.VOID).values_list("unit", flat=True))
    busy = {report["username"] for report in reports if report["seconds"]}
    held = Slot.objects.filter(state=Slot.State.LEASED, lease_until__gt=timezone.now() - timedelta(days=1))
    return {
        "errors": race.odd_ends + [error for report in reports for error in report["errors"]],
        "false_empty": sum(report["false_empty"] for report in reports),
        "n_clients": race.n_started,
        "n_killed": race.killed_while.total(),
        "killed_while": dict(race.killed_while),
        "n_people_at_work": len(busy),
        "n_slots_done": Slot.objects.filter(purpose="label", state="done").count(),
        "n_slots_held": held.count(),
        "n_counted": Annotation.objects.filter(surplus=False).count(),
        "n_surplus": Annotation.objects.filter(surplus=True).count(),
        "most_times_one_person_saw_a_question": max(per_person.values()),
        "most_slots_per_unit": max(units.values()),
        "n_units_taken": len(units),
        "n_units_granted": BudgetUnit.objects.count(),
        "n_gold": GoldAnswer.objects.filter(round=round).count(),
        "n_adjudications": Slot.objects.filter(purpose="adjudication").count(),
        "watched": watched,
        "seconds": round_to(seconds),
        "p50_seconds": round_to(waits[len(waits) // 2]),
        "p99_seconds": round_to(waits[int(len(waits) * 0.99)]),
        "most_seconds": round_to(waits[-1]),
    }


def round_to(seconds: float) -> float:
    return float(f"{seconds:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--slots", type=int, default=1000)
    parser.add_argument("--overlap", type=int, default=1)
    parser.add_argument("--kill-every", type=int, default=0, metavar="N")
    parser.add_argument("--quota", type=int, default=10, help="questions a client answers before the next comes")
    parser.add_argument("--think", type=float, default=0.02, help="seconds between being shown and answering")
    json.dump(main(parser.parse_args()), sys.stdout)
