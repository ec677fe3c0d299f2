"""Question vectors in the database: each is computed once per embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from labeling.engine.errors import translated_errors
from labeling.models import Embedding, Question
from selector.diversity import embed, embedder_fingerprint

Vectors = NDArray[np.float32]
TEXTS_PER_CALL = 4096  # what a crash can cost


def embedded(
    questions: Sequence[Question],
    embedder: str,
    *,
    saving: Callable[[], AbstractContextManager[None]],
    progress: Callable[[int, int], None],
) -> Vectors:
    """Return unit-length vectors [N, D] of the questions, computing and storing those that are missing.

    Questions with the same fingerprint share a vector. Raises EngineFailure when the embedder cannot be loaded.
    """
    with translated_errors():
        fingerprint = embedder_fingerprint(embedder)
    in_order = sorted(questions, key=lambda question: question.uid, reverse=True)  # of equal questions the first uid's
    texts = {question.fingerprint: question.text for question in in_order}
    vectors = _stored(fingerprint, sorted(texts))
    missing = sorted(texts.keys() - vectors.keys())
    n_stored = len(vectors)
    progress(n_stored, len(texts))
    for start in range(0, len(missing), TEXTS_PER_CALL):
        chunk = missing[start : start + TEXTS_PER_CALL]

        def report(done: int, _total: int, start: int = start) -> None:
            progress(n_stored + start + done, len(texts))

        with translated_errors():
            made = embed([texts[each] for each in chunk], embedder, progress=report)
        rows = [
            Embedding(question_fingerprint=each, embedder_fingerprint=fingerprint, vector=vector.tobytes())
            for each, vector in zip(chunk, made, strict=True)
        ]
        with saving():
            Embedding.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
        vectors |= _stored(fingerprint, chunk)  # another run may have been first; its vectors are the record
    return np.stack([vectors[question.fingerprint] for question in questions])


def _stored(embedder_fingerprint: str, fingerprints: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    found: dict[str, NDArray[np.float32]] = {}
    for start in range(0, len(fingerprints), 500):
        rows = Embedding.objects.filter(
            embedder_fingerprint=embedder_fingerprint, question_fingerprint__in=fingerprints[start : start + 500]
        )
        for fingerprint, vector in rows.values_list("question_fingerprint", "vector"):
            found[fingerprint] = np.frombuffer(bytes(vector), np.float32)
    return found
