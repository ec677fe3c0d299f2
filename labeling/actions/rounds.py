"""Rounds: the picks of a run, opened for labeling on a budget."""

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from labeling import policies
from labeling.actions.checks import add_checks, check_practice
from labeling.actions.settling import settle_round
from labeling.audit import record_event
from labeling.errors import Conflict, LabelingError
from labeling.models import (
    Budget,
    BudgetUnit,
    CalibrationSet,
    GoldAnswer,
    Guideline,
    Pool,
    Round,
    SelectionRun,
    Slot,
    User,
)
from labeling.models.rounds import MOST_OVERLAP

MOST_HELD = 100_000
MOST_CHECKS_PER_ANSWER = 0.5
MOST_PRACTICE = 10


@transaction.atomic
def open_round(
    *,
    run: SelectionRun,
    budget: Budget,
    overlap: int = 1,
    held: int | None = None,
    calibration_set: CalibrationSet | None = None,
    check_rate: float = 0.0,
    n_practice: int = 0,
    practice_may_be_skipped: bool = False,
    blindness: str = Round.Blindness.REVEAL_AFTER,
    control_share: float = 0.1,
    by: User | None,
) -> Round:
    """Open the run's picks for labeling: ``overlap`` slots for each, one unit of the budget for each slot.

    ``held`` units more are held back for adjudications and replacements, and given back when the round closes. By
    default it is one for each question where answers can disagree, so that no disagreement ever waits for money, or as
    many as the budget has left.
    ``check_rate`` calibration checks for each answer asked, unmarked and with units of their own; ``n_practice``
    practice questions before a person's first; both from ``calibration_set``, by default the run's.
    Refused, with the exact numbers or the questions' names, when units are missing or a question is labeled already or
    is being labeled in another round.
    """
    policies.check_can_manage(run.pool, by)
    if budget.pool_id != run.pool_id:
        raise LabelingError(
            _("The budget %(budget)s belongs to another pool.") % {"budget": budget}, code="budget_of_another_pool"
        )
    if budget.purpose != Budget.Purpose.LABELS:
        raise LabelingError(
            _("%(budget)s pays for calibration checks only.") % {"budget": budget}, code="budget_for_checks"
        )
    calibration_set = (calibration_set or run.calibration_set) if check_rate or n_practice else None
    _check_quality(run.pool, calibration_set, check_rate, n_practice)
    if not 1 <= overlap <= MOST_OVERLAP:
        raise LabelingError(
            _("Found an overlap of %(overlap)s; a question gets between 1 and %(most_overlap)s answers.")
            % {"overlap": overlap, "most_overlap": MOST_OVERLAP},
            code="overlap_invalid",
        )
    _check_blindness(blindness, control_share)
    if run.status != SelectionRun.Status.FINISHED:
        raise Conflict(
            _("%(run)s is %(status)s; only a finished run has picks.")
            % {"run": run, "status": run.get_status_display().lower()},
            code="run_not_finished",
        )
    Pool.objects.select_for_update(no_key=True).get(pk=run.pool_id)
    Budget.objects.select_for_update(no_key=True).get(pk=budget.pk)
    picks = list(run.picks.select_related("question").order_by("rank"))
    if not picks:
        raise Conflict(
            _("%(run)s picked no question, so there is nothing to label.") % {"run": run}, code="run_without_picks"
        )
    questions = [pick.question_id for pick in picks]
    _refuse(
        _("%(n)s of the picked questions are labeled already: %(named)s."),
        "question_has_gold",
        list(
            GoldAnswer.objects.filter(question__in=questions)
            .order_by("question__uid")
            .values_list("question__uid", flat=True)
        ),
    )
    _refuse(
        _("%(n)s of the picked questions are being labeled in another round; close it first: %(named)s."),
        "question_in_round",
        list(
            Slot.objects.filter(question__in=questions)
            .exclude(state=Slot.State.VOID)
            .exclude(round__status=Round.Status.CLOSED)
            .order_by("question__uid")
            .values_list("question__uid", flat=True)
            .distinct()
        ),
    )
    units, held_units = _units_for(budget, n_questions=len(picks), overlap=overlap, held=held)
    round = Round.objects.create(
        run=run,
        budget=budget,
        overlap=overlap,
        calibration_set=calibration_set,
        check_rate=check_rate,
        n_practice=n_practice,
        practice_may_be_skipped=practice_may_be_skipped,
        blindness=blindness,
        control_share=control_share,
        guideline=Guideline.objects.filter(pool=run.pool).order_by("-version").first(),
        created_by=by,
    )
    BudgetUnit.objects.filter(pk__in=[unit.pk for unit in held_units]).update(held_for=round)
    free = iter(units)
    slots = [
        Slot(round=round, unit=next(free), question=pick.question, priority=pick.rank)
        for pick in picks
        for _copy in range(overlap)
    ]
    check_practice(round=round, asked={pick.question.fingerprint for pick in picks})
    Slot.objects.bulk_create(add_checks(round=round, slots=slots, by=by), batch_size=1000)
    record_event(
        "round.opened",
        target=round,
        by=by,
        pool=run.pool,
        budget=budget,
        questions=len(picks),
        overlap=overlap,
        units=len(units),
        held=len(held_units),
        check_rate=check_rate,
        practice=n_practice,
    )
    return round


def n_held_by_default(n_questions: int, overlap: int) -> int:
    """Return how many units a round holds back: one for each question that people can disagree on."""
    return n_questions if overlap > 1 else 0


def _units_for(
    budget: Budget, *, n_questions: int, overlap: int, held: int | None
) -> tuple[list[BudgetUnit], list[BudgetUnit]]:
    """Return free units for the answers, and those to be held back. Raises Conflict with the exact numbers."""
    if held is not None and not 0 <= held <= MOST_HELD:
        raise LabelingError(
            _("Found %(held)s units to hold back; a round holds between 0 and %(most_held)s.")
            % {"held": held, "most_held": f"{MOST_HELD:,}"},
            code="held_invalid",
        )
    answers = n_questions * overlap
    wanted = answers + (held or 0)
    most = answers + (n_held_by_default(n_questions, overlap) if held is None else held)
    found = list(budget.units.free().order_by("number")[:most])
    if len(found) < wanted:
        if held:
            words = _(
                "%(n_questions)s questions × %(overlap)s answers and %(held)s held back need %(wanted)s units; "
                "%(budget)s has %(free)s free, %(missing)s too few. Add units, or lower the overlap or what is held "
                "back."
            )
        else:
            words = _(
                "%(n_questions)s questions × %(overlap)s answers need %(wanted)s units; %(budget)s has %(free)s free, "
                "%(missing)s too few. Add units, or lower the overlap."
            )
        raise Conflict(
            words
            % {
                "n_questions": n_questions,
                "overlap": overlap,
                "held": held,
                "wanted": wanted,
                "budget": budget,
                "free": len(found),
                "missing": wanted - len(found),
            },
            code="units_missing",
            wanted=wanted,
            free=len(found),
            missing=wanted - len(found),
        )
    return found[:answers], found[answers:]


def _check_quality(pool: Pool, calibration_set: CalibrationSet | None, check_rate: float, n_practice: int) -> None:
    if not 0 <= check_rate <= MOST_CHECKS_PER_ANSWER:
        raise LabelingError(
            _(
                "Found a check rate of %(check_rate)s; it lies between 0 and %(most_checks_per_answer)s checks "
                "for each answer."
            )
            % {"check_rate": check_rate, "most_checks_per_answer": MOST_CHECKS_PER_ANSWER},
            code="check_rate_invalid",
        )
    if not 0 <= n_practice <= MOST_PRACTICE:
        raise LabelingError(
            _("Found %(n_practice)s practice questions; a round has between 0 and %(most_practice)s.")
            % {"n_practice": n_practice, "most_practice": MOST_PRACTICE},
            code="practice_invalid",
        )
    if (check_rate or n_practice) and calibration_set is None:
        raise LabelingError(
            _("Checks and practice come from a calibration set, and the run has none. Choose a set, or 0 for both."),
            code="calibration_set_missing",
        )
    if calibration_set is not None and calibration_set.pool_id not in (None, pool.pk):
        raise LabelingError(
            _("The calibration set %(calibration_set)s belongs to another pool.")
            % {"calibration_set": calibration_set},
            code="calibration_set_of_another_pool",
        )


def _check_blindness(blindness: str, control_share: float) -> None:
    if blindness not in Round.Blindness.values:
        raise LabelingError(
            _("Found %(blindness)s for when the model's answers are shown. There are: %(values)s.")
            % {"blindness": f"{blindness!r}", "values": ", ".join(Round.Blindness.values)},
            code="blindness_invalid",
        )
    if not 0 <= control_share <= 1:
        raise LabelingError(
            _("Found %(control_share)s for the share of questions that stay blind; it lies between 0 and 1.")
            % {"control_share": control_share},
            code="control_share_invalid",
        )


def _refuse(words: str, code: str, uids: Sequence[str]) -> None:
    if uids:
        named = ", ".join(uids[:5])
        if len(uids) > 5:
            named = _("%(named)s and %(n)s more") % {"named": named, "n": len(uids) - 5}
        raise Conflict(words % {"n": len(uids), "named": named}, code=code, uids=list(uids))


@transaction.atomic
def pause_round(*, round: Round, by: User | None) -> Round:
    """Stop giving out questions; whoever holds one may finish it. Pausing again changes nothing."""
    return _change_status(round, Round.Status.PAUSED, by)


@transaction.atomic
def resume_round(*, round: Round, by: User | None) -> Round:
    """Give out questions again."""
    return _change_status(round, Round.Status.LIVE, by)


def close_round(*, round: Round, by: User | None) -> Round:
    """End a round: give back the units of all slots that are not done and those held back; settle what can be.

    What comes in afterwards is kept as surplus.
    """
    with transaction.atomic():
        round = _change_status(round, Round.Status.CLOSED, by)
        pending = Slot.objects.filter(round=round, state__in=[Slot.State.OPEN, Slot.State.LEASED])
        n_answers = pending.exclude(purpose=Slot.Purpose.CHECK).count()
        pending.update(state=Slot.State.VOID, lease_until=None)
        n_held = round.held_units.untaken().count()
        round.held_units.update(held_for=None)
        if n_answers or n_held:
            record_event(
                "round.gave_back",
                target=round,
                by=by,
                pool=round.pool,
                budget=round.budget_id,
                units=n_answers,
                held=n_held,
            )
    settle_round(round=round)
    return round


def _change_status(round: Round, to: Round.Status, by: User | None) -> Round:
    policies.check_can_manage(round.pool, by)
    found = Round.objects.select_for_update(no_key=True).get(pk=round.pk)
    if found.status == to:
        return found
    if to not in Round.ALLOWED_TRANSITIONS[Round.Status(found.status)]:
        raise Conflict(
            _("%(round)s is %(status)s and cannot become %(wanted)s.")
            % {"round": found, "status": found.get_status_display().lower(), "wanted": to.label.lower()},
            code="round_status",
        )
    found.status = to
    found.closed_at = timezone.now() if to == Round.Status.CLOSED else None
    found.save(update_fields=["status", "closed_at"])
    record_event(f"round.{to.value}", target=found, by=by, pool=found.pool)
    return found
