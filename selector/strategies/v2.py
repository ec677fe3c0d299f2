"""CONST without clusters (ablation V2): the largest prediction sets of the pool."""

from selector.strategies.const import ConformalSetSizeByCluster
from selector.strategies.contract import Need


class ConformalSetSize(ConformalSetSizeByCluster):
    """Pick the largest prediction sets, wherever they lie."""

    key = "v2"
    title = "CONST V2: largest prediction sets, no clusters"
    needs = frozenset({Need.CALIBRATION, Need.VOTES})
    uses_clusters = False
    is_nested = True
