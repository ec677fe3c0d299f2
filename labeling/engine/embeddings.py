"""Question vectors in the database: each is computed once per embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from labeling.engine.errors import translated_errors
from labeling.models import Embedding, Question, StoredClustering
from selector.diversity import Clustering, Embedder, embedder_fingerprint

Vectors = NDArray[np.float32]
TEXTS_PER_CALL = 4096  # what a crash can cost


class DatabaseClusterings:
    """Clusterings in the database. ``saving`` gives the transaction in which one is stored."""

    def __init__(self, saving: Callable[[], AbstractContextManager[None]]) -> None:
        self._saving = saving

    def load(self, key: str) -> Clustering | None:
        """Return the clustering stored under a key, if any."""
        data = StoredClustering.objects.filter(pk=key).values_list("data", flat=True).first()
        return None if data is None else Clustering.from_bytes(bytes(data))

    def save(self, key: str, clustering: Clustering) -> None:
        """Store a clustering; the first one stored under a key stays."""
        row = StoredClustering(key=key, data=clustering.to_bytes())
        with self._saving():
            StoredClustering.objects.bulk_create([row], ignore_conflicts=True)


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
    if missing:
        with translated_errors():
            loaded = Embedder(embedder)
    for start in range(0, len(missing), TEXTS_PER_CALL):
        chunk = missing[start : start + TEXTS_PER_CALL]

        def report(done: int, _total: int, start: int = start) -> None:
            progress(n_stored + start + done, len(texts))

        with translated_errors():
            made = loaded.embed([texts[each] for each in chunk], progress=report)
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
