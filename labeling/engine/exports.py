"""What an export needs of the engine: the reward file that travels with it, its verdict on golds, and pass rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    "RolloutCounts",
    "pass_rates",
    "rewards_source",
    "rollout_counts",
    "versions",
]


@dataclass(frozen=True)
class RolloutCounts:
    """Of one question's stored rollouts: how many there are, could be read, and gave the gold answer."""

    n: int
    n_readable: int
    n_right: int


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
    counts = rollout_counts(run, golds)
    return {uid: count.n_right / count.n_readable for uid, count in counts.items() if count.n_readable}


def rollout_counts(run: SelectionRun, golds: Mapping[Question, str]) -> dict[str, RolloutCounts]:
    """Return, by uid, what a run's stored rollouts gave; questions without stored answers are left out."""
    policy = policy_of(run.pool)
    counts = {}
    votes = {each.uid: each for each in stored_votes(run, list(golds))}
    for question, gold in golds.items():
        if question.uid not in votes:
            continue
        rollouts = votes[question.uid].outcome_answers
        readable = [answer for answer in rollouts if answer]
        gold_class, *classes = answer_clusters([gold, *readable], kind=question.answer_kind, policy=policy)
        counts[question.uid] = RolloutCounts(len(rollouts), len(readable), classes.count(gold_class))
    return counts
