"""What each strategy would have had to ask of the model: completions, and tokens by one stated cost model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selector.strategies import Cost
from selector.votes import QuestionVotes

PREFILL = 0.25  # what a token that is read costs, in tokens that are written
PROMPT_TOKENS = 150  # where a question's prompt was not counted
ANSWER_TOKENS = 864  # where neither chain nor rollouts were counted: the mean of a mixed pool of competition maths
PROBE_TOKENS = 16  # the forced answer
PROBE_PROMPT_TOKENS = 30  # what asks for it, after the cut chain
COST_MODEL = (
    "In written tokens; a token that is only read costs a quarter of one. A chain: its length, and its prompt read. "
    "Probes: 16 tokens each and 30 read, and prompt and chain read once for all of them (prefix caching). An outcome: "
    "its length, and the prompt read where no chain had read it. A forward pass: prompt and chain read once more. "
    "Embedding is not counted."
)


@dataclass(frozen=True)
class Lengths:
    """Tokens of N questions: of the prompt, of the greedy chain, of one rollout (their mean). ``sources`` by name:
    "recorded" for all, "assumed" for all, or how many are recorded."""

    prompt: NDArray[np.float64]
    chain: NDArray[np.float64]
    outcome: NDArray[np.float64]
    sources: dict[str, str]


def lengths_of(votes: Sequence[QuestionVotes]) -> Lengths:
    """Return the lengths that were recorded; a missing one is the mean of the recorded ones, else an assumption.

    A chain without a count is taken to be as long as the question's rollouts, and the other way round.
    """
    prompt = np.array([_number(each.prompt_tokens) for each in votes], np.float64)
    chain = np.array([_number(each.trajectory_tokens) for each in votes], np.float64)
    outcome = np.array(
        [float(np.mean(each.outcome_tokens)) if each.outcome_tokens else np.nan for each in votes], np.float64
    )
    sources = {
        name: _source(found)
        for name, found in (("prompt_tokens", prompt), ("trajectory_tokens", chain), ("outcome_tokens", outcome))
    }
    either = np.where(np.isnan(chain), outcome, chain)
    return Lengths(
        prompt=_filled(prompt, PROMPT_TOKENS),
        chain=_filled(either, ANSWER_TOKENS),
        outcome=_filled(np.where(np.isnan(outcome), either, outcome), ANSWER_TOKENS),
        sources=sources,
    )


def tokens_of(cost: Cost, lengths: Lengths) -> float:
    """Return the tokens that so many completions of every question cost together, by ``COST_MODEL``."""
    read = np.zeros(len(lengths.prompt))
    written = cost.trajectories * lengths.chain + cost.probes * PROBE_TOKENS + cost.outcomes * lengths.outcome
    if cost.trajectories or cost.outcomes:
        read += lengths.prompt
    if cost.probes:
        read += cost.probes * PROBE_PROMPT_TOKENS + lengths.prompt + lengths.chain
    read += cost.forward_passes * (lengths.prompt + lengths.chain)
    return float(np.sum(written + PREFILL * read))


def describe_cost(cost: Cost, pool: Lengths, calibration: Lengths | None) -> dict[str, Any]:
    """Return a strategy's completions and tokens, for the pool and for the calibration set where it needs one."""
    described = {}
    for where, lengths in (("pool", pool), ("calibration", calibration)):
        n = 0 if lengths is None else len(lengths.prompt)
        described[where] = {
            "outcomes": cost.outcomes * n,
            "trajectories": cost.trajectories * n,
            "probes": cost.probes * n,
            "forward_passes": cost.forward_passes * n,
            "tokens": 0.0 if lengths is None else round(tokens_of(cost, lengths)),
        }
    completions = sum(part[name] for part in described.values() for name in ("outcomes", "trajectories", "probes"))
    return {
        **described,
        "completions": completions,
        "tokens": described["pool"]["tokens"] + described["calibration"]["tokens"],
    }


def _number(found: int | None) -> float:
    return np.nan if found is None else float(found)


def _source(found: NDArray[np.float64]) -> str:
    n_found = int(np.count_nonzero(~np.isnan(found)))
    if n_found == len(found):
        return "recorded"
    return "assumed" if n_found == 0 else f"recorded for {n_found} of {len(found)} questions"


def _filled(found: NDArray[np.float64], otherwise: float) -> NDArray[np.float64]:
    is_known = ~np.isnan(found)
    return np.where(is_known, found, found[is_known].mean() if is_known.any() else otherwise)
