"""Triage in `assay rank`: which questions to label as probes, and the route of each once their answers are known."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from selector.answers import Grader
from selector.errors import InvalidRow, MissingEvidence, UnusableFile
from selector.pipeline import SelectionResult
from selector.rows import Row, read_rows
from selector.strategies.contract import HOW_TO_GET, Need
from selector.triage import Triage, correctness, majority, probe_ranks, ranking, triage
from selector.votes import QuestionVotes, build_table

Labels = Mapping[str, str]


def read_labels(path: str) -> dict[str, str]:
    """Read the answers to probe questions: rows with ``id`` (or ``uid``) and ``answer``, JSONL, CSV or Parquet.

    Raises UnusableFile, naming every row that has not both, and ids that come twice with different answers.
    """
    labels: dict[str, str] = {}
    rejected: list[InvalidRow] = []
    for row in read_rows(path):
        if not isinstance(row, Row):
            rejected.append(InvalidRow(path=path, line=row.line, row_code=row.code, message=row.message))
            continue
        uid, answer = (_text(row.data.get(name)) for name in ("id" if "id" in row.data else "uid", "answer"))
        if not uid or not answer:
            missing = "id" if not uid else "answer"
            message = f"{missing} is missing; a triage label needs the question's id and its answer."
            rejected.append(InvalidRow(path=path, line=row.line, row_code="invalid_label", message=message))
        elif labels.setdefault(uid, answer) != answer:
            message = f"Question {uid} already has the answer {labels[uid]!r}; here it is {answer!r}. Keep one."
            rejected.append(InvalidRow(path=path, line=row.line, row_code="two_answers", message=message))
    if rejected or not labels:
        empty = InvalidRow(path=path, line=1, row_code="empty", message="The file has no labels.")
        raise UnusableFile(rejected or [empty])
    return labels


def _text(value: object) -> str:
    return "" if value is None or isinstance(value, bool) else str(value).strip()


def probe_lines(result: SelectionResult, pool: Sequence[QuestionVotes], n_probes: int) -> Iterable[str]:
    """Yield a JSON line for each question to label: id, question (where known), rank (0 is least uncertain), score."""
    votes = {question.uid: question for question in pool}
    rows = _routed(result)
    uids = [result.scores.table.uids[row] for row in rows]
    order = ranking(result.acquisition_scores[rows], uids)
    for rank in probe_ranks(len(uids), n_probes).tolist():
        row = int(order[rank])
        question = votes[uids[row]]
        line: dict[str, object] = {"id": question.uid}
        if question.text is not None:
            line |= {"question": question.text, **({"choices": list(question.choices)} if question.choices else {})}
        line |= {"rank": rank, "acquisition_score": float(result.acquisition_scores[rows[row]])}
        yield json.dumps(line, ensure_ascii=False) + "\n"


def check_has_outcomes(strategy: str, pool: Sequence[QuestionVotes]) -> None:
    """Raise MissingEvidence where there are no rollouts to hold the labels against."""
    if not pool or not pool[0].outcome_answers:
        raise MissingEvidence(strategy=f"{strategy} (triage)", need=Need.VOTES, how_to_get=HOW_TO_GET[Need.VOTES])


def routes(
    result: SelectionResult, pool: Sequence[QuestionVotes], labels: Labels, grader: Grader | None, grouping: str
) -> tuple[Triage, dict[str, dict[str, object]]]:
    """Return the triage, and for each question that has a route: ``route``, ``majority_answer``, ``majority_share``.

    Questions that may not be picked for another reason than a label have no route. Raises InvalidConfig with too few
    labels.
    """
    table = result.scores.table
    rows = _routed(result)
    uids = [table.uids[row] for row in rows]
    votes = {question.uid: question for question in pool}
    known = build_table(
        [replace(votes[uid], truth=labels[uid]) for uid in uids if uid in labels], grouping=grouping, grader=grader
    )
    known_majority = majority(known).codes
    is_wrong = (known_majority != known.truth_codes) | (known_majority < 0)
    by_majority = majority(build_table([votes[uid] for uid in uids], grouping=grouping, grader=grader))
    found = triage(
        result.acquisition_scores[rows],
        uids,
        probed_correctness=dict(zip(known.uids, correctness(known).tolist(), strict=True)),
        probed_majority_wrong=dict(zip(known.uids, is_wrong.tolist(), strict=True)),
        has_majority=by_majority.codes >= 0,
    )
    told: dict[str, dict[str, object]] = {
        uid: {"route": str(route), "majority_answer": answer or None, "majority_share": float(share)}
        for uid, route, answer, share in zip(uids, found.routes, by_majority.answers, by_majority.shares, strict=True)
    }
    return found, told


def _routed(result: SelectionResult) -> list[int]:
    return np.flatnonzero([reason in ("", "already_labeled") for reason in result.ineligible]).tolist()
