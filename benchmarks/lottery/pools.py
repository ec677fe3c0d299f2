"""The pools, with calibration sets, held-out questions, and the answers that selection is given to look at."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.lottery.skills import SkillQuestion, draw_distinct
from selector.diversity import embed, embedder_fingerprint
from selector.generation import CompletionKind, Prompt
from selector.generation.store import CompletionShards
from selector.generation.transformers_local import TransformersEngine
from selector.internals import Internals, JsonlInternalsStore
from selector.probing import probe_files, read_question_file
from selector.progress import StageProgress
from selector.rewards import accuracy_reward
from selector.rows import question_uid
from selector.state import State
from selector.tiny import MODEL_DIR
from selector.tiny.questions import TinyQuestion, demo_sets
from selector.votes import QuestionVotes

MIXED_DIR = Path(__file__).parent / "mixed"
MIXED_MODEL_DIR = Path(__file__).parent / "model"
MIXED_SEED = 2027
SCARCE_POOL = Path("docs/data/scarce_pool.jsonl")
SCARCE_CALIBRATION = Path("docs/data/scarce_calibration.jsonl")
SCRATCH = Path("var/lottery")
CANDIDATES = {"easy": 70, "medium": 70, "large": 50, "trap": 50}  # of each skill; the model never saw them in training
N_OUTCOMES, N_PROBES = 20, 20
EMBEDDER = "minilm"
HELD_OUT_PER_FAMILY = 16

T = TypeVar("T")


@dataclass(frozen=True)
class Pool:
    """Questions to choose from, to calibrate on and to measure on, and the model they are put to.

    ``held_out`` is stratified: as many questions of each family (or skill).
    """

    name: str
    model_dir: Path
    max_new_tokens: int
    pool: list[TinyQuestion]
    calibration: list[TinyQuestion]
    held_out: list[TinyQuestion]

    @cached_property
    def by_uid(self) -> dict[str, TinyQuestion]:
        """The pool's questions by the uid they have in votes and picks."""
        return {question_uid(question.text): question for question in self.pool}


def mixed_candidates() -> list[SkillQuestion]:
    """Return all questions that the mixed pool, its calibration set and its held-out questions are taken from."""
    return draw_distinct(MIXED_SEED, CANDIDATES)


def demo_pool() -> Pool:
    """The demo's 304 questions: nearly all of them wobble. Held out: 96 of the demo's 300, 16 of each family."""
    sets = demo_sets()
    by_family = defaultdict(list)
    for question in sets["held_out"]:
        by_family[question.family].append(question)
    held_out = [question for of_family in by_family.values() for question in of_family[:HELD_OUT_PER_FAMILY]]
    return Pool("demo", MODEL_DIR, 80, sets["pool"], sets["calibration"], held_out)


def mixed_pool() -> Pool:
    """The pool mostly mastered or hopeless, as `benchmarks.lottery.compose` wrote it down."""
    sets = {name: read_questions(MIXED_DIR / f"{name}.jsonl") for name in ("pool", "calibration", "held_out")}
    return Pool("mixed", MIXED_MODEL_DIR, 48, **sets)


def scarce_pool() -> Pool:
    """The demo's model and held-out questions, and a pool of which one in six teaches (`benchmarks.lottery.scarce`)."""
    sets = {"pool": read_questions(SCARCE_POOL), "calibration": read_questions(SCARCE_CALIBRATION)}
    return replace(demo_pool(), name="scarce", **sets)


def read_questions(path: Path) -> list[TinyQuestion]:
    """Return the questions of a stored set."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [TinyQuestion(row["question"], row["answer"], row["family"], False, ()) for row in rows]


POOLS = {"scarce": scarce_pool, "mixed": mixed_pool, "demo": demo_pool}


@dataclass(frozen=True)
class Evidence:
    """What selection looks at: the votes of pool and calibration set, and the pool's embeddings [N, D]."""

    pool_votes: list[QuestionVotes]
    calibration_votes: list[QuestionVotes]
    embeddings: NDArray[np.float32]
    embedder: str
    right: dict[str, float]  # uid -> share of the 20 rollouts that are right; for controls and for the record only


def gather_evidence(pool: Pool, directory: Path, progress: StageProgress) -> Evidence:
    """Probe pool and calibration set with the model (20 rollouts, 20 probes); ``directory`` keeps what was asked."""
    files = []
    directory.mkdir(parents=True, exist_ok=True)
    for name, questions in (("pool", pool.pool), ("calibration", pool.calibration)):
        path = directory / f"{name}.jsonl"
        lines = [json.dumps({"question": question.text, "answer": question.answer}) + "\n" for question in questions]
        path.write_text("".join(lines), encoding="utf-8")
        files.append(read_question_file(path, mapping=None, need_answer=True, repair=False))
    with State(directory / "state") as state:
        probed = probe_files(
            files,
            engine="transformers",
            engine_options={"model": str(pool.model_dir), "instruction": ""},
            settings={"temperature": 1.0, "top_p": 1.0, "max_tokens": pool.max_new_tokens},
            n_outcomes=N_OUTCOMES,
            n_probes=N_PROBES,
            seed=0,
            default_kind=None,
            state=state,
            progress=progress,
            should_stop=lambda: False,
        )
        with_truth, calibration = probed.votes
        texts = [str(question.text) for question in with_truth]
        fingerprint = embedder_fingerprint(EMBEDDER)
        embeddings = state.embeddings(texts, fingerprint, lambda texts: embed(texts, EMBEDDER))
    return Evidence(
        [replace(question, truth=None) for question in with_truth],
        calibration,
        embeddings,
        fingerprint,
        right={question.uid: share_right(question.outcome_answers, str(question.truth)) for question in with_truth},
    )


def gather_internals(pool: Pool, directory: Path) -> Internals:
    """Read the hidden states of the pool's greedy chains, or take what ``directory`` has; after the evidence."""
    from selector.internals.reading import read_internals

    engine = TransformersEngine(str(pool.model_dir), instruction="")
    prompts = [Prompt(uid, question.text) for uid, question in pool.by_uid.items()]
    completions = CompletionShards(directory / "state" / "completions").load(pool.by_uid)
    chains = {each.uid: each for each in completions if each.kind is CompletionKind.TRAJECTORY}
    store = JsonlInternalsStore(directory / "internals.jsonl")
    return read_internals(engine, prompts, chains, fingerprint=pool.name, store=store)


def share_right(answers: Sequence[str], truth: str) -> float:
    """Return the share of answers that earn the reward."""
    return sum(accuracy_reward([f"\\boxed{{{each}}}" for each in answers], answer=[truth] * len(answers))) / len(
        answers
    )


def to_row(question: TinyQuestion) -> str:
    """Return one line of a file of the mixed pool."""
    return json.dumps({"question": question.text, "answer": question.answer, "family": question.family}) + "\n"


def shuffled(questions: Sequence[T], seed: int) -> list[T]:
    """Return the questions in a random order."""
    return random.Random(seed).sample(list(questions), len(questions))
