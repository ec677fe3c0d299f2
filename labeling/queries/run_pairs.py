"""Two runs of a pool side by side: whose picks they share, what each thinks of the other's, where they differ."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from labeling.engine.comparing import overlap_by_chance, rank_correlation
from labeling.models import Pool, Question, QuestionScore, SelectionRun

MOST_SHOWN = 50  # picks of one kind, the best first
NOTHING = "–"
SETTINGS = {  # in this order; the rest follows by name
    "strategy": gettext_lazy("Strategy"),
    "alpha": gettext_lazy("Alpha"),
    "budget": gettext_lazy("Questions to pick"),
    "n_outcomes": gettext_lazy("Full answers each"),
    "n_probes": gettext_lazy("Probes each"),
    "lam": gettext_lazy("Lambda"),
    "seed": gettext_lazy("Seed"),
}


@dataclass(frozen=True)
class Standing:
    """What one run thinks of a question: ``rank`` among its picks (None: not picked), its ``place`` by score among
    those that could be picked (1 is best, ``tied`` others share it; None: it could not be, ``why_not`` says why)."""

    rank: int | None
    place: int | None
    tied: int
    set_size: int | None
    why_not: str


@dataclass(frozen=True)
class PickedByEither:
    """A question that at least one of the two runs picked."""

    question: Question
    first: Standing
    second: Standing


@dataclass(frozen=True)
class RunPair:
    """Two runs of one pool. The lists hold the best MOST_SHOWN, the counts all; ``correlation`` is Spearman's over the
    ``n_common`` questions that both scored, None where one run gives all the same score."""

    first: SelectionRun
    second: SelectionRun
    n_first: int
    n_second: int
    n_both: int
    n_common: int
    jaccard: float
    by_chance: float
    correlation: float | None
    both: list[PickedByEither] = field(default_factory=list)
    only_first: list[PickedByEither] = field(default_factory=list)
    only_second: list[PickedByEither] = field(default_factory=list)

    @property
    def n_only_first(self) -> int:
        return self.n_first - self.n_both

    @property
    def n_only_second(self) -> int:
        return self.n_second - self.n_both

    @property
    def shown(self) -> list[PickedByEither]:
        return [*self.both, *self.only_first, *self.only_second]


@dataclass(frozen=True)
class SettingLine:
    """One setting or result of two runs, in words."""

    name: str
    first: str
    second: str

    @property
    def differs(self) -> bool:
        return self.first != self.second


class _Scores:
    """What a run gave every question: looked up by question, and by place in the order of scores."""

    def __init__(self, run: SelectionRun) -> None:
        rows = QuestionScore.objects.filter(run=run).values_list(
            "question_id", "acquisition_score", "set_size", "eligible", "ineligible_reason"
        )
        self.of: dict[int, tuple[float, int, bool, str]] = {row[0]: row[1:] for row in rows}
        self._order = sorted(-score for score, _, eligible, _ in self.of.values() if eligible)

    def standing(self, question_id: int, rank: int | None) -> Standing:
        if question_id not in self.of:
            return Standing(rank, None, 0, None, _("not among its questions"))
        score, set_size, eligible, reason = self.of[question_id]
        if not eligible:
            return Standing(rank, None, 0, set_size, reason)
        before, through = bisect_left(self._order, -score), bisect_right(self._order, -score)
        return Standing(rank, before + 1, through - before - 1, set_size, "")


def finished_runs(pool: Pool) -> list[SelectionRun]:
    """The runs that can be compared, newest first, without their reports."""
    return list(
        SelectionRun.objects.filter(pool=pool, status=SelectionRun.Status.FINISHED)
        .select_related("policy_model", "calibration_set")
        .defer("report", "traceback")
        .order_by("-created_at", "-id")
    )


def pair_of(first: SelectionRun, second: SelectionRun) -> RunPair:
    """Hold two runs against each other. Five queries, whatever the size of the pool."""
    ranks = [dict(run.picks.values_list("question_id", "rank")) for run in (first, second)]
    scores = [_Scores(first), _Scores(second)]
    common = sorted(scores[0].of.keys() & scores[1].of.keys())
    groups = {
        "both": sorted(ranks[0].keys() & ranks[1].keys(), key=lambda each: ranks[0][each]),
        "only_first": sorted(ranks[0].keys() - ranks[1].keys(), key=ranks[0].__getitem__),
        "only_second": sorted(ranks[1].keys() - ranks[0].keys(), key=ranks[1].__getitem__),
    }
    shown = {name: ids[:MOST_SHOWN] for name, ids in groups.items()}
    questions = Question.objects.in_bulk([each for ids in shown.values() for each in ids])
    lists = {
        name: [
            PickedByEither(questions[each], *(scores[i].standing(each, ranks[i].get(each)) for i in (0, 1)))
            for each in ids
        ]
        for name, ids in shown.items()
    }
    n_either = len(ranks[0].keys() | ranks[1].keys())
    n_questions = max(len(scores[0].of.keys() | scores[1].of.keys()), n_either)
    return RunPair(
        first=first,
        second=second,
        n_first=len(ranks[0]),
        n_second=len(ranks[1]),
        n_both=len(groups["both"]),
        n_common=len(common),
        jaccard=len(groups["both"]) / n_either if n_either else 1.0,
        by_chance=overlap_by_chance(n_questions, len(ranks[0]), len(ranks[1])),
        correlation=rank_correlation(*[[every.of[each][0] for each in common] for every in scores]),
        **lists,
    )


def settings_of(first: SelectionRun, second: SelectionRun) -> list[SettingLine]:
    """Settings, sources and thresholds of two runs, those that differ first."""
    sides = [_described(run) for run in (first, second)]
    names = [*dict.fromkeys([*sides[0], *sides[1]])]
    lines = [SettingLine(name, *(side.get(name, NOTHING) for side in sides)) for name in names]
    return sorted(lines, key=lambda line: not line.differs)


def _described(run: SelectionRun) -> dict[str, str]:
    elsewhere = _("imported votes") if run.generation_fingerprint else _("nowhere")
    found = {
        _("Answers from"): str(run.policy_model or elsewhere),
        _("Sampled as"): run.generation_fingerprint[:16],
        _("Calibrated on"): str(run.calibration_set or NOTHING),
        _("Embedder"): run.embedder or NOTHING,
        _("Goes on from"): _("run %(run)s") % {"run": run.continues_id} if run.continues_id else NOTHING,
        _("Questions looked at"): str(run.question_limit or _("all")),
        _("Threshold"): _("infinite") if run.q_hat_infinite else NOTHING if run.q_hat is None else f"{run.q_hat:.4g}",
    }
    names = [*SETTINGS, *sorted(run.config.keys() - SETTINGS.keys())]
    settings = {str(SETTINGS.get(name, name)): run.config.get(name) for name in names}
    return {name: NOTHING if value is None else str(value) for name, value in settings.items()} | found
