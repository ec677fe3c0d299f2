"""The commands `assay compare` and `assay backtest`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selector.command_line import (
    Subparsers,
    add_command,
    check_plots,
    check_writable,
    field_and_column,
    with_progress,
)
from selector.config import PRESETS, SelectionConfig
from selector.errors import InvalidConfig
from selector.strategies import STRATEGIES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from selector.pipeline import Progress
    from selector.progress import StageProgress, StopOnSignal
    from selector.state import State
    from selector.votes import QuestionVotes

COMPARE_EXAMPLES = """\
From recorded answers, all strategies that these can serve (the others are named, with what they lack):

  assay compare --votes pool_votes.jsonl --calibration-votes calibration_votes.jsonl --budget 64 \\
      --out compare.json --plots pictures

Some of them, more resampling, and the model's internals:

  assay compare --votes pool_votes.jsonl --calibration-votes calibration_votes.jsonl --budget 8 \\
      --strategies const,random,entropy,shift --internals internals.npz --bootstrap 500

Embedding is what takes longest; --state DIR keeps the embeddings for the next time.
Where the votes say the "truth", the picks are also judged by it, as in `assay backtest`.
"""
BACKTEST_EXAMPLES = """\
What would each strategy's picks have been worth? For a pool whose answers are known:

  assay backtest pool_with_answers.jsonl --votes pool_votes.jsonl --calibration-votes calibration_votes.jsonl \\
      --budget 64

Votes that say the "truth" of every question need no further file:

  assay backtest --votes pool_votes.jsonl --calibration-votes calibration_votes.jsonl --budget 64 --out backtest.json
"""


def add_compare(commands: Subparsers) -> None:
    """Add `assay compare` to the command line."""
    parser = _add(commands, "compare", "how strategies differ on one pool, from the same answers", COMPARE_EXAMPLES)
    parser.set_defaults(run=_run_compare, check=_check)
    parser.add_argument(
        "--bootstrap", type=int, default=100, metavar="N", help="resamplings of answers and calibration (default: 100)"
    )
    parser.add_argument("--plots", metavar="DIR", help="pictures as PNG and SVG (needs matplotlib)")


def add_backtest(commands: Subparsers) -> None:
    """Add `assay backtest` to the command line."""
    parser = _add(commands, "backtest", "what strategies' picks are worth, where answers are known", BACKTEST_EXAMPLES)
    parser.set_defaults(run=_run_backtest, check=_check)
    parser.add_argument(
        "pool", nargs="?", metavar="POOL_WITH_ANSWERS", help="JSONL, CSV or Parquet; else the votes say"
    )
    parser.add_argument(
        "--map", action="append", type=field_and_column, metavar="FIELD=COLUMN", help="e.g. answer=solution"
    )
    parser.add_argument("--repair", action="store_true", help="mend LaTeX that JSON escapes have damaged")
    parser.add_argument("--group-size", type=int, default=8, metavar="G", help="rollouts in a GRPO group (default: 8)")
    parser.add_argument("--seeds", type=int, default=1000, metavar="N", help="random selections (default: 1000)")


def _add(commands: Subparsers, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser = add_command(commands, name, summary, examples)
    evidence = parser.add_argument_group("evidence")
    evidence.add_argument("--votes", required=True, metavar="V.jsonl", help="recorded answers to the pool's questions")
    evidence.add_argument("--calibration-votes", metavar="C.jsonl", help="the same of questions with known truth")
    source = evidence.add_mutually_exclusive_group()
    source.add_argument("--embedder", metavar="E", help="sentence-transformers directory or name (default: minilm)")
    source.add_argument("--embeddings", metavar="X.npy", help="one row of numbers for each row of the votes")
    evidence.add_argument("--internals", metavar="F.npz", help="hidden states and attention, from assay probe")
    evidence.add_argument("--state", metavar="DIR", help="where embeddings and slow verdicts are kept")
    what = parser.add_argument_group("what to compare")
    what.add_argument("--budget", type=int, required=True, metavar="B", help="number of questions to pick")
    what.add_argument(
        "--strategies", default="all", metavar="A,B", help=f"all (default), or of {', '.join(STRATEGIES)}"
    )
    what.add_argument("--preset", choices=tuple(PRESETS), default="recommended", help="default: recommended")
    what.add_argument("--alpha", metavar="A", help="share of truths the sets may miss (default: 0.1)")
    what.add_argument("--lam", type=float, metavar="L", help="weight of the entropy in the score (default: 0.02)")
    what.add_argument("--clusters", type=int, metavar="C", help="number of clusters (default: as each strategy has it)")
    what.add_argument("--min-readable", type=float, metavar="S", help="share of answers that must be readable")
    what.add_argument("--seed", type=int, default=None, metavar="S", help="default: 0")
    parser.add_argument("--out", metavar="FILE.json", help="everything, as JSON")
    return parser


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    unknown = [key for key in _keys(options) if key not in STRATEGIES]
    if unknown:
        parser.error(f"--strategies: there is no {unknown[0]!r}; there are {', '.join(STRATEGIES)}, or all")
    if getattr(options, "bootstrap", 0) < 0:
        parser.error("--bootstrap must be 0 or more")
    if getattr(options, "seeds", 1) < 1 or getattr(options, "group_size", 2) < 2:
        parser.error("--seeds must be 1 or more and --group-size 2 or more")


def _keys(options: argparse.Namespace) -> list[str]:
    return list(STRATEGIES) if options.strategies == "all" else [key for key in options.strategies.split(",") if key]


def _run_compare(options: argparse.Namespace) -> int:
    return with_progress(compare, options)


def _run_backtest(options: argparse.Namespace) -> int:
    return with_progress(backtest, options)


def compare(options: argparse.Namespace, progress: StageProgress, stop: StopOnSignal) -> int:
    """Print the comparison; write it and its pictures where asked. Raises SelectorError."""
    from selector.comparing.tables import comparison_lines

    check_writable(options.out)
    check_plots(options.plots)
    truths = _truths_of_votes(options.votes)
    found = _compare(options, truths, progress, stop, n_bootstrap=options.bootstrap)
    print("\n".join(comparison_lines(found)))
    _write(found, options.out, progress)
    if options.plots:
        from selector.comparing.plots import draw

        for path in draw(found, Path(options.plots)):
            progress.say(f"Wrote {path}.")
    return 0


def backtest(options: argparse.Namespace, progress: StageProgress, stop: StopOnSignal) -> int:
    """Print what the truths show of every strategy's picks; write it where asked. Raises SelectorError."""
    from selector.comparing.tables import backtest_lines, not_run_lines

    check_writable(options.out)
    truths = _truths_of_pool(options, progress) if options.pool else _truths_of_votes(options.votes)
    if not truths:
        wanted = "votes that say the truth of every question, or a POOL_WITH_ANSWERS before the options"
        raise InvalidConfig("--votes", options.votes, wanted)
    found = _compare(
        options, truths, progress, stop, n_bootstrap=0, group_size=options.group_size, n_random=options.seeds
    )
    if found["backtest"] is None:
        raise InvalidConfig("--votes", options.votes, "a votes file with answers, for the truths to judge")
    print("\n".join([*backtest_lines(found["backtest"]), *not_run_lines(found)]))
    names = ("budget", "seed", "settings", "pool", "calibration", "strategies", "not_run", "backtest", "seconds")
    _write({name: found[name] for name in names}, options.out, progress)
    return 0


def _compare(
    options: argparse.Namespace,
    truths: Mapping[str, str | None] | None,
    progress: StageProgress,
    stop: StopOnSignal,
    **settings: Any,
) -> dict[str, Any]:
    from selector.answers import Grader
    from selector.comparing.comparison import compare_strategies
    from selector.recorded import load_internals
    from selector.state import State
    from selector.votes import read_votes

    def advance(stage: str, done: int, total: int) -> None:
        stop.check()
        progress(stage, done, total)

    config = SelectionConfig.preset(
        options.preset,
        budget=options.budget,
        strategy="random",  # each is set in turn; this one goes with votes files that hold no answers
        alpha=options.alpha,
        lam=options.lam,
        n_clusters=options.clusters,
        min_readable=options.min_readable,
        seed=options.seed,
    )
    with ExitStack() as stack:
        state = stack.enter_context(State(options.state)) if options.state else None
        advance("reading votes", 0, 1)
        pool = read_votes(options.votes)
        calibration = read_votes(options.calibration_votes, calibration=True) if options.calibration_votes else []
        counts = {"n_outcomes": len(pool[0].outcome_answers), "n_probes": len(pool[0].probe_answers)}
        internals = load_internals(options.internals, pool)
        embeddings, embedder = _embeddings(options, pool, state, advance)
        grader = stack.enter_context(Grader(verdicts=state.verdicts if state else None))
        found = compare_strategies(
            pool,
            calibration,
            strategies=_keys(options),
            config=config.replace(**counts),
            embeddings=embeddings,
            internals=internals,
            truths=truths,
            grader=grader,
            progress=advance,
            **settings,
        )
    progress.close()
    return {**found, "embedder": embedder or None, "seconds": progress.seconds}


def _embeddings(
    options: argparse.Namespace, pool: Sequence[QuestionVotes], state: State | None, progress: Progress
) -> tuple[NDArray[np.float32] | None, str]:
    """Return the pool's embeddings and what made them; None where the votes have no texts to make them from."""
    from selector.diversity import PACKAGED_EMBEDDERS
    from selector.recorded import embedded_texts, load_embeddings

    if options.embeddings:
        return load_embeddings(options.embeddings, len(pool), None), str(options.embeddings)
    texts = [question.text for question in pool if question.text is not None]
    if len(texts) < len(pool):
        if options.embedder:
            missing = next(question.uid for question in pool if question.text is None)
            wanted = f"left out: the votes have no text for question {missing}"
            raise InvalidConfig("--embedder", options.embedder, wanted)
        return None, ""
    return embedded_texts(texts, options.embedder or next(iter(PACKAGED_EMBEDDERS)), state, progress)


def _truths_of_votes(path: str) -> dict[str, str | None] | None:
    """Return the truth of every question by id, where every row of the votes says it (null: no answer is right)."""
    from selector.rows import Limits, Row, read_rows

    for row in read_rows(path, format="jsonl", limits=Limits(max_line_bytes=16 << 20)):
        if isinstance(row, Row) and "truth" not in row.data:
            return None
    from selector.votes import read_votes

    return {question.uid: question.truth for question in read_votes(path, calibration=True)}


def _truths_of_pool(options: argparse.Namespace, progress: StageProgress) -> dict[str, str | None]:
    """Return the answers of the pool's file by the ids of the votes: its own ids, else the identity of the texts."""
    from selector.probing import read_question_file
    from selector.rows import question_uid
    from selector.votes import read_votes

    progress(f"reading {options.pool}", 0, 1)
    questions = read_question_file(
        options.pool, mapping=dict(options.map or []), need_answer=True, repair=options.repair
    )
    for row in questions.rejected[:20]:
        progress.say(f"{options.pool}, line {row.line}: {row.message}")
    by_uid = {row.uid: row.answer for row in questions.rows}
    by_text = {question_uid(row.text, row.choices): row.answer for row in questions.rows}
    truths: dict[str, str | None] = {}
    votes = read_votes(options.votes)
    for question in votes:
        identity = question_uid(question.text, question.choices) if question.text else ""
        if (answer := by_uid.get(question.uid, by_text.get(identity))) is not None:
            truths[question.uid] = answer
    if not truths:
        wanted = f"a file with answers to the questions of {options.votes}: neither ids nor texts agree"
        raise InvalidConfig("POOL_WITH_ANSWERS", options.pool, wanted)
    if len(truths) < len(votes):
        progress.say(f"{options.pool} answers {len(truths):,} of {len(votes):,} questions; the others do not count.")
    return truths


def _write(found: Mapping[str, Any], path: str | None, progress: StageProgress) -> None:
    from selector.state import write_atomically

    if path:
        write_atomically(path, [json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False), "\n"])
        progress.say(f"Wrote everything to {path}.")
