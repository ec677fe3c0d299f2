"""InSight: roll out the questions whose outcomes would teach most, where learning is possible (arXiv 2603.01907)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from selector.curriculum.contract import CandidateSettings, ScoredCurriculum


def outcome_log_likelihood(a: NDArray[np.float64], b: NDArray[np.float64], rollouts: int) -> NDArray[np.float64]:
    """Return ln E[p^s (1-p)^(K-s)] for p ~ Beta(a, b), s = 0..K: [U] to [U, K+1].

    It is ln B(a+s, b+K-s) - ln B(a, b), summed from logarithms of small steps, so that it stays exact for beliefs of
    any weight.
    """
    steps = np.arange(rollouts)
    empty = np.zeros((len(a), 1))
    successes = np.hstack([empty, np.cumsum(np.log(a[:, None] + steps), axis=1)])
    failures = np.hstack([empty, np.cumsum(np.log(b[:, None] + steps), axis=1)])
    total = np.log((a + b)[:, None] + steps).sum(axis=1)
    return np.asarray(successes + failures[:, ::-1] - total[:, None])


def mutual_information(a: NDArray[np.float64], b: NDArray[np.float64], rollouts: int) -> NDArray[np.float64]:
    """Return I(R_1..K; p) in nats for p ~ Beta(a, b) and K rollouts: [U] to [U], never below 0.

    Equal to the expected fall of the entropy of Beta(a, b), H(a, b) - sum_s P(s) H(a+s, b+K-s), with P beta-binomial
    (InSight, section 4); computed as H(R) - K E[h(p)], with h the entropy of one rollout, which loses no digits.
    """
    log_likelihood = outcome_log_likelihood(a, b, rollouts)
    s = np.arange(rollouts + 1)
    log_choices = gammaln(rollouts + 1) - gammaln(s + 1) - gammaln(rollouts - s + 1)
    entropy = -(np.exp(log_likelihood + log_choices) * log_likelihood).sum(axis=1)
    n = a + b
    noise = psi(n + 1) - (a * psi(a + 1) + b * psi(b + 1)) / n
    return np.asarray(np.maximum(entropy - rollouts * noise, 0.0))


def difficulty_weight(mean: NDArray[np.float64], *, eta: float, mu: float) -> NDArray[np.float64]:
    """Return w(m) = m (1-m) exp(-eta (m - mu)^2) of expected success rates m: where reward has variance, near mu."""
    return np.asarray(mean * (1 - mean) * np.exp(-eta * (mean - mu) ** 2))


@dataclass(frozen=True, kw_only=True)
class InsightSettings(CandidateSettings):
    """``rollouts``: K, of each question a step; ``eta`` >= 0 and ``mu`` in [0, 1]: how sharply and where the weight
    peaks (with the defaults at an expected success rate of 0.416).
    """

    rollouts: int = 8
    eta: float = 3.0
    mu: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_whole("rollouts", low=1)
        self.check_number("eta", low=0)
        self.check_number("mu", low=0, high=1)


class Insight(ScoredCurriculum):
    """Roll out the questions of highest weighted mutual information w(m) I(R_1..K; p)."""

    key = "insight"
    title = "InSight: weighted mutual information"
    source = "arXiv 2603.01907"
    settings_class = InsightSettings
    settings: InsightSettings

    def score(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return w(m) I of beliefs Beta(a, b)."""
        settings = self.settings
        weight = difficulty_weight(a / (a + b), eta=settings.eta, mu=settings.mu)
        return np.asarray(weight * mutual_information(a, b, settings.rollouts))
