"""Three routes for a pool ranked by uncertainty: discard, supervise weakly by the majority, annotate.

A reconstruction of PivotTrace's triage (arXiv 2606.04503), of which the abstract is known: answers to some questions
across the whole ranking show where the model is right anyway and where its majority no longer is. Windows and
thresholds are choices of this project.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from selector.errors import InvalidConfig
from selector.votes import VoteTable, canonical_order

N_PROBES = 64
WINDOW = 7  # probes
DISCARD_FROM_CORRECTNESS = 0.9
ANNOTATE_ABOVE_WRONG = 0.5

Floats = NDArray[np.float64]


class Route(StrEnum):
    """What becomes of a question."""

    DISCARD = "discard"  # the model is right anyway
    WEAKLY_SUPERVISE = "weakly_supervise"  # by its majority answer
    ANNOTATE = "annotate"


@dataclass(frozen=True)
class Majority:
    """The most frequent readable answer of each question's rollouts, as it was first given, and its share of all.

    "" and 0 where nothing was readable. Of equally frequent answers the one given first counts. ``codes`` [N] are its
    classes in the table, -1 for none.
    """

    answers: tuple[str, ...]
    shares: Floats
    codes: NDArray[np.intp]


@dataclass(frozen=True)
class Triage:
    """Routes [N] in the order of the questions given, and what they rest on.

    ``probe_ranks`` [P]: places of the probes in the ranking, least uncertain first; ``correctness`` and
    ``majority_wrong`` [P] there, as averaged over the window and made monotone. ``last_discarded`` and
    ``first_annotated`` are ranks, None where a route is empty.
    """

    routes: tuple[Route, ...]
    probe_ranks: NDArray[np.intp]
    correctness: Floats
    majority_wrong: Floats
    last_discarded: int | None
    first_annotated: int | None

    def to_json(self) -> dict[str, object]:
        """Return what a report says of it."""
        return {
            "provenance": "reconstruction",
            "routes": {str(route): self.routes.count(route) for route in Route},
            "last_discarded_rank": self.last_discarded,
            "first_annotated_rank": self.first_annotated,
            "probe_ranks": self.probe_ranks.tolist(),
            "correctness": self.correctness.tolist(),
            "majority_wrong": self.majority_wrong.tolist(),
        }


def ranking(uncertainty: Floats, uids: Sequence[str]) -> NDArray[np.intp]:
    """Return the rows, least uncertain first; ties go by sha256 of the uid."""
    order = canonical_order(uids)
    return order[np.argsort(uncertainty[order], kind="stable")]


def probe_ranks(n_questions: int, n_probes: int = N_PROBES) -> NDArray[np.intp]:
    """Return ranks spaced evenly from the first to the last: all of them where there are no more than ``n_probes``."""
    return np.unique(np.linspace(0, n_questions - 1, min(n_probes, n_questions)).round().astype(np.intp))


def majority(table: VoteTable) -> Majority:
    """Return each question's majority among its outcome rollouts (table of pool votes, N questions)."""
    codes = table.of("outcomes").codes
    answers, shares, winners = [], np.zeros(len(table)), np.full(len(table), -1, np.intp)
    for row, given in enumerate(codes):
        readable = given[given >= 0]
        if len(readable):
            counts = np.bincount(readable)
            first_given = readable[np.argmax(counts[readable] == counts.max())]
            winners[row], shares[row] = first_given, counts.max() / len(given)
        answers.append(table.representatives[row][winners[row]] if winners[row] >= 0 else "")
    return Majority(tuple(answers), shares, winners)


def correctness(table: VoteTable) -> Floats:
    """Return the share of right answers among each labeled question's outcome rollouts [N]; unread ones are wrong."""
    codes = table.of("outcomes").codes
    is_right = (codes == table.truth_codes[:, None]) & (codes >= 0)
    return is_right.mean(axis=1) if codes.shape[1] else np.zeros(len(table))


def triage(
    uncertainty: Floats,
    uids: Sequence[str],
    *,
    probed_correctness: Mapping[str, float],
    probed_majority_wrong: Mapping[str, bool],
    has_majority: NDArray[np.bool_],
    window: int = WINDOW,
) -> Triage:
    """Route every question [N] by what the probes (labeled questions, by uid) show along the ranking.

    Correctness is averaged over ``window`` neighbouring probes (fewer at the ends) and made non-increasing by isotonic
    regression where it is not; the share of wrong majorities likewise, non-decreasing. Discarded is everything up to
    the last probe with correctness >= 0.9; annotated everything from the first later probe where more than half of the
    majorities are wrong; either may be nothing. In between a question without any majority (``has_majority`` [N] false)
    is annotated. Raises InvalidConfig with fewer probes than a window.
    """
    order = ranking(uncertainty, uids)
    ranks = np.array([rank for rank, row in enumerate(order) if uids[row] in probed_correctness], np.intp)
    if len(ranks) < window:
        raise InvalidConfig("triage labels", f"{len(ranks)} questions of the pool", f"at least {window} of them")
    at = [uids[row] for row in order[ranks]]
    right = _monotone(ranks, _smoothed([probed_correctness[uid] for uid in at], window), increasing=False)
    wrong = _monotone(ranks, _smoothed([probed_majority_wrong[uid] for uid in at], window), increasing=True)

    mastered = np.flatnonzero(right >= DISCARD_FROM_CORRECTNESS)
    last_discarded = int(ranks[mastered[-1]]) if len(mastered) else None
    is_lost = wrong > ANNOTATE_ABOVE_WRONG
    lost = ranks[is_lost & (ranks > (-1 if last_discarded is None else last_discarded))]
    first_annotated = int(lost[0]) if len(lost) else None

    routes = [Route.WEAKLY_SUPERVISE] * len(uids)
    for rank, row in enumerate(order.tolist()):
        if last_discarded is not None and rank <= last_discarded:
            routes[row] = Route.DISCARD
        elif (first_annotated is not None and rank >= first_annotated) or not has_majority[row]:
            routes[row] = Route.ANNOTATE
    return Triage(tuple(routes), ranks, right, wrong, last_discarded, first_annotated)


def _smoothed(values: Sequence[float], window: int) -> Floats:
    """Return the mean over each value's neighbours, half a window to either side as far as there are any."""
    half = window // 2
    return np.array([np.mean(values[max(0, i - half) : i + half + 1]) for i in range(len(values))])


def _monotone(ranks: NDArray[np.intp], values: Floats, *, increasing: bool) -> Floats:
    steps = np.diff(values) if increasing else -np.diff(values)
    if (steps >= 0).all():
        return values
    return np.asarray(IsotonicRegression(increasing=increasing).fit_transform(ranks, values), np.float64)
