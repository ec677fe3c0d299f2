"""What a finished run found, in words and figures: threshold, notices, picks with why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from labeling.models import Pick, SelectionRun

TIE_BREAKS = {
    "set_size_from_probes": gettext_lazy("this one has the larger prediction set from its probes alone"),
    "distinct_probe_answers": gettext_lazy("its probes gave more distinct answers"),
    "nearness_to_centre": gettext_lazy("it lies nearer to the centre of its cluster"),
    "sha256_of_id": gettext_lazy("nothing else told them apart, so a hash of the ids decided"),
    "file_order": gettext_lazy("it comes first in the file"),
}
MEASURES = {
    "max_frequency": gettext_lazy("Share of the most frequent answer"),
    "entropy": gettext_lazy("Entropy of the answers"),
    "unread_share": gettext_lazy("Share of unread completions"),
}
REASONS = {
    "too_few_readable": gettext_lazy("too few readable answers"),
    "in_calibration_set": gettext_lazy("also in the calibration set"),
    "repeats_another": gettext_lazy("the same as another question"),
    "in_a_round": gettext_lazy("already in a round"),
    "already_labeled": gettext_lazy("already labeled"),
}


@dataclass(frozen=True)
class PickLine:
    """A pick and why it was picked, as sentences."""

    pick: Pick
    why: list[str]


@dataclass(frozen=True)
class Notice:
    """Something to know before trusting the run. ``offered_alpha`` comes with its caveat, where there is one."""

    code: str
    message: str
    offered_alpha: str = ""
    offered_note: str = ""


@dataclass(frozen=True)
class MeasureLine:
    """One measure of how the model answers, in the pool and in the calibration set, and whether they look alike."""

    name: str
    pool_mean: float
    calibration_mean: float
    p_value: float
    is_alike: bool


@dataclass(frozen=True)
class DrawnLine:
    """So many questions were settled after so many of their full answers."""

    n_drawn: int
    n_questions: int


@dataclass(frozen=True)
class RacedRun:
    """What a race saved. Shares are from 0 to 1; ``by_drawn`` says when questions were settled, ``history`` holds, at
    some moments, the answers heard, the questions that could still be picked and the clusters decided."""

    n_asked: int
    n_undrawn: int
    n_complete: int
    n_questions: int
    share_of_answers_saved: float
    share_of_tokens_saved: float
    by_drawn: list[DrawnLine]
    history: list[Mapping[str, int]]


def raced(run: SelectionRun) -> RacedRun | None:
    """What racing saved in a run; None where it asked for all answers."""
    report = _report(run)
    if "race" not in report:
        return None
    race = report["race"]
    by_drawn = {int(n): k for n, k in race["questions_by_outcomes_drawn"].items()}
    n_asked, n_undrawn = sum(n * k for n, k in by_drawn.items()), report["n_undrawn"]
    return RacedRun(
        n_asked=n_asked,
        n_undrawn=n_undrawn,
        n_complete=report["n_complete"],
        n_questions=sum(by_drawn.values()),
        share_of_answers_saved=n_undrawn / max(1, n_asked + n_undrawn),
        share_of_tokens_saved=1 - report["tokens_used"] / max(1, report["tokens_full"]),
        by_drawn=[DrawnLine(n, by_drawn.get(n, 0)) for n in range(max(by_drawn, default=0) + 1)],
        history=run.race_history,
    )


def ranked_picks(run: SelectionRun) -> QuerySet[Pick]:
    """The picks, best first, with their questions."""
    return run.picks.select_related("question").order_by("rank")


def picks_of(run: SelectionRun, picks: Iterable[Pick] | None = None) -> list[PickLine]:
    """The picks, or only those given, each with the reasons; at most one query."""
    strategy = _report(run).get("strategy", {}).get("title", _("the strategy"))
    is_calibrated = _report(run).get("calibration", {}) is not None
    has_clusters = _report(run).get("clusters", {}).get("source") != "none"
    return [
        PickLine(pick, _why(pick, strategy, is_calibrated=is_calibrated, has_clusters=has_clusters))
        for pick in (ranked_picks(run) if picks is None else picks)
    ]


def _why(pick: Pick, strategy: str, *, is_calibrated: bool, has_clusters: bool) -> list[str]:
    if pick.taken_by == "control":
        words = _("Drawn at random, as a control: each eligible question had a chance of %(chance)s.")
        return [words % {"chance": f"{pick.inclusion_probability:.4g}"}]
    if pick.taken_by == "joint":
        return [_("Chosen together with the other picks, as a set (%(strategy)s).") % {"strategy": strategy}]
    is_own = pick.taken_by == "cluster" and has_clusters
    if is_own:
        best = _("The best of cluster %(cluster)s (%(strategy)s).")
    elif has_clusters:
        best = _("The best that the clusters left over (%(strategy)s).")
    else:
        best = _("Among the best of the pool (%(strategy)s).")
    why = [best % {"cluster": pick.cluster, "strategy": strategy}]
    if is_calibrated and pick.set_size == 0:
        why.append(_("By the threshold no answer is plausible."))
    elif is_calibrated:
        words = ngettext(
            "By the threshold %(n)s answer is plausible.",
            "By the threshold %(n)s answers are plausible.",
            pick.set_size,
        )
        why.append(words % {"n": pick.set_size})
    return [*why, _tie_in_words(pick, in_cluster=is_own)]


def _tie_in_words(pick: Pick, *, in_cluster: bool) -> str:
    if pick.tied_with is None:
        return _("A race picked it; with how many others it ties is not known.")
    if pick.tied_with == 0 and in_cluster:
        words = _("No other question in cluster %(cluster)s has the same score.")
    elif pick.tied_with == 0:
        words = _("No other question in the pool has the same score.")
    elif in_cluster:
        words = ngettext(
            "%(n)s other question has the same score in cluster %(cluster)s: %(decided)s.",
            "%(n)s other questions have the same score in cluster %(cluster)s: %(decided)s.",
            pick.tied_with,
        )
    else:
        words = ngettext(
            "%(n)s other question has the same score in the pool: %(decided)s.",
            "%(n)s other questions have the same score in the pool: %(decided)s.",
            pick.tied_with,
        )
    decided = TIE_BREAKS.get(pick.tie_break, _("they were all picked"))
    return words % {"n": pick.tied_with, "cluster": pick.cluster, "decided": decided}


def threshold_in_words(run: SelectionRun) -> str:
    """What the threshold means for the person at the screen; "" before there is one."""
    report = _report(run)
    if not report:
        return ""
    coverage = f"{1 - float(run.config['alpha']):.4g}"
    if "calibration" in report and report["calibration"] is None:
        return _("There is none: the strategy chooses by its own score alone, so nothing was calibrated.")
    if run.q_hat is None:
        words = _(
            "The threshold is infinite: so many right answers of the calibration set never came from the model that "
            "every answer it gives has to count as plausible. Coverage of %(coverage)s cannot be had."
        )
        return words % {"coverage": coverage}
    lowest, highest = -run.q_hat, run.config["lam"] - run.q_hat
    if highest <= 0:
        words = _("The threshold is %(q_hat)s: an answer is plausible whatever its share of the votes.")
    else:
        words = _(
            "The threshold is %(q_hat)s: an answer is plausible when it has %(lowest)s of the votes or more "
            "(%(highest)s where the votes are most spread)."
        )
    promise = _(
        "Over questions like those of the calibration set, the plausible answers include the right one at least "
        "%(coverage)s of the time; for the picked questions, which were chosen for being uncertain, nothing is "
        "promised."
    )
    shares = {"q_hat": f"{run.q_hat:.4g}", "lowest": f"{max(lowest, 0):.1%}", "highest": f"{highest:.1%}"}
    return f"{words % shares} {promise % {'coverage': coverage}}"


def notices_of(run: SelectionRun) -> list[Notice]:
    """What the report warns of. A degenerate calibration offers the smallest alpha that would not be."""
    offer = (_report(run).get("calibration") or {}).get("smallest_useful_alpha") or {}
    return [
        Notice(
            code=warning["code"],
            message=warning["message"],
            offered_alpha=offer.get("alpha", "") if warning["code"] == "degenerate_calibration" else "",
            offered_note=offer.get("note", "") if warning["code"] == "degenerate_calibration" else "",
        )
        for warning in _report(run).get("warnings", [])
    ]


def coverage_check_in_words(run: SelectionRun) -> str:
    """The self-check of coverage in a sentence; "" before there is one."""
    check = (_report(run).get("calibration") or {}).get("coverage_check")
    if not check:
        return ""
    if not check["available"]:
        return _("Not available: %(reason)s.") % {"reason": check["reason"]}
    low, high = check["band"]
    counted = _(
        "Fitted on a random half of the calibration set (%(n_fitted)s questions), the sets cover %(hits)s of "
        "%(n_counted)s right answers of the other half (%(coverage)s)."
    ) % {**check, "coverage": f"{check['coverage']:.1%}"}
    if check["below_band"]:
        verdict = _("By theory %(low)s to %(high)s, so this is below the band.")
    else:
        verdict = _("By theory %(low)s to %(high)s, so this is not below the band.")
    caveat = _("It checks the method, not the threshold in use.")
    return f"{counted} {verdict % {'low': f'{low:.1%}', 'high': f'{high:.1%}'}} {caveat}"


def comparison_of(run: SelectionRun) -> list[MeasureLine]:
    """How alike the model's answers to pool and calibration set are, measure by measure; no answer key is used."""
    comparison = _report(run).get("comparison") or {}
    return [
        MeasureLine(
            name=str(MEASURES.get(name, name)),
            pool_mean=test["pool_mean"],
            calibration_mean=test["calibration_mean"],
            p_value=test["p_value"],
            is_alike=name not in comparison["unlike"],
        )
        for name, test in comparison.get("tests", {}).items()
    ]


def not_picked(run: SelectionRun) -> list[tuple[str, int]]:
    """Why questions could not be picked, with how many, the set-aside ones included."""
    counts = {
        str(REASONS.get(reason, reason)): found["n"]
        for reason, found in _report(run).get("pool", {}).get("ineligible", {}).items()
    }
    if n_set_aside := sum(each["where"] == "pool" for each in _report(run).get("set_aside", [])):
        counts[_("could not be asked")] = n_set_aside
    return sorted(counts.items())


def _report(run: SelectionRun) -> Mapping[str, Any]:
    return run.report or {}
