"""CONST with half as many clusters (ablation V4): the two largest prediction sets of each."""

from selector.strategies.const import ConformalSetSizeByCluster


class ConformalSetSizeTwoByCluster(ConformalSetSizeByCluster):
    """Pick the two largest prediction sets from each of b/2 clusters."""

    key = "v4"
    title = "CONST V4: two largest prediction sets per cluster"
    per_cluster = 2

    def n_clusters(self, budget: int) -> int:
        """Return half a cluster for each pick, rounded up."""
        return (budget + 1) // 2
