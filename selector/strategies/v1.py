"""CONST without the conformal value (ablation V1): a random question of each cluster."""

from selector.strategies.contract import Need
from selector.strategies.random import RandomBaseline


class RandomByCluster(RandomBaseline):
    """Pick one question uniformly at random from each of b clusters."""

    key = "v1"
    title = "CONST V1: random question per cluster"
    needs = frozenset({Need.EMBEDDINGS})
    uses_clusters = True
    is_nested = False
