"""CONST without clusters (ablation V2): the largest prediction sets of the pool."""

from selector.strategies.const import ConformalSetSizeByCluster


class ConformalSetSize(ConformalSetSizeByCluster):
    """Pick the largest prediction sets, wherever they lie."""

    key = "v2"
    title = "CONST V2: largest prediction sets, no clusters"
    uses_clusters = False
