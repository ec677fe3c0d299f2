"""What `assay variance` does: read rewards or recorded answers, and say which questions are worth training on."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from sys import float_info
from typing import TYPE_CHECKING, Any

from selector.command_line import Subparsers, add_command, check_plots, check_writable, with_progress
from selector.errors import InvalidConfig, InvalidRow, UnusableFile

if TYPE_CHECKING:
    from selector.progress import StageProgress, StopOnSignal
    from selector.variance import VarianceReport

EXAMPLES = """\
From rewards that a trainer or an evaluation wrote, one question a line:

  {"id": "q1", "rewards": [1, 0, 0, 1, 0]}            optional: "choices", a list or a number

  assay variance rewards.jsonl --out report.json --plots pictures

From answers recorded by assay probe, of questions whose rows say the "truth":

  assay variance calibration_votes.jsonl --keep useful --out-ids useful.txt

Rewards of -1 and 1: --scale -1 1 maps them to 0 and 1.
"""
KEEPS = ("useful", "not_always_right", "all")  # as in selector.variance, which takes a while to load


@dataclass(frozen=True)
class Runs:
    """The scored runs of one question. ``n_choices`` is 0 where it has none."""

    uid: str
    rewards: tuple[float, ...]
    n_choices: int = 0


def add_variance(commands: Subparsers) -> None:
    """Add `assay variance` to the command line."""
    parser = add_command(
        commands, "variance", "which questions a model is sometimes right on, from scored runs", EXAMPLES
    )
    parser.set_defaults(run=_run, check=_check)
    parser.add_argument("file", metavar="FILE", help="JSONL of id and rewards, or a votes file with truth")
    parser.add_argument(
        "--scale", nargs=2, type=float, metavar=("LOW", "HIGH"), help="map rewards from LOW..HIGH to 0..1"
    )
    parser.add_argument("--out", metavar="REPORT.json", help="the whole report, with every question")
    parser.add_argument("--plots", metavar="DIR", help="pictures: variance.png and runs.png (needs matplotlib)")
    parser.add_argument("--keep", choices=KEEPS, help="which questions to write to --out-ids")
    parser.add_argument("--out-ids", metavar="FILE", help="the ids of the questions to keep, one a line")
    parser.add_argument("--state", metavar="DIR", help="where slow verdicts on answers are kept for the next time")


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if (options.keep is None) != (options.out_ids is None):
        parser.error("--keep and --out-ids go together: which questions, and where their ids go")
    if options.scale and not options.scale[0] < options.scale[1]:
        parser.error("--scale LOW HIGH: LOW must be below HIGH")


def _run(options: argparse.Namespace) -> int:
    return with_progress(variance, options)


def variance(options: argparse.Namespace, progress: StageProgress, stop: StopOnSignal) -> int:
    """Print the report; write it, its pictures and the ids to keep where asked. Raises SelectorError."""
    from selector.state import write_atomically
    from selector.variance import variance_report
    from selector.variance_advice import report_as_json

    check_writable(options.out, options.out_ids)
    check_plots(options.plots)
    runs = _read(options, progress, stop)
    if options.scale:
        low, high = options.scale
        runs = [Runs(each.uid, tuple((r - low) / (high - low) for r in each.rewards), each.n_choices) for each in runs]
    report = variance_report(
        [each.rewards for each in runs],
        [each.uid for each in runs],
        n_choices=[each.n_choices for each in runs],
    )
    progress.close()
    print(_table(report), flush=True)
    if options.out:
        whole = json.dumps(report_as_json(report), indent=2, ensure_ascii=False, allow_nan=False)
        write_atomically(options.out, [whole, "\n"])
        progress.say(f"Wrote the report to {options.out}.")
    if options.plots:
        from selector.variance_plots import draw

        for path in draw(report, Path(options.plots)):
            progress.say(f"Wrote {path}.")
    if options.out_ids:
        kept = report.keep(options.keep)
        write_atomically(options.out_ids, (f"{uid}\n" for uid in kept))
        n_left_out = len(report.uids) - len(kept)
        progress.say(f"Wrote {len(kept):,} ids to {options.out_ids}; {n_left_out:,} questions were left out.")
    return 0


def _read(options: argparse.Namespace, progress: StageProgress, stop: StopOnSignal) -> list[Runs]:
    if _holds_rewards(options.file):
        return read_rewards(options.file)
    from selector.answers import Grader
    from selector.state import State
    from selector.variance import rewards_of
    from selector.votes import read_votes

    votes = read_votes(options.file, calibration=True)
    if not votes[0].outcome_answers:
        raise InvalidConfig("FILE", options.file, "a votes file with outcome_answers: probes are not runs")
    with ExitStack() as stack:
        state = stack.enter_context(State(options.state)) if options.state else None
        grader = stack.enter_context(Grader(verdicts=state.verdicts if state else None))
        runs = []
        progress("grading", 0, len(votes))
        for number, question in enumerate(votes, start=1):
            stop.check()
            rewards = rewards_of(question.truth, question.outcome_answers, kind=question.kind, grader=grader)
            runs.append(Runs(question.uid, tuple(rewards), len(question.choices)))
            progress("grading", number, len(votes))
    return runs


def _holds_rewards(path: str) -> bool:
    """Whether the first readable row brings rewards. Raises UnusableFile where no row can be read."""
    from selector.rows import Row

    rejected = []
    for row in _rows(path):
        if isinstance(row, Row):
            if "rewards" in row.data or "outcome_answers" in row.data:
                return "rewards" in row.data
            found = ", ".join(row.data) or "nothing"
            message = (
                f"there is neither “rewards” nor “outcome_answers” (there is: {found}). "
                'Wanted: {"id": ..., "rewards": [...]}, or a votes file of assay probe with truth.'
            )
            raise InvalidRow(path=path, line=row.line, row_code="no_rewards", message=message)
        rejected.append(InvalidRow(path=path, line=row.line, row_code=row.code, message=row.message))
    raise UnusableFile(rejected)


def _rows(path: str) -> Iterator[Any]:
    from selector.rows import Limits, read_rows

    return read_rows(path, format="jsonl", limits=Limits(max_line_bytes=16 << 20))


def read_rewards(path: str) -> list[Runs]:
    """Read rows of ``id``, ``rewards`` and, where there are any, ``choices``. Raises UnusableFile, naming every row
    that cannot be used."""
    from selector.rows import Row

    runs: list[Runs] = []
    line_of: dict[str, int] = {}
    rejected: list[InvalidRow] = []
    for row in _rows(path):
        code, message = "", ""
        if isinstance(row, Row):
            try:
                found = _runs_of(row.data)
                if found.uid in line_of:
                    raise ValueError(f"id {found.uid!r} was already on line {line_of[found.uid]}")
                line_of[found.uid] = row.line
                runs.append(found)
            except ValueError as error:
                code, message = "invalid_rewards", f"{error}."
        else:
            code, message = row.code, row.message
        if code:
            rejected.append(InvalidRow(path=path, line=row.line, row_code=code, message=message))
    if rejected:
        raise UnusableFile(rejected)
    return runs


def _runs_of(row: Mapping[str, object]) -> Runs:
    uid = row.get("id", row.get("uid"))
    if isinstance(uid, bool) or not isinstance(uid, str | int) or uid == "":
        raise ValueError(f"id is {_shown(uid)}; a text is wanted")
    rewards = row.get("rewards")
    if not isinstance(rewards, list) or not rewards:
        raise ValueError(f"rewards is {_shown(rewards)}; a list of one or more numbers is wanted")
    for number, reward in enumerate(rewards):
        if not isinstance(reward, int | float) or not abs(reward) <= float_info.max:
            raise ValueError(f"rewards[{number}] is {_shown(reward)}; a number from 0 to 1 is wanted")
    choices = row.get("choices")
    n_choices = len(choices) if isinstance(choices, list) else 0 if choices is None else choices
    if isinstance(n_choices, bool) or not isinstance(n_choices, int) or n_choices < 0:
        raise ValueError(f"choices is {_shown(choices)}; the list of choices or their number is wanted")
    return Runs(str(uid), tuple(float(reward) for reward in rewards), n_choices)


def _shown(found: object) -> str:
    text = json.dumps(found, ensure_ascii=True, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _table(report: VarianceReport) -> str:
    """Return the report for a terminal."""
    from selector.variance_advice import advise, warnings_of

    n = len(report.uids)
    runs = sorted({int(report.n_runs.min()), int(report.n_runs.max())})
    lines = [f"{n:,} questions, {' to '.join(map(str, runs))} runs each", ""]
    lines += _columns(
        [("category", "questions", "share")]
        + [(each.words, f"{count:,}", f"{count / n:.1%}") for each, count in report.counts.items()]
    )
    figures = {
        "mean": report.mean,
        "mean of the best runs": report.mean_best,
        "mean of the worst runs": float(report.worsts.mean()),
        "improvement potential": report.improvement_potential,
        "mean variance": float(report.variances.mean()),
        "variance in the top tenth": report.tail_share,
        "Gini of the variance": report.gini,
    }
    lines += ["", *_columns([(name, f"{value:.3f}", "") for name, value in figures.items()])]
    if report.signals:
        rows = [
            (f"{each.runs}", f"{each.share:.1%}", "" if each.is_measured else "expected") for each in report.signals
        ]
        lines += ["", *_columns([("runs", "show both outcomes", ""), *rows])]
    lines += ["", *advise(report).sentences]
    lines += [f"Warning: {warning.message}" for warning in warnings_of(report)]
    return "\n".join(lines)


def _columns(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in rows]
