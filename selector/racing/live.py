"""A race that drives a model: from probed questions, through answers as text in whatever order they come, to the picks.

    race = open_race(votes, config, q_hat=q_hat, labels=labels, distances=distances, plan=plan, grader=grader)
    while not race.done:
        for row, index in race.wanted(free_places):
            ...                                  # ask the engine for outcome ``index`` of question ``row``
        race.observe(row, index, answer)         # "" for an unread one; store the completion as well

A run that was stopped opens the race again with the votes that are stored by then. Once the race is done, the same
votes give the picks: ``run_selection(votes, ..., race=RaceSettings("exact"))``. ``draw_outcomes`` does it all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from selector.answers import AnswerClasses, AnswerPolicy
from selector.config import SelectionConfig
from selector.conformal import Floats
from selector.generation.contract import SetAside
from selector.outcomes import Heard
from selector.picking import set_sizes
from selector.racing.calibration import OutcomesWanted, race_calibration
from selector.racing.race import CONCURRENCY, Plan, Race
from selector.racing.selection import run_race, start_race
from selector.votes import QuestionVotes, VoteSource, VoteTable, build_table

if TYPE_CHECKING:
    from selector.answers import Grader


def open_race(
    votes: Sequence[QuestionVotes],
    config: SelectionConfig,
    *,
    q_hat: float | Floats,
    labels: NDArray[np.intp],
    distances: Floats | None,
    plan: Plan,
    grader: Grader | None = None,
    policy: AnswerPolicy | None = None,
    source: VoteSource = "all",
    concurrency: int = CONCURRENCY,
) -> Race:
    """Return the exact race of questions whose probes are answered; the outcomes they have, by index, are heard first.

    ``q_hat`` may be one for each question [N]; ``labels`` and ``distances`` [N] as ``clusters_of`` gives them. Rows are
    those of ``votes``, which must be in the order of the selection: canonical, unless ties go by file order.
    ``source``: which answers the strategy reads.
    """
    q_hats = np.broadcast_to(np.asarray(q_hat, np.float64), len(votes))
    probed = [replace(question, outcome_answers=()) for question in votes]
    codes_of = AnswerCodes(probed, config, policy=policy, grader=grader)
    race = start_race(
        build_table(probed, grouping=config.grouping, policy=policy, grader=grader, n_outcomes=0).of(source),
        config,
        n_outcomes=config.n_outcomes,
        q_hats=q_hats,
        distances=distances,
        plan=replace(plan, labels=labels),
        concurrency=concurrency,
        code_of=codes_of,
        final_sizes=lambda rows, codes: set_sizes(codes_of.as_in_table(rows, codes), q_hats[rows], config),
    )
    for row, question in enumerate(votes):
        for index, answer in enumerate(question.outcome_answers):
            race.observe(row, index, answer)
    return race


class AnswerCodes:
    """Codes of answers as they come, by the rule that groups complete votes: what comes later changes nothing."""

    def __init__(
        self,
        probed: Sequence[QuestionVotes],
        config: SelectionConfig,
        *,
        policy: AnswerPolicy | None,
        grader: Grader | None,
    ) -> None:
        self.probed, self.policy, self.grader = probed, policy or AnswerPolicy(), grader
        self.by_equivalence = config.grouping == "equivalence"
        self._classes: dict[int, AnswerClasses] = {}
        self._names: dict[int, list[str]] = {}

    def __call__(self, row: int, answer: str) -> int:
        """Return the code of the next answer to a question; -1 for an unread one."""
        if self.by_equivalence:
            return self._classes_of(row).class_of(answer)
        names = self._names_of(row)
        if answer and answer not in names:
            names.append(answer)
        return names.index(answer) if answer else -1

    def as_in_table(self, rows: NDArray[np.intp], codes: NDArray[np.int16]) -> NDArray[np.int16]:
        """Return codes numbered as those of complete votes are; exact strings are numbered in their order."""
        if self.by_equivalence:
            return codes
        renumbered = codes.copy()
        for place, row in enumerate(rows.tolist()):
            names = self._names_of(row)
            number_of = {name: number for number, name in enumerate(sorted(names))}
            order = np.array([*(number_of[name] for name in names), -1], np.int16)  # the last one is for -1
            renumbered[place] = order[codes[place]]
        return renumbered

    def _classes_of(self, row: int) -> AnswerClasses:
        if row not in self._classes:
            question = self.probed[row]
            classes = AnswerClasses(question.kind, self.policy, self.grader if question.kind else None)
            for answer in question.probe_answers:
                classes.class_of(answer)
            self._classes[row] = classes
        return self._classes[row]

    def _names_of(self, row: int) -> list[str]:
        if row not in self._names:
            self._names[row] = sorted({answer for answer in self.probed[row].probe_answers if answer})
        return self._names[row]


class OutcomeSource(Protocol):
    """Where outcomes come from while they are raced for; ``selector.outcomes.ModelOutcomes`` asks a model."""

    set_aside: dict[str, SetAside]
    fewest_at_once: int  # answers to ask for, so that whoever answers is not kept waiting

    @property
    def n_in_flight(self) -> int: ...

    def ask(self, wanted: Sequence[tuple[str, int]]) -> None: ...

    def heard(self) -> list[Heard | SetAside]: ...


def draw_outcomes(
    votes: Sequence[QuestionVotes],
    config: SelectionConfig,
    *,
    q_hat: float | Floats,
    labels: NDArray[np.intp],
    distances: Floats | None,
    is_barred: NDArray[np.bool_],
    is_labeled: NDArray[np.bool_],
    per_cluster: int,
    source: VoteSource,
    outcomes: OutcomeSource,
    grader: Grader | None = None,
    policy: AnswerPolicy | None = None,
    concurrency: int = CONCURRENCY,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> tuple[list[QuestionVotes], list[dict[str, int]]]:
    """Ask for outcomes until the picks are known, and return the votes with all that were drawn, by index.

    Beside them, how the race went: at some moments the outcomes heard, the questions that can still be picked and the
    clusters decided. A question that the model refuses on the way is barred, in ``is_barred`` [N] too.
    """
    race = open_race(
        votes,
        config,
        q_hat=q_hat,
        labels=labels,
        distances=distances,
        plan=Plan(labels, {}, 0, excluded=is_barred, settle_eligibility=config.n_controls > 0),
        grader=grader,
        policy=policy,
        source=source,
        concurrency=concurrency,
    )
    drive = _Drive(votes, outcomes, is_barred, progress)
    uids = [question.uid for question in votes]
    run_race(race, drive, config, uids, labels, is_barred=is_barred, is_labeled=is_labeled, per_cluster=per_cluster)
    return drive.votes(race), drive.history


def draw_calibration(
    votes: Sequence[QuestionVotes],
    config: SelectionConfig,
    groups: Sequence[str] | None,
    *,
    table_of: Callable[[Sequence[QuestionVotes]], VoteTable],
    outcomes: OutcomeSource,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> list[QuestionVotes]:
    """Ask for outcomes of calibration questions until the threshold is known; return the votes with those drawn.

    ``table_of`` codes votes as a selection does. A question that the model refuses on the way has no more answers.
    Raises CalibrationSetTooSmall and what ``outcomes`` raises.
    """
    found = list(votes)
    row_of = {question.uid: row for row, question in enumerate(found)}
    table, n_all = table_of(found), len(found) * config.n_outcomes
    while True:
        progress("racing for the threshold", sum(len(each.outcome_answers) for each in found), n_all)
        try:
            race_calibration(table, config, groups)
        except OutcomesWanted as wanted:
            rows = wanted.rows
        else:
            return found
        outcomes.ask([(found[row].uid, len(found[row].outcome_answers)) for row in rows])
        waiting = set(rows)
        while waiting:
            for heard in outcomes.heard():
                row = row_of[heard.uid]
                waiting.discard(row)
                n = 1 if isinstance(heard, Heard) else config.n_outcomes - len(found[row].outcome_answers)
                answer, n_tokens = (heard.answer, heard.n_tokens) if isinstance(heard, Heard) else ("", 0)
                found[row] = replace(
                    found[row],
                    outcome_answers=(*found[row].outcome_answers, *([answer] * n)),
                    outcome_tokens=(*(found[row].outcome_tokens or ()), *([n_tokens] * n)),
                )
        part = table_of([found[row] for row in rows])
        table.codes[rows], table.truth_codes[rows] = part.codes, part.truth_codes


class _Drive:
    """Runs races of some questions to their end on answers that come as they are made."""

    def __init__(
        self,
        votes: Sequence[QuestionVotes],
        outcomes: OutcomeSource,
        is_barred: NDArray[np.bool_],
        progress: Callable[[str, int, int], None],
    ) -> None:
        self._votes, self._outcomes, self._is_barred, self._progress = votes, outcomes, is_barred, progress
        self._row_of = {question.uid: row for row, question in enumerate(votes)}
        self._heard: dict[int, dict[int, Heard]] = {}
        self.history: list[dict[str, int]] = []

    def __call__(self, race: Race) -> None:
        for uid in self._outcomes.set_aside:
            self._leave_out(race, self._row_of[uid])
        while not race.done:
            room = race.concurrency - self._outcomes.n_in_flight
            wanted = race.wanted(room) if room > 0 else []
            if wanted:
                self._outcomes.ask([(self._votes[row].uid, index) for row, index in wanted])
            for heard in self._outcomes.heard():
                row = self._row_of[heard.uid]
                if isinstance(heard, Heard):
                    self._heard.setdefault(row, {})[heard.index] = heard
                    race.observe(row, heard.index, heard.answer)
                else:
                    self._leave_out(race, row)
            self._note(race)
        self._progress("racing", len(race) * race.n_outcomes, len(race) * race.n_outcomes)

    def _leave_out(self, race: Race, row: int) -> None:
        self._is_barred[row] = True
        excluded = self._is_barred if race.plan.excluded is None else race.plan.excluded | self._is_barred
        complete = tuple(each for each in race.plan.complete if each != row)
        race.replan(replace(race.plan, excluded=excluded, complete=complete))

    def _note(self, race: Race) -> None:
        """Tell and keep how far the race is, whenever another percent of all outcomes was heard.

        Done is what was heard of questions that are open, and everything of the others.
        """
        n_heard = int(race.n_drawn.sum())
        if self.history and n_heard < self.history[-1]["outcomes"] + max(1, len(race) * race.n_outcomes // 100):
            return
        rows, n_all = race.open_rows(), len(race) * race.n_outcomes
        self._progress("racing", n_all - int(np.sum(race.n_outcomes - race.n_drawn[rows])), n_all)
        self.history.append({"outcomes": n_heard, "open": len(rows), "decided": race.n_clusters_decided})

    def votes(self, race: Race) -> list[QuestionVotes]:
        """Return the votes with the outcomes that count: of each question the first ones, without a gap."""
        found = []
        for row, question in enumerate(self._votes):
            n_before, heard = len(question.outcome_answers), self._heard.get(row, {})
            drawn = [heard[index] for index in range(n_before, int(race.n_drawn[row])) if index in heard]
            tokens = (*(question.outcome_tokens or ()), *(each.n_tokens for each in drawn))
            answers = (*question.outcome_answers, *(each.answer for each in drawn))
            found.append(replace(question, outcome_answers=answers, outcome_tokens=tokens or None))
        return found
