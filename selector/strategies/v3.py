"""CONST with entropy instead of set size (ablation V3)."""

from selector.strategies.entropy import VoteEntropy


class VoteEntropyByCluster(VoteEntropy):
    """Pick the highest normalised entropy of the readable answers from each of b clusters."""

    key = "v3"
    title = "CONST V3: highest entropy per cluster"
    uses_clusters = True
