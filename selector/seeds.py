"""Randomness by name: every random choice has a generator of its own, so that no choice moves another."""

import hashlib

import numpy as np


def _digest(run_seed: int, stage: str, uid: str) -> bytes:
    # Lengths are implied by the separators: a stage never contains NUL, and the uid comes last.
    return hashlib.blake2b(f"{run_seed}\0{stage}\0{uid}".encode(), digest_size=16).digest()


def question_seed(run_seed: int, stage: str, uid: str = "") -> int:
    """Return a seed in [0, 2**31) for one stage of one run, and for one question where ``uid`` is given."""
    return int.from_bytes(_digest(run_seed, stage, uid)[:4], "big") >> 1


def question_rng(run_seed: int, stage: str, uid: str = "") -> np.random.Generator:
    """Return the generator of one stage of one run (and question); equal arguments give equal streams."""
    return np.random.default_rng(int.from_bytes(_digest(run_seed, stage, uid), "big"))


def question_uniform(run_seed: int, stage: str, uid: str) -> float:
    """Return one uniform draw in [0, 1) for a question, without the cost of a generator."""
    return (int.from_bytes(_digest(run_seed, stage, uid)[:8], "big") >> 11) / 2**53
