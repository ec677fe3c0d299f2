"""What racing saves and whether it picks the same, on simulated answers. Parts: identity, tokens, bounds,
probabilistic, calibration.

    python benchmarks/racing.py identity --pools 1000
    python benchmarks/racing.py tokens --questions 20000 --clusters 8 64
    python benchmarks/racing.py bounds
    python benchmarks/racing.py probabilistic
    python benchmarks/racing.py calibration

Each part prints a line a case and then one JSON line. Simulation only: the answers are drawn from synthetic
distributions (``simulated_votes.py``), not from a model. Costs are those of ``selector/racing/costs.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import inf

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from numpy.typing import NDArray
from simulated_votes import MIXES, simulate

from selector.calibration import calibrate
from selector.config import SelectionConfig
from selector.picking import score
from selector.pipeline import run_selection
from selector.racing.bounds import BoundsMemo, Rules
from selector.racing.calibration import race_calibration
from selector.racing.costs import costs_of
from selector.racing.race import Plan, Race
from selector.racing.selection import race_pool, replay, start_race
from selector.racing.settings import RaceSettings
from selector.votes import QuestionVotes, VoteTable, build_table

Q_HATS = (-0.2, -0.1, 0.01)
SEEDS = (1, 2, 3)


def say(*parts: object) -> None:
    print(*parts, flush=True)


def show(done: int, total: int, what: str, started: float) -> None:
    left = (time.monotonic() - started) * (total - done) / max(done, 1)
    print(f"{what}: {done:,} of {total:,}, about {left:,.0f} s left", file=sys.stderr, flush=True)


def tables(mix: str, n: int, n_clusters: int, seed: int) -> tuple[list[QuestionVotes], VoteTable, NDArray[np.intp]]:
    """Return a pool, its votes by exact strings (what the answers "a1", "a2" are told apart by), and its clusters."""
    votes = list(simulate(n, mix=mix, seed=seed, n_clusters=n_clusters))
    return votes, build_table(votes, grouping="exact_string"), np.array([each.cluster for each in votes], np.intp)


def as_calibration(question: QuestionVotes, answer: str | None, n: int) -> list[QuestionVotes]:
    """Return n calibration questions with these votes and this truth: their score is the threshold."""
    return [replace(question, uid=f"c{number}", truth=answer, cluster=None) for number in range(n)]


def threshold(kind: str, pool: Sequence[QuestionVotes], seed: int) -> tuple[list[QuestionVotes], dict[str, object]]:
    """Return a calibration set whose q_hat is of this kind, and the settings that go with it."""
    rng = np.random.default_rng(seed)
    if kind == "fitted":
        votes = simulate(120, mix=list(MIXES)[seed % 4], seed=seed + 10**6)
        return [replace(each, uid=f"c{each.uid}") for each in votes], {"alpha": str(rng.choice(["0.3", "0.4", "0.5"]))}
    if kind == "attained":
        question = pool[int(rng.integers(len(pool)))]
        given = sorted({answer for answer in (*question.probe_answers, *question.outcome_answers) if answer})
        return as_calibration(question, str(rng.choice(given or ["a0"])), 20), {}
    if kind == "infinite":
        return as_calibration(pool[0], None, 20), {}
    torn = max(pool, key=lambda each: len({*each.probe_answers, *each.outcome_answers}))
    return as_calibration(torn, None, 20), {"preset_name": "reference"}


def identity(options: argparse.Namespace) -> dict[str, object]:
    """Pick from pools with all answers and by a race, through the whole pipeline; count what differs."""
    started, wrong, drawn, kinds = time.monotonic(), [], [], Counter[str]()
    for number in range(options.start, options.pools):
        rng = np.random.default_rng(number)
        n_clusters, mix = int(rng.choice([3, 4, 8])), list(MIXES)[number % 4]
        pool = list(simulate(int(rng.integers(40, 160)), mix=mix, seed=number, n_clusters=n_clusters))
        kind = ("fitted", "attained", "infinite", "positive")[number // 4 % 4]
        calibration, settings = threshold(kind, pool, number)
        preset = str(settings.pop("preset_name", ("recommended", "paper", "reference")[number % 3]))
        if number % 10:  # "a1" and "a2" are told apart by their characters as well, and faster
            settings["grouping"] = "exact_string"
        n_given = len({each.cluster for each in pool})
        budget = int(rng.choice([n_given, n_given, n_given + 2, max(1, n_given - 2), 2 * n_given]))
        config = SelectionConfig.preset(preset, budget=budget, **settings)
        whole, raced = (
            run_selection(pool, calibration, config=config, race=race)
            for race in (None, RaceSettings("exact", concurrency=int(rng.choice([4, 16, 256]))))
        )
        found = [
            [(pick.uid, pick.rank, pick.set_size, pick.prediction_set) for pick in result.picks]
            for result in (whole, raced)
        ]
        assert raced.raced is not None
        assert raced.calibration is not None
        q_hat = raced.calibration.q_hat
        kinds.update(
            [f"{kind}", "q_hat infinite" if q_hat == inf else "q_hat below 0" if q_hat < 0 else "q_hat from 0"]
        )
        drawn.append(float(raced.raced.n_drawn.mean()) / 20)
        if found[0] != found[1]:
            wrong.append(number)
            say(f"pool {number}: {mix} {preset} {kind} q_hat {q_hat}: DIFFERENT")
        if (number + 1) % 25 == 0:
            show(number + 1 - options.start, options.pools - options.start, "identity", started)
    return {
        "pools": [options.start, options.pools],
        "different": wrong,
        "kinds": dict(kinds),
        "outcomes_drawn": round(float(np.mean(drawn)), 3),
    }


def tokens(options: argparse.Namespace) -> dict[str, object]:
    """Measure tokens used / tokens full at given thresholds; every set of picks is compared with the full one."""
    cells: dict[str, list[float]] = {}
    rollouts: dict[str, list[float]] = {}
    wrong, started, done = 0, time.monotonic(), 0
    total = len(options.seeds) * len(options.clusters) * len(options.presets) * len(options.spares) * len(Q_HATS)
    for n_clusters in options.clusters:
        for seed in options.seeds:
            votes, table, labels = tables(options.mix, options.questions, n_clusters, seed)
            costs = costs_of(votes, source="all")
            for preset in options.presets:
                config = SelectionConfig.preset(preset, budget=n_clusters)
                for q_hat in Q_HATS:
                    values = values_of(table, q_hat, config)
                    for spare in options.spares:
                        plan = Plan(labels, dict.fromkeys(np.unique(labels).tolist(), 1), n_clusters, spare=spare)
                        race = start_race(
                            table,
                            config,
                            n_outcomes=20,
                            q_hats=np.full(len(table), q_hat),
                            distances=None,
                            plan=plan,
                            concurrency=options.concurrency,
                        )
                        replay(race, table, lambda done, total: None)
                        wrong += sum(not is_best(race, values, row) for row in race.picks())
                        name = f"{preset} clusters {n_clusters} spare {spare} q_hat {q_hat:+g}"
                        cells.setdefault(name, []).append(costs.used(race.n_drawn) / costs.full)
                        rollouts.setdefault(name, []).append((20 * len(table) + race.n_drawn.sum()) / (40 * len(table)))
                        done += 1
                        say(f"{name} seed {seed}: tokens {cells[name][-1]:.3f} rollouts {rollouts[name][-1]:.3f}")
                    show(done, total, "tokens", started)
    for name, values in cells.items():
        say(f"{name}: mean tokens {np.mean(values):.3f}, mean rollouts {np.mean(rollouts[name]):.3f}")
    return {
        "questions": options.questions,
        "mix": options.mix,
        "seeds": list(options.seeds),
        "concurrency": options.concurrency,
        "wrong_picks": wrong,
        "tokens": {name: round(float(np.mean(values)), 3) for name, values in cells.items()},
    }


def values_of(table: VoteTable, q_hat: float, config: SelectionConfig) -> NDArray[np.int64]:
    """Return each question's value with all answers; -1 where it may not be picked."""
    scores = score(table, q_hat, config)
    fewest = config.min_readable * table.codes.shape[1]
    return np.where(scores.n_readable < fewest, -1, scores.set_size)


def is_best(race: Race, values: NDArray[np.int64], row: int) -> bool:
    """Say whether no question of its cluster is worth more, ties broken."""
    rivals = np.flatnonzero(race.plan.labels == race.plan.labels[row])
    return bool(row == min(rivals.tolist(), key=lambda each: (-values[each], race.places[each])))


def bounds(options: argparse.Namespace) -> dict[str, object]:
    """Time the bounds of every question in each round of one outcome, and count them against the values in the end."""
    votes, table, _ = tables(options.mix, options.questions, 8, 7)
    found: dict[str, float] = {}
    n_wrong = 0
    for preset in ("recommended", "paper"):
        config = SelectionConfig.preset(preset, budget=1)
        for q_hat in Q_HATS:
            memo = BoundsMemo(q_hat, Rules.of(config, 40))
            values = values_of(table, q_hat, config)
            seconds = 0.0
            for n_drawn in range(20):
                started = time.process_time()
                lower, upper = memo.of_codes(table.codes[:, : 20 + n_drawn])
                seconds += time.process_time() - started
                n_wrong += int(np.count_nonzero((values < lower) | (values > upper)))
            name = f"{preset} q_hat {q_hat:+g}"
            found[name] = round(seconds / 20 / len(table) * 1e6, 2)
            say(f"{name}: {found[name]} microseconds a question and round")
    return {"questions": len(votes), "rounds": 20, "microseconds": found, "values_outside": n_wrong}


def probabilistic(options: argparse.Namespace) -> dict[str, object]:
    """Race probabilistically and exactly for one pick from each of 64 clusters of 32 questions; compare both."""
    n_clusters = options.clusters[-1]
    n_questions = 32 * n_clusters
    found: dict[str, list[list[float]]] = {}
    started, done = time.monotonic(), 0
    for seed in options.seeds:
        votes, table, labels = tables(options.mix, n_questions, n_clusters, seed)
        fitted_on = build_table(list(simulate(1024, mix=options.mix, seed=seed + 500)), grouping="exact_string")
        costs = costs_of(votes, source="all")
        for preset in options.presets:
            config = SelectionConfig.preset(preset, budget=n_clusters)
            for q_hat in Q_HATS[:2]:
                values = values_of(table, q_hat, config)
                evidence = {
                    "q_hat": q_hat,
                    "labels": labels,
                    "distances": None,
                    "is_barred": np.zeros(len(table), bool),
                    "is_labeled": np.zeros(len(table), bool),
                    "per_cluster": 1,
                    "calibration": fitted_on,
                    "progress": lambda stage, done, total: None,
                }
                exact, probable = (
                    race_pool(table, config, RaceSettings(mode, error=options.error), **evidence)
                    for mode in ("exact", "probabilistic")
                )
                same, as_large, regret = [], [], []
                for name in np.unique(labels).tolist():
                    picked, wanted = (
                        max(
                            np.flatnonzero((labels == name) & pool.is_eligible).tolist(),
                            key=lambda row, places=pool.places: (values[row], -places[row]),
                        )
                        for pool in (probable, exact)
                    )
                    same.append(picked == wanted)
                    as_large.append(values[picked] == values[wanted])
                    regret.append(values[wanted] - values[picked])
                told = probable.raced.told
                audit = told["audit"]
                cell = [
                    costs.used(exact.raced.n_drawn) / costs.full,
                    costs.used(probable.raced.n_drawn) / costs.full,
                    float(np.mean(same)),
                    float(np.mean(as_large)),
                    float(np.mean(regret)),
                    float(told["misses_expected"]),
                    float(audit["missed"]["estimate"]),
                ]
                found.setdefault(f"{preset} q_hat {q_hat:+g}", []).append(cell)
                done += 1
                say(f"{preset} q_hat {q_hat:+g} seed {seed}:", dict(zip(PROBABILISTIC, np.round(cell, 3), strict=True)))
                show(done, len(options.seeds) * len(options.presets) * 2, "probabilistic", started)
    means = {name: np.round(np.mean(cells, axis=0), 3).tolist() for name, cells in found.items()}
    for name, cell in means.items():
        say(f"{name}: {dict(zip(PROBABILISTIC, cell, strict=True))}, ratio {cell[1] / cell[0]:.3f}")
    return {"questions": n_questions, "clusters": n_clusters, "error": options.error, "columns": PROBABILISTIC, **means}


PROBABILISTIC = ("exact_tokens", "tokens", "same_pick", "same_value", "regret", "misses_expected", "misses_by_audit")


def calibration(options: argparse.Namespace) -> dict[str, object]:
    """Race for thresholds and compare them, to the last bit, with those of all answers."""
    wrong, shares, started = 0, {}, time.monotonic()
    for number in range(options.sets):
        votes = list(simulate(1024, mix=options.mix, seed=1000 + number))
        table = build_table(votes, grouping="exact_string")
        costs = costs_of(votes, source="all")
        for preset, alpha in (("recommended", "0.1"), ("recommended", "0.4"), ("reference", "0.1")):
            config = SelectionConfig.preset(preset, budget=1, alpha=alpha)
            raced, whole = race_calibration(table, config), calibrate(table, config)
            wrong += raced.q_hat.hex() != whole.q_hat.hex()
            assert raced.n_drawn is not None
            shares.setdefault(f"{preset} alpha {alpha}", []).append(costs.used(raced.n_drawn) / costs.full)
        show(number + 1, options.sets, "calibration", started)
    for name, values in shares.items():
        say(f"{name}: tokens {np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})")
    return {
        "sets": options.sets,
        "mix": options.mix,
        "thresholds_different": wrong,
        "tokens": {name: round(float(np.mean(values)), 3) for name, values in shares.items()},
    }


PARTS = {each.__name__: each for each in (identity, tokens, bounds, probabilistic, calibration)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--pools", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0, help="the pool to go on from, where a run was stopped")
    parser.add_argument("--questions", type=int, default=20_000)
    parser.add_argument("--clusters", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--mix", choices=MIXES, default="mid")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--presets", nargs="+", default=["recommended", "paper"])
    parser.add_argument("--spares", type=int, nargs="+", default=[0, 1], help="questions told apart beyond the picks")
    parser.add_argument("--concurrency", type=int, default=256)
    parser.add_argument("--error", type=float, default=0.05, help="budget of error a cluster")
    parser.add_argument("--sets", type=int, default=20)
    options = parser.parse_args()
    started = time.process_time()
    found = PARTS[options.part](options)
    print(
        json.dumps(
            {"benchmark": f"racing {options.part}", **found, "cpu_seconds": round(time.process_time() - started)}
        )
    )


if __name__ == "__main__":
    main()
