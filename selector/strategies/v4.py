"""CONST with half as many clusters (ablation V4): the two largest prediction sets of each."""

from selector.strategies.const import ConformalSetSizeByCluster
from selector.strategies.contract import Need


class ConformalSetSizeTwoByCluster(ConformalSetSizeByCluster):
    """Pick the two largest prediction sets from each of b/2 clusters, rounded up."""

    key = "v4"
    title = "CONST V4: two largest prediction sets per cluster"
    needs = frozenset({Need.CALIBRATION, Need.COMPLETE_VOTES, Need.EMBEDDINGS})
    per_cluster = 2
    can_be_raced = False
    why_not_raced = (
        "this ablation is told of complete answers; const with half as many clusters (--clusters) and --per-cluster 2 "
        "picks alike and can be raced"
    )
