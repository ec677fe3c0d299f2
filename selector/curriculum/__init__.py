"""The registry of curricula. A key is stored with every saved state, so it never changes."""

from collections.abc import Mapping
from types import MappingProxyType

from selector.curriculum.contract import Curriculum
from selector.curriculum.dynamic_sampling import DynamicSampling
from selector.curriculum.expected_difficulty import ExpectedDifficulty
from selector.curriculum.following import LogFollower
from selector.curriculum.insight import Insight
from selector.curriculum.inverse_evidence import InverseEvidence
from selector.curriculum.log import RewardEvent, RewardLog
from selector.curriculum.mapp import Mapp
from selector.curriculum.mopps import Mopps
from selector.curriculum.random import RandomCurriculum

CURRICULA: Mapping[str, type[Curriculum]] = MappingProxyType(
    {
        "insight": Insight,
        "mopps": Mopps,
        "inverse_evidence": InverseEvidence,
        "expected_difficulty": ExpectedDifficulty,
        "dynamic_sampling": DynamicSampling,
        "mapp": Mapp,
        "random": RandomCurriculum,
    }
)

__all__ = ["CURRICULA", "Curriculum", "LogFollower", "RewardEvent", "RewardLog"]
