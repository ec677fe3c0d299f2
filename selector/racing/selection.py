"""A selection from recorded answers of which the race draws only as many as it needs, in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selector.config import SelectionConfig
from selector.conformal import Floats
from selector.errors import CannotRace, MissingCompletions
from selector.picking import draw_controls, places, score, set_sizes
from selector.racing.audit import draw_audit, estimate_missed
from selector.racing.bounds import NO_SET, Rules
from selector.racing.probable import ProbableRace
from selector.racing.race import CONCURRENCY, Plan, Race
from selector.racing.settings import RaceSettings
from selector.racing.urn import Urn
from selector.strategies import PoolScores, Strategy
from selector.votes import UNDRAWN, VoteTable

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Raced:
    """How a race went. Arrays are [N]: outcomes drawn of each question, and the values it could still end with.

    ``replacements``: the best questions that were not picked, as far as the race tells them apart; ``told``: what a
    report says besides.
    """

    settings: RaceSettings
    n_outcomes: int
    n_drawn: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    replacements: tuple[str, ...]
    told: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_complete(self) -> NDArray[np.bool_]:
        """Whether all answers of a question were drawn [N]."""
        return self.n_drawn == self.n_outcomes

    @property
    def n_undrawn(self) -> int:
        """How many answers nobody had to ask for."""
        return int(np.sum(self.n_outcomes - self.n_drawn))


@dataclass(frozen=True)
class RacedPool:
    """What a race leaves for picking: measures of the answers drawn, who may be picked, and the controls.

    ``is_eligible`` [N]: may be picked, and all its answers are there. ``n_eligible`` counts those of the whole pool;
    None where the race did not need to know. ``places`` [N]: in the order that breaks ties, 0 first.
    """

    raced: Raced
    scores: PoolScores
    is_eligible: NDArray[np.bool_]
    n_eligible: int | None
    controls: list[int]
    places: Sequence[int]

    @property
    def most_readable(self) -> NDArray[np.int64]:
        """How many answers of each question could still turn out readable [N]."""
        return self.scores.n_readable + self.raced.n_outcomes - self.raced.n_drawn


def check_can_race(strategy: type[Strategy] | Strategy) -> None:
    """Raise CannotRace for a strategy whose picks are not the largest prediction sets of some answers to come."""
    if not strategy.can_be_raced:
        raise CannotRace(strategy=strategy.key, why=strategy.why_not_raced)


def shares_of(labels: NDArray[np.intp], is_labeled: NDArray[np.bool_], per_cluster: int) -> dict[int, int]:
    """Return how many picks each cluster gives: those with labels use up their cluster's share."""
    n_labeled = Counter(labels[is_labeled].tolist())
    return {name: max(0, per_cluster - n_labeled[name]) for name in np.unique(labels).tolist()}


def start_race(
    table: VoteTable,
    config: SelectionConfig,
    *,
    n_outcomes: int,
    q_hats: Floats,
    distances: Floats | None,
    plan: Plan,
    concurrency: int = CONCURRENCY,
    urn: Urn | None = None,
    error: float = 0.0,
    **options: Any,
) -> Race:
    """Return the race of a pool whose probes are in ``table``; outcomes that it has too are not looked at.

    ``q_hats`` [N]; ``distances`` [N] to the centres of the clusters, where there are embeddings. With an ``urn`` the
    race is probabilistic, with ``error`` for each cluster. Other ``options`` are those of ``Race``.
    """
    probes = replace(table, codes=table.codes[:, : table.n_probes])
    tie_breaks = score(probes, q_hats, config)
    options = {
        "n_outcomes": n_outcomes,
        "q_hats": q_hats,
        "places": places(tie_breaks, np.zeros(len(table)), distances, config).tolist(),
        "rules": Rules.of(config, table.n_probes + n_outcomes),
        "plan": plan,
        "final_sizes": lambda rows, codes: set_sizes(codes, q_hats[rows], config),
        "concurrency": concurrency,
        **options,
    }
    if urn is None:
        return Race(probes.codes, **options)
    return ProbableRace(probes.codes, urn=urn, error=error, seed=config.seed, **options)


def replay(race: Race, table: VoteTable, progress: Callable[[int, int], None]) -> None:
    """Run a race to its end on recorded answers, drawn in their order.

    Where the table lacks some outcomes, an earlier race drew those that are there: all of them are heard at once, and
    nothing more may be wanted. Raises MissingCompletions.
    """
    n_clusters, outcomes = len(race.plan.shares), table.codes[:, race.n_probes :]
    for row, index in np.argwhere(outcomes != UNDRAWN).tolist() if (outcomes == UNDRAWN).any() else ():
        race.observe(row, index, int(outcomes[row, index]))
    while not race.done:
        for row, index in race.wanted():
            if outcomes[row, index] == UNDRAWN:
                n_missing = int(np.count_nonzero(outcomes[row] == UNDRAWN))
                raise MissingCompletions(uid=table.uids[row], kind="outcome", n_missing=n_missing)
            race.observe(row, index, int(outcomes[row, index]))
        progress(min(race.n_clusters_decided, n_clusters), n_clusters)


def run_race(
    race: Race,
    run: Callable[[Race], None],
    config: SelectionConfig,
    uids: Sequence[str],
    labels: NDArray[np.intp],
    *,
    is_barred: NDArray[np.bool_],
    is_labeled: NDArray[np.bool_],
    per_cluster: int,
) -> tuple[list[int], int | None]:
    """Run a race for the controls, where there are some, and then for the picks: ``run`` brings it to its end.

    Return the controls, and how many questions may be picked, where the race needed to know. ``race`` begins with a
    plan that settles eligibility where there are controls; what ``run`` bars on the way it writes into ``is_barred``.
    """
    controls: list[int] = []
    n_eligible = None
    if config.n_controls:  # drawn from all that may be picked, so that of every question this must be known
        run(race)
        may_be_picked = ~is_barred & np.array([race.bounds(row)[0] >= 0 for row in range(len(race))], bool)
        n_eligible = int(np.count_nonzero(may_be_picked))
        controls = draw_controls(uids, may_be_picked, config.n_controls, config.seed)
    is_control = np.zeros(len(race), bool)
    is_control[controls] = True
    race.replan(
        Plan(
            labels,
            shares_of(labels, is_labeled, per_cluster),
            config.budget - len(controls),
            excluded=is_barred | is_control,
            complete=tuple(controls),
        )
    )
    run(race)
    return controls, n_eligible


def race_pool(
    table: VoteTable,
    config: SelectionConfig,
    settings: RaceSettings,
    *,
    q_hat: float | Floats,
    labels: NDArray[np.intp],
    distances: Floats | None,
    is_barred: NDArray[np.bool_],
    is_labeled: NDArray[np.bool_],
    per_cluster: int,
    calibration: VoteTable,
    progress: Progress,
) -> RacedPool:
    """Race the recorded answers of a pool.

    ``is_barred`` [N]: known not to be eligible before any answer is read; ``calibration``: complete calibration votes,
    which a probabilistic race fits its model on.
    """
    n_outcomes = table.codes.shape[1] - table.n_probes
    q_hats = np.broadcast_to(np.asarray(q_hat, np.float64), len(table))
    plan = Plan(labels, {}, 0, excluded=is_barred, settle_eligibility=config.n_controls > 0)
    race = start_race(
        table,
        config,
        n_outcomes=n_outcomes,
        q_hats=q_hats,
        distances=distances,
        plan=plan,
        concurrency=settings.concurrency_for(len(table)),
        urn=Urn.fit(calibration) if settings.mode == "probabilistic" else None,
        error=settings.error,
    )

    def advance(done: int, total: int) -> None:
        progress("racing", done, total)

    controls, n_eligible = run_race(
        race,
        lambda race: replay(race, table, advance),
        config,
        table.uids,
        labels,
        is_barred=is_barred,
        is_labeled=is_labeled,
        per_cluster=per_cluster,
    )
    told = _audited(race, table, settings, config.seed) if isinstance(race, ProbableRace) else {}
    bounds = np.array([race.bounds(row) for row in range(len(table))], np.int64).reshape(-1, 2)
    raced = Raced(
        settings,
        n_outcomes,
        race.n_drawn.copy(),
        bounds[:, 0],
        bounds[:, 1],
        tuple(table.uids[row] for row in race.replacements()),
        told,
    )
    is_eligible = raced.is_complete & ~is_barred & (raced.lower >= 0)
    return RacedPool(raced, score_drawn(table, raced, q_hats, config), is_eligible, n_eligible, controls, race.places)


def _audited(race: ProbableRace, table: VoteTable, settings: RaceSettings, seed: int) -> dict[str, object]:
    """Complete a sample of what the race dropped, and return what that says of the race.

    A missed winner is a dropped question that is worth more than the pick, or one of the picks, of its cluster.
    """
    bars = {
        name: min((race.bounds(row)[0], -race.places[row]) for row in picked)
        for name, picked in race.picks_by_cluster().items()
        if picked
    }
    dropped = {row: chance for row, chance in race.dropped.items() if not race.is_complete[row]}
    sample = draw_audit(dropped, table.uids, settings.n_audit, seed)
    n_before = int(race.n_drawn.sum())
    for row in sample:
        for index in range(int(race.n_drawn[row]), race.n_outcomes):
            race.observe(row, index, int(table.codes[row, race.n_probes + index]))
    outvalued, missed = [], []
    for row in sample:
        value, bar = race.bounds(row)[0], bars.get(int(race.plan.labels[row]), (NO_SET, 0))
        outvalued.append(value > bar[0])
        missed.append((value, -race.places[row]) > bar)
    probabilities = np.array(list(sample.values()), np.float64)
    by_cluster = list(race.spent.values())
    return {
        "error_budget": settings.error,
        "error_spent": {"mean": float(np.mean(by_cluster or [0])), "most": float(max(by_cluster, default=0))},
        "n_dropped": len(race.dropped),
        "misses_expected": float(sum(race.dropped.values())),
        "audit": {
            "n_completed": len(sample),
            "rollouts": int(race.n_drawn.sum()) - n_before,
            "missed": estimate_missed(np.array(missed, bool), probabilities).to_json(),
            "missed_of_larger_set": estimate_missed(np.array(outvalued, bool), probabilities).to_json(),
        },
    }


def score_drawn(table: VoteTable, raced: Raced, q_hats: Floats, config: SelectionConfig) -> PoolScores:
    """Measure each question's drawn answers; ``set_size`` is at least what it says where some are not drawn."""
    is_drawn = np.arange(raced.n_outcomes) < raced.n_drawn[:, None]
    codes = table.codes.copy()
    codes[:, table.n_probes :][~is_drawn] = -1
    parts: dict[str, NDArray[np.generic]] = {}
    for n_drawn in np.unique(raced.n_drawn).tolist():
        rows = np.flatnonzero(raced.n_drawn == n_drawn)
        part = table.rows(rows.tolist())
        part = replace(part, codes=part.codes[:, : table.n_probes + n_drawn])
        found = score(part, q_hats[rows], config)
        for name in PoolScores.__dataclass_fields__:
            if name not in ("table", "q_hat"):
                values = getattr(found, name)
                parts.setdefault(name, np.zeros(len(table), values.dtype))[rows] = values
    parts["set_size"] = np.where(raced.is_complete, parts["set_size"], np.maximum(raced.lower, 0))
    return PoolScores(table=replace(table, codes=codes), q_hat=q_hats, **parts)  # type: ignore[arg-type]
