"""A race that drives a model: from probed questions, through answers as text in whatever order they come, to the picks.

    race = open_race(votes, config, q_hat=q_hat, labels=labels, distances=distances, plan=plan, grader=grader)
    while not race.done:
        for row, index in race.wanted(free_places):
            ...                                  # ask the engine for outcome ``index`` of question ``row``
        race.observe(row, index, answer)         # "" for an unread one; store the completion as well

A run that was stopped opens the race again with the votes that are stored by then. Once the race is done, the same
votes give the picks: ``run_selection(votes, ..., race=RaceSettings("exact"))``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from selector.answers import AnswerClasses, AnswerPolicy
from selector.config import SelectionConfig
from selector.conformal import Floats
from selector.picking import set_sizes
from selector.racing.race import CONCURRENCY, Plan, Race
from selector.racing.selection import start_race
from selector.votes import QuestionVotes, build_table

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
    concurrency: int = CONCURRENCY,
) -> Race:
    """Return the exact race of questions whose probes are answered; the outcomes they have, by index, are heard first.

    ``q_hat`` may be one for each question [N]; ``labels`` and ``distances`` [N] as ``clusters_of`` gives them. Rows are
    those of ``votes``, which must be in the order of the selection: canonical, unless ties go by file order.
    """
    q_hats = np.broadcast_to(np.asarray(q_hat, np.float64), len(votes))
    probed = [replace(question, outcome_answers=()) for question in votes]
    codes_of = AnswerCodes(probed, config, policy=policy, grader=grader)
    race = start_race(
        build_table(probed, grouping=config.grouping, policy=policy, grader=grader),
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
