"""What an export needs of the engine: the reward file that travels with it, its verdict on golds, and pass rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path

from labeling.engine.answers import answer_clusters, policy_of
from labeling.engine.evidence import DatabaseCompletionStore, QuestionVotes, recorded_votes, votes_from_completions
from labeling.models import Question, SelectionRun
from selector import rewards
from selector.answers import GRADER_VERSION
from selector.errors import MissingCompletions

__all__ = ["GRADER_VERSION", "RewardFileChecks", "pass_rates", "rewards_source", "versions"]


class RewardFileChecks:
    """Golds as the exported reward file sees them, in its own worker processes."""

    def check_golds(self, golds: Sequence[str], kinds: Sequence[str]) -> Mapping[int, str]:
        """Return why which golds, by position, cannot serve."""
        return rewards.check_golds(golds, kinds)

    def agree(self, gold: str, other: str, kind: str) -> bool:
        """Whether either gold would earn the reward of the other."""
        return all(
            rewards.compute_score("", f"\\boxed{{{theirs}}}", ours, {"answer_kind": kind}) == 1.0
            for ours, theirs in ((gold, other), (other, gold))
        )


def rewards_source() -> str:
    """Return the text of the reward file."""
    return Path(rewards.__file__).read_text(encoding="utf-8")


def versions() -> dict[str, str]:
    """Return what an export's verdicts depend on."""
    return {"assay": version("assay-rlvr"), "grader": GRADER_VERSION, "math-verify": version("math-verify")}


def pass_rates(run: SelectionRun, golds: Mapping[Question, str]) -> dict[str, float]:
    """Return, by uid, the share of a run's readable rollouts that gave the gold answer.

    Left out are questions without a readable rollout or without stored answers.
    """
    votes = _votes(run, list(golds))
    policy = policy_of(run.pool)
    rates = {}
    for question, gold in golds.items():
        answers = [answer for answer in votes[question.uid].outcome_answers if answer] if question.uid in votes else []
        if answers:
            classes = answer_clusters([gold, *answers], kind=question.answer_kind, policy=policy)
            rates[question.uid] = classes[1:].count(classes[0]) / len(answers)
    return rates


def _votes(run: SelectionRun, questions: list[Question]) -> dict[str, QuestionVotes]:
    if run.policy_model is None:
        return recorded_votes(questions, run.generation_fingerprint)
    store = DatabaseCompletionStore(run.generation_fingerprint, nullcontext)
    counts = {name: run.config[name] for name in ("n_outcomes", "n_probes")}
    found = {}
    for question in questions:
        try:
            found[question.uid] = votes_from_completions([question], store, **counts)[0]
        except MissingCompletions:  # deleted since, to save room: the rate is not known
            continue
    return found
