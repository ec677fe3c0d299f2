"""What happens inside a policy model while it answers, stored once per question and generation fingerprint."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from labeling.engine.errors import translated_errors
from labeling.engine.evidence import DatabaseCompletionStore, Rows
from labeling.engine.generation import OpenModel
from labeling.models import PolicyModel, StoredInternals
from selector.errors import MissingEvidence
from selector.generation import CompletionKind, Prompt
from selector.internals import READER_VERSION, Internals, concatenate
from selector.strategies import STRATEGIES
from selector.strategies.contract import INTERNAL_NEEDS

ROWS_PER_QUERY = 100


class DatabaseInternalsStore:
    """The internals of one generation fingerprint. A question's uid is its fingerprint here.

    ``saving`` gives the transaction in which some are stored; the run's lease is checked in it.
    """

    def __init__(self, generation_fingerprint: str, saving: Callable[[], AbstractContextManager[None]]) -> None:
        self._fingerprint, self._saving = generation_fingerprint, saving

    def load(self, uids: Collection[str]) -> dict[str, Internals]:
        """Return what is stored of these questions: one row each."""
        ordered, found = sorted(set(uids)), {}
        for start in range(0, len(ordered), ROWS_PER_QUERY):
            rows = StoredInternals.objects.filter(
                generation_fingerprint=self._fingerprint,
                reader_version=READER_VERSION,
                question_fingerprint__in=ordered[start : start + ROWS_PER_QUERY],
            )
            for fingerprint, data in rows.values_list("question_fingerprint", "data"):
                found[fingerprint] = Internals.from_bytes(bytes(data))
        return found

    def add(self, rows: Sequence[Internals]) -> None:
        """Store some questions' internals, or nothing when the lease is gone. What is stored already stays."""
        stored = [
            StoredInternals(
                question_fingerprint=row.uids[0],
                generation_fingerprint=self._fingerprint,
                reader_version=READER_VERSION,
                data=row.to_bytes(),
            )
            for row in rows
        ]
        with self._saving():
            StoredInternals.objects.bulk_create(stored, ignore_conflicts=True, batch_size=100)


def needs_internals(config: Mapping[str, object]) -> bool:
    """Whether the strategy looks inside the model."""
    return bool(STRATEGIES[str(config["strategy"])].needs & INTERNAL_NEEDS)


def check_shows_internals(model: PolicyModel | None, config: Mapping[str, object]) -> None:
    """Raise EngineFailure when the strategy looks inside a model that does not run in the worker's process."""
    strategy = STRATEGIES[str(config["strategy"])]
    needs = sorted(strategy.needs & INTERNAL_NEEDS)
    if not needs or (model is not None and model.engine == PolicyModel.EngineKind.TRANSFORMERS):
        return
    with translated_errors():
        how = "a policy model that runs in the worker (Transformers, on this machine)"
        raise MissingEvidence(strategy=strategy.key, need=str(needs[0]), how_to_get=how)


def internals_of(
    model: OpenModel,
    rows: Rows,
    completions: DatabaseCompletionStore,
    *,
    saving: Callable[[], AbstractContextManager[None]],
    progress: Callable[[int, int], None],
) -> Internals:
    """Return the rows' internals, by their uids, reading what is not stored yet along the stored chains.

    ``progress`` hears of every save; what it raises stops here. Raises EngineFailure, also for an engine that shows
    no internals.
    """
    with translated_errors():
        from selector.internals.reading import read_internals  # torch waits until it is needed

        in_order = sorted(rows, key=lambda row: row.uid, reverse=True)  # of equal questions the first uid's was asked
        prompts = {row.fingerprint: Prompt(row.fingerprint, row.text, tuple(row.choices)) for row in in_order}
        made = completions.load(prompts)
        read = read_internals(
            model.engine,
            list(prompts.values()),
            {completion.uid: completion for completion in made if completion.kind is CompletionKind.TRAJECTORY},
            fingerprint=model.fingerprint,
            store=DatabaseInternalsStore(model.fingerprint, saving),
            progress=progress,
        )
    return read.take([row.fingerprint for row in rows]).renamed([row.uid for row in rows])


def stored_internals(generation_fingerprint: str, rows: Rows) -> Internals | None:
    """Return the rows' internals by their uids where those of all are stored; None where some are missing."""
    fingerprints = [row.fingerprint for row in rows]
    found = DatabaseInternalsStore(generation_fingerprint, nullcontext).load(fingerprints)
    if not found or not found.keys() >= set(fingerprints):
        return None
    return concatenate(list(found.values())).take(fingerprints).renamed([row.uid for row in rows])
