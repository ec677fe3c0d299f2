"""How a question is probed: a greedy trajectory, an answer forced at each of its cuts, and sampled outcome rollouts.

How much these answers disagree is the question's volatility (CONST: procedural and outcome volatility).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from selector.answers import extract_answer, extract_probe_answer
from selector.errors import MissingCompletions, Stopped
from selector.generation.contract import (
    Completion,
    CompletionKind,
    Engine,
    Prompt,
    Request,
    SamplingSettings,
    SetAside,
)
from selector.generation.prompts import trajectory_length
from selector.generation.store import CompletionShards, CompletionStore
from selector.votes import QuestionVotes

__all__ = [
    "STAGES",
    "CompletionShards",
    "CompletionStore",
    "ProbeSummary",
    "cut_positions",
    "probe_questions",
    "votes_of",
]

STAGES = {
    "trajectories": CompletionKind.TRAJECTORY,
    "probes": CompletionKind.PROBE,
    "outcomes": CompletionKind.OUTCOME,
}
SECONDS_BETWEEN_SAVES = 5.0
QUESTIONS_AT_ONCE = 500  # looked up in the store together
REQUESTS_PER_CALL = 8192  # bounds the memory of what is asked and not yet answered


@dataclass
class ProbeSummary:
    """What probing did. Mappings are by stage (the keys of STAGES)."""

    set_aside: list[SetAside] = field(default_factory=list)
    n_completions_made: int = 0  # by this call
    tokens: dict[str, int] = field(default_factory=dict)  # generated, over all completions of the questions asked for
    seconds: dict[str, float] = field(default_factory=dict)  # of this call


def cut_positions(n_trajectory_tokens: int, n_probes: int) -> list[int]:
    """Return ceil(i L / n_P) for i = 1..n_P: how many of L tokens each probe keeps; the last keeps all.

    A trajectory shorter than n_P repeats cuts. An empty one has none: there is nothing to cut.
    """
    if n_trajectory_tokens == 0:
        return []
    return [-(-i * n_trajectory_tokens // n_probes) for i in range(1, n_probes + 1)]


def probe_questions(
    engine: Engine,
    prompts: Sequence[Prompt],
    *,
    settings: SamplingSettings,
    n_outcomes: int,
    n_probes: int,
    seed: int,
    store: CompletionStore,
    with_trajectories: bool = True,
    chunk_size: int = 256,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> ProbeSummary:
    """Make the completions that the store lacks: trajectories, then probes, then outcomes, in the order of the uids.

    Without probes the trajectories can be left out (``with_trajectories``).
    They are saved every ``chunk_size`` completions, and at least every few seconds while some come in; after a crash
    only what was not saved is asked again. A question that the engine sets aside is named in the summary and asked
    no more. ``progress`` hears the stage, how many of its completions are stored, and how many it needs.
    Raises Stopped once ``should_stop`` says so, and EngineUnavailable from the engine, both after saving what came.
    """
    summary = ProbeSummary(set_aside=engine.set_aside(prompts, settings))
    too_long = {question.uid for question in summary.set_aside}
    asked = {prompt.uid: prompt for prompt in sorted(prompts, key=lambda p: p.uid) if prompt.uid not in too_long}

    n_wanted = {
        CompletionKind.TRAJECTORY: bool(with_trajectories or n_probes),
        CompletionKind.PROBE: n_probes,
        CompletionKind.OUTCOME: n_outcomes,
    }
    for stage, kind in STAGES.items():
        if not n_wanted[kind]:
            continue
        started = time.perf_counter()
        missing, n_needed = _missing(kind, asked, store, n_outcomes=n_outcomes, n_probes=n_probes)
        n_stored = n_needed - sum(map(len, missing.values()))
        chunks = _Chunks(store, chunk_size, partial(_report, progress, stage, n_stored, n_needed))
        try:
            requests = _requests(kind, missing, asked, store)
            refused = _complete(engine, requests, settings, seed, chunks, should_stop)
        finally:
            chunks.save()
            summary.n_completions_made += chunks.n_saved
        summary.set_aside += refused
        for question in refused:
            del asked[question.uid]
        summary.seconds[stage] = time.perf_counter() - started
    tokens = store.tokens(asked)
    summary.tokens = {stage: tokens[kind] for stage, kind in STAGES.items()}
    return summary


def _report(progress: Callable[[str, int, int], None], stage: str, n_stored: int, n_needed: int, n_saved: int) -> None:
    progress(stage, n_stored + n_saved, n_needed)


class _Chunks:
    """Completions on their way into the store."""

    def __init__(self, store: CompletionStore, size: int, report: Callable[[int], None]) -> None:
        self._store, self._size, self._report = store, size, report
        self._pending: list[Completion] = []
        self._saved_at = time.monotonic()
        self.n_saved = 0
        report(0)

    def add(self, completion: Completion) -> None:
        self._pending.append(completion)

    def is_due(self) -> bool:
        return len(self._pending) >= self._size or time.monotonic() - self._saved_at > SECONDS_BETWEEN_SAVES

    def save(self) -> None:
        chunk, self._pending = self._pending, []  # a chunk that the store refuses is not offered again
        if chunk:
            self._store.add(chunk)
            self.n_saved += len(chunk)
            self._report(self.n_saved)
        self._saved_at = time.monotonic()


def _complete(
    engine: Engine,
    requests: Iterator[Request],
    settings: SamplingSettings,
    seed: int,
    chunks: _Chunks,
    should_stop: Callable[[], bool],
) -> list[SetAside]:
    """Ask for everything, saving as it comes; return the questions refused on the way."""
    refused: dict[str, SetAside] = {}
    while asked := list(islice(requests, REQUESTS_PER_CALL)):
        if should_stop():
            raise Stopped("Stopped as asked; what was finished is kept.")
        results = engine.complete(asked, settings, seed)
        with closing(results):  # stopping ends what is in flight
            for result in results:
                if isinstance(result, SetAside):
                    refused.setdefault(result.uid, result)
                else:
                    chunks.add(result)
                if chunks.is_due():
                    chunks.save()
                    if should_stop():
                        raise Stopped("Stopped as asked; what was finished is kept.")
    return list(refused.values())


def _missing(
    kind: CompletionKind,
    prompts: Mapping[str, Prompt],
    store: CompletionStore,
    *,
    n_outcomes: int,
    n_probes: int,
) -> tuple[dict[str, list[int]], int]:
    """Return which completions of one kind the store lacks, by question, and how many are needed in all."""
    missing: dict[str, list[int]] = {}
    n_needed = 0
    for block in _blocks(prompts):
        stored = store.keys(block)
        trajectories = _trajectories(block, store) if kind is CompletionKind.PROBE else {}
        for uid in block:
            if kind is CompletionKind.PROBE:
                needed = sorted(set(cut_positions(trajectory_length(trajectories[uid]), n_probes)))
            else:
                needed = list(range(n_outcomes if kind is CompletionKind.OUTCOME else 1))
            n_needed += len(needed)
            if lacking := [index for index in needed if (uid, kind, index) not in stored]:
                missing[uid] = lacking
    return missing, n_needed


def _requests(
    kind: CompletionKind, missing: Mapping[str, Sequence[int]], prompts: Mapping[str, Prompt], store: CompletionStore
) -> Iterator[Request]:
    """Yield the requests for what is missing; the chains of some questions at a time are in memory."""
    for block in _blocks(missing):
        trajectories = _trajectories(block, store) if kind is CompletionKind.PROBE else {}
        for uid in block:
            chain = trajectories.get(uid)
            cut = (chain.token_ids, chain.text) if chain else ()
            for index in missing[uid]:
                yield Request(prompts[uid], kind, index, *cut)


def _trajectories(uids: Collection[str], store: CompletionStore) -> dict[str, Completion]:
    return {each.uid: each for each in store.load(uids, CompletionKind.TRAJECTORY)}


def _blocks(uids: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(uids)
    while block := list(islice(remaining, QUESTIONS_AT_ONCE)):
        yield block


def votes_of(
    uid: str,
    completions: Iterable[Completion],
    n_outcomes: int,
    n_probes: int,
    *,
    may_lack_outcomes: bool = False,
    whole_replies: bool = False,
) -> QuestionVotes:
    """Read one question's answers: probes in chain order (equal cuts repeated), outcomes by index, "" where unread.

    ``completions`` may hold more than is used, of other questions too. Kind, truth and cluster are the caller's to
    add. ``may_lack_outcomes``: those before the first that was never made, as a race draws them. ``whole_replies``: as
    ``selector.generation.prompts.replies_are_whole`` says. Raises MissingCompletions when the trajectory, a probe or an
    outcome was never made.
    """
    found = {(c.kind, c.index): c for c in completions if c.uid == uid}
    trajectory = found.get((CompletionKind.TRAJECTORY, 0))
    if trajectory is None and n_probes:
        raise MissingCompletions(uid=uid, kind=CompletionKind.TRAJECTORY, n_missing=1)
    cuts = cut_positions(trajectory_length(trajectory), n_probes) if trajectory else []
    probes = [found.get((CompletionKind.PROBE, cut)) for cut in cuts]
    outcomes = [found.get((CompletionKind.OUTCOME, index)) for index in range(n_outcomes)]
    if may_lack_outcomes and None in outcomes:
        outcomes = outcomes[: outcomes.index(None)]
    for kind, made in ((CompletionKind.PROBE, probes), (CompletionKind.OUTCOME, outcomes)):
        if n_missing := made.count(None):
            raise MissingCompletions(uid=uid, kind=kind, n_missing=n_missing)
    goes_on = trajectory and trajectory.token_ids and not whole_replies
    read_probe = extract_probe_answer if goes_on else extract_answer
    return QuestionVotes(
        uid=uid,
        probe_answers=tuple(read_probe(c.text) for c in probes if c) if cuts else ("",) * n_probes,
        outcome_answers=tuple(extract_answer(c.text) for c in outcomes if c),
        prompt_tokens=trajectory.n_prompt_tokens if trajectory else None,
        trajectory_tokens=trajectory.n_tokens if trajectory else None,
        outcome_tokens=tuple(c.n_tokens for c in outcomes if c),
    )
