"""What a variance report comes to, in plain sentences: health, compute multiplier, warnings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from selector.success_rates import MIN_USEFUL
from selector.variance import (
    GOOD,
    MIN_QUESTIONS,
    MIN_RUNS,
    MOST,
    POOR,
    TAIL,
    THIN,
    Category,
    VarianceReport,
    Warned,
    survival,
)


@dataclass(frozen=True)
class Advice:
    """``health`` is poor, thin, good or rich, and means little unless ``is_enough``: about 50 questions or more.

    ``compute_multiplier`` (lowest, highest) is None where none is advised: below 10 % useful, or too few questions.
    """

    health: str
    is_enough: bool
    compute_multiplier: tuple[int, int] | None
    sentences: tuple[str, ...]


def report_as_json(report: VarianceReport, *, questions: bool = True) -> dict[str, Any]:
    """Return the report with its advice and warnings as JSON types; without ``questions`` aggregates only."""
    found: dict[str, Any] = {
        "n_questions": len(report.uids),
        "n_runs": {"fewest": int(report.n_runs.min()), "most": int(report.n_runs.max())},
        "binary": report.is_binary,
        "mean": report.mean,
        "mean_best": report.mean_best,
        "mean_worst": float(report.worsts.mean()),
        "mean_variance": float(report.variances.mean()),
        "improvement_potential": report.improvement_potential,
        "categories": {category.value: n for category, n in report.counts.items()},
        "useful_share": report.useful_share,
        "useful_share_interval": list(report.useful_interval),
        "variance_gini": report.gini,
        "variance_of_top_tenth": report.tail_share,
        "share_with_signal": [asdict(signal) for signal in report.signals],
        "waking_share_with_twice_the_runs": report.waking_share(2),
        "chance": asdict(report.chance) if report.chance else None,
        "advice": asdict(advise(report)),
        "warnings": [asdict(warning) for warning in warnings_of(report)],
    }
    if questions:
        found["questions"] = [
            {
                "id": uid,
                "runs": int(report.n_runs[row]),
                "mean": float(report.means[row]),
                "best": float(report.bests[row]),
                "worst": float(report.worsts[row]),
                "variance": float(report.variances[row]),
                "category": report.categories[row].value,
            }
            for row, uid in enumerate(report.uids)
        ]
    return found


def advise(report: VarianceReport) -> Advice:
    """Return what to do with the questions."""
    share, n = report.useful_share, len(report.uids)
    health, words, multiplier = _health(share)
    low, high = report.useful_interval
    sentences = [
        f"{_percent(share)} of the questions are useful ({report.counts[Category.USEFUL]:,} of {n:,}; "
        f"95 % interval {100 * low:.0f} to {_percent(high)}): {words}"
    ]
    if n < MIN_QUESTIONS:
        multiplier = None
        sentences.append(
            f"{n} question{'' if n == 1 else 's'} are too few to set rollouts by: no compute multiplier is advised "
            f"below about {MIN_QUESTIONS}."
        )
    elif multiplier is None:
        sentences.append(
            "More rollouts alone will not mend that: first look for questions of a fitting difficulty, or give partial "
            "credit. No compute multiplier is advised."
        )
    else:
        times = " to ".join(str(each) for each in dict.fromkeys(multiplier))
        what = (
            "the usual number of rollouts a question"
            if times == "1"
            else f"{times} times the usual rollouts a question"
        )
        sentences.append(f"Compute multiplier {times}: {what}.")
    sentences.append(
        f"One run earns {report.mean:.3f} on average, the best run of each question {report.mean_best:.3f}: an "
        f"improvement potential of {report.improvement_potential:.3f}, from always doing what the model does at best."
    )
    for signal in report.signals:
        if signal.runs == min((s.runs for s in report.signals if s.runs >= 8), default=0) and signal.share > 0:
            sentences.append(
                f"A group of {signal.runs} rollouts {'shows' if signal.is_measured else 'is expected to show'} both "
                f"outcomes on {_percent(signal.share)} of the questions; to fill a batch with such groups, about "
                f"{1 / signal.share:.1f} are sampled for each that is kept."
            )
    return Advice(
        health=health, is_enough=n >= MIN_QUESTIONS, compute_multiplier=multiplier, sentences=tuple(sentences)
    )


def _health(share: float) -> tuple[str, str, tuple[int, int] | None]:
    if share < POOR:
        return "poor", "below 10 % most of the training would be spent on questions that teach nothing.", None
    if share < THIN:
        return "thin", "enough to train on, though 15 to 30 % would be good.", (2, 4)
    if share <= GOOD:
        return "good", "15 to 30 % is good.", (1, 2)
    return "rich", "more than the 15 to 30 % that are good.", (1, 1)


def warnings_of(report: VarianceReport) -> tuple[Warned, ...]:
    """Return what to know before trusting the report."""
    found = [
        _few_runs(report),
        _few_questions(report),
        _outside(report),
        _graded(report),
        _tail(report),
        _chance(report),
        _waking(report),
    ]
    return tuple(warning for warning in found if warning is not None)


def _few_runs(report: VarianceReport) -> Warned | None:
    few = report.n_runs < MIN_RUNS
    if not few.any():
        return None
    fewest = int(report.n_runs.min())
    message = f"{_questions(int(few.sum()))} fewer than {MIN_RUNS} runs. "
    if fewest == 1:
        message += "A single run never shows variance, so that their categories mean little. "
    else:
        message += (
            f"In {fewest} runs a question that the model solves one time in two shows both outcomes with probability "
            f"{survival(0.5, fewest):.2f}, one time in ten {survival(0.1, fewest):.2f}. "
        )
    return Warned("few_runs", message + "Make at least 3, better 8.")


def _few_questions(report: VarianceReport) -> Warned | None:
    if len(report.uids) >= MIN_QUESTIONS:
        return None
    low, high = report.useful_interval
    return Warned(
        "few_questions",
        f"There are only {len(report.uids)} questions: the share of useful ones may be anything from "
        f"{_percent(low)} to {_percent(high)}. About {MIN_QUESTIONS} are wanted.",
    )


def _outside(report: VarianceReport) -> Warned | None:
    if report.is_within_unit:
        return None
    low, high = float(report.worsts.min()), float(report.bests.max())
    return Warned(
        "outside_unit",
        f"Rewards run from {low:g} to {high:g}; categories are meant for 0 to 1. Scale them "
        f"(assay variance --scale {low:g} {high:g}).",
    )


def _graded(report: VarianceReport) -> Warned | None:
    if report.is_binary or not report.is_within_unit:
        return None
    return Warned(
        "graded",
        "Rewards are graded, not 0 or 1: a variance above 0.01 counts as useful, and nothing is estimated for other "
        "numbers of runs.",
    )


def _tail(report: VarianceReport) -> Warned | None:
    if report.tail_share <= MOST or len(report.uids) < 1 / TAIL:  # of fewer questions one is more than a tenth
        return None
    return Warned(
        "tail",
        f"The variance sits in the tail: a tenth of the questions hold {_percent(report.tail_share)} of it "
        f"(Gini {report.gini:.2f}). Training will be driven by those few; check that their answers are right.",
    )


def _chance(report: VarianceReport) -> Warned | None:
    chance = report.chance
    if chance is None:
        return None
    message = (
        f"{_questions(chance.n)} choices, so that guessing earns something: their mean of {chance.mean:.3f} is "
        f"{chance.corrected_mean:.3f} beyond guessing."
    )
    if chance.n_useful_at_chance:
        message += (
            f" {chance.n_useful_at_chance:,} of them count as useful though the model does no better than a guess: "
            "their variance may be luck."
        )
    return Warned("choices", message)


def _waking(report: VarianceReport) -> Warned | None:
    n_dead = int(np.count_nonzero(report.variances == 0))
    if not report.is_binary or not n_dead:
        return None
    share = report.waking_share(2)
    if share is None:
        return Warned(
            "dead_for_now",
            f"{n_dead:,} of {len(report.uids):,} questions showed one outcome only. Fewer than "
            f"{MIN_USEFUL} showed both, so it cannot be told how many more runs would wake.",
        )
    if share < 0.02:
        return None
    return Warned(
        "dead_for_now",
        f"{n_dead:,} of {len(report.uids):,} questions showed one outcome only; with twice the runs about "
        f"{_percent(share)} of them are expected to show both, with four times "
        f"{_percent(report.waking_share(4) or 0.0)}.",
    )


def _questions(n: int) -> str:
    return "1 question has" if n == 1 else f"{n:,} questions have"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"
