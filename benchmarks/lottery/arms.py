"""The arms: how each chooses from a pool, and the order in which they are run."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.lottery.pools import N_OUTCOMES, N_PROBES, Evidence, Pool
from selector.config import SelectionConfig
from selector.internals import Internals
from selector.pipeline import run_selection
from selector.seeds import question_seed

N_SEEDS = 8
BASELINE = "random"
PICKS_FILE = Path("docs/data/lottery_picks.jsonl")


@dataclass(frozen=True)
class Arm:
    """One way to choose: a strategy of Assay's with its settings, or a control."""

    strategy: str = ""
    alpha: Mapping[str, str] | None = None  # by pool; the default where none is given
    uses_internals: bool = False
    control: Literal["lowest", "highest", "between", ""] = ""  # draws by the share of rollouts that are right
    title: str = ""
    pools: tuple[str, ...] = ("scarce", "mixed", "demo")


ARMS: Mapping[str, Arm] = {
    "random": Arm("random", title="Random"),
    "const": Arm("const", title="CONST, alpha .1"),
    "const_wide": Arm("const", alpha={"demo": "0.2", "mixed": "0.5", "scarce": "0.5"}, title="CONST, wider alpha"),
    "entropy": Arm("entropy", title="Entropy of the answers"),
    "shift": Arm("shift", uses_internals=True, title="SHIFT"),
    "never_right": Arm(control="lowest", title="control: never right"),
    "always_right": Arm(control="highest", title="control: always right"),
    "sometimes_right": Arm(control="between", title="control: sometimes right", pools=("scarce", "mixed")),
    "full": Arm("full", title="the whole pool"),
    "v1": Arm("v1", title="V1: random of each cluster"),
    "v2": Arm("v2", title="V2: largest sets, no clusters"),
    "v3": Arm("v3", title="V3: entropy of each cluster"),
    "scf": Arm("scf", title="SCF (reconstruction)"),
    "care_proxy": Arm("care_proxy", title="CARE's gap from votes (reconstruction)"),
}

CONTROLS = ("never_right", "always_right", "sometimes_right")
STAGES: tuple[tuple[tuple[str, int], ...], ...] = (  # a stage is finished for all seeds before the next begins
    tuple((arm, 8) for arm in ("random", "const", "entropy", "shift", *CONTROLS, "full")),
    tuple(
        (arm, budget) for budget in (4, 16) for arm in ("random", "const", "const_wide", "entropy", "shift", *CONTROLS)
    ),
    tuple((arm, 8) for arm in ("const_wide", "scf", "v1")),
    tuple((arm, 8) for arm in ("care_proxy", "v2", "v3")),
)


@dataclass(frozen=True)
class Job:
    """One training to be made."""

    pool: str
    arm: str
    budget: int
    seed: int

    @property
    def key(self) -> str:
        return f"{self.pool}/{self.arm}/{self.budget}/{self.seed}"

    def is_in_shard(self, shard: int, n_shards: int) -> bool:
        """Say whether the job falls to one of several processes."""
        return question_seed(0, "shard", self.key) % n_shards == shard


def jobs(n_seeds: int = N_SEEDS, pools: tuple[str, ...] = ("scarce", "mixed", "demo")) -> Iterator[Job]:
    """Yield all jobs: by stage, then by pool, then by seed, so that stopping early leaves balanced tables."""
    for stage in STAGES:
        for pool in pools:
            for seed in range(n_seeds):
                for arm, budget in stage:
                    if pool in ARMS[arm].pools:
                        yield Job(pool, arm, budget, seed)


def choose(job: Job, evidence: Evidence, internals: Internals | None) -> list[str]:
    """Return the uids that the arm picks; the job's seed is the run's seed. Raises SelectorError."""
    arm = ARMS[job.arm]
    if arm.control:
        return draw_control(evidence.right, arm.control, job)
    config = SelectionConfig.preset(
        budget=job.budget,
        strategy=arm.strategy,
        alpha=(arm.alpha or {}).get(job.pool),
        seed=job.seed,
        n_outcomes=N_OUTCOMES,
        n_probes=N_PROBES,
    )
    result = run_selection(
        evidence.pool_votes,
        evidence.calibration_votes,
        config=config,
        embeddings=evidence.embeddings,
        embedder=evidence.embedder,
        internals=internals if arm.uses_internals else None,
    )
    return [pick.uid for pick in result.picks]


def draw_control(right: Mapping[str, float], control: str, job: Job) -> list[str]:
    """Draw from the questions that are never right (lowest), always (highest) or neither (between).

    Where fewer than twice the budget are never (always) right, from so many that are nearest to it.
    """
    rng = random.Random(f"{job.arm} {job.seed}")
    if control == "between":
        return rng.sample(sorted(uid for uid, share in right.items() if 0.1 <= share <= 0.9), job.budget)
    in_order = sorted(right, key=lambda uid: (-right[uid] if control == "highest" else right[uid], uid))
    n_extreme = sum(share == (1 if control == "highest" else 0) for share in right.values())
    return rng.sample(in_order[: max(n_extreme, 2 * job.budget)], job.budget)


class Picks:
    """What each arm picked, kept in a file, so that another machine trains on the same questions.

    ``gather(pool)`` is asked for evidence only where a job's picks are not known yet.
    """

    def __init__(self, path: Path, gather: Callable[[Pool, bool], tuple[Evidence, Internals | None]]) -> None:
        self.path, self._gather = path, gather
        self._known: dict[str, list[str]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                self._known[row["job"]] = row["picks"]

    def of(self, job: Job, pool: Pool) -> list[str]:
        """Return the uids of a job's questions."""
        if job.key not in self._known:
            evidence, internals = self._gather(pool, ARMS[job.arm].uses_internals)
            self._known[job.key] = choose(job, evidence, internals)
            right = [round(evidence.right[uid], 2) for uid in self._known[job.key]]
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"job": job.key, "picks": self._known[job.key], "right": right}) + "\n")
        return self._known[job.key]
