from labeling.models.datasets import DatasetSnapshot, Export
from labeling.models.evidence import (
    Embedding,
    GenerationSettings,
    PolicyModel,
    RecordedVotes,
    StoredCompletion,
    StoredVerdict,
)
from labeling.models.people import Invitation, Membership, Role, User
from labeling.models.pools import Guideline, Pool
from labeling.models.questions import AnswerKind, CalibrationItem, CalibrationSet, ImportBatch, Question
from labeling.models.records import AuditEvent
from labeling.models.rounds import (
    Adjudication,
    Annotation,
    Budget,
    BudgetUnit,
    Draft,
    GoldAnswer,
    Round,
    Skip,
    Slot,
    UnanswerableReason,
)
from labeling.models.runs import Pick, QuestionScore, SelectionRun

__all__ = [
    "Adjudication",
    "Annotation",
    "AnswerKind",
    "AuditEvent",
    "Budget",
    "BudgetUnit",
    "CalibrationItem",
    "CalibrationSet",
    "DatasetSnapshot",
    "Draft",
    "Embedding",
    "Export",
    "GenerationSettings",
    "GoldAnswer",
    "Guideline",
    "ImportBatch",
    "Invitation",
    "Membership",
    "Pick",
    "PolicyModel",
    "Pool",
    "Question",
    "QuestionScore",
    "RecordedVotes",
    "Role",
    "Round",
    "SelectionRun",
    "Skip",
    "Slot",
    "StoredCompletion",
    "StoredVerdict",
    "UnanswerableReason",
    "User",
]
