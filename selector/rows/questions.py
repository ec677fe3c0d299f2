"""A row and its columns into a question."""

from __future__ import annotations

from dataclasses import replace

from selector.answers import KINDS, extract_answer
from selector.rows.columns import Columns, look_up
from selector.rows.contract import QuestionRow, RejectedRow, Row
from selector.rows.damage import find_damage, repair_damage
from selector.rows.text import excerpt, is_blank, question_uid
from selector.rows.values import UnusableValue, as_choices, as_messages, as_text, question_of_chat

MAX_UID_CHARACTERS = 200
MAX_QUESTION_CHARACTERS = 100_000  # a long question has a few thousand
_WORKED_SOLUTION_CHARACTERS = 200  # of a column "solution", which may hold an answer or the way to it
_KIND_NAMES = {
    "integer": "number", "int": "number", "float": "number", "numeric": "number", "numerical": "number",
    "multiple_choice": "choice", "multiple choice": "choice", "mcq": "choice", "string": "text", "str": "text",
    "percentage": "percent", "money": "currency",
}  # fmt: skip


def question_from_row(
    row: Row, columns: Columns, *, need_answer: bool = False, repair: bool = False
) -> QuestionRow | RejectedRow:
    """Return the question in a row, or why there is none.

    Texts stay exactly as they are in the file; ``repair`` writes back the LaTeX commands that JSON ate (without it
    such a row is rejected and the message shows it repaired). With ``need_answer`` a row without a readable answer is
    rejected; otherwise an unreadable answer is left out with a warning. Columns without a use become ``metadata``.
    """
    try:
        return _question(row, columns, need_answer, repair)
    except UnusableValue as problem:
        rejected = RejectedRow(row.line, problem.code, str(problem), problem.found)
        return rejected.as_item() if row.is_item else rejected


def _question(row: Row, columns: Columns, need_answer: bool, repair: bool) -> QuestionRow:
    cell = look_up(row.data, columns.question)
    messages = as_messages(cell)
    after = ""
    used = {*columns.mapping().values(), *columns.ambiguous.get("answer", ())}  # no answer is ever metadata
    used |= {name.partition(".")[0] for name in used if name not in row.data}
    metadata = {name: value for name, value in row.data.items() if name not in used and value not in (None, "")}
    warnings: list[str] = []
    if messages is not None:
        text, after, context = question_of_chat(messages, columns.question)
        if context:
            metadata[columns.question] = context
            warnings.append(f"only the last user message of “{excerpt(columns.question, 40)}” is asked")
    else:
        text = as_text(cell, columns.question)
    if is_blank(text):
        raise UnusableValue(
            "empty_question",
            f"Column “{excerpt(columns.question)}” is empty in this row (it has: {_names(row)}). Write the question.",
        )
    if len(text) > MAX_QUESTION_CHARACTERS:
        raise UnusableValue(
            "question_too_long",
            f"The question has {len(text):,} characters; the most is {MAX_QUESTION_CHARACTERS:,}. Check that column "
            f"“{excerpt(columns.question)}” holds one question, or shorten it.",
            text[:200],
        )
    choices = as_choices(look_up(row.data, columns.choices), columns.choices) if columns.choices else ()
    text = _sound(text, columns.question, repair)
    choices = tuple(_sound(choice, columns.choices, repair) for choice in choices)
    try:
        answer = _answer(row, columns, after, need_answer, repair)
    except UnusableValue as problem:
        if need_answer:
            raise
        answer = ""
        warnings.append(f"the answer was left out: {problem}")
    kind = _kind(row, columns, bool(choices), warnings)
    uid = as_text(look_up(row.data, columns.uid), columns.uid).strip() if columns.uid else ""
    question = QuestionRow(
        row.line, uid, text, choices, answer, kind, metadata, uid_given=bool(uid), warnings=tuple(warnings)
    )
    if not uid:
        return replace(question, uid=question_uid(text, choices))
    if len(uid) > MAX_UID_CHARACTERS or not uid.isprintable():
        raise UnusableValue(
            "bad_uid",
            f"Column “{excerpt(columns.uid)}” is no usable id: {excerpt(uid, 60)}. "
            f"At most {MAX_UID_CHARACTERS} visible characters are wanted.",
            uid,
        )
    return question


def _answer(row: Row, columns: Columns, after: str, need_answer: bool, repair: bool) -> str:
    column = columns.answer
    value = as_text(look_up(row.data, column), column) if column else after
    if not value.strip():
        if not need_answer:
            return ""
        where = f"Column “{excerpt(column)}” is empty" if column else "No column holds an answer"
        raise UnusableValue(
            "missing_answer",
            f"{where} in this row (it has: {_names(row)}). A calibration question needs its answer; "
            "fill it in, or say which column holds it (on the command line: --map answer=COLUMN).",
        )
    value = _sound(value, column or columns.question, repair, is_maths=len(value) < 100)
    return _final_answer(value, column, is_worked=not column or "solution" in column.casefold())


def _final_answer(value: str, column: str, *, is_worked: bool) -> str:
    if "####" in value:
        answer = value.rpartition("####")[2].strip()
    elif "\\boxed" in value or (is_worked and len(value) > _WORKED_SOLUTION_CHARACTERS):
        answer = extract_answer(value)
    else:
        answer = value.strip()
    if not answer:
        raise UnusableValue(
            "answer_unread",
            f"No final answer could be read from column “{excerpt(column)}”: “…{excerpt(value[-60:])}”. Write it "
            "alone, in \\boxed{…}, or after ####.",
            value,
        )
    return answer


def _sound(text: str, column: str, repair: bool, *, is_maths: bool = False) -> str:
    damage = find_damage(text, is_maths=is_maths)
    if not damage:
        return text
    repaired = repair_damage(text, is_maths=is_maths)
    if repair:
        return repaired
    start = next(index for index, pair in enumerate(zip(text, repaired, strict=False)) if pair[0] != pair[1])
    around = excerpt(repaired[max(0, start - 20) : start + 40])
    raise UnusableValue(
        "latex_read_as_escape",
        f"Column “{excerpt(column)}” contains {damage} where a LaTeX command began: the file was written with one "
        f"backslash where JSON needs two. Repaired it reads “{around}”. Write \\\\ for each \\, or import with repair.",
        text[max(0, start - 20) : start + 40],
    )


def _kind(row: Row, columns: Columns, has_choices: bool, warnings: list[str]) -> str:
    value = look_up(row.data, columns.kind) if columns.kind else None
    name = value.strip().casefold() if isinstance(value, str) else ""
    kind = _KIND_NAMES.get(name, name)
    if kind in KINDS:
        return kind
    if value not in (None, ""):
        warnings.append(f"the kind {excerpt(value, 40)} is not known ({', '.join(KINDS)}) and was left out")
    return "choice" if has_choices else ""


def _names(row: Row) -> str:
    names = [excerpt(name, 40) for name in row.data]
    return ", ".join(names[:12]) + (" …" if len(names) > 12 else "") if names else "no columns"
