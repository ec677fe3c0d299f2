"""What `assay rank` and `assay probe` do."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selector.answers import Grader
from selector.command_line import check_writable
from selector.config import SelectionConfig
from selector.conformal import THRESHOLDS
from selector.diversity import PACKAGED_EMBEDDERS, check_embedder
from selector.errors import InvalidConfig, MissingEvidence, NoClusters, PoolTooSmall
from selector.generation import CompletionKind
from selector.internals import Internals
from selector.labeled import read_labeled
from selector.outcomes import ModelOutcomes
from selector.output import line, write_ranking
from selector.pipeline import Progress, run_selection
from selector.probing import Probed, Questions, probe_files, read_question_file
from selector.progress import StageProgress, StopOnSignal
from selector.racing.report import describe_costs
from selector.racing.selection import check_can_race
from selector.racing.settings import RaceSettings
from selector.recorded import embedded_texts, fit_counts, hash_of_rows, load_embeddings, load_internals
from selector.report import count_tokens
from selector.rows import question_uid
from selector.state import State, write_atomically
from selector.strategies import STRATEGIES, Need, Strategy
from selector.strategies.contract import HOW_TO_GET, INTERNAL_NEEDS
from selector.triage import WINDOW
from selector.triage_command import check_has_outcomes, probe_lines, read_labels, routes
from selector.votes import QuestionVotes, read_votes

N_SHOWN = 20  # messages about single rows before the rest are only counted; a report names them all


@dataclass
class Gathered:
    """The recorded answers that a ranking starts from, and how they came about.

    ``numbers`` are the rows of the pool's file (from 0) that its questions stand on, where some were left out.
    """

    pool: list[QuestionVotes]
    calibration: list[QuestionVotes]
    config: SelectionConfig
    tokens: dict[str, int]
    numbers: Sequence[int] | None = None
    set_aside: Mapping[str, str] = field(default_factory=dict)  # uid -> reason code
    internals: Internals | None = None
    outcomes: Sequence[ModelOutcomes] = ()  # of pool and calibration, where they are still to be raced for
    asked: Collection[str] = ()  # what the questions that were asked are called in the state
    told: dict[str, object] = field(default_factory=dict)  # what the report says of it


def rank(options: Namespace, progress: StageProgress, stop: StopOnSignal) -> int:
    """Rank a pool from recorded votes or with a model, and write picks and report. Raises SelectorError."""
    check_writable(options.out, options.report, options.scores, options.triage_probes)
    config = _config(options)
    if options.n_triage_probes < WINDOW:
        raise InvalidConfig("--n-triage-probes", options.n_triage_probes, f"at least {WINDOW}, the window they are in")
    race = _race(options, config)
    if race and race.mode != "off":
        check_can_race(STRATEGIES[config.strategy])
    triage_labels = read_labels(options.triage_labels) if options.triage_labels else {}
    labeled = [*_labeled(options), *triage_labels]

    def advance(stage: str, done: int, total: int) -> None:
        stop.check()
        progress(stage, done, total)

    with ExitStack() as stack:
        state = None
        if options.votes is None:
            state = stack.enter_context(open_state(options, progress))
            racing = stack if race and race.mode != "off" else None
            races_calibration = race is not None and race.calibration
            gathered = _ask_model(options, config, labeled, state, progress, stop, racing, races_calibration)
        else:
            if options.state:
                state = stack.enter_context(State(options.state))
            progress("reading votes", 0, 1)
            gathered = _read_recorded(options, config)
        _say_unknown(labeled, gathered.pool, progress)
        if triage_labels:
            check_has_outcomes(config.strategy, gathered.pool)
        embeddings, embedder = _embeddings(gathered, options, state, advance)
        grader = stack.enter_context(Grader(verdicts=state.verdicts if state else None))
        result = run_selection(
            gathered.pool,
            gathered.calibration,
            config=gathered.config,
            embeddings=embeddings,
            embedder=embedder,
            internals=gathered.internals,
            grader=grader,
            ineligible=gathered.set_aside,
            labeled=labeled,
            race=race,
            outcomes=next(iter(gathered.outcomes), None),
            calibration_outcomes=next(iter(gathered.outcomes[1:]), None),
            clusterings=state.clusterings if state else None,
            progress=advance,
        )
        if race:
            gathered.told |= describe_costs(result.pool_votes, result.calibration_votes, result, race)
        if gathered.outcomes:
            _tell_outcomes(gathered, progress)
        told_of: dict[str, dict[str, object]] = {}
        if triage_labels:
            triage, told_of = routes(result, gathered.pool, triage_labels, grader, gathered.config.grouping)
            gathered.told["triage"] = triage.to_json()
    progress.close()
    if spent := progress.spending.total():
        progress.say(spent)
    if options.triage_probes:
        write_atomically(options.triage_probes, probe_lines(result, gathered.pool, options.n_triage_probes))
        progress.say(f"Wrote the questions to label for the triage to {options.triage_probes}.")
    report = {**result.report, **gathered.told, "tokens": gathered.tokens, "seconds": progress.seconds}
    write_ranking(result, report, told_of, options, progress)
    return 0


def _read_recorded(options: Namespace, config: SelectionConfig) -> Gathered:
    pool = read_votes(options.votes)
    calibration = read_votes(options.calibration_votes, calibration=True) if options.calibration_votes else []
    pool, calibration, config = fit_counts(pool, calibration, options, config)
    tokens = count_tokens([*pool, *calibration])
    if not STRATEGIES[config.strategy].needs_budget:
        config = config.replace(budget=len(pool))
    return Gathered(pool, calibration, config, tokens, internals=load_internals(options.internals, pool))


def _labeled(options: Namespace) -> list[str]:
    """Read which questions already have labels. Raises InvalidConfig where the picks would overwrite that file."""
    for path in options.labeled or ():
        if Path(path).absolute() == Path(options.out).absolute():
            raise InvalidConfig("--out", options.out, "another file than --labeled, which would be lost")
    return read_labeled(options.labeled or ())


def _say_unknown(labeled: Sequence[str], pool: Sequence[QuestionVotes], progress: StageProgress) -> None:
    n_unknown = len(set(labeled) - {question.uid for question in pool})
    if n_unknown:
        progress.say(f"{n_unknown:,} of the {len(labeled):,} labeled questions are not in the pool.")


def _ask_model(
    options: Namespace,
    config: SelectionConfig,
    labeled: Sequence[str],
    state: State,
    progress: StageProgress,
    stop: StopOnSignal,
    racing: ExitStack | None,
    races_calibration: bool,
) -> Gathered:
    """Ask what the strategy needs and nothing else; with a calibration set, every answer that the settings name.

    ``racing`` leaves out the pool's outcomes, with ``races_calibration`` the calibration's too, and holds the model for
    as long as they may be asked for.
    """
    files = [_read_questions(options.pool, options, progress, need_answer=False)]
    if options.calibration:
        files.append(_read_questions(options.calibration, options, progress, need_answer=True))
    rows, strategy = files[0].rows, STRATEGIES[config.strategy]
    if not strategy.needs_budget:
        config = config.replace(budget=len(rows))
    _check_before_asking(files, options, config, labeled)
    cost = strategy.cost(config.n_outcomes, config.n_probes)
    if not options.calibration:
        n_outcomes = config.n_outcomes if options.triage_labels else cost.outcomes
        config = config.replace(n_outcomes=n_outcomes, n_probes=max(cost.probes, options.probes or 0))
    with_internals = bool(cost.forward_passes) and not options.internals
    if with_internals:
        _check_shows_internals(strategy, options.engine)
    told: dict[str, object] = {
        "rejected_rows": [
            {"file": file.path, "line": row.line, "code": row.code, "message": row.message}
            for file in files
            for row in file.rejected
        ]
    }
    if not (options.calibration or config.n_outcomes or config.n_probes or with_internals):
        bare = [
            QuestionVotes(row.uid, (), (), kind=row.answer_kind or options.kind, text=row.text, choices=row.choices)
            for row in rows
        ]
        progress.say(f"Strategy {strategy.key} needs no answers: no model is asked.")
        internals = load_internals(options.internals, bare)
        return Gathered(bare, [], config, {}, numbers=files[0].numbers, internals=internals, told=told)
    probed = _probe(
        files,
        options,
        config,
        state,
        progress,
        stop,
        with_internals=with_internals,
        with_trajectories=bool(options.calibration or cost.trajectories),
        racing=racing,
        races_calibration=races_calibration,
    )
    pool = [replace(question, truth=None) for question in probed.votes[0]]
    return Gathered(
        pool=pool,
        calibration=probed.votes[1] if options.calibration else [],
        config=config,
        tokens=probed.tokens,
        numbers=files[0].numbers,
        set_aside=probed.set_aside,
        internals=probed.internals or load_internals(options.internals, pool),
        outcomes=probed.outcomes,
        asked=probed.asked,
        told={"generation": dict(probed.generation), "set_aside": probed.set_aside_messages, **told},
    )


def _check_shows_internals(strategy: type[Strategy], engine: str) -> None:
    """Raise MissingEvidence where the strategy looks inside a model that another process runs."""
    if engine != "transformers":
        need = next(need for need in Need if need in strategy.needs & INTERNAL_NEEDS)
        raise MissingEvidence(strategy=strategy.key, need=need, how_to_get=HOW_TO_GET[need])


def _check_before_asking(
    files: Sequence[Questions], options: Namespace, config: SelectionConfig, labeled: Sequence[str]
) -> None:
    """Raise what would only come to light after every answer was paid for: too few questions, unfit embeddings."""
    pool = files[0]
    n_pool = len(pool.rows)
    n_left = n_pool - len({row.uid for row in pool.rows} & set(labeled))
    if n_left < config.budget and STRATEGIES[config.strategy].needs_budget:
        raise PoolTooSmall(n_eligible=n_left, n_questions=n_pool, budget=config.budget)
    for calibration in files[1:]:
        THRESHOLDS[config.quantile](np.zeros(len(calibration.rows)), config.alpha_fraction)
    if options.embeddings:
        load_embeddings(options.embeddings, n_pool, pool.numbers)
    elif options.embedder or Need.EMBEDDINGS in STRATEGIES[config.strategy].needs:
        check_embedder(options.embedder or next(iter(PACKAGED_EMBEDDERS)))
    if config.n_clusters is not None and config.n_clusters > n_pool:
        raise InvalidConfig("n_clusters", config.n_clusters, f"at most the number of questions, {n_pool}")
    load_internals(options.internals, [QuestionVotes(row.uid, (), ()) for row in pool.rows])


def probe(options: Namespace, progress: StageProgress, stop: StopOnSignal) -> int:
    """Ask the model about every question of a file and write a votes file. Raises SelectorError."""
    check_writable(options.out, options.internals)
    config = SelectionConfig.preset(
        budget=1,
        strategy="random" if options.internals else None,  # internals can be had without any answers
        n_outcomes=options.outcomes,
        n_probes=options.probes,
        seed=options.seed,
    )
    with open_state(options, progress) as state:
        questions = _read_questions(options.pool, options, progress, need_answer=False)
        probed = _probe([questions], options, config, state, progress, stop, with_internals=bool(options.internals))
    (votes,) = probed.votes
    write_atomically(options.out, (line(question.to_json()) for question in votes))
    if options.internals and probed.internals:
        probed.internals.save(options.internals)
        progress.say(f"Wrote the internals of {len(probed.internals):,} questions to {options.internals}.")
    if spent := progress.spending.total():
        progress.say(spent)
    progress.say(f"Wrote the answers to {len(votes):,} questions to {options.out}.")
    return 0


def open_state(options: Namespace, progress: StageProgress) -> State:
    """Open the state that answers are kept in, and count what comes into it."""
    state = State(options.state or f"{options.out}.state", keep=options.keep)
    for notice in state.notices:
        progress.say(notice)
    state.completions.added = progress.spending.hear
    progress.spending.gpu_price, progress.spending.n_gpus = options.gpu_price, options.gpus
    return state


def engine_options(options: Namespace) -> dict[str, Any]:
    """Return what an engine is opened with."""
    return {
        "model": options.model,
        "base_url": options.base_url,
        "api_key_env": options.api_key_env,
        "revision": options.revision,
        "batch_size": options.batch_size,
        "probe_layout": options.probe_layout,
        **dict(options.engine_option or ()),
    }


def _expect(
    files: Sequence[Questions],
    config: SelectionConfig,
    state: State,
    progress: StageProgress,
    *,
    with_trajectories: bool,
    is_raced: bool,
) -> None:
    """Say how many completions are still to be made, for the time left."""
    keys = {question_uid(row.text, row.choices) for file in files for row in file.rows}
    wanted = {
        CompletionKind.TRAJECTORY: int(with_trajectories or config.n_probes > 0),
        CompletionKind.PROBE: config.n_probes,
        CompletionKind.OUTCOME: config.n_outcomes,
    }
    stored = state.completions.counts(keys)
    missing = {kind: max(0, n * len(keys) - stored[kind]) for kind, n in wanted.items()}
    progress.spending.expect(missing, is_at_most=is_raced)


def _config(options: Namespace) -> SelectionConfig:
    return SelectionConfig.preset(
        options.preset,
        budget=options.budget or 1,  # only a strategy that takes the whole pool does without one
        strategy=options.strategy,
        alpha=options.alpha,
        lam=options.lam,
        n_outcomes=options.outcomes,
        n_probes=options.probes,
        n_clusters=options.clusters,
        seed=options.seed,
        min_readable=options.min_readable,
        groups=options.groups,
        per_cluster=options.per_cluster,
        control_share=options.control_share,
    )


def _tell_outcomes(gathered: Gathered, progress: StageProgress) -> None:
    """Add what the races for outcomes came to, and what was set aside on the way."""
    told: dict[str, Any] = gathered.told
    for outcomes in gathered.outcomes:
        told["set_aside"] |= {uid: aside.message for uid, aside in outcomes.set_aside.items()}
        gathered.tokens["outcomes"] = outcomes.count_tokens(gathered.asked)
    share = 1 - told["tokens_used"] / told["tokens_full"]
    progress.say(
        f"{sum(each.n_made for each in gathered.outcomes):,} outcomes made for the race, which left "
        f"{told['n_undrawn']:,} unasked: {share:.0%} of the pool's tokens were saved."
    )


def _race(options: Namespace, config: SelectionConfig) -> RaceSettings | None:
    """Return how the selection is raced: as the options say, else exactly where a model is asked."""
    mode = options.race
    is_triage = options.triage_probes or options.triage_labels
    may_be_raced = STRATEGIES[config.strategy].can_be_raced and options.preset == "recommended" and not is_triage
    if mode is None and options.votes is None and may_be_raced:
        mode = "exact"
    given = {
        name: getattr(options, f"race_{name}")
        for name in ("calibration", "error", "concurrency")
        if getattr(options, f"race_{name}") is not None
    }
    if options.race_audit is not None:
        given["n_audit"] = options.race_audit
    return RaceSettings(mode, **given) if mode else None


def _read_questions(path: str, options: Namespace, progress: StageProgress, *, need_answer: bool) -> Questions:
    progress(f"reading {path}", 0, 1)
    questions = read_question_file(
        path, mapping=dict(options.map or []), need_answer=need_answer, repair=options.repair
    )
    _say_first(progress, [f"{path}, line {row.line}: {row.message}" for row in questions.rejected], "could not be used")
    warnings = [f"{path}, line {row.line}: {warning}" for row in questions.rows for warning in row.warnings]
    _say_first(progress, warnings, "were read with a warning")
    return questions


def _say_first(progress: StageProgress, messages: Sequence[str], what: str) -> None:
    for message in messages[:N_SHOWN]:
        progress.say(message)
    if len(messages) > N_SHOWN:
        progress.say(f"... and {len(messages) - N_SHOWN:,} more that {what}.")


def _probe(
    files: Sequence[Questions],
    options: Namespace,
    config: SelectionConfig,
    state: State,
    progress: StageProgress,
    stop: StopOnSignal,
    *,
    with_internals: bool = False,
    with_trajectories: bool = True,
    racing: ExitStack | None = None,
    races_calibration: bool = False,
) -> Probed:
    is_raced = racing is not None
    _expect(files, config, state, progress, with_trajectories=with_trajectories, is_raced=is_raced)
    probed = probe_files(
        files,
        engine=options.engine,
        engine_options=engine_options(options),
        settings={"temperature": options.temperature, "top_p": options.top_p, "max_tokens": options.max_tokens},
        n_outcomes=config.n_outcomes,
        n_probes=config.n_probes,
        seed=config.seed,
        default_kind=options.kind,
        state=state,
        progress=progress,
        should_stop=stop,
        with_internals=with_internals,
        with_trajectories=with_trajectories,
        racing=racing,
        races_calibration=races_calibration,
    )
    aside = sorted(probed.set_aside_messages.items())
    _say_first(progress, [f"Question {uid} was set aside: {message}" for uid, message in aside], "were set aside")
    progress.say(f"{probed.n_made:,} answers made; all are kept in {state.path}.")
    return probed


def _embeddings(
    gathered: Gathered, options: Namespace, state: State | None, progress: Progress
) -> tuple[NDArray[np.float32] | None, str]:
    """Return the pool's embeddings and the name of what made them; None where the strategy needs none."""
    pool, config = gathered.pool, gathered.config
    if options.embeddings:
        found = load_embeddings(options.embeddings, len(pool), gathered.numbers)
        order = sorted(range(len(pool)), key=lambda row: pool[row].uid)  # whatever order the rows came in
        return found, f"file:{hash_of_rows(found, order)}"
    strategy = STRATEGIES[config.strategy]
    brings_clusters = strategy.uses_clusters and any(question.cluster is not None for question in pool)
    if Need.EMBEDDINGS not in strategy.needs or (brings_clusters and not options.embedder):
        return None, ""
    if any(question.text is None for question in pool):
        raise NoClusters
    embedder = options.embedder or next(iter(PACKAGED_EMBEDDERS))
    return embedded_texts([str(question.text) for question in pool], embedder, state, progress)
