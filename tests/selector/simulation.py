"""Simulated votes: easy, medium and hard questions, some of whose truths the model never gives."""

import numpy as np

from selector.votes import QuestionVotes, VoteTable


def simulate_votes(
    n: int, *, seed: int, n_probes: int = 20, n_outcomes: int = 20, absent: float = 0.1, prefix: str = "q", **fields
) -> list[QuestionVotes]:
    """Return n questions with their votes and truths."""
    table = simulate_table(n, seed=seed, n_probes=n_probes, n_outcomes=n_outcomes, absent=absent, prefix=prefix)
    votes = []
    for row, uid in enumerate(table.uids):
        names = [f"a{code}" if code >= 0 else "" for code in table.codes[row].tolist()]
        truth = f"a{table.truth_codes[row]}" if table.truth_codes[row] >= 0 else None
        made = {name: value(row) if callable(value) else value for name, value in fields.items()}
        votes.append(QuestionVotes(uid, tuple(names[:n_probes]), tuple(names[n_probes:]), truth=truth, **made))
    return votes


def simulate_table(
    n: int, *, seed: int, n_probes: int = 20, n_outcomes: int = 20, absent: float = 0.1, prefix: str = "q"
) -> VoteTable:
    """Return the same as integer codes; class numbers are not in order of appearance."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((n, 12))
    for row in range(n):
        size = rng.choice([1, 2, 4, 12], p=[0.25, 0.25, 0.25, 0.25])
        weights[row, :size] = rng.dirichlet(np.full(size, 0.8))
    edges = np.cumsum(weights, axis=1)
    edges[:, -1] = 1.0
    draws = rng.random((n, n_probes + n_outcomes))
    codes = (draws[:, :, None] > edges[:, None, :]).sum(axis=2).astype(np.int16)
    codes[rng.random(codes.shape) < rng.beta(0.5, 8, size=(n, 1))] = -1
    truth = (rng.random((n, 1)) > edges).sum(axis=1).astype(np.int16)
    truth[rng.random(n) < absent] = -1
    return VoteTable(
        uids=tuple(f"{prefix}{row:05d}" for row in range(n)),
        codes=codes,
        truth_codes=truth,
        representatives=tuple(tuple(f"a{code}" for code in range(12)) for _ in range(n)),
        n_probes=n_probes,
    )
