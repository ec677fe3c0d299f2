"""What `assay curriculum` does: read a reward log, and say how the training went and where each question stands."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from selector.command_line import Subparsers, add_command
from selector.errors import InvalidConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selector.curriculum.history import Moment
    from selector.curriculum.log import RewardEvent
    from selector.progress import StageProgress

EXAMPLES = """\
A reward log has a line for each group of rollouts; reward workers write it with flock, or through selector.curriculum:

  {"id": "w3-17", "uid": "q1", "rewards": [1, 0, 0, null], "step": 12}

  assay curriculum rewards.jsonl                 how the training goes, every 10 steps
  assay curriculum rewards.jsonl --questions     one JSON line a question: done, stuck, forgotten ...
"""
COLUMNS = ("step", "rewards", "mean", "spread", "useful", "done", "stuck", "forgotten", "learning")


def add_curriculum(commands: Subparsers) -> None:
    """Add `assay curriculum` to the command line."""
    parser = add_command(commands, "curriculum", "how a training goes, from its reward log", EXAMPLES)
    parser.set_defaults(run=_run)
    parser.add_argument("log", metavar="LOG", help="the reward log; it may still be written")
    parser.add_argument("--every", type=int, default=10, metavar="N", help="a line every N steps (default: 10)")
    parser.add_argument("--lam", type=float, default=1.0, help="how much of a belief each new step keeps (default: 1)")
    parser.add_argument(
        "--success-at", type=float, default=1.0, metavar="R", help="least reward of a success (default: 1)"
    )
    parser.add_argument("--questions", action="store_true", help="one JSON line a question instead")
    parser.add_argument("--json", action="store_true", help="one JSON line a moment instead of a table")


def _run(options: argparse.Namespace) -> int:
    from selector.curriculum.history import TrainingHistory, moments
    from selector.curriculum.log import RewardLog
    from selector.curriculum.random import RandomCurriculum
    from selector.progress import StageProgress

    if not Path(options.log).exists():
        raise FileNotFoundError(2, "No such file", options.log)
    log = RewardLog(options.log)
    events: list[RewardEvent] = []
    offset = 0
    while True:
        more, following = log.read_from(offset)
        if following == offset:
            break
        events += more
        offset = following
    for place, reason in log.damaged:
        print(f"assay: {options.log}, byte {place}: no reward event ({reason}); left out.", file=sys.stderr)
    if not events:
        raise InvalidConfig("the reward log", options.log, "a file with at least one reward event")

    uids = dict.fromkeys(event.uid for event in events)
    history = TrainingHistory(RandomCurriculum(uids, lam=options.lam, success_at=options.success_at))
    with StageProgress() as progress:
        shown = list(moments(history, _told(events, progress), every=options.every))
    if options.questions:
        beliefs, standings = history.curriculum.beliefs, history.standings()
        for uid in sorted(uids):
            row = beliefs.row(uid)
            counts = {"rewards": int(beliefs.n_rollouts[row]), "last_step": int(beliefs.last_step[row])}
            believed = {"mean": round(float(beliefs.mean[row]), 4)}
            print(json.dumps({"uid": uid, "standing": standings[uid], **believed, **counts}, ensure_ascii=False))
    elif options.json:
        for moment in shown:
            print(json.dumps(asdict(moment)))
    else:
        print("".join(f"{name:>10}" for name in COLUMNS))
        for moment in shown:
            print(_line(moment))
    return 0


def _told(events: list[RewardEvent], progress: StageProgress) -> Iterator[RewardEvent]:
    """Hand the events on, and show how far they are read where that takes a while."""
    for done, event in enumerate(events):
        if done % 10_000 == 0 and len(events) > 10_000:
            progress("reading the log", done, len(events))
        yield event


def _line(moment: Moment) -> str:
    useful = "" if moment.useful is None else f"{moment.useful:.2f}"
    counts = [str(moment.standings[name]) for name in COLUMNS[5:]]  # type: ignore[index]  # a Standing is its text
    cells = [str(moment.step), str(moment.n_rollouts), f"{moment.mean:.3f}", f"{moment.spread:.3f}", useful, *counts]
    return "".join(f"{cell:>10}" for cell in cells)
