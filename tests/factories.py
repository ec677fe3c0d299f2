"""Builders of test data: keyword-only, with defaults that make a valid object of whatever is not given."""

import itertools
from datetime import timedelta

from django.utils import timezone

from labeling.models import (
    Budget,
    BudgetUnit,
    CalibrationItem,
    CalibrationSet,
    DatasetSnapshot,
    Draft,
    Membership,
    Pick,
    PolicyModel,
    Pool,
    Question,
    QuestionScore,
    Role,
    Round,
    SelectionRun,
    Slot,
    User,
)

_numbers = itertools.count(1)

RUN_CONFIG = {"strategy": "const", "n_outcomes": 20, "n_probes": 20}


def make_user(*, username: str = "", pool: Pool | None = None, roles: tuple[Role, ...] = (), **fields: object) -> User:
    """A person with an account, optionally with roles in a pool."""
    user = User(username=username or f"user{next(_numbers)}", **fields)
    user.set_unusable_password()
    user.save()
    for role in roles:
        make_membership(pool=pool, user=user, role=role)
    return user


def make_membership(*, pool: Pool, user: User, role: Role = Role.ANNOTATOR) -> Membership:
    return Membership.objects.create(pool=pool, user=user, role=role)


def make_pool(*, name: str = "", manager: User | None = None, **fields: object) -> Pool:
    number = next(_numbers)
    pool = Pool.objects.create(
        name=name or f"Pool {number}", slug=fields.pop("slug", f"pool-{number}"), created_by=manager, **fields
    )
    if manager is not None:
        make_membership(pool=pool, user=manager, role=Role.MANAGER)
    return pool


def make_question(*, pool: Pool | None = None, text: str = "", **fields: object) -> Question:
    number = next(_numbers)
    return Question.objects.create(
        pool=pool or make_pool(),
        uid=fields.pop("uid", f"q{number}"),
        fingerprint=fields.pop("fingerprint", f"{number:064x}"),
        text=text or f"What is {number} + 1?",
        answer_kind=fields.pop("answer_kind", "number"),
        **fields,
    )


def make_questions(*, pool: Pool, n: int, **fields: object) -> list[Question]:
    return [make_question(pool=pool, **fields) for _ in range(n)]


def make_calibration_set(*, pool: Pool | None = None, name: str = "", n_items: int = 0) -> CalibrationSet:
    calibration_set = CalibrationSet.objects.create(name=name or f"Calibration {next(_numbers)}", pool=pool)
    for _ in range(n_items):
        make_calibration_item(calibration_set=calibration_set)
    return calibration_set


def make_calibration_item(*, calibration_set: CalibrationSet, **fields: object) -> CalibrationItem:
    number = next(_numbers)
    return CalibrationItem.objects.create(
        calibration_set=calibration_set,
        uid=fields.pop("uid", f"c{number}"),
        fingerprint=fields.pop("fingerprint", f"{number:064x}"),
        text=fields.pop("text", f"What is {number} + 2?"),
        answer=fields.pop("answer", str(number + 2)),
        answer_kind=fields.pop("answer_kind", "number"),
        **fields,
    )


def make_policy_model(*, name: str = "", **fields: object) -> PolicyModel:
    return PolicyModel.objects.create(
        name=name or f"Model {next(_numbers)}",
        engine=fields.pop("engine", PolicyModel.EngineKind.SCRIPTED),
        model=fields.pop("model", "scripted"),
        **fields,
    )


def make_run(
    *, pool: Pool | None = None, questions: list[Question] | None = None, n_picks: int = 0, **fields: object
) -> SelectionRun:
    """A finished run that picked the given questions, or ``n_picks`` new ones."""
    pool = pool or make_pool()
    if fields.get("policy_model") is None:
        fields.setdefault("generation_fingerprint", "recorded")
    run = SelectionRun.objects.create(
        pool=pool,
        config=fields.pop("config", dict(RUN_CONFIG)),
        status=fields.pop("status", SelectionRun.Status.FINISHED),
        **fields,
    )
    for rank, question in enumerate(questions or make_questions(pool=pool, n=n_picks), start=1):
        make_pick(run=run, question=question, rank=rank)
    return run


def make_pick(*, run: SelectionRun, question: Question, rank: int, **fields: object) -> Pick:
    return Pick.objects.create(
        run=run,
        question=question,
        rank=rank,
        set_size=fields.pop("set_size", 2),
        acquisition_score=fields.pop("acquisition_score", 2.0),
        **fields,
    )


def make_score(*, run: SelectionRun, question: Question, **fields: object) -> QuestionScore:
    """What the run measured of the question; without a place on the map unless x and y are given."""
    measured = {"set_size": 1, "acquisition_score": 1.0, "entropy": 0.0, "n_readable": 1, "n_distinct": 1}
    return QuestionScore.objects.create(run=run, question=question, **measured | fields)


def make_budget(*, pool: Pool | None = None, name: str = "", units: int = 10) -> Budget:
    budget = Budget.objects.create(pool=pool or make_pool(), name=name or f"Budget {next(_numbers)}")
    BudgetUnit.objects.bulk_create([BudgetUnit(budget=budget, number=number) for number in range(1, units + 1)])
    return budget


def make_round(
    *,
    pool: Pool | None = None,
    n_questions: int = 1,
    overlap: int = 1,
    units: int | None = None,
    run: SelectionRun | None = None,
    budget: Budget | None = None,
    **fields: object,
) -> Round:
    """A live round with open slots. ``units``: size of its budget; exactly what the slots take by default."""
    pool = run.pool if run else pool or make_pool()
    run = run or make_run(pool=pool, n_picks=n_questions)
    picks = list(run.picks.select_related("question").order_by("rank"))
    budget = budget or make_budget(pool=pool, units=len(picks) * overlap if units is None else units)
    round = Round.objects.create(run=run, budget=budget, overlap=overlap, **fields)
    free = iter(budget.units.free().order_by("number"))
    Slot.objects.bulk_create(
        [
            Slot(round=round, unit=next(free), question=pick.question, priority=pick.rank)
            for pick in picks
            for _ in range(overlap)
        ]
    )
    return round


def make_held_slot(*, round: Round, user: User, slot: Slot | None = None, lapsed: bool = False) -> Slot:
    """An open slot of the round (its first one by default) in the hands of the user, whose time may have run out."""
    slot = slot or round.slots.filter(state=Slot.State.OPEN).order_by("priority", "id")[0]
    now = timezone.now()
    slot.state, slot.holder, slot.claimed_at = Slot.State.LEASED, user, now
    slot.lease_until = now + timedelta(minutes=-1 if lapsed else 30)
    slot.save()
    Draft.objects.get_or_create(round=round, author=user, **slot.asked_ids)
    return slot


def make_snapshot(*, pool: Pool | None = None, n_rows: int = 2) -> DatasetSnapshot:
    """Frozen gold answers of questions u0, u1, ..., which need not be in the pool any more."""
    number = next(_numbers)
    rows = [
        {"uid": f"u{i}", "question": f"What is {i} + 3?", "answer": str(i + 3), "answer_kind": "number"}
        for i in range(n_rows)
    ]
    return DatasetSnapshot.objects.create(
        pool=pool or make_pool(), rows=rows, n_rows=n_rows, sha256=f"{number:064x}", grader_version="test"
    )
