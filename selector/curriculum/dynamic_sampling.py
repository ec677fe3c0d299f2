"""Dynamic sampling (DAPO): draw uniformly, drop questions whose rewards are all equal, draw others in their place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selector.curriculum.contract import Curriculum, Settings


@dataclass(frozen=True, kw_only=True)
class DynamicSamplingSettings(Settings):
    """``max_refills``: how often a batch is refilled at most; 0 for as often as there are questions left to try."""

    max_refills: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_whole("max_refills", low=0)


class DynamicSampling(Curriculum):
    """Fill each batch with questions whose rewards differ, at the price of the rollouts of those that were dropped.

    ``propose(k)`` opens a batch of k uniformly drawn questions. Each ``refill()`` drops those whose rewards so far are
    all equal (a single reward cannot be judged and stays) and returns as many new ones, never tried in this batch; []
    once k are kept or awaited, ``max_refills`` is reached or every question was tried, and then ``kept()`` may be
    shorter than k. Dropped rollouts were paid for: they count in ``rollouts_spent`` and in the beliefs. (DAPO's code
    draws a whole batch again where this draws what is missing, and stops with an error at its limit.)
    """

    key = "dynamic_sampling"
    title = "Dynamic sampling: drop groups without variance"
    source = "DAPO, arXiv 2503.14476"
    settings_class = DynamicSamplingSettings
    settings: DynamicSamplingSettings

    def __init__(
        self,
        uids: Iterable[str],
        *,
        seed: int = 0,
        prior: Mapping[str, tuple[float, float]] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(uids, seed=seed, prior=prior, **settings)
        self._wanted = self._refills = 0
        self._seen: dict[str, list[float] | None] = {}  # this batch: uid -> its rewards, None before any came

    def choose(self, k: int) -> NDArray[np.intp]:
        """Return the first k rows of a random order."""
        return self.draw_candidates(k)[:k]

    def propose(self, k: int) -> list[str]:
        """Open a new batch; see ``Curriculum.propose``."""
        batch = super().propose(k)
        self._wanted, self._refills, self._seen = len(batch), 0, dict.fromkeys(batch)
        return batch

    def observe(self, uid: str, rewards: Sequence[float | None], step: int) -> None:
        """Learn from rewards; those of a question in the current batch decide whether it is kept."""
        super().observe(uid, rewards, step)
        if uid in self._seen:
            read = [float(reward) for reward in rewards if reward is not None and math.isfinite(reward)]
            self._seen[uid] = (self._seen[uid] or []) + read

    def kept(self) -> list[str]:
        """Return the uids of the batch whose rewards differ, in the order proposed; no more than were asked for.

        More may differ in the end where late rewards change what was dropped.
        """
        kept = [uid for uid in self._batch if self._seen[uid] is not None and not self._is_dropped(uid)]
        return kept[: self._wanted]

    def refill(self) -> list[str]:
        """Return the uids to roll out in place of those that were dropped."""
        n_missing = self._wanted - sum(not self._is_dropped(uid) for uid in self._batch)
        if n_missing <= 0 or self._refills == self.settings.max_refills > 0:
            return []
        order = (self.beliefs.uids[row] for row in self.draw_candidates(1).tolist())
        more = [uid for uid in order if uid not in self._seen][:n_missing]
        self._refills += 1
        self._batch += more
        self._seen.update(dict.fromkeys(more))
        return more

    def _is_dropped(self, uid: str) -> bool:
        rewards = self._seen[uid]
        return rewards is not None and len(rewards) != 1 and len(set(rewards)) <= 1

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next calls depend on, as plain JSON values."""
        open_batch = {"wanted": self._wanted, "refills": self._refills, "seen": dict(self._seen)}
        return {**super().state_dict(), "open_batch": open_batch}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state; see ``Curriculum.load_state_dict``."""
        super().load_state_dict(state)
        saved = state["open_batch"]
        self._wanted, self._refills = saved["wanted"], saved["refills"]
        self._seen = dict(saved["seen"])
