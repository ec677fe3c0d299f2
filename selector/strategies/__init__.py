"""The registry of strategies. A key is stored with every run, so it never changes."""

from collections.abc import Mapping
from types import MappingProxyType

from selector.strategies.badge import GradientDiversity
from selector.strategies.care_proxy import AdvantageGapFromVotes
from selector.strategies.cec import EntropyWeightedClustering
from selector.strategies.const import ConformalSetSizeByCluster
from selector.strategies.contract import Cost, Evidence, Need, PoolScores, Strategy
from selector.strategies.entropy import VoteEntropy
from selector.strategies.ews import EntropyWeightedSampling
from selector.strategies.full import FullPool
from selector.strategies.partial_rollouts import MiddleOfPrefixEntropy
from selector.strategies.pivot_density import PivotDensity
from selector.strategies.pivot_trace import PivotCount
from selector.strategies.random import RandomBaseline
from selector.strategies.scf import SelfConsistencyFiltering
from selector.strategies.shift import HiddenStateShift
from selector.strategies.shift_norm import HiddenStateShiftAlone
from selector.strategies.shift_spread import HiddenStateSpread
from selector.strategies.token_entropy import TokenEntropy
from selector.strategies.v1 import RandomByCluster
from selector.strategies.v2 import ConformalSetSize
from selector.strategies.v3 import VoteEntropyByCluster
from selector.strategies.v4 import ConformalSetSizeTwoByCluster
from selector.strategies.v5 import ConformalSetSizeOfOutcomes
from selector.strategies.v6 import ConformalSetSizeOfProbes

STRATEGIES: Mapping[str, type[Strategy]] = MappingProxyType(
    {
        "const": ConformalSetSizeByCluster,
        "random": RandomBaseline,
        "entropy": VoteEntropy,
        "v1": RandomByCluster,
        "v2": ConformalSetSize,
        "v3": VoteEntropyByCluster,
        "v4": ConformalSetSizeTwoByCluster,
        "v5": ConformalSetSizeOfOutcomes,
        "v6": ConformalSetSizeOfProbes,
        "scf": SelfConsistencyFiltering,
        "ews": EntropyWeightedSampling,
        "care_proxy": AdvantageGapFromVotes,
        "cec": EntropyWeightedClustering,
        "token_entropy": TokenEntropy,
        "badge": GradientDiversity,
        "shift": HiddenStateShift,
        "shift_norm": HiddenStateShiftAlone,
        "shift_spread": HiddenStateSpread,
        "pivot_trace": PivotCount,
        "pivot_density": PivotDensity,
        "partial_rollouts": MiddleOfPrefixEntropy,
        "full": FullPool,
    }
)

__all__ = ["STRATEGIES", "Cost", "Evidence", "Need", "PoolScores", "Strategy"]
