"""What each curriculum costs until a simulated model has learned, and how long it takes to propose.

The model is a latent success rate p = 1 / (1 + exp(-x)) for each question. A step rolls out M questions K times and
trains on them: x rises by ``rate`` times what the group's rewards teach (their variance, or their deviation), divided
by its most, so a group without variance teaches nothing; a share of it (``spread``) also lifts every other question of
the same skill. Between steps x falls back towards its start (``forgetting``). The scenarios vary these assumptions and
the pool. Every rollout counts, also those of questions that dynamic sampling drops; a curriculum has arrived when the
mean of p over the pool, which it never sees, reaches the scenario's goal.

Shows a table a scenario (rollouts until there, with 95 % intervals over seeds; saving against random, paired by seed)
and the times of ``propose`` on standard error, and prints one JSON line.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from selector.curriculum import CURRICULA
from selector.progress import StageProgress

N_QUESTIONS, BATCH, ROLLOUTS = 512, 16, 8
LIMIT = 400_000  # rollouts
TIMED_QUESTIONS, TIMED_STEPS, TIMED_BATCH = 10_000, 1_000, 256


@dataclass(frozen=True)
class Scenario:
    """A pool and how its questions are learned; ``mastered`` and ``hopeless`` are shares of the pool."""

    goal: float
    mastered: float = 0.0
    hopeless: float = 0.0
    rule: str = "variance"
    rate: float = 0.6
    spread: float = 0.0
    n_skills: int = 8
    forgetting: float = 0.0
    n_stored: int = 0
    settings: tuple[tuple[str, float], ...] = ()


PLAIN = Scenario(goal=0.75)
MIXED = Scenario(goal=0.55, mastered=0.4, hopeless=0.4)
FADING = (("lam", 0.5),)
SCENARIOS = {
    "plain": PLAIN,
    "plain, slow": replace(PLAIN, rate=0.15),
    "plain, by deviation": replace(PLAIN, rule="deviation"),
    "plain, forgetting": replace(PLAIN, forgetting=0.001),
    "plain, skills": replace(PLAIN, spread=0.02),
    "mixed": MIXED,
    "mixed, forgetting": replace(MIXED, forgetting=0.001),
    "mixed, skills": replace(MIXED, spread=0.05, goal=0.75),
    "mixed, stored rollouts": replace(MIXED, n_stored=8),
    "plain, beliefs fade": replace(PLAIN, settings=FADING),
    "plain, beliefs of one visit": replace(PLAIN, settings=(("lam", 0.0),)),
    "mixed, beliefs fade": replace(MIXED, settings=FADING),
    "mixed, skills, beliefs fade": replace(MIXED, spread=0.05, goal=0.75, settings=FADING),
}


@dataclass(frozen=True)
class Course:
    """One training: what it cost until the goal and what its rollouts were like.

    ``rollouts``: None where the goal was not reached; ``useful``: share of rollouts in groups with variance; ``known``:
    share on questions that were right 9 times in 10 already; ``lag``: true less believed success rate, the mean over
    questions when they were proposed.
    """

    rollouts: int | None
    steps: int
    useful: float
    known: float
    lag: float


class SimulatedModel:
    """Latent success rates that rise when they are trained on."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        rng = np.random.default_rng([seed, 1])
        kind = rng.random(N_QUESTIONS)
        start = rng.normal(-0.5, 1.5, N_QUESTIONS)
        is_mastered, is_hopeless = kind < scenario.mastered, kind > 1 - scenario.hopeless
        start[is_mastered] = rng.normal(5, 1, is_mastered.sum())
        start[is_hopeless] = rng.normal(-6, 1, is_hopeless.sum())
        self.scenario, self.rng = scenario, np.random.default_rng([seed, 2])
        self.start, self.x = start, start.copy()
        self.skill = rng.integers(0, scenario.n_skills, N_QUESTIONS)

    @property
    def rates(self) -> NDArray[np.float64]:
        return np.asarray(1 / (1 + np.exp(-self.x)))

    def roll_out(self, questions: NDArray[np.intp], times: int = ROLLOUTS) -> NDArray[np.float64]:
        """Return rewards [len(questions), times]."""
        return (self.rng.random((len(questions), times)) < self.rates[questions, None]).astype(float)

    def train(self, questions: NDArray[np.intp], rewards: NDArray[np.float64]) -> None:
        scenario = self.scenario
        deviation = 2 * rewards.std(axis=1)
        lesson = scenario.rate * (deviation if scenario.rule == "deviation" else deviation**2)
        of_skill = np.bincount(self.skill[questions], lesson, minlength=scenario.n_skills)
        self.x += scenario.spread * of_skill[self.skill]
        self.x[questions] += (1 - scenario.spread) * lesson
        self.x -= scenario.forgetting * (self.x - self.start)


def train(key: str, scenario: Scenario, seed: int) -> Course:
    """Train one model with one curriculum until the goal, or the limit."""
    model = SimulatedModel(scenario, seed)
    uids = [f"q{i}" for i in range(N_QUESTIONS)]
    prior = None
    if scenario.n_stored:
        right = model.roll_out(np.arange(N_QUESTIONS), scenario.n_stored).sum(axis=1)
        prior = {uid: (s, scenario.n_stored - s) for uid, s in zip(uids, right.tolist(), strict=True)}
    curriculum = CURRICULA[key](uids, seed=seed, prior=prior, **dict(scenario.settings))
    order = np.array([int(uid[1:]) for uid in curriculum.beliefs.uids])
    rates, lags, n_useful, step = [], [], 0, 0
    while model.rates.mean() < scenario.goal and curriculum.rollouts_spent < LIMIT:
        believed = np.empty(N_QUESTIONS)
        believed[order] = curriculum.beliefs.mean
        seen: dict[str, NDArray[np.float64]] = {}
        batch = curriculum.propose(BATCH)
        while batch:
            questions = np.array([int(uid[1:]) for uid in batch])
            rates += model.rates[questions].tolist()
            lags += (model.rates - believed)[questions].tolist()
            rewards = model.roll_out(questions)
            n_useful += int((rewards.std(axis=1) > 0).sum()) * ROLLOUTS
            for uid, row in zip(batch, rewards, strict=True):
                curriculum.observe(uid, row.tolist(), step)
                seen[uid] = row
            batch = curriculum.refill()
        if kept := curriculum.kept():
            model.train(np.array([int(uid[1:]) for uid in kept]), np.array([seen[uid] for uid in kept]))
        step += 1
    spent = curriculum.rollouts_spent
    is_there = model.rates.mean() >= scenario.goal
    known, lag = float(np.mean(np.array(rates) >= 0.9)), float(np.mean(lags))
    return Course(spent if is_there else None, step, n_useful / max(spent, 1), known, lag)


def interval(values: list[float]) -> tuple[float, float]:
    """Return the mean and half the width of its 95 % interval (Student's t over seeds)."""
    n = len(values)
    return float(np.mean(values)), float(student.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n))


def summarise(courses: list[Course], random: list[Course]) -> dict[str, Any]:
    """Return a curriculum's row of a scenario's table; saving = 1 - rollouts / those of random, paired by seed."""
    row: dict[str, Any] = {
        "steps": round(float(np.mean([course.steps for course in courses]))),
        "useful": round(float(np.mean([course.useful for course in courses])), 3),
        "known": round(float(np.mean([course.known for course in courses])), 3),
        "lag": round(float(np.mean([course.lag for course in courses])), 3),
        "n_not_there": sum(course.rollouts is None for course in courses),
    }
    pairs = [(a.rollouts, b.rollouts) for a, b in zip(courses, random, strict=True) if a.rollouts and b.rollouts]
    if len(pairs) == len(courses):
        mean, half = interval([float(rollouts) for rollouts, _ in pairs])
        row["rollouts"], row["rollouts_half_width"] = round(mean), round(half)
        mean, half = interval([float(np.log(mine / its)) for mine, its in pairs])
        row["saving"] = [round(float(1 - np.exp(mean + sign * half)), 3) for sign in (1, 0, -1)]
    return row


def show(name: str, rows: dict[str, dict[str, Any]]) -> None:
    print(f"\n{name}", file=sys.stderr)
    print(
        f"{'':20}{'rollouts':>18}{'saved against random':>28}{'steps':>8}{'useful':>8}{'known':>8}{'lag':>8}",
        file=sys.stderr,
    )
    for key, row in rows.items():
        cost, saving = f"{row['n_not_there']} seeds not there", ""
        if "saving" in row:
            cost = f"{row['rollouts']:,} ± {row['rollouts_half_width']:,}"
            low, middle, high = (f"{100 * share:.0f}" for share in row["saving"])
            saving = f"{middle} % [{low}, {high}]" if key != "random" else ""
        print(
            f"{key:20}{cost:>18}{saving:>28}{row['steps']:>8,}{row['useful']:>8.2f}{row['known']:>8.2f}{row['lag']:>8.2f}",
            file=sys.stderr,
        )


def compare(names: list[str], n_seeds: int, results: Path | None) -> dict[str, dict[str, dict[str, Any]]]:
    """Train everything that ``results`` does not hold yet and return a table a scenario."""
    known: dict[str, Course] = {}
    if results is not None and results.exists():
        for line in results.read_text().splitlines():
            saved = json.loads(line)
            known[saved["what"]] = Course(**saved["course"])
    tables = {}
    with StageProgress() as progress:
        for name in names:
            courses: dict[str, list[Course]] = {key: [] for key in CURRICULA}
            for done, (seed, key) in enumerate(itertools.product(range(n_seeds), CURRICULA)):
                progress(name, done, n_seeds * len(CURRICULA))
                what = json.dumps([asdict(SCENARIOS[name]), key, seed])
                if what not in known:
                    known[what] = train(key, SCENARIOS[name], seed)
                    if results is not None:
                        with results.open("a") as file:
                            file.write(json.dumps({"what": what, "course": asdict(known[what])}) + "\n")
                courses[key].append(known[what])
            tables[name] = {key: summarise(courses[key], courses["random"]) for key in CURRICULA}
            show(name, tables[name])
    return tables


def time_proposals(steps: int) -> dict[str, dict[str, float]]:
    """Return, by curriculum, milliseconds of ``propose`` (median and 99th percentile) and of observing a question."""
    found = {}
    uids = [f"q{i}" for i in range(TIMED_QUESTIONS)]
    rates = dict(zip(uids, np.random.default_rng(0).beta(0.5, 0.5, TIMED_QUESTIONS), strict=True))
    with StageProgress() as progress:
        for key, curriculum_class in CURRICULA.items():
            curriculum = curriculum_class(uids, seed=0)
            rng = np.random.default_rng(1)
            proposing, observing = [], []
            for step in range(steps):
                progress(f"propose: {key}", step, steps)
                started = time.perf_counter()
                batch = curriculum.propose(TIMED_BATCH)
                proposing.append(time.perf_counter() - started)
                wanted = np.array([rates[uid] for uid in batch])
                rewards = (rng.random((len(batch), ROLLOUTS)) < wanted[:, None]).astype(float).tolist()
                started = time.perf_counter()
                for uid, row in zip(batch, rewards, strict=True):
                    curriculum.observe(uid, row, step)
                observing.append((time.perf_counter() - started) / len(batch))
            found[key] = {
                "propose_ms_median": round(1000 * float(np.median(proposing)), 3),
                "propose_ms_p99": round(1000 * float(np.quantile(proposing, 0.99)), 3),
                "observe_ms_median": round(1000 * float(np.median(observing)), 4),
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12, help="trainings of each kind, at least 2 (default: 12)")
    parser.add_argument("--scenario", action="append", choices=tuple(SCENARIOS), help="only this one; may be repeated")
    parser.add_argument("--results", type=Path, help="file that keeps each training, so that a stopped run goes on")
    parser.add_argument("--steps", type=int, default=TIMED_STEPS, help="timed steps; 0 times nothing (default: 1000)")
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("--seeds must be at least 2: intervals need them")

    tables = compare(options.scenario or list(SCENARIOS), options.seeds, options.results)
    times = time_proposals(options.steps) if options.steps else {}
    for key, row in times.items():
        print(f"propose: {key:20} {row['propose_ms_median']:.2f} ms", file=sys.stderr)
    what = {"benchmark": "curriculum", "seeds": options.seeds, "questions": N_QUESTIONS, "batch": BATCH}
    timed = {"timed_questions": TIMED_QUESTIONS, "timed_batch": TIMED_BATCH, "times": times}
    print(json.dumps({**what, "rollouts": ROLLOUTS, "scenarios": tables, **timed}))


if __name__ == "__main__":
    main()
