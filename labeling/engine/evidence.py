"""Completions in the database, stored once per question and generation fingerprint, and the votes read from them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from django.db.models import Sum

from labeling.models import CalibrationItem, GenerationSettings, Question, RecordedVotes, SelectionRun, StoredCompletion
from selector.errors import MissingCompletions
from selector.generation.contract import Completion, CompletionKind
from selector.generation.prompts import replies_are_whole
from selector.generation.store import Key, answer_only
from selector.report import count_tokens
from selector.volatility import votes_of
from selector.votes import QuestionVotes

Rows = Sequence[Question | CalibrationItem]
QUESTIONS_PER_QUERY = 500  # fingerprints in one IN (...), and questions whose completions are in memory at once


class DatabaseCompletionStore:
    """The completions of one generation fingerprint. A question's uid is its fingerprint here: whatever pool or
    calibration set it is in, it is asked once.

    ``saving`` gives the transaction in which a chunk is stored; the run's lease is checked in it. ``keep``: "answers"
    leaves out what models write around the answers of outcomes.
    """

    def __init__(
        self,
        generation_fingerprint: str,
        saving: Callable[[], AbstractContextManager[None]],
        *,
        keep: str = "completions",
    ) -> None:
        self.fingerprint, self._saving, self._keep = generation_fingerprint, saving, keep

    def keys(self, uids: Collection[str]) -> set[Key]:
        """Name what is stored of these questions."""
        return {
            (uid, CompletionKind(kind), index)
            for chunk in _chunks(uids)
            for uid, kind, index in self._stored(chunk).values_list("question_fingerprint", "kind", "index")
        }

    def tokens(self, uids: Collection[str]) -> dict[CompletionKind, int]:
        """Return how many tokens were generated for these questions, by kind."""
        found = dict.fromkeys(CompletionKind, 0)
        for chunk in _chunks(uids):
            for kind, n in self._stored(chunk).values_list("kind").annotate(n=Sum("n_tokens")):
                found[CompletionKind(kind)] += n
        return found

    def load(self, uids: Collection[str], kind: CompletionKind | None = None) -> Iterator[Completion]:
        """Yield all that is stored of these questions, of one kind or of every kind, question by question."""
        for chunk in _chunks(uids):
            stored = self._stored(chunk) if kind is None else self._stored(chunk).filter(kind=kind.value)
            for row in stored.order_by("question_fingerprint").iterator(chunk_size=2000):
                yield Completion(
                    uid=row.question_fingerprint,
                    kind=CompletionKind(row.kind),
                    index=row.index,
                    text=row.text,
                    n_tokens=row.n_tokens,
                    n_prompt_tokens=row.n_prompt_tokens,
                    finish_reason=row.finish_reason,
                    token_ids=tuple(json.loads(row.token_ids)) if row.token_ids else (),
                )

    def add(self, completions: Sequence[Completion]) -> None:
        """Store one chunk, or nothing when the lease is gone. A key already stored keeps its first completion."""
        rows = [
            StoredCompletion(
                question_fingerprint=each.uid,
                generation_fingerprint=self.fingerprint,
                kind=each.kind.value,
                index=each.index,
                text=each.text,
                token_ids=json.dumps(each.token_ids) if each.token_ids else None,
                n_tokens=each.n_tokens,
                n_prompt_tokens=each.n_prompt_tokens,
                finish_reason=each.finish_reason,
            )
            for each in (completions if self._keep == "completions" else map(answer_only, completions))
        ]
        with self._saving():
            StoredCompletion.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)

    def _stored(self, fingerprints: Sequence[str]):
        return StoredCompletion.objects.filter(
            generation_fingerprint=self.fingerprint, question_fingerprint__in=fingerprints
        )


def votes_from_completions(
    rows: Rows,
    store: DatabaseCompletionStore,
    *,
    n_outcomes: int,
    n_probes: int,
    skip_missing: bool = False,
    may_lack_outcomes: bool = False,
) -> list[QuestionVotes]:
    """Read every row's votes from its stored completions. Raises MissingCompletions.

    ``skip_missing`` leaves out the rows that lack some instead: deleted since, to save room. ``may_lack_outcomes``
    takes those that are there, as a race draws them.
    """
    parts = GenerationSettings.objects.filter(pk=store.fingerprint).values_list("parts", flat=True).first()
    answers: dict[str, QuestionVotes] = {}
    for chunk in _chunks({row.fingerprint for row in rows}):
        completions = defaultdict(list)
        for completion in store.load(chunk):
            completions[completion.uid].append(completion)
        for fingerprint in chunk:
            try:
                answers[fingerprint] = votes_of(
                    fingerprint,
                    completions[fingerprint],
                    n_outcomes,
                    n_probes,
                    may_lack_outcomes=may_lack_outcomes,
                    whole_replies=replies_are_whole(parts or {}),
                )
            except MissingCompletions:
                if not skip_missing:
                    raise
    return [_with_row(answers[row.fingerprint], row, store.fingerprint) for row in rows if row.fingerprint in answers]


def stored_votes(run: SelectionRun, rows: Rows) -> list[QuestionVotes]:
    """Return the votes that a run's answers amount to, of those rows whose answers are still stored."""
    if run.policy_model_id is None:
        found = recorded_votes(rows, run.generation_fingerprint)
        return [found[row.uid] for row in rows if row.uid in found]
    return votes_from_completions(
        rows,
        DatabaseCompletionStore(run.generation_fingerprint, nullcontext),
        n_outcomes=run.config["n_outcomes"],
        n_probes=run.config["n_probes"],
        skip_missing=True,
        may_lack_outcomes=run.race != SelectionRun.Race.OFF,
    )


def recorded_votes(rows: Rows, generation_fingerprint: str) -> dict[str, QuestionVotes]:
    """Return the votes recorded for those rows that have some, by uid."""
    found: dict[str, Mapping[str, object]] = {}
    for chunk in _chunks({row.fingerprint for row in rows}):
        found |= RecordedVotes.objects.filter(
            generation_fingerprint=generation_fingerprint, question_fingerprint__in=chunk
        ).values_list("question_fingerprint", "votes")
    return {
        row.uid: _with_row(
            QuestionVotes.from_json({**found[row.fingerprint], "id": row.uid}), row, generation_fingerprint
        )
        for row in rows
        if row.fingerprint in found
    }


def votes_of_nothing(row: Question | CalibrationItem) -> QuestionVotes:
    """Return what is known of a question that no model was asked."""
    return replace(_with_row(QuestionVotes(row.uid, (), ()), row, ""), fingerprint=None)


def tokens_of(votes: Sequence[QuestionVotes]) -> dict[str, int]:
    """Return the tokens that recorded votes say they cost, by what they were spent on; empty where they do not say."""
    return count_tokens(votes) or {}


def _with_row(votes: QuestionVotes, row: Question | CalibrationItem, generation_fingerprint: str) -> QuestionVotes:
    """Add what the database knows of the question: a calibration answer, the kind, the text, a given cluster."""
    cluster = row.metadata.get("cluster", votes.cluster)
    return replace(
        votes,
        uid=row.uid,
        truth=row.answer if isinstance(row, CalibrationItem) else None,
        kind=row.answer_kind or None,
        cluster=cluster if isinstance(cluster, int) and not isinstance(cluster, bool) else None,
        text=row.text,
        choices=tuple(row.choices),
        fingerprint=generation_fingerprint,
    )


def _chunks(fingerprints: Collection[str]) -> Iterator[list[str]]:
    ordered = sorted(set(fingerprints))
    for start in range(0, len(ordered), QUESTIONS_PER_QUERY):
        yield ordered[start : start + QUESTIONS_PER_QUERY]
