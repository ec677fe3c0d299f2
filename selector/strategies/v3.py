"""CONST with entropy instead of set size (ablation V3)."""

from selector.strategies.contract import Need
from selector.strategies.entropy import VoteEntropy


class VoteEntropyByCluster(VoteEntropy):
    """Pick the highest normalised entropy of the readable answers from each of b clusters."""

    key = "v3"
    title = "CONST V3: highest entropy per cluster"
    needs = frozenset({Need.COMPLETE_VOTES, Need.EMBEDDINGS})
    uses_clusters = True
    is_nested = False
