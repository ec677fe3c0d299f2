"""What a strategy is: it says how much each question is worth labeling, and how picks spread over the pool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from selector.votes import VoteSource, VoteTable

if TYPE_CHECKING:
    from selector.internals import Internals

Provenance = Literal["published", "reconstruction"]
Rows = NDArray[np.intp]


class Need(StrEnum):
    """A kind of evidence that a strategy cannot do without."""

    CALIBRATION = "calibration"
    VOTES = "votes"
    COMPLETE_VOTES = "complete_votes"
    EMBEDDINGS = "embeddings"
    HIDDEN_STATES = "hidden_states"
    ATTENTION = "attention"
    TOKEN_PROBABILITIES = "token_probabilities"  # noqa: S105
    LABELS = "labels"


INTERNAL_NEEDS = frozenset({Need.HIDDEN_STATES, Need.ATTENTION, Need.TOKEN_PROBABILITIES})
HOW_TO_GET: Mapping[Need, str] = MappingProxyType(
    {
        Need.CALIBRATION: "a calibration set (--calibration FILE, or --calibration-votes FILE with --votes)",
        Need.VOTES: "the model's answers to the pool's questions (--votes FILE, or --model)",
        Need.COMPLETE_VOTES: "all of the model's answers to every question of the pool (--votes FILE, or --model)",
        Need.EMBEDDINGS: "embeddings of the questions (--embedder NAME or --embeddings FILE)",
        Need.HIDDEN_STATES: "the model's hidden states (--internals FILE, or --engine transformers)",
        Need.ATTENTION: "the model's attention (--internals FILE, or --engine transformers)",
        Need.TOKEN_PROBABILITIES: "the model's token probabilities (--internals FILE, or --engine transformers)",
        Need.LABELS: "right answers to some of the pool's questions",
    }
)


@dataclass(frozen=True)
class PoolScores:
    """What is known of N pool questions, in one order; arrays are [N].

    ``q_hat``: the threshold each is held to; ``set_size``: answers in the prediction set; ``set_size_from_probes`` and
    ``n_probe_answers`` (distinct): from the probes alone, with the same q_hat; ``entropy``: of the votes, normalised;
    ``worst_score``: the highest score among a question's own answers (-inf without any). Without a calibration set
    q_hat is -inf and every set is empty; without votes the table has no columns and every number is 0.
    """

    table: VoteTable
    q_hat: NDArray[np.float64]
    set_size: NDArray[np.int64]
    set_size_from_probes: NDArray[np.int64]
    n_probe_answers: NDArray[np.int64]
    n_readable: NDArray[np.int64]
    n_distinct: NDArray[np.int64]
    max_frequency: NDArray[np.float64]
    entropy: NDArray[np.float64]
    worst_score: NDArray[np.float64]

    @property
    def unread_share(self) -> NDArray[np.float64]:
        """Share of a question's answers in which nothing could be read [N]; 0 where none was asked for."""
        n = self.table.codes.shape[1]
        return 1 - self.n_readable / n if n else np.zeros(len(self.table))


@dataclass(frozen=True)
class Evidence:
    """Everything known of N pool questions, in one row order; what a strategy does not need may be None.

    ``embeddings`` [N, D]; the rows of ``internals`` are those of the table.
    """

    scores: PoolScores
    embeddings: NDArray[np.float32] | None = None
    internals: Internals | None = None

    @property
    def uids(self) -> tuple[str, ...]:
        """The questions' uids [N]."""
        return self.scores.table.uids

    def __len__(self) -> int:
        return len(self.scores.table)


@dataclass(frozen=True)
class Cost:
    """What one question of the pool costs: completions to sample, chains, forced answers, passes to read internals."""

    outcomes: int = 0
    trajectories: int = 0
    probes: int = 0
    forward_passes: int = 0


class Strategy(ABC):
    """One way to choose questions. It only scores and chooses: no input or output, no state kept between calls.

    The key is stored with every run, so it never changes. ``provenance`` is "reconstruction" where no formula is
    public; the title then says so. ``needs`` names the evidence it cannot do without, and it reads nothing else.
    ``votes`` says which answers count, for calibration and pool alike. ``per_cluster`` fixes how many come from each
    cluster; None shares the budget out evenly. Without ``uses_clusters`` the whole pool is one cluster; with it,
    clusters that the questions bring stand in for embeddings. ``is_nested``: a round of a picks and a second of b,
    told of the first, pick what one round of a + b picks. ``needs_budget``: whether the budget says how many it picks.
    ``can_be_raced``: its scores are the sizes of prediction sets, which bounds can tell apart before all outcomes are
    drawn; otherwise ``why_not_raced`` says why not.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    provenance: ClassVar[Provenance] = "published"
    needs: ClassVar[frozenset[Need]] = frozenset()
    votes: ClassVar[VoteSource] = "all"
    uses_clusters: ClassVar[bool] = False
    per_cluster: ClassVar[int | None] = None
    is_nested: ClassVar[bool] = False
    needs_budget: ClassVar[bool] = True
    can_be_raced: ClassVar[bool] = False
    why_not_raced: ClassVar[str] = "it does not rank by the size of prediction sets, and reads every answer it is given"

    @classmethod
    def needs_votes(cls) -> bool:
        """Whether it reads the model's answers."""
        return bool(cls.needs & {Need.VOTES, Need.COMPLETE_VOTES})

    @classmethod
    def cost(cls, n_outcomes: int, n_probes: int) -> Cost:
        """Return what a question costs at least where so many answers of each kind are asked for."""
        outcomes = n_outcomes if cls.needs_votes() and cls.votes != "probes" else 0
        probes = n_probes if cls.needs_votes() and cls.votes != "outcomes" else 0
        reads_internals = bool(cls.needs & INTERNAL_NEEDS)
        return Cost(outcomes, int(probes > 0 or reads_internals), probes, int(reads_internals))

    def n_picks(self, budget: int, n_eligible: int) -> int:
        """Return how many questions to pick of those that may be picked."""
        return budget

    def n_clusters(self, n_picks: int, per_cluster: int | None) -> int:
        """Return how many clusters to make where none are given and no number is asked for."""
        return -(-n_picks // (per_cluster or 1))

    @abstractmethod
    def acquisition_scores(self, evidence: Evidence, seed: int) -> NDArray[np.float64]:
        """Return one finite number a question [N]; higher is more worth labeling.

        It depends on the questions' evidence and uids, never on their rows.
        """

    def choose(
        self,
        evidence: Evidence,
        acquisition_scores: NDArray[np.float64],
        *,
        candidates: Rows,
        chosen: Rows,
        budget: int,
        seed: int,
    ) -> Rows | None:
        """Return up to ``budget`` rows of ``candidates``, first pick first, for a strategy that picks a set.

        None, the default, leaves the choice to the scores: the best of each cluster. ``chosen`` are rows that already
        have labels: the set they form is continued. Whatever order the rows are in, the same questions are chosen:
        work in the canonical order (``canonical_order(evidence.uids)``) and break ties by it. What is short of the
        budget comes from the global order.
        """
        return None
