"""A question's answers are its votes: reading them from a file, and coding them as arrays of whole numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from selector.errors import InvalidRow, UnusableFile

if TYPE_CHECKING:
    from selector.answers import AnswerPolicy, Grader

VoteSource = Literal["all", "probes", "outcomes"]
UNDRAWN = -2  # the code of an answer that nobody has asked for: not unread, nothing is known of it
TOKEN_COUNTS = ("prompt_tokens", "trajectory_tokens")


@dataclass(frozen=True)
class QuestionVotes:
    """The recorded answers of one question; "" stands for a completion in which no answer could be read.

    Probes are in chain order, outcomes by index. ``truth`` is known for calibration questions only; None there means
    that no answer given is right. ``fingerprint`` names the generation settings, where the file says.
    """

    uid: str
    probe_answers: tuple[str, ...]
    outcome_answers: tuple[str, ...]
    truth: str | None = None
    kind: str | None = None
    cluster: int | None = None
    text: str | None = None
    choices: tuple[str, ...] = ()
    prompt_tokens: int | None = None
    trajectory_tokens: int | None = None
    outcome_tokens: tuple[int, ...] | None = None
    fingerprint: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return one line of a votes file; what is not known is left out."""
        row: dict[str, object] = {"id": self.uid}
        for name in ("text", "kind", "cluster", "truth", "prompt_tokens", "trajectory_tokens", "fingerprint"):
            if (value := getattr(self, name)) is not None:
                row[name] = value
        if self.choices:
            row["choices"] = list(self.choices)
        row["probe_answers"] = list(self.probe_answers)
        row["outcome_answers"] = list(self.outcome_answers)
        if self.outcome_tokens is not None:
            row["outcome_tokens"] = list(self.outcome_tokens)
        return row

    @classmethod
    def from_json(cls, row: Mapping[str, object]) -> QuestionVotes:
        """Read one line of a votes file. Numbers among the answers become strings.

        Raises ValueError with a sentence that says what was found and what was wanted.
        """
        uid = row.get("id", row.get("uid"))
        if isinstance(uid, bool) or not isinstance(uid, str | int) or uid == "":
            raise ValueError(f"id is {_shown(uid)}; a text is wanted")
        tokens = row.get("outcome_tokens")
        if tokens is not None and not (isinstance(tokens, list) and all(_is_count(count) for count in tokens)):
            raise ValueError(f"outcome_tokens is {_shown(tokens)}; a list of whole numbers is wanted")
        counts = {name: row.get(name) for name in TOKEN_COUNTS}
        for name, count in counts.items():
            if count is not None and not _is_count(count):
                raise ValueError(f"{name} is {_shown(count)}; a whole number is wanted")
        cluster = row.get("cluster")
        if cluster is not None and (isinstance(cluster, bool) or not isinstance(cluster, int)):
            raise ValueError(f"cluster is {_shown(cluster)}; a whole number is wanted")
        texts = {}
        for name in ("text", "kind", "fingerprint"):
            texts[name] = row.get(name)
            if texts[name] is not None and not isinstance(texts[name], str):
                raise ValueError(f"{name} is {_shown(texts[name])}; a text is wanted")
        truth = row.get("truth")
        return cls(
            uid=str(uid),
            probe_answers=_answers(row, "probe_answers"),
            outcome_answers=_answers(row, "outcome_answers"),
            truth=None if truth is None else _answer("truth", truth),
            cluster=cluster,
            choices=_answers(row, "choices") if "choices" in row else (),
            outcome_tokens=None if tokens is None else tuple(tokens),
            **counts,  # type: ignore[arg-type]
            **texts,  # type: ignore[arg-type]
        )


def _answers(row: Mapping[str, object], name: str) -> tuple[str, ...]:
    if name not in row:
        raise ValueError(f"{name} is missing; a list of answers is wanted")
    found = row[name]
    if not isinstance(found, list):
        raise ValueError(f"{name} is {_shown(found)}; a list of answers is wanted")
    return tuple(_answer(f"{name}[{i}]", answer) for i, answer in enumerate(found))


def _answer(name: str, found: object) -> str:
    if found is None:
        return ""
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        raise ValueError(f"{name} is {_shown(found)}; a text or a number is wanted")
    if isinstance(found, str) and ("\f" in found or "\b" in found):
        what = "form feed" if "\f" in found else "backspace"
        raise ValueError(f"{name} is {_shown(found)}, with a {what} where LaTeX began; JSON needs \\\\ for each \\")
    return str(found)


def _is_count(found: object) -> bool:
    return isinstance(found, int) and not isinstance(found, bool) and found >= 0


def _shown(found: object) -> str:
    text = json.dumps(found, ensure_ascii=True, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def read_votes(path: str | Path, *, calibration: bool = False) -> list[QuestionVotes]:
    """Read a votes file (JSON Lines). With ``calibration`` every row must say ``truth`` (null: no answer is right).

    Every row has as many answers of each kind as the first, and no id comes twice. Raises UnusableFile, naming every
    row that cannot be used.
    """
    from selector.rows import Limits, Row, read_rows

    votes: list[QuestionVotes] = []
    line_of: dict[str, int] = {}
    rejected: list[InvalidRow] = []
    for row in read_rows(path, format="jsonl", limits=Limits(max_line_bytes=16 << 20)):
        if not isinstance(row, Row):
            rejected.append(InvalidRow(path=str(path), line=row.line, row_code=row.code, message=row.message))
            continue
        try:
            question = QuestionVotes.from_json(row.data)
            _check_fits(question, row.data, votes[:1], line_of, calibration=calibration)
        except ValueError as error:
            message = f"{error}."
            rejected.append(InvalidRow(path=str(path), line=row.line, row_code="invalid_votes", message=message))
            continue
        line_of[question.uid] = row.line
        votes.append(question)
    if rejected:
        raise UnusableFile(rejected)
    return votes


def _check_fits(
    question: QuestionVotes,
    data: Mapping[str, object],
    first: Sequence[QuestionVotes],
    line_of: Mapping[str, int],
    *,
    calibration: bool,
) -> None:
    """Raise ValueError where a row does not go with the rows before it."""
    if calibration and "truth" not in data:
        raise ValueError("truth is missing; a calibration question needs its right answer")
    if question.uid in line_of:
        raise ValueError(f"id {_shown(question.uid)} was already on line {line_of[question.uid]}")
    for name in ("probe_answers", "outcome_answers"):
        n_found, n_wanted = len(getattr(question, name)), len(getattr(first[0] if first else question, name))
        if n_found != n_wanted:
            raise ValueError(f"{name} has {n_found} answers where the first row has {n_wanted}")


@dataclass(frozen=True)
class VoteTable:
    """The votes of N questions as whole numbers.

    ``codes`` [N, n] holds each answer's class within its question, probes first, then outcomes; -1 is unread. Where
    outcomes are left to a race, those not drawn are -2 and only the race may read the table.
    ``truth_codes`` [N] holds the class of the truth, -1 where it was never generated or is not known.
    ``representatives[i][c]`` is the answer that opened class c of question i.
    """

    uids: tuple[str, ...]
    codes: NDArray[np.int16]
    truth_codes: NDArray[np.int16]
    representatives: tuple[tuple[str, ...], ...]
    n_probes: int

    def __len__(self) -> int:
        return len(self.uids)

    def rows(self, rows: Sequence[int]) -> VoteTable:
        """Return the table of some questions only."""
        return replace(
            self,
            uids=tuple(self.uids[row] for row in rows),
            codes=self.codes[rows],
            truth_codes=self.truth_codes[rows],
            representatives=tuple(self.representatives[row] for row in rows),
        )

    def of(self, source: VoteSource) -> VoteTable:
        """Return the table with only the answers of one kind; classes keep their numbers."""
        if source == "all":
            return self
        probes = source == "probes"
        codes = self.codes[:, : self.n_probes] if probes else self.codes[:, self.n_probes :]
        return replace(self, codes=codes, n_probes=self.n_probes if probes else 0)


def build_table(
    votes: Sequence[QuestionVotes],
    *,
    grouping: str = "equivalence",
    policy: AnswerPolicy | None = None,
    grader: Grader | None = None,
    n_outcomes: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> VoteTable:
    """Group each question's answers and code them; outcomes short of ``n_outcomes`` are not drawn.

    ``equivalence`` follows the rule of ``selector.answers.group_answers``: probes first, then outcomes by index, each
    joining the first class whose representative it is equivalent to; the truth joins last, by the same rule. A
    question without a kind is grouped by exact forms, without the grader. ``exact_string`` compares characters and
    numbers the classes in string order, as the published code does.
    """
    if n_outcomes is None:
        n_outcomes = len(votes[0].outcome_answers) if votes else 0
    n = len(votes[0].probe_answers) + n_outcomes if votes else 0
    codes = np.full((len(votes), n), UNDRAWN, np.int16)
    truth_codes = np.full(len(votes), -1, np.int16)
    representatives = []
    for row, question in enumerate(votes):
        answers = [*question.probe_answers, *question.outcome_answers]
        if grouping == "exact_string":
            classes = {answer: code for code, answer in enumerate(sorted({answer for answer in answers if answer}))}
        else:
            classes = _equivalence_classes(question, answers, policy, grader)
        codes[row, : len(answers)] = [classes.get(answer, -1) for answer in answers]
        seen = set(codes[row].tolist())
        if question.truth and (truth_code := classes.get(question.truth, -1)) in seen:
            truth_codes[row] = truth_code
        first_of: dict[int, str] = {}
        for answer, code in classes.items():
            if code in seen:
                first_of.setdefault(code, answer)
        representatives.append(tuple(first_of[code] for code in sorted(first_of) if code >= 0))
        progress(row + 1, len(votes))
    return VoteTable(
        uids=tuple(question.uid for question in votes),
        codes=codes,
        truth_codes=truth_codes,
        representatives=tuple(representatives),
        n_probes=len(votes[0].probe_answers) if votes else 0,
    )


def _equivalence_classes(
    question: QuestionVotes, answers: Sequence[str], policy: AnswerPolicy | None, grader: Grader | None
) -> dict[str, int]:
    from selector.answers import AnswerPolicy, group_answers

    distinct = list(dict.fromkeys(answer for answer in answers if answer))
    if question.truth and question.truth not in distinct:
        distinct.append(question.truth)
    codes = group_answers(
        distinct, kind=question.kind, policy=policy or AnswerPolicy(), grader=grader if question.kind else None
    )
    return dict(zip(distinct, codes, strict=True))


def canonical_order(uids: Sequence[str]) -> NDArray[np.intp]:
    """Return the order of the questions by sha256 of their uid: the same whatever order they arrived in."""
    return _canonical_order(tuple(uids)).copy()


@lru_cache(maxsize=8)  # strategies, clusters and resampling ask again and again for the same pool
def _canonical_order(uids: tuple[str, ...]) -> NDArray[np.intp]:
    digests = bytearray()  # a million of them as objects of their own would take four times the room
    for uid in uids:
        digests += hashlib.sha256(uid.encode()).digest()
    keys = np.frombuffer(digests, ">u8").reshape(-1, 4)
    return np.lexsort(keys.T[::-1]).astype(np.intp, copy=False)
