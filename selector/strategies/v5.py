"""CONST on outcome answers only (ablation V5)."""

from selector.strategies.const import ConformalSetSizeByCluster


class ConformalSetSizeOfOutcomes(ConformalSetSizeByCluster):
    """As CONST, with threshold and prediction sets from the sampled rollouts alone."""

    key = "v5"
    title = "CONST V5: outcome answers only"
    votes = "outcomes"
