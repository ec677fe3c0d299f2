"""The stages of a selection run: vectors, answers, picks. Each starts from what is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial

from labeling.engine.embeddings import DatabaseClusterings, Vectors, embedded
from labeling.engine.evidence import (
    DatabaseCompletionStore,
    QuestionVotes,
    Rows,
    recorded_votes,
    tokens_of,
    votes_from_completions,
    votes_of_nothing,
)
from labeling.engine.generation import (
    ModelOutcomes,
    OpenModel,
    check_same_settings,
    opened_model,
    probe,
    race_outcomes,
    remember_settings,
)
from labeling.engine.internals import Internals, internals_of, needs_internals
from labeling.engine.selection import needs_trajectories, reads_answers, select_questions
from labeling.errors import LabelingError
from labeling.models import Question, SelectionRun
from labeling.queries.runs import picks_gone_on_from, questions_spoken_for
from labeling.runs.attempt import Attempt
from labeling.runs.lease import Lease
from labeling.runs.results import save_results


@dataclass
class Evidence:
    """The votes of pool and calibration set. ``set_aside``: questions that could not be asked, where and why.
    ``internals``: of the pool's questions that were asked, where the strategy looks inside the model. ``outcomes``:
    those of the pool's full answers that a race still asks for."""

    votes: dict[str, list[QuestionVotes]] = field(default_factory=dict)  # by "calibration" and "pool"
    set_aside: list[dict[str, str]] = field(default_factory=list)
    tokens: dict[str, int] = field(default_factory=dict)
    generation: Mapping[str, object] = field(default_factory=dict)
    internals: Internals | None = None
    outcomes: ModelOutcomes | None = None


class RunStages(Attempt):
    """One attempt at a run."""

    def __init__(
        self,
        run: SelectionRun,
        lease: Lease,
        *,
        should_stop: Callable[[], bool],
        listener: Callable[[str, int, int], None],
    ) -> None:
        super().__init__(run, lease, should_stop=should_stop, listener=listener)
        self._run = run

    def execute(self) -> None:
        """Go through all stages and save the results. Raises LeaseLost, WorkStopped or LabelingError."""
        calibration_set = self._run.calibration_set
        items = [] if calibration_set is None else list(calibration_set.items.order_by("id"))
        questions = _questions(self._run)
        if not questions:
            raise LabelingError("The pool has no questions any more. Import some, then retry.", code="pool_too_small")
        embeddings = self._embeddings(questions)  # first: a wrong embedder fails before anything is paid for
        with ExitStack() as stack:
            evidence = self._evidence(items, questions, stack)
            self._select(questions, evidence, embeddings)

    def _select(self, questions: Sequence[Question], evidence: Evidence, embeddings: Vectors | None) -> None:
        """Pick from the evidence, which a race completes on the way, and save the results."""
        calibration_set = self._run.calibration_set
        for where, what in (("calibration", "calibration set"), ("pool", "pool")):
            is_needed = where == "pool" or (calibration_set is not None and reads_answers(self._run.config))
            if is_needed and not evidence.votes[where]:
                reason = next((each["message"] for each in evidence.set_aside if each["where"] == where), "it is empty")
                raise LabelingError(f"There are no answers to any question of the {what}: {reason}", code="no_answers")
        asked = {votes.uid for votes in evidence.votes["pool"]}
        kept = [row for row, question in enumerate(questions) if question.uid in asked]
        selected = select_questions(
            self._run,
            [questions[row] for row in kept],
            evidence.votes["pool"],
            evidence.votes["calibration"],
            embeddings=None if embeddings is None else embeddings[kept],
            internals=evidence.internals,
            ineligible=questions_spoken_for(self._run.pool),
            labeled=picks_gone_on_from(self._run),
            outcomes=evidence.outcomes,
            clusterings=DatabaseClusterings(self._lease.saving),
            progress=self.progress,
        )
        if evidence.outcomes is not None:
            keys = [question.fingerprint for question in questions]
            evidence.tokens["pool: outcomes"] = evidence.outcomes.count_tokens(keys)
            for uid, aside in sorted(evidence.outcomes.set_aside.items()):
                evidence.set_aside.append({"where": "pool", "id": uid, "code": aside.code, "message": aside.message})
        self._progress.write()
        report = {
            **selected.report,
            "generation": dict(evidence.generation),
            "set_aside": evidence.set_aside,
            "tokens": evidence.tokens,
            "seconds": self._progress.seconds(),
        }
        save_results(self._lease, selected, report)

    def _embeddings(self, questions: Sequence[Question]) -> Vectors | None:
        """Vectors [N, D] of the questions; None where the run names no embedder."""
        if not self._run.embedder:
            return None
        return embedded(
            questions,
            self._run.embedder,
            saving=self._lease.saving,
            progress=partial(self.progress, "embedding"),
        )

    def _progress_of(self, where: str, stage: str, done: int, total: int) -> None:
        self.progress(f"{where}: {stage}", done, total)

    def _evidence(self, items: Rows, questions: Rows, stack: ExitStack) -> Evidence:
        """Gather what the selection starts from; a model that a race will ask stays open as long as ``stack``."""
        if self._run.policy_model is None and not self._run.generation_fingerprint:
            return Evidence(votes={"calibration": [], "pool": [votes_of_nothing(question) for question in questions]})
        if self._run.policy_model is None:
            return self._recorded(items, questions)
        self.progress("opening the model", 0, 1)
        with ExitStack() as until_asked:
            holding = stack if self._is_raced else until_asked
            model = holding.enter_context(opened_model(self._run.policy_model))
            self.progress("opening the model", 1, 1)
            evidence = self._generated(model, items, questions)
            if evidence.outcomes is not None:
                holding.enter_context(closing(evidence.outcomes))
            return evidence

    @property
    def _is_raced(self) -> bool:
        return self._run.race != SelectionRun.Race.OFF

    def _must_stop(self) -> bool:
        """Look whether the attempt must stop, while the model is waited for; what it raises says why."""
        self.check()
        return False

    def _generated(self, model: OpenModel, items: Rows, questions: Rows) -> Evidence:
        """Ask the model for what is not stored yet, calibration first, and read the votes; look inside it if need be.

        A strategy that only looks inside the model needs one chain of each pool question and nothing else.
        """
        remember_settings(model)
        if self._run.generation_fingerprint:  # an earlier attempt: what it asked must have been the same model
            check_same_settings(pool=model.fingerprint, calibration=self._run.generation_fingerprint)
        self._lease.update(generation_fingerprint=model.fingerprint)
        evidence = Evidence(generation={"fingerprint": model.fingerprint, **model.parts})
        keep = str(self._run.policy_model.keep) if self._run.policy_model else "completions"
        store = DatabaseCompletionStore(model.fingerprint, self._lease.saving, keep=keep)
        n_outcomes, n_probes = self._run.config["n_outcomes"], self._run.config["n_probes"]
        asked_of: dict[str, Rows] = {"calibration": items, "pool": questions}
        if not reads_answers(self._run.config):
            n_outcomes = n_probes = 0
        if not items or not reads_answers(self._run.config):
            asked_of, evidence.votes["calibration"] = {"pool": questions}, []
        for where, rows in asked_of.items():
            is_raced = self._is_raced and where == "pool"
            probed = probe(
                model,
                rows,
                store=store,
                n_outcomes=0 if is_raced else n_outcomes,
                n_probes=n_probes,
                with_trajectories=bool(items) or needs_trajectories(self._run.config),
                seed=self._run.config["seed"],
                progress=partial(self._progress_of, where),
            )
            for uid, (code, message) in sorted(probed.set_aside.items()):
                evidence.set_aside.append({"where": where, "id": uid, "code": code, "message": message})
            evidence.tokens |= {f"{where}: {stage}": n for stage, n in probed.tokens.items()}
            asked = [row for row in rows if row.uid not in probed.set_aside]
            evidence.votes[where] = votes_from_completions(
                asked, store, n_outcomes=n_outcomes, n_probes=n_probes, may_lack_outcomes=is_raced
            )
            if is_raced:
                seed = self._run.config["seed"]
                evidence.outcomes = race_outcomes(model, asked, store=store, seed=seed, should_stop=self._must_stop)
        if needs_internals(self._run.config) and asked:
            evidence.internals = internals_of(
                model,
                asked,
                store,
                saving=self._lease.saving,
                progress=partial(self.progress, "pool: reading internals"),
            )
        return evidence

    def _recorded(self, items: Rows, questions: Rows) -> Evidence:
        """Take the votes recorded for the run's generation fingerprint; questions without any are set aside."""
        fingerprint = self._run.generation_fingerprint
        evidence = Evidence(generation={"fingerprint": fingerprint})
        for where, rows in (("calibration", items), ("pool", questions)):
            found = recorded_votes(rows, fingerprint)
            evidence.votes[where] = [found[row.uid] for row in rows if row.uid in found]
            evidence.tokens |= {f"{where}: {what}": n for what, n in tokens_of(evidence.votes[where]).items()}
            evidence.set_aside += [
                {"where": where, "id": row.uid, "code": "no_recorded_votes", "message": "No votes are recorded for it."}
                for row in rows
                if row.uid not in found
            ]
        self._run.config |= _numbers_of_votes([*evidence.votes["calibration"], *evidence.votes["pool"]])
        self._lease.update(config=self._run.config)
        return evidence


def _questions(run: SelectionRun) -> list[Question]:
    """The run's questions in the order they came in; under a limit always the same ones, whatever that order was."""
    questions = sorted(run.pool.questions.all(), key=lambda question: hashlib.sha256(question.uid.encode()).digest())
    return sorted(questions[: run.question_limit], key=lambda question: question.pk)


def _numbers_of_votes(votes: Sequence[QuestionVotes]) -> dict[str, int]:
    """Return n_probes and n_outcomes as they were recorded. Raises LabelingError where questions differ in them."""
    numbers = {(len(each.probe_answers), len(each.outcome_answers)): each.uid for each in votes}
    if len(numbers) != 1:
        shown = "; ".join(
            f"“{uid}” has {probes} probes and {outcomes} outcomes" for (probes, outcomes), uid in numbers.items()
        )
        raise LabelingError(
            f"The recorded votes differ in number: {shown or 'there are none'}. "
            "Record the same number for every question of the pool and the calibration set.",
            code="uneven_votes",
        )
    ((n_probes, n_outcomes),) = numbers
    return {"n_probes": n_probes, "n_outcomes": n_outcomes}
