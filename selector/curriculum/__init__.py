"""The registry of curricula. A key is stored with every saved state, so it never changes."""

from collections.abc import Mapping
from types import MappingProxyType

from selector.curriculum.contract import Curriculum
from selector.curriculum.insight import Insight
from selector.curriculum.log import RewardEvent, RewardLog
from selector.curriculum.mopps import Mopps
from selector.curriculum.random import RandomCurriculum

CURRICULA: Mapping[str, type[Curriculum]] = MappingProxyType(
    {
        "insight": Insight,
        "mopps": Mopps,
        "random": RandomCurriculum,
    }
)

__all__ = ["CURRICULA", "Curriculum", "RewardEvent", "RewardLog"]
