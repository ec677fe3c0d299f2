"""Small pools whose races end the way larger ones do, and the two ways to pick from them."""

from dataclasses import replace

import numpy as np

from selector.config import SelectionConfig
from selector.errors import PoolTooSmall
from selector.picking import answer_scores_of, draw_controls, score, select
from selector.racing.selection import race_pool
from selector.racing.settings import RaceSettings
from selector.votes import VoteTable


def pool_table(rng, n, n_probes, n_outcomes, *, unread=0.15):
    """Return the votes of n questions, from unanimous ones to ones where every answer is new."""
    width = n_probes + n_outcomes
    sizes = rng.choice([1, 2, 3, 6, 12], size=n)
    codes = (rng.random((n, width)) ** rng.choice([1.0, 2.5], size=(n, 1)) * sizes[:, None]).astype(np.int16)
    codes[rng.random(codes.shape) < rng.choice([0.0, unread, 0.6], size=(n, 1), p=[0.5, 0.35, 0.15])] = -1
    names = tuple(tuple(f"a{code}" for code in range(12)) for _ in range(n))
    uids = tuple(f"q{rng.integers(10**9):09d}-{row}" for row in range(n))
    return VoteTable(uids, codes, np.full(n, -1, np.int16), names, n_probes)


def some_threshold(rng, table, config):
    """Return a threshold: a score that an answer attains, beside one, from the usual range, positive or infinite."""
    kind = rng.integers(6)
    if kind == 0:
        return float("inf")
    if kind <= 2:
        ((_, _, scores),) = answer_scores_of(table, config)
        attained = np.unique(scores[np.isfinite(scores)])
        if len(attained):
            return float(rng.choice(attained)) + float(rng.choice([0.0, 0.0, 1e-7, -1e-7]))
    return float(rng.choice([-0.45, -0.3, -0.2, -0.15, -0.1, -0.07, -0.02, 0.0, 0.005, 0.02]))


def picks_of_all(table, q_hat, config, *, labels, distances, is_barred, is_labeled, per_cluster):
    """Pick with every answer drawn; where there are too few eligible questions, return how many there are."""
    scores = score(table, q_hat, config)
    is_eligible = ~is_barred & (scores.n_readable >= config.min_readable * table.codes.shape[1])
    controls = draw_controls(table.uids, is_eligible, config.n_controls, config.seed)
    return _picks(scores, controls, config, labels, distances, is_eligible, per_cluster, is_labeled, is_raced=False)


def picks_of_race(table, q_hat, config, *, concurrency=16, **evidence):
    """Pick by a race; return the same, and how it went."""
    settings = RaceSettings("exact", concurrency=concurrency)
    pool = race_pool(
        table, config, settings, q_hat=q_hat, calibration=table.rows([]), progress=lambda *_: None, **evidence
    )
    picks = _picks(
        pool.scores,
        pool.controls,
        config,
        evidence["labels"],
        evidence["distances"],
        pool.is_eligible,
        evidence["per_cluster"],
        evidence["is_labeled"],
        is_raced=True,
        n_drawn_from=pool.n_eligible,
    )
    return picks, pool.raced


def _picks(scores, controls, config, labels, distances, is_eligible, per_cluster, is_labeled, **options):
    try:
        picks = select(
            scores,
            scores.set_size.astype(float),
            labels=labels,
            distances=distances,
            is_eligible=is_eligible,
            per_cluster=per_cluster,
            config=config,
            is_labeled=is_labeled if is_labeled.any() else None,
            controls=controls,
            **options,
        )
    except PoolTooSmall as error:
        return error.n_eligible
    return [replace(pick, tied_with=None, tie_break_reason="") for pick in picks]


def some_selection(rng, *, n=None, n_probes=None, n_outcomes=None):
    """Return (table, q_hat, config, evidence) of a selection in which anything may be odd."""
    n = n or int(rng.integers(4, 40))
    n_probes = int(rng.integers(0, 7)) if n_probes is None else n_probes
    n_outcomes = int(rng.integers(1, 9)) if n_outcomes is None else n_outcomes
    table = pool_table(rng, n, n_probes, n_outcomes)
    n_clusters = int(rng.integers(1, 7))
    labels = rng.integers(0, n_clusters, size=n).astype(np.intp)
    budget = int(rng.integers(1, max(2, min(10, n // 2))))
    config = SelectionConfig.preset(
        str(rng.choice(["recommended", "recommended", "paper", "reference"])),
        budget=budget,
        n_probes=n_probes,
        n_outcomes=n_outcomes,
        control_share=str(rng.choice(["0", "0", "0.3"])),
    )
    evidence = {
        "labels": labels,
        "distances": rng.random(n).round(1) if rng.random() < 0.5 else None,
        "is_barred": rng.random(n) < 0.1,
        "is_labeled": np.zeros(n, bool),
        "per_cluster": int(rng.choice([1, 1, 2, max(1, budget // n_clusters)])),
    }
    if rng.random() < 0.3:
        evidence["is_labeled"] = rng.random(n) < 0.1
        evidence["is_barred"] = evidence["is_barred"] | evidence["is_labeled"]
    return table, some_threshold(rng, table, config), config, evidence
