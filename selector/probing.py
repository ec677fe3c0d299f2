"""From a file of questions to their votes: read it, ask the model what is not yet known, read the answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from selector.errors import InvalidConfig, InvalidRow, UnusableFile
from selector.generation import CompletionKind, Engine, Prompt, SamplingSettings, SetAside, open_engine
from selector.generation.prompts import replies_are_whole
from selector.internals import Internals
from selector.outcomes import ModelOutcomes
from selector.rows import QuestionRow, RejectedRow, question_uid, read_questions
from selector.state import State
from selector.volatility import QUESTIONS_AT_ONCE, probe_questions, votes_of
from selector.votes import QuestionVotes


@dataclass
class Questions:
    """The usable questions of a file, the numbers of their rows (from 0), and what could not be used, by line."""

    path: str
    rows: list[QuestionRow] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    n_rows: int = 0
    rejected: list[RejectedRow] = field(default_factory=list)


@dataclass(frozen=True)
class Probed:
    """The votes of each file's questions, in the files' order, and how they came about."""

    votes: list[list[QuestionVotes]]
    set_aside: dict[str, str]  # uid -> reason code
    set_aside_messages: dict[str, str]
    tokens: dict[str, int]
    fingerprint: str
    generation: Mapping[str, object]
    n_made: int
    internals: Internals | None = None  # of the first file's questions, where asked for
    asked: Collection[str] = ()  # the keys of the questions in the store
    outcomes: Sequence[ModelOutcomes] = ()  # of the first files, where they are still to be raced for


def read_question_file(
    path: str | Path, *, mapping: Mapping[str, str] | None, need_answer: bool, repair: bool
) -> Questions:
    """Read a pool or a calibration file. Rows that cannot be used, and repeated ids, are kept apart by line.

    Raises UnusableFile when no row is left.
    """
    found = Questions(str(path))
    line_of: dict[str, int] = {}
    for row in read_questions(path, mapping=mapping, need_answer=need_answer, repair=repair):
        number, found.n_rows = found.n_rows, found.n_rows + 1
        if isinstance(row, RejectedRow):
            found.rejected.append(row)
        elif row.uid in line_of:
            message = f"The question {row.uid} was already on line {line_of[row.uid]}; this row is left out."
            found.rejected.append(RejectedRow(row.line, "duplicate", message))
        else:
            line_of[row.uid] = row.line
            found.rows.append(row)
            found.numbers.append(number)
    if not found.rows:
        raise UnusableFile(
            [
                InvalidRow(path=found.path, line=row.line, row_code=row.code, message=row.message)
                for row in found.rejected
            ]
        )
    return found


def probe_files(
    files: Sequence[Questions],
    *,
    engine: str,
    engine_options: Mapping[str, object],
    settings: Mapping[str, float | int | None],
    n_outcomes: int,
    n_probes: int,
    seed: int,
    default_kind: str | None,
    state: State,
    progress: Callable[[str, int, int], None],
    should_stop: Callable[[], bool],
    with_internals: bool = False,
    with_trajectories: bool = True,
    racing: ExitStack | None = None,
    races_calibration: bool = False,
) -> Probed:
    """Ask the model about every question of the files and read its answers; what ``state`` has is not asked again.

    Completions are kept under the hash of text and choices, so that ids may repeat between files. ``settings`` holds
    temperature, top_p and max_tokens; None takes the model's own recommendation, else the default. A question that
    the engine sets aside keeps its place with every answer unread. ``with_internals`` reads the model's internals along
    the chains of the first file's questions; ``with_trajectories`` False leaves out chains that nothing needs.
    ``racing`` leaves out the first file's outcomes, and with ``races_calibration`` those of the others: they are asked
    for afterwards, of a model that stays open for as long as this stack. Raises StateMismatch, EngineError, Stopped,
    and InvalidConfig for an engine that shows no internals.
    """
    if with_internals:
        check_shows_internals(engine)
    n_raced = 0 if racing is None else len(files) if races_calibration else 1
    prompts = {key: Prompt(key, row.text, row.choices) for file in files for row in file.rows for key in [_key(row)]}
    progress("loading the model", 0, 1)
    with ExitStack() as stack:
        model = open_engine(engine, **dict(engine_options))  # type: ignore[arg-type]
        (racing or stack).enter_context(closing(model))
        given = {name: value for name, value in settings.items() if value is not None}
        sampling = SamplingSettings(**{**model.recommended_sampling(), **given})  # type: ignore[arg-type]
        fingerprint, generation = model.fingerprint(sampling), model.describe(sampling)
        state.claim(fingerprint, generation)
        complete = {_key(row) for file in files[n_raced:] for row in file.rows}
        summaries = [
            probe_questions(
                model,
                [prompt for key, prompt in prompts.items() if (key in complete) is is_complete],
                settings=sampling,
                n_outcomes=n_outcomes if is_complete else 0,
                n_probes=n_probes,
                seed=seed,
                store=state.completions,
                with_trajectories=with_trajectories or with_internals,
                progress=progress,
                should_stop=should_stop,
            )
            for is_complete in ((True, False) if racing else (True,))
        ]
        aside = {question.uid: question for summary in summaries for question in summary.set_aside}
        internals, outcomes = None, []
        if with_internals:
            internals = _internals(model, files[0].rows, aside, fingerprint, state, progress, should_stop)
        for file in files[:n_raced]:
            of_file = ModelOutcomes(
                model,
                {row.uid: prompts[_key(row)] for row in file.rows},
                settings=sampling,
                seed=seed,
                store=state.completions,
                should_stop=should_stop,
            )
            outcomes.append(racing.enter_context(closing(of_file)))  # type: ignore[union-attr]

    def votes(rows: Sequence[QuestionRow], *, is_raced: bool) -> list[QuestionVotes]:
        asked = sorted({_key(row) for row in rows} - aside.keys())
        progress("reading answers", 0, len(asked))
        found = {key: QuestionVotes(key, ("",) * n_probes, ("",) * n_outcomes) for key in aside}
        for start in range(0, len(asked), QUESTIONS_AT_ONCE):
            made = defaultdict(list)
            for completion in state.completions.load(asked[start : start + QUESTIONS_AT_ONCE]):
                made[completion.uid].append(completion)
            for key in asked[start : start + QUESTIONS_AT_ONCE]:
                found[key] = votes_of(
                    key,
                    made[key],
                    n_outcomes,
                    n_probes,
                    may_lack_outcomes=is_raced,
                    whole_replies=replies_are_whole(generation),
                )
            progress("reading answers", min(start + QUESTIONS_AT_ONCE, len(asked)), len(asked))
        return [
            replace(
                found[_key(row)],
                uid=row.uid,
                truth=row.answer or None,
                kind=row.answer_kind or default_kind,
                text=row.text,
                choices=row.choices,
                fingerprint=fingerprint,
            )
            for row in rows
        ]

    rows_aside = {row.uid: aside[_key(row)] for file in files for row in file.rows if _key(row) in aside}
    return Probed(
        votes=[votes(file.rows, is_raced=number < n_raced) for number, file in enumerate(files)],
        set_aside={uid: question.code for uid, question in rows_aside.items()},
        set_aside_messages={uid: question.message for uid, question in rows_aside.items()},
        tokens=_total([summary.tokens for summary in summaries]),
        fingerprint=fingerprint,
        generation=generation,
        n_made=sum(summary.n_completions_made for summary in summaries),
        internals=internals,
        asked=prompts.keys() - aside.keys(),
        outcomes=outcomes,
    )


def _total(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(each[name] for each in counts) for name in counts[0]}


def check_shows_internals(engine: str) -> None:
    """Raise InvalidConfig for an engine that cannot show what happens inside its model."""
    if engine != "transformers":
        wanted = "transformers, the only engine that shows what happens inside a model"
        raise InvalidConfig("engine", engine, wanted)


def _internals(
    model: Engine,
    rows: Sequence[QuestionRow],
    aside: Mapping[str, SetAside],
    fingerprint: str,
    state: State,
    progress: Callable[[str, int, int], None],
    should_stop: Callable[[], bool],
) -> Internals | None:
    """Read the internals of the rows' questions, with empty rows for those set aside; None where all of them are."""
    from selector.internals.reading import read_internals

    keys = {row.uid: _key(row) for row in rows}
    prompts = {keys[row.uid]: Prompt(keys[row.uid], row.text, row.choices) for row in rows}
    asked = [prompt for key, prompt in prompts.items() if key not in aside]
    if not asked:
        return None
    chains = state.completions.load([prompt.uid for prompt in asked], CompletionKind.TRAJECTORY)
    read = read_internals(
        model,
        asked,
        {chain.uid: chain for chain in chains},
        fingerprint=fingerprint,
        store=state.internals,
        progress=lambda done, total: progress("reading internals", done, total),
        should_stop=should_stop,
    )
    kept = [uid for uid, key in keys.items() if key not in aside]
    found = read.take([keys[uid] for uid in kept]).renamed(kept)
    return found.with_blank([uid for uid in keys if keys[uid] in aside])


def _key(row: QuestionRow) -> str:
    return question_uid(row.text, row.choices)
