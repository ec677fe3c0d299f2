"""What the demo does before anybody labels: import, calibrate, probe, select, grant a budget, open a round."""

import json
from collections.abc import Callable
from pathlib import Path

from django.core.management import call_command

from labeling.actions.budgets import grant_budget
from labeling.actions.people import add_member, create_pool
from labeling.actions.policy_models import create_policy_model
from labeling.actions.pools import save_guideline
from labeling.actions.rounds import open_round
from labeling.models import Pool, Role, Round, User

FILES = Path(__file__).parent
POOL, CALIBRATION_SET, MODEL = "Demo: sums and stories", "Demo calibration", "assay-tiny"
BUDGET, OVERLAP, UNITS_FOR_ADJUDICATION = 8, 2, 4
GUIDELINE = """Write the answer as a whole number, without a unit and without spaces.

Every question has one answer. If a question cannot be answered, mark it unanswerable and say why.
"""


def prepare_demo(say: Callable[[str], None]) -> Round:
    """Do what is not done yet, so that a demo which was stopped goes on where it was."""
    if there := Round.objects.filter(run__pool__name=POOL).first():
        say("The demo is set up already.")
        return there
    manager = _user("manager")
    if not Pool.objects.filter(name=POOL).exists():
        say("Importing 304 unanswered questions and 300 answered ones")
        pool = create_pool(name=POOL, by=None, description="Small sums and stories, some easy, some hard. Demo only.")
        add_member(pool=pool, user=manager, role=Role.MANAGER, by=None)
        for name, role in [
            ("annotator", Role.ANNOTATOR),
            ("annotator-2", Role.ANNOTATOR),
            ("adjudicator", Role.ADJUDICATOR),
        ]:
            add_member(pool=pool, user=_user(name), role=role, by=manager)
        save_guideline(pool=pool, text=GUIDELINE, by=manager)
        call_command("import_questions", str(FILES / "pool.jsonl"), "--pool", POOL)
        call_command("import_calibration", str(FILES / "calibration.jsonl"), "--set", CALIBRATION_SET, "--pool", POOL)
        create_policy_model(
            name=MODEL, engine="transformers", model=MODEL, temperature=1.0, max_tokens=80, probe_max_tokens=16, by=None
        )
    pool = Pool.objects.get(name=POOL)
    say(f"Asking {MODEL} each question 41 times, then choosing {BUDGET} of them")
    what = ["--pool", POOL, "--calibration", CALIBRATION_SET, "--model", MODEL]
    call_command("select", *what, "--budget", str(BUDGET), "--alpha", "0.2", "--seed", "0", "--wait")
    run = pool.runs.get(status="finished")
    say(f"Granting {BUDGET * OVERLAP + UNITS_FOR_ADJUDICATION} answers and opening the round, two answers a question")
    budget = grant_budget(pool=pool, name="Demo", units=BUDGET * OVERLAP + UNITS_FOR_ADJUDICATION, by=manager)
    return open_round(run=run, budget=budget, overlap=OVERLAP, by=manager)


def known_answers() -> dict[str, str]:
    """The right answers of the demo's pool by question text: for its scripted annotators and its checks only."""
    lines = (FILES / "pool_answers.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["question"]: row["answer"] for row in map(json.loads, lines)}


def _user(name: str) -> User:
    user, is_new = User.objects.get_or_create(username=name)
    if is_new:
        user.set_unusable_password()
        user.save()
    return user
