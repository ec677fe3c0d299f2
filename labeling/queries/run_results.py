"""What a finished run found, in words and figures: threshold, notices, picks with why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from labeling.models import Pick, SelectionRun

TIE_BREAKS = {
    "set_size_from_probes": "this one has the larger prediction set from its probes alone",
    "distinct_probe_answers": "its probes gave more distinct answers",
    "nearness_to_centre": "it lies nearer to the centre of its cluster",
    "sha256_of_id": "nothing else told them apart, so a hash of the ids decided",
    "file_order": "it comes first in the file",
}
MEASURES = {
    "max_frequency": "Share of the most frequent answer",
    "entropy": "Entropy of the answers",
    "unread_share": "Share of unread completions",
}
REASONS = {
    "too_few_readable": "too few readable answers",
    "in_calibration_set": "also in the calibration set",
    "repeats_another": "the same as another question",
    "in_a_round": "already in a round",
    "already_labeled": "already labeled",
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


def ranked_picks(run: SelectionRun) -> QuerySet[Pick]:
    """The picks, best first, with their questions."""
    return run.picks.select_related("question").order_by("rank")


def picks_of(run: SelectionRun, picks: Iterable[Pick] | None = None) -> list[PickLine]:
    """The picks, or only those given, each with the reasons; at most one query."""
    strategy = _report(run).get("strategy", {}).get("title", "the strategy")
    is_calibrated = _report(run).get("calibration", {}) is not None
    has_clusters = _report(run).get("clusters", {}).get("source") != "none"
    return [
        PickLine(pick, _why(pick, strategy, is_calibrated=is_calibrated, has_clusters=has_clusters))
        for pick in (ranked_picks(run) if picks is None else picks)
    ]


def _why(pick: Pick, strategy: str, *, is_calibrated: bool, has_clusters: bool) -> list[str]:
    if pick.taken_by == "control":
        return [
            f"Drawn at random, as a control: each eligible question had a chance of {pick.inclusion_probability:.4g}."
        ]
    if pick.taken_by == "joint":
        return [f"Chosen together with the other picks, as a set ({strategy})."]
    is_own = pick.taken_by == "cluster"
    where = f"in cluster {pick.cluster}" if is_own and has_clusters else "in the pool"
    best = "Among the best of the pool"
    if has_clusters:
        best = f"The best of cluster {pick.cluster}" if is_own else "The best that the clusters left over"
    answers = {0: "no answer is", 1: "1 answer is"}.get(pick.set_size, f"{pick.set_size} answers are")
    why = [f"{best} ({strategy}).", *([f"By the threshold {answers} plausible."] if is_calibrated else [])]
    if pick.tied_with == 0:
        return [*why, f"No other question {where} has the same score."]
    others = "1 other question has" if pick.tied_with == 1 else f"{pick.tied_with} other questions have"
    decided = TIE_BREAKS.get(pick.tie_break, "they were all picked")
    return [*why, f"{others} the same score {where}: {decided}."]


def threshold_in_words(run: SelectionRun) -> str:
    """What the threshold means for the person at the screen; "" before there is one."""
    report = _report(run)
    if not report:
        return ""
    coverage = f"{1 - float(run.config['alpha']):.4g}"
    if "calibration" in report and report["calibration"] is None:
        return "There is none: the strategy chooses by its own score alone, so nothing was calibrated."
    if run.q_hat is None:
        return (
            "The threshold is infinite: so many right answers of the calibration set never came from the model that "
            f"every answer it gives has to count as plausible. Coverage of {coverage} cannot be had."
        )
    lowest, highest = -run.q_hat, run.config["lam"] - run.q_hat
    if highest <= 0:
        share = "whatever its share of the votes"
    else:
        share = f"when it has {max(lowest, 0):.1%} of the votes or more ({highest:.1%} where the votes are most spread)"
    return (
        f"The threshold is {run.q_hat:.4g}: an answer is plausible {share}. Over questions like those of the "
        f"calibration set, the plausible answers include the right one at least {coverage} of the time; for the picked "
        "questions, which were chosen for being uncertain, nothing is promised."
    )


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
        return f"Not available: {check['reason']}."
    low, high = check["band"]
    verdict = "below" if check["below_band"] else "not below"
    return (
        f"Fitted on a random half of the calibration set ({check['n_fitted']} questions), the sets cover "
        f"{check['hits']} of {check['n_counted']} right answers of the other half ({check['coverage']:.1%}). By theory "
        f"{low:.1%} to {high:.1%}, so this is {verdict} the band. It checks the method, not the threshold in use."
    )


def comparison_of(run: SelectionRun) -> list[MeasureLine]:
    """How alike the model's answers to pool and calibration set are, measure by measure; no answer key is used."""
    comparison = _report(run).get("comparison") or {}
    return [
        MeasureLine(
            name=MEASURES.get(name, name),
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
        REASONS.get(reason, reason): found["n"]
        for reason, found in _report(run).get("pool", {}).get("ineligible", {}).items()
    }
    if n_set_aside := sum(each["where"] == "pool" for each in _report(run).get("set_aside", [])):
        counts["could not be asked"] = n_set_aside
    return sorted(counts.items())


def _report(run: SelectionRun) -> Mapping[str, Any]:
    return run.report or {}
