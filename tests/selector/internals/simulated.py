"""Internals without a model, and evidence made of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from selector.config import SelectionConfig
from selector.internals import Internals
from selector.pipeline import score
from selector.strategies import Evidence
from selector.votes import QuestionVotes, build_table


def simulate_internals(uids: Sequence[str], *, seed: int = 0, depth: int = 6, n_top: int = 5) -> Internals:
    """Draw plausible internals for these questions; a row depends on the seed and the uid's place alone."""
    rng = np.random.default_rng(seed)
    n = len(uids)
    start, end, hidden = (rng.normal(size=(n, depth)).astype(np.float32) for _ in range(3))
    probabilities = -np.sort(-rng.dirichlet(np.ones(n_top), n), axis=1) * rng.uniform(0.7, 1, (n, 1))
    tokens = np.stack([rng.choice(40, n_top, replace=False) for _ in range(n)]) if n else np.zeros((0, n_top))
    lengths = rng.integers(1, 90, n)
    return Internals(
        uids=tuple(uids),
        fingerprint="simulated",
        start=start,
        end=end,
        prompt_hidden=hidden,
        top_tokens=tokens.astype(np.int32),
        top_probabilities=probabilities.astype(np.float32),
        n_response_tokens=lengths,
        n_pivots=rng.integers(0, 5, n),
        mean_token_entropy=rng.gamma(2, 0.2, n).astype(np.float32),
        prefix_token_entropy=rng.gamma(2, 0.2, n).astype(np.float32),
        self_certainty=rng.gamma(9, 0.5, n).astype(np.float32),
        is_truncated=rng.random(n) < 0.1,
    )


def evidence_of(internals: Internals) -> Evidence:
    """Return evidence that is internals alone."""
    table = build_table([QuestionVotes(uid, (), ()) for uid in internals.uids])
    return Evidence(score(table, float("-inf"), SelectionConfig.preset(budget=1)), None, internals)
