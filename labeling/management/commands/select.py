import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from labeling.actions.runs import DEFAULT_EMBEDDER, cancel_run, create_run
from labeling.engine.display import StageDisplay, StopOnSignal
from labeling.engine.selection import presets, strategies
from labeling.errors import LabelingError
from labeling.models import CalibrationSet, PolicyModel, Pool, SelectionRun
from labeling.queries.run_results import notices_of, picks_of, threshold_in_words
from labeling.queries.runs import run_as_json
from labeling.runs.execution import execute
from labeling.runs.lease import claim

CONFIG_OPTIONS = (
    *("preset", "strategy", "alpha", "lam", "n_outcomes", "n_probes"),
    *("n_clusters", "per_cluster", "control_share", "seed"),
)


class Command(BaseCommand):
    help = "Start a selection run: a worker executes it, or this process does with --wait."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--pool", required=True, help="Name or slug of the pool.")
        parser.add_argument(
            "--calibration", metavar="SET", help="Name of the calibration set, where the strategy needs one."
        )
        source = parser.add_mutually_exclusive_group()
        source.add_argument("--model", help="Name of the policy model that answers.")
        source.add_argument("--recorded", metavar="FINGERPRINT", help="Generation fingerprint of recorded votes.")
        parser.add_argument("--budget", required=True, type=int, help="How many questions to pick.")
        parser.add_argument("--preset", choices=sorted(presets()))
        parser.add_argument("--strategy", choices=sorted(strategies()))
        parser.add_argument("--alpha", help="Miscoverage level (0.1).")
        parser.add_argument("--lam", type=float, help="Weight of the entropy (0.02).")
        parser.add_argument("--outcomes", dest="n_outcomes", type=int, help="Rollouts per question (20).")
        parser.add_argument("--probes", dest="n_probes", type=int, help="Probes per question (20).")
        parser.add_argument("--clusters", dest="n_clusters", type=int, help="Clusters; one for each pick by default.")
        parser.add_argument("--per-cluster", type=int, help="Picks from each cluster; as the strategy by default.")
        parser.add_argument("--control-share", help="Share of the budget drawn at random, rounded up (0).")
        parser.add_argument(
            "--continue", dest="continues", type=int, metavar="RUN", help="Go on from the picks of this run."
        )
        parser.add_argument(
            "--race",
            choices=SelectionRun.Race.values,
            help="exact: ask a model for full answers only where the picks depend on them; off: for all (exact where "
            "it can be, off for the published rules).",
        )
        parser.add_argument("--seed", type=int, help="0 by default.")
        parser.add_argument(
            "--embedder",
            default=DEFAULT_EMBEDDER,
            help="Sentence-transformers name or directory (%(default)s); empty: none.",
        )
        parser.add_argument("--limit", type=int, help="Take only this many questions, always the same ones.")
        parser.add_argument("--wait", action="store_true", help="Execute the run here and show its progress.")
        parser.add_argument("--json", action="store_true", help="Print the run as JSON on standard output.")

    def handle(self, **options: Any) -> None:
        try:
            run = self._create(options)
            if options["wait"]:
                self._execute(run)
        except LabelingError as error:
            raise CommandError(error.message) from error
        run.refresh_from_db()
        if options["json"]:
            self.stdout.write(json.dumps(run_as_json(run), indent=2, ensure_ascii=False))
        else:
            self._describe(run)
        if run.status in {SelectionRun.Status.FAILED, SelectionRun.Status.CANCELLED}:
            raise CommandError(run.error or "The run was cancelled; what was answered is kept.")

    def _create(self, options: dict[str, Any]) -> SelectionRun:
        pools = Pool.objects.filter(name=options["pool"]) or Pool.objects.filter(slug=options["pool"])
        return create_run(
            pool=_only(pools, "pool", options["pool"]),
            calibration_set=_only(
                CalibrationSet.objects.filter(name=options["calibration"]), "calibration set", options["calibration"]
            )
            if options["calibration"]
            else None,
            continues=_only(SelectionRun.objects.filter(pk=options["continues"]), "run", options["continues"])
            if options["continues"]
            else None,
            policy_model=_only(PolicyModel.objects.filter(name=options["model"]), "policy model", options["model"])
            if options["model"]
            else None,
            generation_fingerprint=options["recorded"] or "",
            budget=options["budget"],
            embedder=options["embedder"],
            question_limit=options["limit"],
            race=options["race"],
            by=None,
            **{name: options[name] for name in CONFIG_OPTIONS},
        )

    def _execute(self, run: SelectionRun) -> None:
        """Take the run before a worker does; where one was quicker it goes on there."""
        lease = claim(run.pk)
        if lease is None:
            self.stderr.write(f"A worker has taken run {run.pk}; see its page for the progress.")
            return
        with StageDisplay() as display, StopOnSignal(display.say) as should_stop:
            execute(lease, should_stop=should_stop, listener=display)
        if should_stop():
            cancel_run(run, by=None)

    def _describe(self, run: SelectionRun) -> None:
        self.stdout.write(f"Run {run.pk}: {run.get_status_display().lower()}.")
        if run.status == SelectionRun.Status.QUEUED:
            self.stdout.write("A worker executes it: manage.py worker")
        if run.status != SelectionRun.Status.FINISHED:
            return
        self.stdout.write(threshold_in_words(run))
        for notice in notices_of(run):
            self.stdout.write(f"Note: {notice.message}")
        for line in picks_of(run):
            self.stdout.write(f"{line.pick.rank:3d}. {line.pick.question.uid}: {line.pick.question.text[:80]}")


def _only(found: Any, what: str, name: object) -> Any:
    row = found.first()
    if row is None:
        raise CommandError(f"There is no {what} named “{name}”.")
    return row
