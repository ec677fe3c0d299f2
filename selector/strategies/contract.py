"""What a strategy is: it says how much each question is worth labeling, and how picks spread over clusters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from selector.votes import VoteSource, VoteTable


@dataclass(frozen=True)
class PoolScores:
    """What is known of N pool questions, in one order; arrays are [N].

    ``q_hat``: the threshold each is held to; ``set_size``: answers in the prediction set; ``set_size_from_probes`` and
    ``n_probe_answers`` (distinct): from the probes alone, with the same q_hat; ``entropy``: of the votes, normalised;
    ``worst_score``: the highest score among a question's own answers (-inf without any).
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
        """Share of a question's answers in which nothing could be read [N]."""
        return 1 - self.n_readable / max(self.table.codes.shape[1], 1)


class Strategy(ABC):
    """One way to choose questions. It only scores: no input or output, no state kept between calls.

    The key is stored with every run, so it never changes. ``votes`` says which answers count, for calibration and
    pool alike. ``per_cluster`` fixes how many come from each cluster; None shares the budget out evenly. Without
    ``uses_clusters`` the whole pool is one cluster.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    votes: ClassVar[VoteSource] = "all"
    uses_clusters: ClassVar[bool] = True
    per_cluster: ClassVar[int | None] = None

    def n_clusters(self, budget: int) -> int:
        """Return how many clusters to make where none are given and no number is asked for."""
        return budget

    @abstractmethod
    def acquisition_scores(self, scores: PoolScores, seed: int) -> NDArray[np.float64]:
        """Return one finite number a question [N]; higher is more worth labeling.

        It depends on each question's own votes and uid, never on its row.
        """
