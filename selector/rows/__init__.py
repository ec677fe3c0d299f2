"""Files of questions, row by row: JSONL, JSON lists, CSV, Parquet. Every bad row is named, every good one kept."""

from selector.rows.columns import FIELDS, Columns, column_names, recognise_columns
from selector.rows.contract import Limits, QuestionRow, RejectedRow, Row
from selector.rows.questions import question_from_row
from selector.rows.reading import QuestionFile, read_questions, read_rows
from selector.rows.text import collapse, near_key, question_uid

__all__ = [
    "FIELDS",
    "Columns",
    "Limits",
    "QuestionFile",
    "QuestionRow",
    "RejectedRow",
    "Row",
    "collapse",
    "column_names",
    "near_key",
    "question_from_row",
    "question_uid",
    "read_questions",
    "read_rows",
    "recognise_columns",
]
