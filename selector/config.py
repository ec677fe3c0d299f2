"""The settings of a selection run: one frozen value that checks itself and has a fingerprint."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from math import ceil, inf
from types import MappingProxyType

from selector.errors import InvalidConfig

RULES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "grouping": ("equivalence", "exact_string"),  # when two answers are one
        "unread": ("symbol", "dropped"),  # a completion without an answer: one more symbol, or not a vote
        "absent_truth": ("infinite", "zero_frequency"),  # nonconformity of a truth that was never generated
        "quantile": ("exact_rank", "numpy_higher"),  # how q_hat is read off the sorted scores
        "groups": ("none", "kind"),  # one threshold for all, or one for each kind of answer (Mondrian)
        "ties": ("probes", "file_order"),  # what decides between equal acquisition scores
    }
)

PRESETS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "recommended": {},
        "paper": {"grouping": "exact_string", "unread": "dropped", "min_readable": 0.0},
        "reference": {
            "grouping": "exact_string",
            "unread": "dropped",
            "absent_truth": "zero_frequency",
            "quantile": "numpy_higher",
            "ties": "file_order",
            "min_readable": 0.0,
            "exclude_repeats": False,
            "seed": 42,
        },
    }
)

MOST_SEED = 2**32 - 1  # what numpy and scikit-learn take
LATER_SETTINGS: Mapping[str, object] = MappingProxyType({"per_cluster": None, "control_share": "0"})


@dataclass(frozen=True)
class SelectionConfig:
    """How questions are scored and picked. Build it with ``SelectionConfig.preset(name, budget=8)``.

    ``alpha`` is the miscoverage level as a decimal string, so that ranks are computed exactly; ``lam`` weighs the
    entropy in the nonconformity score. ``n_clusters`` None means one cluster for each pick. ``min_readable`` is the
    share of a question's answers that must be readable for it to be picked. ``exclude_repeats`` keeps pool questions
    whose text is in the calibration set, or in the pool already, from being picked. ``per_cluster`` asks for so many
    of each cluster (None: as the strategy has it). ``control_share`` of the budget, rounded up, is drawn uniformly at
    random from the eligible questions; a decimal string. ``RULES`` lists the rule switches.
    Raises InvalidConfig for a value that means nothing.
    """

    budget: int
    preset_name: str = "recommended"
    strategy: str = "const"
    alpha: str = "0.1"
    lam: float = 0.02
    n_outcomes: int = 20
    n_probes: int = 20
    n_clusters: int | None = None
    seed: int = 0
    min_readable: float = 0.5
    exclude_repeats: bool = True
    grouping: str = "equivalence"
    unread: str = "symbol"
    absent_truth: str = "infinite"
    quantile: str = "exact_rank"
    groups: str = "none"
    ties: str = "probes"
    per_cluster: int | None = None
    control_share: str = "0"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _decimal_text(self.alpha))
        object.__setattr__(self, "lam", _number("lam", self.lam))
        object.__setattr__(self, "min_readable", _number("min_readable", self.min_readable))
        _check_whole("budget", self.budget, at_least=1)
        _check_whole("n_outcomes", self.n_outcomes, at_least=0)
        _check_whole("n_probes", self.n_probes, at_least=0)
        _check_whole("seed", self.seed, at_least=0, at_most=MOST_SEED)
        object.__setattr__(self, "control_share", _share_text(self.control_share))
        for name in ("n_clusters", "per_cluster"):
            if (value := getattr(self, name)) is not None:
                _check_whole(name, value, at_least=1)
        if not 0 <= self.lam < float("inf"):
            raise InvalidConfig("lam", self.lam, "a number from 0")
        if not 0 <= self.min_readable <= 1:
            raise InvalidConfig("min_readable", self.min_readable, "a share between 0 and 1")
        if self.preset_name not in PRESETS:
            raise InvalidConfig("preset", self.preset_name, f"one of {', '.join(PRESETS)}")
        for name, choices in RULES.items():
            if getattr(self, name) not in choices:
                raise InvalidConfig(name, getattr(self, name), f"one of {', '.join(choices)}")
        from selector.strategies import STRATEGIES  # strategies are written against this module

        if self.strategy not in STRATEGIES:
            raise InvalidConfig("strategy", self.strategy, f"one of {', '.join(STRATEGIES)}")
        strategy = STRATEGIES[self.strategy]
        if self.n_outcomes + self.n_probes == 0 and strategy.needs_votes():
            raise InvalidConfig("n_outcomes", 0, f"at least 1 where there are no probes, for strategy {self.strategy}")
        if self.per_cluster and not strategy.uses_clusters:
            wanted = f"left out: strategy {self.strategy} does not pick from clusters"
            raise InvalidConfig("per_cluster", self.per_cluster, wanted)

    @classmethod
    def preset(cls, name: str = "recommended", **overrides: object) -> SelectionConfig:
        """Return the named preset with some settings replaced; None leaves a setting as the preset has it."""
        if name not in PRESETS:
            raise InvalidConfig("preset", name, f"one of {', '.join(PRESETS)}")
        given = {key: value for key, value in overrides.items() if value is not None}
        return cls.from_json({"preset_name": name, **PRESETS[name], **given})

    @property
    def alpha_fraction(self) -> Fraction:
        """The miscoverage level as an exact number."""
        return Fraction(self.alpha)

    @property
    def n_controls(self) -> int:
        """How many of the budget are drawn at random: ``control_share`` of it, rounded up."""
        return ceil(Fraction(self.control_share) * self.budget)

    def replace(self, **changes: object) -> SelectionConfig:
        """Return a copy with some settings changed, checked again."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, object]:
        """Return the settings as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> SelectionConfig:
        """Read settings back; a name it does not know is an error, so that no typing mistake passes silently."""
        known = {field.name for field in fields(cls)}
        for name in data:
            if name not in known:
                raise InvalidConfig(name, data[name], f"one of the settings {', '.join(sorted(known))}")
        if "budget" not in data:
            raise InvalidConfig("budget", None, "a whole number from 1")
        return cls(**dict(data))  # type: ignore[arg-type]

    def fingerprint(self) -> str:
        """Hash every setting: equal fingerprints select equally from equal evidence.

        Settings added since the first release count only where they are used, so that earlier fingerprints stand.
        """
        settings = {name: value for name, value in self.to_json().items() if LATER_SETTINGS.get(name, ...) != value}
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def _share_text(share: object) -> str:
    """Return a share from 0 to 1 as plain decimal digits."""
    exact = _decimal(share)
    if exact is None or not 0 <= exact <= 1:
        raise InvalidConfig("control_share", share, "a decimal number from 0 to 1, such as 0.1")
    return str(int(exact)) if exact.denominator == 1 else _decimal_text(share)


def _decimal(value: object) -> Fraction | None:
    text = str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    is_decimal = re.fullmatch(r"\d{0,40}\.?\d{1,40}(e-?\d{1,2})?", text, re.ASCII | re.IGNORECASE)
    return Fraction(text) if is_decimal else None


def _decimal_text(alpha: object) -> str:
    exact = _decimal(alpha)
    if exact is None or not 0 < exact < 1:
        raise InvalidConfig("alpha", alpha, "a decimal number between 0 and 1, such as 0.1")
    digits = 1
    while (exact * 10**digits).denominator != 1:
        digits += 1
    return f"0.{exact.numerator * 10**digits // exact.denominator:0{digits}d}"


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidConfig(name, value, "a number")
    try:
        return float(value)
    except ValueError:
        raise InvalidConfig(name, value, "a number") from None


def _check_whole(name: str, value: object, *, at_least: int, at_most: float = inf) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value <= at_most:
        to = "" if at_most == inf else f" to {at_most}"
        raise InvalidConfig(name, value, f"a whole number from {at_least}{to}")
