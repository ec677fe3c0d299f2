"""Answers: reading them out of completions, their exact forms, and whether two of them mean the same."""

from selector.answers.canonical import canonical_form, exact_verdict, infer_kind
from selector.answers.contract import (
    GRADER_VERSION,
    KINDS,
    AnswerPolicy,
    ReadAs,
    Verdict,
    VerdictStore,
    verdict_key,
)
from selector.answers.extraction import extract_answer, extract_probe_answer
from selector.answers.grading import AnswerClasses, Grader, group_answers
from selector.answers.stores import JsonlVerdictStore, MemoryVerdictStore

__all__ = [
    "GRADER_VERSION",
    "KINDS",
    "AnswerClasses",
    "AnswerPolicy",
    "Grader",
    "JsonlVerdictStore",
    "MemoryVerdictStore",
    "ReadAs",
    "Verdict",
    "VerdictStore",
    "canonical_form",
    "exact_verdict",
    "extract_answer",
    "extract_probe_answer",
    "group_answers",
    "infer_kind",
    "verdict_key",
]
