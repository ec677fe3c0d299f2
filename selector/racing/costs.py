"""What answers cost, in tokens: the model that savings are stated in.

The unit is one generated token. A prompt token costs a quarter of one, prompts of one question are read once (prefix
caching), and a probe's reply and the words that ask for it have fixed lengths. Recorded lengths are used where there
are some; a question without any is taken to be as long as the average of those that have them, or as stated here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from selector.votes import QuestionVotes

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CostModel:
    """The constants of the model, in tokens; ``prefill_weight`` is the cost of a prompt token."""

    prefill_weight: float = 0.25
    probe_reply: int = 16
    probe_suffix: int = 30
    prompt: int = 150
    answer: int = 864


@dataclass(frozen=True)
class Costs:
    """``base`` [N]: chain and probes of each question; ``outcomes`` [N, n]: each outcome answer.

    ``basis``: "recorded" lengths, "assumed" ones, or "partly_recorded".
    """

    base: Floats
    outcomes: Floats
    basis: str
    model: CostModel

    def describe(self) -> dict[str, object]:
        """Return how tokens were counted."""
        return {"basis": self.basis, **asdict(self.model)}

    def used(self, n_drawn: NDArray[np.int64]) -> float:
        """Return the cost when the first ``n_drawn`` [N] outcomes of each question were drawn."""
        drawn = np.arange(self.outcomes.shape[1]) < n_drawn[:, None]
        return float(self.base.sum() + self.outcomes[drawn].sum())

    @property
    def full(self) -> float:
        """The cost of all answers."""
        return float(self.base.sum() + self.outcomes.sum())


def costs_of(
    votes: Sequence[QuestionVotes], *, source: str, n_outcomes: int | None = None, model: CostModel | None = None
) -> Costs:
    """Return what the answers of each question cost; ``source``: which answers the strategy reads.

    ``n_outcomes`` where questions lack some: what was not drawn is taken to be as long as the question's others.
    """
    model = model or CostModel()
    if n_outcomes is None:
        n_outcomes = len(votes[0].outcome_answers) if votes else 0
    n_outcomes = 0 if source == "probes" else n_outcomes
    n_probes = len(votes[0].probe_answers) if votes and source != "outcomes" else 0
    prompts, some_prompts = _or_mean([each.prompt_tokens for each in votes], model.prompt)
    recorded = [each.outcome_tokens[:n_outcomes] if each.outcome_tokens else None for each in votes]
    own_means = [sum(each) / len(each) if each else None for each in recorded]
    means, some_outcomes = _or_mean(own_means, model.answer)
    outcomes = np.repeat(means[:, None], n_outcomes, axis=1)
    for row, lengths in enumerate(recorded):
        if lengths is not None:
            outcomes[row, : len(lengths)] = lengths
    chains, some_chains = _or_mean([each.trajectory_tokens for each in votes], model.answer)
    if not some_chains and some_outcomes:
        chains = means
    base = np.zeros(len(votes))
    if n_probes:
        base += chains + model.prefill_weight * prompts
        base += n_probes * (model.probe_reply + model.prefill_weight * model.probe_suffix)
        base += model.prefill_weight * (prompts + chains)
    else:
        base += model.prefill_weight * prompts
    n_known = sum(
        None not in (each.prompt_tokens, each.trajectory_tokens) and len(each.outcome_tokens or ()) >= n_outcomes
        for each in votes
    )
    any_known = some_prompts or some_outcomes or some_chains
    basis = "recorded" if n_known == len(votes) else "partly_recorded" if any_known else "assumed"
    return Costs(base, outcomes, basis, model)


def _or_mean(lengths: Sequence[float | None], assumed: float) -> tuple[Floats, bool]:
    """Return the lengths, the mean of those known (or what is assumed) for the others; and whether any is known."""
    known = [length for length in lengths if length is not None]
    rest = float(np.mean(known)) if known else float(assumed)
    return np.array([rest if length is None else length for length in lengths], np.float64), bool(known)
