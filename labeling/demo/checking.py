"""The whole way from a file of questions to two datasets, with scripted people, checked at the end."""

import json
from collections.abc import Callable
from pathlib import Path

import datasets
from django.conf import settings
from django.core.management import call_command

from labeling.demo.serving import free_port, served
from labeling.demo.steps import BUDGET, POOL, known_answers, prepare_demo
from labeling.demo.visitors import Visitor
from labeling.errors import LabelingError
from labeling.models import Annotation, GoldAnswer, Round, User

EXPORTS = settings.VAR_DIR / "export"
WRONG_EVERY = 3  # the first annotator is wrong on every third question


def check_demo(say: Callable[[str], None]) -> None:
    """Do the demo's whole job; raises LabelingError when anything is off."""
    if Round.objects.filter(run__pool__name=POOL).exists():
        raise LabelingError(
            f"{settings.VAR_DIR} holds a demo already, and the check starts from nothing. Remove the folder.",
            code="demo_not_fresh",
        )
    round = prepare_demo(say)
    with served(free_port(), with_worker=False) as address:
        _label(round, address, say)
    for trainer in ("trl", "verl"):
        say(f"Exporting for {trainer} and loading it back")
        call_command("export", "--pool", POOL, "--format", trainer, "--out", str(EXPORTS / trainer))
    _check_trl(EXPORTS / "trl")
    _check_verl(EXPORTS / "verl")


def _label(round: Round, address: str, say: Callable[[str], None]) -> None:
    truth = known_answers()
    n_seen = 0

    def sometimes_wrong(question: str) -> str:
        nonlocal n_seen
        n_seen += 1
        return str(int(truth[question]) + 1) if n_seen % WRONG_EVERY == 0 else truth[question]

    people = {name: User.objects.get(username=name) for name in ("annotator", "annotator-2", "adjudicator")}
    n_first = Visitor(people["annotator"], address).answer_round(round.pk, sometimes_wrong)
    n_second = Visitor(people["annotator-2"], address).answer_round(round.pk, lambda question: truth[question])
    n_decided = Visitor(people["adjudicator"], address).decide_round(round.pk, lambda question: truth[question])
    say(f"Two people answered {n_first} and {n_second} questions; {n_decided} disagreements were decided")
    _expect("answers of each person", [n_first, n_second], [BUDGET, BUDGET])
    _expect("disagreements", n_decided, BUDGET // WRONG_EVERY)
    _expect("annotations", Annotation.objects.filter(slot__round=round).count(), 2 * BUDGET)
    gold = {gold.question.text: gold.answer for gold in GoldAnswer.objects.select_related("question")}
    _expect("gold answers", gold, {question: truth[question] for question in gold})
    _expect("number of gold answers", len(gold), BUDGET)


def _check_trl(directory: Path) -> None:
    rows = _load(directory)
    _expect("columns for TRL", {"prompt", "solution", "uid"} <= set(rows.column_names), True)
    rewards = _rewards(directory)
    solutions = list(rows["solution"])
    right = [[{"role": "assistant", "content": rf"So \boxed{{{gold.strip('$')}}}"}] for gold in solutions]
    wrong = [[{"role": "assistant", "content": r"So \boxed{-123456}"}] for _ in solutions]
    _expect("rewards of right answers", rewards.accuracy_reward(right, solution=solutions), [1.0] * BUDGET)
    _expect("rewards of wrong answers", rewards.accuracy_reward(wrong, solution=solutions), [0.0] * BUDGET)


def _check_verl(directory: Path) -> None:
    rows, rewards = _load(directory), _rewards(directory)
    for row in rows:
        source, gold = row["data_source"], row["reward_model"]["ground_truth"]
        _expect("score of a right answer", rewards.compute_score(source, rf"So \boxed{{{gold}}}", gold), 1.0)
        _expect("score of a wrong answer", rewards.compute_score(source, r"So \boxed{-123456}", gold), 0.0)


def _load(directory: Path) -> datasets.Dataset:
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    files = [str(path) for path in sorted(directory.glob("*.parquet"))]
    rows = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(settings.VAR_DIR / "cache"))
    _expect("rows in the files and in the manifest", [len(rows), manifest["n_rows"]], [BUDGET, BUDGET])
    return rows


def _rewards(directory: Path):
    """Import the reward function as a trainer does: from the file beside the data."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(f"rewards_{directory.name}", directory / "rewards.py")
    if spec is None or spec.loader is None:
        raise LabelingError(f"There is no reward function in {directory}.", code="demo_check_failed")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise LabelingError(f"{what}: found {found!r}, wanted {wanted!r}.", code="demo_check_failed")
