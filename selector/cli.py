"""The command `assay`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from selector.command_line import Subparsers, add_command, count, engine_option, field_and_column, price, with_progress
from selector.comparing.commands import add_backtest, add_compare
from selector.config import PRESETS, RULES
from selector.curriculum.commands import add_curriculum
from selector.errors import SelectorError, Stopped
from selector.generation.store import KEEP
from selector.planning_command import add_plan
from selector.racing.settings import MODES as RACE_MODES
from selector.strategies import STRATEGIES, Need
from selector.strategies.contract import INTERNAL_NEEDS
from selector.variance_command import add_variance

ENGINES = ("transformers", "openai", "vllm", "ray", "scripted")

DESCRIPTION = """\
Find the questions whose answers are worth paying for.

  rank        which questions of a pool to have answered, from a model or from recorded answers
  probe       only ask the model, and record its answers for later
  plan        what asking a model about a pool will cost, before it is asked
  compare     how strategies differ on one pool, from the same answers
  backtest    what strategies' picks are worth, where answers are known
  variance    which questions a model is sometimes right on, from scored runs
  curriculum  how a training goes, from its reward log
  grade       compare answers with gold answers
  read        what a trainer's grader reads in an answer

`assay COMMAND --help` says more of each, with examples.
"""

RANK_EXAMPLES = """\
With a model on this machine (calibration questions have answers, pool questions need none):

  assay rank pool.jsonl --calibration calibration.jsonl --budget 8 \\
      --engine transformers --model Qwen/Qwen2.5-Math-1.5B-Instruct --embedder minilm \\
      --out picks.jsonl --report report.json

With a model server (vLLM or another that takes token ids at /v1/completions):

  assay rank pool.jsonl --calibration calibration.jsonl --budget 8 --engine openai \\
      --base-url http://localhost:8000/v1 --model Qwen/Qwen2.5-Math-7B-Instruct --out picks.jsonl

A strategy is asked only what it needs: random asks no model, entropy and ews need answers but no calibration set, shift
and badge one pass over one chain (transformers only):

  assay rank pool.jsonl --budget 8 --strategy random --out picks.jsonl
  assay rank pool.jsonl --budget 8 --strategy shift --model Qwen/Qwen2.5-Math-1.5B-Instruct --out picks.jsonl

A second round that goes on from the first, with a tenth of it drawn at random as controls:

  assay rank ... --budget 8 --labeled picks.jsonl --control-share 0.1 --out more.jsonl

From recorded answers, without a model; the second one draws only the answers that the picks depend on, and says what
that would have saved:

  assay rank --votes pool_votes.jsonl --calibration-votes calibration_votes.jsonl --budget 8 --out picks.jsonl
  assay rank --votes pool_votes.jsonl --calibration-votes calibration_votes.jsonl --budget 8 --out picks.jsonl \\
      --race exact --report report.json

Killed or stopped, the same command goes on where it was: every answer is kept in --state (default: OUT.state).
Exit status: 0 done, 1 the work could not be done (the reason is on standard error), 2 wrong usage, 130 stopped.
"""

PROBE_EXAMPLES = """\
On the machine with the GPU, once for the pool and once for the calibration set:

  assay probe pool.jsonl --model Qwen/Qwen2.5-Math-7B-Instruct --out pool_votes.jsonl
  assay probe calibration.jsonl --model Qwen/Qwen2.5-Math-7B-Instruct --out calibration_votes.jsonl

What happens inside the model (one chain a question; only with the model on this machine):

  assay probe pool.jsonl --model Qwen/Qwen3-1.7B --outcomes 0 --probes 0 --out votes.jsonl --internals internals.npz
  assay rank --votes votes.jsonl --internals internals.npz --strategy shift --budget 8 --out picks.jsonl

Then anywhere: assay rank --votes pool_votes.jsonl --calibration-votes calibration_votes.jsonl ...
"""

GRADE_EXAMPLES = """\
A case a line:

  {"gold": "\\\\frac{1}{2}", "answer": "0.5", "kind": "number"}

  assay grade cases.jsonl                        the same lines, each with its verdict
"""

READ_EXAMPLES = """\
  assay read "\\frac{1}{2}"
  assay read "1,2" --kind set
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # a model's threads that wait leave the cores to others
    parser = build_parser()
    options = parser.parse_args(argv)
    check = options.check
    if check is not None:
        check(options.parser, options)
    try:
        return int(options.run(options))
    except Stopped as stopped:
        print(f"assay: {stopped} Run the same command again to go on.", file=sys.stderr)
        return 130
    except SelectorError as error:
        for line in str(error).splitlines():
            print(f"assay: {line}", file=sys.stderr)
        return 1
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output went away
            sys.stderr.close()
            return 1
        print(f"assay: {error.filename or ''}: {error.strerror or error}".replace(" : ", " "), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("assay: stopped at once; what was saved is kept.", file=sys.stderr)
        return 130


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    parser = argparse.ArgumentParser(
        prog="assay",
        usage="assay COMMAND ...",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # The description lists the commands; a list of argparse's own would say the same again.
    commands = parser.add_subparsers(
        prog="assay", dest="command", required=True, metavar="COMMAND", help=argparse.SUPPRESS
    )
    _add_rank(commands)
    _add_probe(commands)
    add_compare(commands)
    add_backtest(commands)
    add_variance(commands)
    add_curriculum(commands)
    add_plan(commands, _add_model_options, tuple(STRATEGIES), tuple(PRESETS))

    grade = add_command(commands, "grade", "compare answers with gold answers", GRADE_EXAMPLES)
    grade.add_argument("cases", metavar="CASES.jsonl", help="rows with gold, answer and, if known, kind")
    grade.set_defaults(run=_grade)
    read = add_command(commands, "read", "what a trainer's grader reads in an answer", READ_EXAMPLES)
    read.add_argument("answer", metavar="ANSWER", help='for example "\\frac{1}{2}"')
    read.add_argument("--kind", help="number, expression, set, tuple, interval, equation, choice, percent, ...")
    read.set_defaults(run=_read)
    return parser


def _add_rank(commands: Subparsers) -> None:
    rank = add_command(commands, "rank", "which questions of a pool to have answered", RANK_EXAMPLES)
    rank.set_defaults(run=_rank, check=_check_rank)
    rank.add_argument("pool", nargs="?", metavar="POOL", help="questions without answers: JSONL, CSV or Parquet")
    rank.add_argument("--calibration", metavar="CAL", help="questions with answers, of the same sort as the pool's")
    rank.add_argument("--votes", metavar="FILE", help="recorded answers to the pool's questions, instead of a model")
    rank.add_argument("--calibration-votes", metavar="FILE", help="recorded answers, with the truth, for calibration")

    what = rank.add_argument_group("what to pick")
    what.add_argument("--budget", type=int, metavar="B", help="number of questions to pick (all for strategy full)")
    what.add_argument("--strategy", choices=tuple(STRATEGIES), default="const", help="default: const")
    what.add_argument("--preset", choices=tuple(PRESETS), default="recommended", help="default: recommended")
    what.add_argument("--alpha", metavar="A", help="share of truths the sets may miss (default: 0.1)")
    what.add_argument("--lam", type=float, metavar="L", help="weight of the entropy in the score (default: 0.02)")
    what.add_argument("--clusters", type=int, metavar="C", help="number of clusters (default: one for each pick)")
    what.add_argument("--per-cluster", type=int, metavar="T", help="picks from each cluster (default: as the strategy)")
    what.add_argument(
        "--control-share", metavar="S", help="share of the budget drawn uniformly at random, rounded up (default: 0)"
    )
    what.add_argument(
        "--labeled",
        action="append",
        metavar="FILE",
        help="what already has labels (ids, one a line, or earlier picks): never picked, and gone on from",
    )
    what.add_argument("--groups", choices=RULES["groups"], help="a threshold for each kind of answer (default: none)")
    what.add_argument(
        "--min-readable", type=float, metavar="S", help="share of answers that must be readable (default: 0.5)"
    )
    likeness = rank.add_argument_group("how alike questions are (where the rows bring no cluster)")
    source = likeness.add_mutually_exclusive_group()
    source.add_argument("--embedder", metavar="E", help="sentence-transformers directory or name (default: minilm)")
    source.add_argument("--embeddings", metavar="X.npy", help="one row of numbers for each row of the pool")
    racing = rank.add_argument_group("racing: only the answers that the picks depend on")
    racing.add_argument(
        "--race",
        choices=RACE_MODES,
        help="exact: the same picks (default where a model is asked); with --votes a replay (default: off)",
    )
    racing.add_argument(
        "--race-calibration", action="store_true", help="race for the threshold too: the same one from fewer answers"
    )
    racing.add_argument(
        "--race-error", type=float, metavar="E", help="share of clusters a probabilistic race may miss (default: 0.05)"
    )
    racing.add_argument(
        "--race-audit", type=int, metavar="N", help="dropped questions completed to see what was missed (default: 32)"
    )
    racing.add_argument(
        "--race-concurrency",
        type=int,
        metavar="N",
        help="answers that are asked for at a time (default: an eighth of the pool, 16 to 256)",
    )
    inside = rank.add_argument_group("what happens inside the model (shift, badge, pivot_trace, ...)")
    inside.add_argument("--internals", metavar="F.npz", help="as `assay probe --internals` wrote them")
    triage = rank.add_argument_group("triage along the ranking (reconstruction of PivotTrace's)")
    triage.add_argument("--triage-probes", metavar="OUT.jsonl", help="write which questions to label as probes")
    triage.add_argument("--n-triage-probes", type=int, default=64, metavar="N", help="how many (default: 64)")
    triage.add_argument(
        "--triage-labels", metavar="FILE", help="their answers (id, answer): a route for each question in --scores"
    )
    _add_model_options(rank, n_answers=None)
    output = rank.add_argument_group("output")
    output.add_argument("--out", required=True, metavar="PICKS.jsonl", help="the picks, best first")
    output.add_argument("--report", metavar="REPORT.json", help="threshold, checks, settings, tokens, seconds")
    output.add_argument("--scores", metavar="SCORES.jsonl", help="what every question of the pool measured")


def _add_probe(commands: Subparsers) -> None:
    probe = add_command(commands, "probe", "only ask the model, and record its answers", PROBE_EXAMPLES)
    probe.set_defaults(run=_probe, check=_check_probe)
    probe.add_argument("pool", metavar="POOL", help="questions, with answers or without: JSONL, CSV or Parquet")
    _add_model_options(probe, n_answers=20)
    probe.add_argument("--out", required=True, metavar="VOTES.jsonl", help="the recorded answers")
    probe.add_argument(
        "--internals", metavar="OUT.npz", help="hidden states, attention and token probabilities (transformers)"
    )


def _add_model_options(parser: argparse.ArgumentParser, *, n_answers: int | None) -> None:
    model = parser.add_argument_group("the model and how it is asked")
    model.add_argument("--engine", choices=ENGINES, default=None, help="default: transformers")
    model.add_argument("--model", metavar="M", help="directory or name of the model, or its name on the server")
    model.add_argument("--revision", metavar="R", help="revision of the model")
    model.add_argument(
        "--base-url", action="append", metavar="U", help="address of the model server, up to /v1; again for each server"
    )
    model.add_argument("--api-key-env", metavar="VAR", help="environment variable that holds the server's key")
    model.add_argument(
        "--probe-layout",
        choices=("shared-prefix", "authors"),
        help="how answers are forced: behind the chain, which is read once (default), or as CONST's authors ask",
    )
    model.add_argument(
        "--engine-option",
        action="append",
        type=engine_option,
        metavar="NAME=VALUE",
        help="of the engine, e.g. replicas=4 or tokenizer=DIR; again for each",
    )
    model.add_argument("--temperature", type=float, metavar="T", help="default: the model's own advice, else 0.6")
    model.add_argument("--top-p", type=float, metavar="P", help="default: the model's own advice, else 1")
    model.add_argument("--max-tokens", type=int, metavar="N", help="longest rollout in tokens (default: 2048)")
    model.add_argument("--batch-size", type=int, metavar="N", help="completions generated at a time (transformers)")
    model.add_argument("--outcomes", type=int, default=n_answers, metavar="N", help="sampled answers (default: 20)")
    model.add_argument("--probes", type=int, default=n_answers, metavar="N", help="forced answers (default: 20)")
    model.add_argument("--kind", metavar="K", help="kind of the answers, for questions that do not say")
    model.add_argument(
        "--map", action="append", type=field_and_column, metavar="FIELD=COLUMN", help="e.g. question=problem"
    )
    model.add_argument(
        "--repair", action="store_true", help="mend LaTeX that JSON escapes have damaged (\\f, \\r, ...)"
    )
    model.add_argument("--seed", type=int, default=None, metavar="S", help="default: 0")
    model.add_argument(
        "--keep",
        choices=KEEP,
        default=KEEP[0],
        help="of a full answer: all that the model wrote, or the answer alone (default: completions)",
    )
    model.add_argument("--gpu-price", type=price, metavar="P", help="what one GPU costs an hour, to show what is spent")
    model.add_argument("--gpus", type=count, default=1, metavar="N", help="how many GPUs that price is paid for")
    model.add_argument("--state", metavar="DIR", help="where answers are kept for going on later (default: OUT.state)")


def _check_rank(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    _check_race(parser, options)
    strategy = STRATEGIES[options.strategy]
    needs_calibration = Need.CALIBRATION in strategy.needs
    if options.budget is None and strategy.needs_budget:
        parser.error("--budget is missing: how many questions to pick")
    if options.votes is None:
        if options.pool is None:
            parser.error("give a POOL (with --calibration and --model), or --votes with --calibration-votes")
        if options.calibration is None and needs_calibration:
            parser.error(
                "--calibration is missing: the questions with answers that the threshold is fitted on "
                f"(strategy {strategy.key} needs one; others, such as random or entropy, do not)"
            )
        if options.calibration_votes is not None:
            parser.error("--calibration-votes goes with --votes, not with a POOL")
        reads_model = strategy.needs_votes() or (strategy.needs & INTERNAL_NEEDS and not options.internals)
        if options.calibration is not None or options.model is not None or reads_model:
            _check_probe(parser, options)
        return
    if options.calibration_votes is None and needs_calibration:
        parser.error(f"--calibration-votes is missing: it goes with --votes, and strategy {strategy.key} needs it")
    for name in (
        "pool",
        "calibration",
        "engine",
        "model",
        "revision",
        "base_url",
        "temperature",
        "top_p",
        "max_tokens",
    ):
        if getattr(options, name) is not None:
            parser.error(
                f"{name.upper() if name == 'pool' else '--' + name.replace('_', '-')} does not go with --votes"
            )


def _check_race(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.votes is None and options.race == "probabilistic":
        parser.error("--race probabilistic goes with --votes: it replays a race on recorded answers")
    if options.race in ("exact", "probabilistic") and (options.triage_probes or options.triage_labels):
        parser.error("--race exact or probabilistic does not go with triage, which needs a place for every question")
    for name, modes in (
        ("race_calibration", ("exact", "off")),
        ("race_concurrency", ("exact", "probabilistic")),
        ("race_error", ("probabilistic",)),
        ("race_audit", ("probabilistic",)),
    ):
        race = options.race or ("exact" if options.votes is None else None)
        if getattr(options, name) not in (None, False) and race not in modes:
            parser.error(f"--{name.replace('_', '-')} goes with --race {' or '.join(modes)}")


def _check_probe(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.model is None:
        parser.error("--model is missing: a directory, a name, or what the server calls it")
    options.engine = options.engine or "transformers"
    if options.engine == "openai" and not options.base_url:
        parser.error("--base-url is missing: the address of the model server, such as http://localhost:8000/v1")


def _rank(options: argparse.Namespace) -> int:
    from selector import commands  # heavy imports wait until the command line is known to be right

    return with_progress(commands.rank, options)


def _probe(options: argparse.Namespace) -> int:
    from selector import commands

    return with_progress(commands.probe, options)


def _grade(options: argparse.Namespace) -> int:
    from selector.answers.commands import grade_file

    return grade_file(options.cases, sys.stdout)


def _read(options: argparse.Namespace) -> int:
    from selector.answers.commands import read_answer

    return read_answer(options.answer, options.kind, sys.stdout)
