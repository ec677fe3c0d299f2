"""How a question is probed: a greedy trajectory, an answer forced at each of its cuts, and sampled outcome rollouts.

How much these answers disagree is the question's volatility (CONST: procedural and outcome volatility).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

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
from selector.generation.store import CompletionStore, JsonlCompletionStore
from selector.votes import QuestionVotes

__all__ = [
    "STAGES",
    "CompletionStore",
    "JsonlCompletionStore",
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
        wanted = _requests(kind, asked, store, n_outcomes=n_outcomes, n_probes=n_probes)
        stored = store.keys(asked)
        missing = [r for r in wanted if (r.prompt.uid, r.kind, r.index) not in stored]
        n_stored = len(wanted) - len(missing)
        chunks = _Chunks(store, chunk_size, partial(_report, progress, stage, n_stored, len(wanted)))
        try:
            refused = _complete(engine, missing, settings, seed, chunks, should_stop)
        finally:
            chunks.save()
            summary.n_completions_made += chunks.n_saved
        summary.set_aside += refused
        for question in refused:
            del asked[question.uid]
        summary.seconds[stage] = time.perf_counter() - started
    summary.tokens = _tokens(store, asked)
    return summary


def _report(progress: Callable[[str, int, int], None], stage: str, n_stored: int, n_wanted: int, n_saved: int) -> None:
    progress(stage, n_stored + n_saved, n_wanted)


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
    requests: Sequence[Request],
    settings: SamplingSettings,
    seed: int,
    chunks: _Chunks,
    should_stop: Callable[[], bool],
) -> list[SetAside]:
    """Ask for everything, saving as it comes; return the questions refused on the way."""
    refused: dict[str, SetAside] = {}
    for start in range(0, len(requests), REQUESTS_PER_CALL):
        if should_stop():
            raise Stopped("Stopped as asked; what was finished is kept.")
        results = engine.complete(requests[start : start + REQUESTS_PER_CALL], settings, seed)
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


def _requests(
    kind: CompletionKind,
    prompts: Mapping[str, Prompt],
    store: CompletionStore,
    *,
    n_outcomes: int,
    n_probes: int,
) -> list[Request]:
    """List every completion of one kind that the questions need, stored or not."""
    if kind is CompletionKind.TRAJECTORY:
        return [Request(prompt, kind, 0) for prompt in prompts.values()]
    if kind is CompletionKind.OUTCOME:
        return [Request(prompt, kind, index) for prompt in prompts.values() for index in range(n_outcomes)]
    trajectories = {c.uid: c for c in store.load(prompts) if c.kind is CompletionKind.TRAJECTORY}
    return [
        Request(prompt, kind, cut, trajectories[uid].token_ids, trajectories[uid].text)
        for uid, prompt in prompts.items()
        for cut in sorted(set(cut_positions(trajectory_length(trajectories[uid]), n_probes)))
    ]


def _tokens(store: CompletionStore, uids: Collection[str]) -> dict[str, int]:
    stage_of = {kind: stage for stage, kind in STAGES.items()}
    tokens = dict.fromkeys(STAGES, 0)
    for completion in store.load(uids):
        tokens[stage_of[completion.kind]] += completion.n_tokens
    return tokens


def votes_of(uid: str, completions: Iterable[Completion], n_outcomes: int, n_probes: int) -> QuestionVotes:
    """Read one question's answers: probes in chain order (equal cuts repeated), outcomes by index, "" where unread.

    ``completions`` may hold more than is used, of other questions too. Kind, truth and cluster are the caller's to
    add. Raises MissingCompletions when the trajectory, a probe or an outcome was never made.
    """
    found = {(c.kind, c.index): c for c in completions if c.uid == uid}
    trajectory = found.get((CompletionKind.TRAJECTORY, 0))
    if trajectory is None and n_probes:
        raise MissingCompletions(uid=uid, kind=CompletionKind.TRAJECTORY, n_missing=1)
    cuts = cut_positions(trajectory_length(trajectory), n_probes) if trajectory else []
    probes = [found.get((CompletionKind.PROBE, cut)) for cut in cuts]
    outcomes = [found.get((CompletionKind.OUTCOME, index)) for index in range(n_outcomes)]
    for kind, made in ((CompletionKind.PROBE, probes), (CompletionKind.OUTCOME, outcomes)):
        if n_missing := made.count(None):
            raise MissingCompletions(uid=uid, kind=kind, n_missing=n_missing)
    read_probe = extract_probe_answer if trajectory and trajectory.token_ids else extract_answer
    return QuestionVotes(
        uid=uid,
        probe_answers=tuple(read_probe(c.text) for c in probes if c) if cuts else ("",) * n_probes,
        outcome_answers=tuple(extract_answer(c.text) for c in outcomes if c),
        prompt_tokens=trajectory.n_prompt_tokens if trajectory else None,
        trajectory_tokens=trajectory.n_tokens if trajectory else None,
        outcome_tokens=tuple(c.n_tokens for c in outcomes if c),
    )
