"""What an export needs of the engine: the reward file that travels with it, its verdict on golds, and pass rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from labeling.engine.answers import answer_clusters, policy_of
from labeling.engine.evidence import stored_votes
from labeling.models import Question, SelectionRun
from selector import rewards
from selector.answers import GRADER_VERSION

__all__ = [
    "GRADER_VERSION",
    "RewardFileChecks",
    "pass_rates",
    "rewards_source",
    "versions",
]


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
    policy = policy_of(run.pool)
    votes = {each.uid: each for each in stored_votes(run, list(golds))}
    rates = {}
    for question, gold in golds.items():
        readable = [answer for answer in votes[question.uid].outcome_answers if answer] if question.uid in votes else []
        if readable:
            gold_class, *classes = answer_clusters([gold, *readable], kind=question.answer_kind, policy=policy)
            rates[question.uid] = classes.count(gold_class) / len(readable)
    return rates
