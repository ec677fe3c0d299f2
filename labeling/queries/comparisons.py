"""Comparisons as pages show them: lists, progress, and a result's figures, each picture with its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from labeling.models import Comparison, GoldAnswer, Pool, Question, SelectionRun
from labeling.queries.pictures import Picture
from labeling.queries.runs import WorkProgress, work_progress

NOTHING = "–"
SET_SIZES = ("0", "1", "2", "3", "4", "5", "6–9", "10–19", gettext_lazy("20 or more"))
SHARES = (
    "0",
    gettext_lazy("to 25%"),
    gettext_lazy("to 50%"),
    gettext_lazy("to 75%"),
    gettext_lazy("below 100%"),
    "100%",
)
BACKTEST = {
    "pass_rate": (
        gettext_lazy("Pass rate"),
        gettext_lazy("Mean share of rollouts with the right answer."),
    ),
    "with_variance": (
        gettext_lazy("With reward variance"),
        gettext_lazy("Share of picks that are sometimes right and sometimes wrong."),
    ),
    "advantage_mass": (
        gettext_lazy("Advantage mass"),
        gettext_lazy("Mean size of the GRPO advantage of a rollout, E|A|: 0 teaches nothing."),
    ),
    "majority_wrong": (
        gettext_lazy("Majority wrong"),
        gettext_lazy("Share of picks whose most frequent answer is wrong: a label corrects it."),
    ),
}
_INSIDE = gettext_lazy(
    "They look inside the model, and what is seen there is not stored for this run’s answers. "
    "A run of one of them on a Transformers model stores it."
)
LACKS = {
    "hidden_states": _INSIDE,
    "attention": _INSIDE,
    "token_probabilities": _INSIDE,
    "labels": gettext_lazy("They need right answers to some of the pool’s questions before they can choose."),
    "calibration": gettext_lazy("They need a calibration set with answers, and the run has none."),
    "embeddings": gettext_lazy("They need the questions’ embeddings, and the run names no embedder."),
}
MOST_SHOWN = 40  # questions of one side by side


@dataclass(frozen=True)
class SummaryLine:
    """One strategy, or the pool that it chose from, in the table that begins the page.

    ``is_unmarked``: a reconstruction whose title does not say so.
    """

    key: str
    title: str
    is_unmarked: bool
    cells: list[tuple[str, str]]  # column and figure


@dataclass(frozen=True)
class PickedQuestion:
    """A question that a strategy picked: its rank there, and what is known of it."""

    question: Question
    rank: int
    set_size: int
    majority_share: float
    pass_rate: float | None


@dataclass(frozen=True)
class SideBySide:
    """What two strategies pick: together, and each alone. ``n_…`` count all, the lists hold the first ones."""

    first: str
    second: str
    n_both: int
    n_first: int
    n_second: int
    both: list[PickedQuestion] = field(default_factory=list)
    only_first: list[PickedQuestion] = field(default_factory=list)
    only_second: list[PickedQuestion] = field(default_factory=list)


def comparisons_of(pool: Pool) -> QuerySet[Comparison]:
    """The pool's comparisons, newest first, without their results."""
    return (
        Comparison.objects.filter(run__pool=pool)
        .select_related("run__policy_model", "created_by")
        .defer("result", "traceback", "run__report", "run__traceback")
    )


def comparison_progress(comparison: Comparison) -> WorkProgress:
    """Describe how far the comparison is."""
    expected = ["reading answers", *(["embedding"] if comparison.run.embedder else ())]
    expected += ["grouping calibration answers", "grouping pool answers", "choosing", "comparing"]
    return work_progress(comparison, [*expected, *(["resampling"] if comparison.n_bootstrap else ())])


def truths_of(run: SelectionRun) -> dict[str, str | None]:
    """The gold answers of the questions that the run looked at, by uid."""
    return dict(GoldAnswer.objects.filter(question__scores__run=run).values_list("question__uid", "answer"))


def summary_of(result: Mapping[str, Any]) -> list[SummaryLine]:
    """The pool and then every strategy that ran, with the same columns."""
    profiles, diversity = result["profiles"], result["diversity"] or {"strategies": {}}
    share_name = _("Pass rate") if profiles["share"]["kind"] == "pass_rate" else _("Majority share")

    def line(key: str, title: str, unmarked: bool, n: int, more: list[tuple[str, str]]) -> SummaryLine:
        sizes = profiles["set_size"]
        cells = [(_("Picks"), f"{n:,}")]
        if sizes:
            cells.append((_("Set size"), _figure(sizes["means"][key])))
        cells.append((share_name, _percent(profiles["share"]["means"][key])))
        return SummaryLine(key, title, unmarked, cells + more)

    n_clusters = diversity.get("n_clusters", 0)
    blank = [
        (_("Distance"), _figure(diversity.get("pool_mean_distance"))),
        (_("Clusters"), f"{n_clusters:,}" if n_clusters else NOTHING),
        (_("Tokens"), NOTHING),
        (_("Stable to answers"), NOTHING),
        (_("Stable to calibration"), NOTHING),
    ]
    lines = [line("pool", _("The pool they choose from"), False, result["pool"]["n_eligible"], blank)]
    for strategy in result["strategies"]:
        key = strategy["key"]
        spread = diversity["strategies"].get(key, {})
        covered = {"n": f"{spread['n_clusters']:,}", "of": f"{n_clusters:,}"} if spread else {}
        more = [
            (_("Distance"), _figure(spread.get("mean_distance"))),
            (_("Clusters"), _("%(n)s of %(of)s") % covered if covered else NOTHING),
            (_("Tokens"), _tokens(result["cost"]["strategies"][key]["tokens"])),
            (_("Stable to answers"), _stable(result, "votes", key)),
            (_("Stable to calibration"), _stable(result, "calibration", key)),
        ]
        lines.append(line(key, strategy["title"], is_unmarked(strategy), strategy["n_picks"], more))
    return lines


def not_run_of(result: Mapping[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The strategies that could not run, by the reason: key, title, and whether the title hides a reconstruction."""
    reasons: dict[str, list[dict[str, Any]]] = {}
    for each in result["not_run"]:
        reason = each["reason"]
        if each["code"] == "missing_evidence":
            reason = next((str(words) for need, words in LACKS.items() if need in each["needs"]), reason)
        shown = {"key": each["key"], "title": each["title"], "is_unmarked": is_unmarked(each)}
        reasons.setdefault(reason, []).append(shown)
    return list(reasons.items())


def is_unmarked(strategy: Mapping[str, Any]) -> bool:
    """Whether a strategy is a reconstruction whose title does not say so itself."""
    return strategy["provenance"] == "reconstruction" and "reconstruction" not in strategy["title"].lower()


def overlap_pictures(result: Mapping[str, Any]) -> list[Picture]:
    """Which picks strategies share, and how alike they order the whole pool."""
    overlap, ranks = result["overlap"], result["rank_correlation"]
    chance = result["stability"]["expected"]
    return [
        Picture(
            "shares",
            _("Overlap of the picks"),
            _(
                "Jaccard index: the questions that both pick, of all that either picks. "
                "Two random selections of %(n)s have %(chance)s."
            )
            % {"n": result["budget"], "chance": f"{chance:.3f}"},
            ["", *overlap["keys"]],
            _matrix(overlap["keys"], overlap["jaccard"]),
        ),
        *(
            Picture(
                "signed",
                _("Rank correlation, %(title)s") % {"title": title},
                _(
                    "How alike two strategies order %(n)s questions, ties counted: 1 the same, 0 unrelated, −1 the "
                    "other way round."
                )
                % {"n": f"{ranks['n']:,}"},
                ["", *ranks["keys"]],
                _matrix(ranks["keys"], ranks[name]),
            )
            for name, title in (("spearman", "Spearman"), ("kendall", _("Kendall’s tau-b")))
        ),
    ]


def profile_pictures(result: Mapping[str, Any]) -> list[Picture]:
    """How many picks have sets of which size, and which pass rate, in percent of the picks."""
    profiles, pictures = result["profiles"], []
    if profiles["set_size"]:
        counts = {key: _binned(found) for key, found in profiles["set_size"]["counts"].items()}
        caption = _("Share of the picks by the size of their prediction sets, by the threshold from all answers.")
        pictures.append(_profile(_("Set sizes"), caption, SET_SIZES, counts))
    share = profiles["share"]
    if share["kind"] == "pass_rate":
        title, caption = _("Pass rates"), _("Share of the picks by how often a rollout has the right answer.")
    else:
        title = _("Shares of the most frequent answer")
        caption = _(
            "Share of the picks by how often a rollout gives the most frequent answer; right answers are not known "
            "for all questions."
        )
    return [*pictures, _profile(title, caption, SHARES, share["counts"])]


def spread_pictures(result: Mapping[str, Any]) -> list[Picture]:
    """How far apart the picks lie, and how many clusters they cover; empty without vectors and clusters."""
    diversity = result["diversity"]
    if not diversity:
        return []
    strategies = diversity["strategies"]
    pictures = []
    if diversity["pool_mean_distance"] is not None:
        pictures.append(
            Picture(
                "bars",
                _("Mean distance of two picks"),
                _("Between the questions’ embeddings; the line is the mean in the pool."),
                [_("Strategy"), _("Distance")],
                [[key, _figure(found["mean_distance"], 3)] for key, found in strategies.items()],
                reference=diversity["pool_mean_distance"],
                reference_name=_("pool"),
            )
        )
    pictures.append(
        Picture(
            "bars",
            _("Clusters covered"),
            ngettext(
                "Of the %(n)s cluster of the pool, those that hold a pick; the line is what a random selection covers "
                "on average.",
                "Of the %(n)s clusters of the pool, those that hold a pick; the line is what a random selection covers "
                "on average.",
                diversity["n_clusters"],
            )
            % {"n": f"{diversity['n_clusters']:,}"},
            [_("Strategy"), _("Clusters")],
            [[key, str(found["n_clusters"])] for key, found in strategies.items()],
            reference=diversity["expected_clusters"],
            reference_name=_("random"),
        )
    )
    return pictures


def cost_picture(result: Mapping[str, Any]) -> Picture:
    """What each strategy would have had to ask of the model."""
    rows = []
    for key, cost in result["cost"]["strategies"].items():
        parts = [cost["pool"], cost["calibration"]]
        counts = [str(sum(part[name] for part in parts)) for name in ("outcomes", "trajectories", "probes")]
        rows.append([key, str(cost["tokens"]), *counts])
    return Picture(
        "bars",
        _("Tokens needed"),
        _("For pool and calibration set, had nothing been answered yet. The completions behind them are in the table."),
        [_("Strategy"), _("Tokens"), _("Full answers"), _("Chains"), _("Probes")],
        rows,
    )


def stability_picture(result: Mapping[str, Any]) -> Picture | None:
    """How alike the picks stay when evidence is resampled; None where nothing was."""
    stability = result["stability"]
    if not stability["n_bootstrap"]:
        return None
    rows = []
    for strategy in result["strategies"]:
        key = strategy["key"]
        cells = []
        for what in ("votes", "calibration"):
            found = stability[what]["strategies"][key]
            cells += [_figure(value, 3) for value in (found["mean"], *found["interval"])] if found else [NOTHING] * 3
        rows.append([key, *cells])
    return Picture(
        "intervals",
        _("Stability of the picks"),
        ngettext(
            "Jaccard index of the picks with those from resampled evidence: mean and central 95%% of %(n)s resampling. "
            "A strategy without a mark does not look at what is resampled.",
            "Jaccard index of the picks with those from resampled evidence: mean and central 95%% of %(n)s "
            "resamplings. A strategy without a mark does not look at what is resampled.",
            stability["n_bootstrap"],
        )
        % {"n": f"{stability['n_bootstrap']:,}"},
        [_("Strategy"), _("Answers: mean"), _("low"), _("high"), _("Calibration: mean"), _("low"), _("high")],
        rows,
        reference=stability["expected"],
        reference_name=_("two random selections"),
    )


def backtest_pictures(result: Mapping[str, Any]) -> list[Picture]:
    """What the right answers show of the picks; empty where none of the pool's questions has a gold answer."""
    backtest = result["backtest"]
    if not backtest:
        return []
    pictures = []
    for name, (title, caption) in BACKTEST.items():
        random = (backtest["random"] or {}).get(name)
        rows = [[_("whole pool"), _figure(backtest["pool"][name], 3), str(backtest["pool"]["n"]), NOTHING]]
        for key, found in backtest["strategies"].items():
            beats = found["beats_random"]
            beaten = _percent(beats[name]) if beats else NOTHING
            rows.append([key, _figure(found[name], 3), str(found["n"]), beaten])
        pictures.append(
            Picture(
                "bars",
                str(title),
                str(caption),
                [_("Strategy"), str(title), _("Questions counted"), _("Random selections below it")],
                rows,
                reference=random and random["mean"],
                reference_name=_("random"),
                apart=_("whole pool"),
                band=random and tuple(random["interval"]),
            )
        )
    return pictures


def side_by_side(comparison: Comparison, first: str, second: str) -> SideBySide | None:
    """What two of the strategies that ran pick, by rank; None for a strategy that did not run. One query."""
    result: Any = comparison.result
    picks = {strategy["key"]: strategy["picks"] for strategy in result["strategies"] if strategy["picks"] is not None}
    if first not in picks or second not in picks:
        return None
    shared = set(picks[first]) & set(picks[second])
    both = [uid for uid in picks[first] if uid in shared]
    alone = [[uid for uid in picks[key] if uid not in shared] for key in (first, second)]
    shown = [uids[:MOST_SHOWN] for uids in (both, *alone)]
    questions = Question.objects.in_pool(comparison.run.pool).filter(uid__in={uid for uids in shown for uid in uids})
    found = {question.uid: question for question in questions}

    def lines(uids: Sequence[str], key: str) -> list[PickedQuestion]:
        rank = {uid: number for number, uid in enumerate(picks[key], 1)}
        return [
            PickedQuestion(found[uid], rank[uid], **_measured(result["questions"][uid])) for uid in uids if uid in found
        ]

    return SideBySide(
        first,
        second,
        n_both=len(both),
        n_first=len(alone[0]),
        n_second=len(alone[1]),
        both=lines(shown[0], first),
        only_first=lines(shown[1], first),
        only_second=lines(shown[2], second),
    )


def sides_of(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Key and title of the strategies that can stand side by side."""
    return [(each["key"], each["title"]) for each in result["strategies"] if each["picks"] is not None]


def _measured(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("set_size", "majority_share", "pass_rate")}


def _profile(title: str, caption: str, bins: Sequence[object], counts: Mapping[str, Sequence[int]]) -> Picture:
    rows = [
        [_("pool") if key == "pool" else key, *(f"{100 * n / max(sum(found), 1):.1f}" for n in found)]
        for key, found in counts.items()
    ]
    return Picture("stacked", title, caption, [_("% of picks"), *map(str, bins)], rows)


def _binned(counts: Sequence[int]) -> list[int]:
    """Count set sizes by ``SET_SIZES``."""
    return [
        *(counts[size] if size < len(counts) else 0 for size in range(6)),
        *map(sum, (counts[6:10], counts[10:20], counts[20:])),
    ]


def _matrix(keys: Sequence[str], matrix: Sequence[Sequence[float | None]]) -> list[list[str]]:
    return [[key, *(_figure(value) for value in row)] for key, row in zip(keys, matrix, strict=True)]


def _stable(result: Mapping[str, Any], what: str, key: str) -> str:
    found = result["stability"][what]["strategies"][key]
    return _figure(found["mean"]) if found else NOTHING


def _figure(value: float | None, digits: int = 2) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}".replace("-", "−")


def _percent(value: float) -> str:
    return f"{100 * value:.0f}%"


def _tokens(n: float) -> str:
    scales: list[tuple[float, str, Callable[[float], str]]] = [
        (1e9, " G", lambda x: f"{x:.1f}"),
        (1e6, " M", lambda x: f"{x:.1f}"),
        (1e3, " k", lambda x: f"{x:.0f}"),
    ]
    for scale, unit, shown in scales:
        if n >= scale:
            return shown(n / scale) + unit
    return f"{n:.0f}"
