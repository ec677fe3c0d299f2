"""What an export is made of, and what it says about itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from labeling.errors import LabelingError

BOXED_INSTRUCTION = "Please reason step by step, and put your final answer within \\boxed{}."


class ExportRefused(LabelingError):
    """The dataset would not train as it should; ``details["problems"]`` names each question and its reason."""

    code = "export_refused"

    def __init__(self, problems: Mapping[str, str]) -> None:
        shown = "; ".join(f"{uid}: {problem}" for uid, problem in list(problems.items())[:5])
        if len(problems) > 5:
            shown = _("%(problems)s; and %(n)s more") % {"problems": shown, "n": len(problems) - 5}
        words = ngettext(
            "Nothing was exported, because %(n)s question would not train as they should. %(problems)s.",
            "Nothing was exported, because %(n)s questions would not train as they should. %(problems)s.",
            len(problems),
        )
        super().__init__(words % {"n": len(problems), "problems": shown}, problems=dict(problems))


@dataclass(frozen=True)
class Provenance:
    """Where a gold answer comes from. None: not known."""

    set_size: int | None = None
    pass_rate: float | None = None  # share of the model's readable rollouts that gave the gold answer
    n_annotations: int = 0
    adjudicated: bool = False
    # blind: people answered without the model's answers; after_reveal: somebody changed theirs once they had seen them;
    # shown_first: they stood beside the question from the start; "": not known
    blindness: str = ""


@dataclass(frozen=True)
class CanonicalRow:
    """One question with its gold answer, before any trainer's format. The gold is bare: no dollars, no box."""

    uid: str
    question: str
    answer: str
    answer_kind: str = ""
    choices: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    provenance: Provenance = Provenance()

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON types; from_json gives the same row back."""
        return {**asdict(self), "choices": list(self.choices), "metadata": dict(self.metadata)}

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> CanonicalRow:
        return CanonicalRow(
            **{**row, "choices": tuple(row["choices"]), "provenance": Provenance(**row["provenance"])},
        )


@dataclass(frozen=True)
class ExportSettings:
    """What one may choose about an export."""

    instruction: str = BOXED_INSTRUCTION  # asked after the question; "" where the model was probed without one
    data_source: str = "assay"  # verl: our own name, so that no built-in grader takes the rows
    split: str = "train"

    def prompt(self, row: CanonicalRow) -> str:
        """Return the question as the model is asked it: text, lettered choices, instruction."""
        choices = "\n".join(f"{chr(ord('A') + i)}. {choice}" for i, choice in enumerate(row.choices))
        question = f"{row.question}\n{choices}" if choices else row.question
        return f"{question}\n\n{self.instruction}" if self.instruction else question

    def messages(self, row: CanonicalRow) -> list[dict[str, str]]:
        return [{"role": "user", "content": self.prompt(row)}]


class GoldChecks(Protocol):
    """The trainers' own grader, as the reward file beside the data has it."""

    def check_golds(self, golds: Sequence[str], kinds: Sequence[str]) -> Mapping[int, str]:
        """Return why which golds, by position, do not earn their own reward or do not refuse a wrong answer."""
        ...

    def agree(self, gold: str, other: str, kind: str) -> bool:
        """Whether two golds of one question mean the same."""
        ...


@dataclass(frozen=True)
class Manifest:
    """What was exported: counts, files with their SHA-256, columns, settings, versions. Written as manifest.json."""

    format: str
    n_rows: int
    files: tuple[Mapping[str, Any], ...]  # name, bytes, sha256
    columns: Mapping[str, str]
    settings: Mapping[str, str]
    usage: str
    versions: Mapping[str, str]
    duplicates_left_out: Mapping[str, str]  # uid -> uid of the row that stands for it
    warnings: tuple[str, ...]
    provenance: Mapping[str, Any]

    def to_bytes(self) -> bytes:
        return (json.dumps(asdict(self), indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.to_bytes()).hexdigest()
