"""What earlier work left in files, made to fit the pool: embeddings, internals, and how many answers of each kind."""

from __future__ import annotations

import hashlib
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from selector.config import SelectionConfig
from selector.diversity import ROWS_AT_ONCE, Embedder, embed, embedder_fingerprint
from selector.errors import FingerprintMismatch, InvalidConfig
from selector.internals import Internals
from selector.pipeline import Progress
from selector.state import State
from selector.votes import QuestionVotes


def load_internals(path: str | None, pool: Sequence[QuestionVotes]) -> Internals | None:
    """Read the internals of a pool's questions; None without a file. Raises InvalidConfig, and FingerprintMismatch
    where they come from chains of other generation settings than the answers."""
    if path is None:
        return None
    internals = Internals.load(path).take([question.uid for question in pool])
    for question in pool:
        if question.fingerprint not in (None, internals.fingerprint):
            raise FingerprintMismatch(pool=str(question.fingerprint), calibration=internals.fingerprint)
    return internals


def fit_counts(
    pool: list[QuestionVotes], calibration: list[QuestionVotes], options: Namespace, config: SelectionConfig
) -> tuple[list[QuestionVotes], list[QuestionVotes], SelectionConfig]:
    """Take the numbers of answers from the files; fewer outcomes may be asked for, other probes may not."""
    n_probes, n_outcomes = len(pool[0].probe_answers), len(pool[0].outcome_answers)
    if options.outcomes is not None:
        if options.outcomes > n_outcomes:
            raise InvalidConfig("--outcomes", options.outcomes, f"at most the {n_outcomes} in {options.votes}")
        n_outcomes = options.outcomes
    if options.probes not in (None, 0, n_probes):
        wanted = f"{n_probes}, as in {options.votes} (or 0: probes sit at fixed cuts and cannot be thinned out)"
        raise InvalidConfig("--probes", options.probes, wanted)
    n_probes = 0 if options.probes == 0 else n_probes

    def cut(votes: list[QuestionVotes]) -> list[QuestionVotes]:
        return [
            replace(
                question,
                probe_answers=question.probe_answers[:n_probes],
                outcome_answers=question.outcome_answers[:n_outcomes],
            )
            for question in votes
        ]

    return cut(pool), cut(calibration), config.replace(n_outcomes=n_outcomes, n_probes=n_probes)


def embedded_texts(
    texts: Sequence[str], embedder: str, state: State | None, progress: Progress
) -> tuple[NDArray[np.float32], str]:
    """Return the texts' embeddings [N, D], from the state where it has them, and the embedder's fingerprint."""
    progress("loading the embedder", 0, 1)
    fingerprint = embedder_fingerprint(embedder)

    def advance(done: int, total: int) -> None:
        progress("embedding", done, total)

    if state is None:
        return embed(texts, embedder, progress=advance), fingerprint
    loaded = cache(lambda: Embedder(embedder))  # not at all where every text has its vector
    return state.embeddings(texts, fingerprint, lambda texts: loaded().embed(texts), advance), fingerprint


def load_embeddings(path: str, n_questions: int, numbers: Sequence[int] | None) -> NDArray[np.float32]:
    """Read embeddings whose rows are those of the pool's file, left-out rows included, or of its usable questions.

    Memory-mapped as far as they are float32 already: rows are read from the disk where they are used.
    """
    try:
        found = np.load(path, allow_pickle=False, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise InvalidConfig("--embeddings", path, f"a .npy file of numbers ({error})") from error
    if not isinstance(found, np.ndarray) or found.ndim != 2 or found.dtype.kind not in "fiu":
        shape = getattr(found, "shape", "several arrays")
        raise InvalidConfig("--embeddings", f"{path} {shape}", "one array of numbers with one row a question")
    if numbers is not None and len(found) != n_questions and len(found) > numbers[-1]:
        found = found[list(numbers)]
    if len(found) != n_questions:
        raise InvalidConfig("--embeddings", f"{path} with {len(found)} rows", f"of {n_questions} rows, one a question")
    return found.astype(np.float32, copy=False)


def hash_of_rows(embeddings: NDArray[np.float32], order: Sequence[int]) -> str:
    """Return a hash of the rows in an order, without a copy of all of them."""
    digest = hashlib.sha256()
    for start in range(0, len(order), ROWS_AT_ONCE):
        digest.update(np.ascontiguousarray(embeddings[list(order[start : start + ROWS_AT_ONCE])]).tobytes())
    return digest.hexdigest()[:16]
