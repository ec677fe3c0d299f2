"""CONST without the conformal value (ablation V1): a random question of each cluster."""

from selector.strategies.random import RandomBaseline


class RandomByCluster(RandomBaseline):
    """Pick one question uniformly at random from each of b clusters."""

    key = "v1"
    title = "CONST V1: random question per cluster"
    uses_clusters = True
