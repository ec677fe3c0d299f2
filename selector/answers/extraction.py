"""Read the final answer out of what a model wrote."""

from __future__ import annotations

import re

_BOX = re.compile(r"\\boxed\s*\{")
_FRAMED = re.compile(r"\\fbox\s*\{")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_BETWEEN_PARTS = re.compile(r"[\s$,;.]*(?:\\text\{\s*)?(?:and|or)?(?:\s*\})?[\s$,;.]*|\\[\])(\[\s,;]*")
_STATED = re.compile(
    r"####[ \t]{0,9}|\banswer[*_]{0,3}(?:\s{1,9}is|\s{0,9}[:=])(?:\s{0,9}[:=])?[*_\s]{0,20}"
    r"|\bfinal\s{1,9}answer[*_]{0,3}[ \t]{0,9}\n[*_\s]{0,20}",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")
_DELIMITED = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)


def balanced_end(text: str, start: int) -> int | None:
    """Return the position of the brace that closes the one opened just before ``start``; None when nothing does.

    Escaped braces do not count: ``\\{`` is a set, not a group.
    """
    depth = 1
    for brace in _BRACE.finditer(text, start):
        if brace[0] == "{":
            depth += 1
        elif brace[0] == "}":
            depth -= 1
            if depth == 0:
                return brace.start()
    return None


def extract_answer(completion_text: str) -> str:
    """Return the final answer of a completion, or "" when none can be read.

    Only what follows the last ``</think>`` counts (an unclosed ``<think>`` leaves nothing). The answer is the content
    of the last ``\\boxed{}``; boxes that stand side by side (``\\boxed{1}, \\boxed{2}``) are parts of one answer, so
    that listing candidates never wins. A last box that is never closed was cut off and reads as "". Without any box:
    ``\\fbox{}``, else what the last "#### X", "The answer is X" or "Final answer: X" states.
    """
    text = _after_thinking(completion_text)
    for command in (_BOX, _FRAMED):
        boxes = list(command.finditer(text))
        if boxes:
            return _boxed(text, boxes)
    return _stated(text)


def extract_probe_answer(continuation: str) -> str:
    """Return the answer in the text that follows a prefilled ``\\boxed{``: cut at the balanced brace.

    "" when the brace is never closed or nothing stands before it.
    """
    end = balanced_end(continuation, 0)
    return "" if end is None else continuation[:end].strip()


def _after_thinking(text: str) -> str:
    tail = text.rpartition("</think>")[2]
    return "" if "<think>" in tail else tail


def _boxed(text: str, boxes: list[re.Match[str]]) -> str:
    last = boxes[-1]
    end = balanced_end(text, last.end())
    if end is None:
        return ""
    parts = [text[last.end() : end].strip()]
    start = last.start()
    for box in reversed(boxes[:-1]):
        end = balanced_end(text, box.end())
        if end is None or end >= start or not _stand_together(text[end + 1 : start]):
            break
        parts.append(text[box.end() : end].strip())
        start = box.start()
    distinct = list(dict.fromkeys(reversed(parts)))
    return ", ".join(distinct) if all(distinct) else ""


def _stand_together(between: str) -> bool:
    return len(between) <= 40 and _BETWEEN_PARTS.fullmatch(between) is not None


def _stated(text: str) -> str:
    may_state = "####" in text or "answer" in text.lower()
    statements = list(_STATED.finditer(text)) if may_state else []
    if not statements:
        return ""
    rest = text[statements[-1].end() :].lstrip()
    if delimited := _DELIMITED.match(rest):
        return next(group for group in delimited.groups() if group is not None).strip()
    end = _SENTENCE_END.search(rest)
    sentence = rest[: end.start()] if end else rest
    return sentence.strip().strip("*_`").strip()
