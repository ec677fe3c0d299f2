from labeling.models.annotations import Adjudication, Annotation, GoldAnswer, UnanswerableReason, Withdrawal
from labeling.models.answering import Flag, GuidelineReading
from labeling.models.budgets import Budget, BudgetUnit
from labeling.models.comparisons import Comparison
from labeling.models.curricula import Curriculum, Proposal, RewardEvent
from labeling.models.datasets import DatasetSnapshot, Export
from labeling.models.evidence import (
    Embedding,
    GenerationSettings,
    PolicyModel,
    RecordedVotes,
    RolloutScores,
    StoredClustering,
    StoredCompletion,
    StoredInternals,
    StoredVerdict,
)
from labeling.models.people import Invitation, Membership, Role, User
from labeling.models.pools import Guideline, Pool
from labeling.models.quality import CheckGrade, MeaningVerdict, PracticeAnswer
from labeling.models.questions import AnswerKind, CalibrationItem, CalibrationSet, ImportBatch, Question
from labeling.models.records import AuditEvent
from labeling.models.reveals import ModelAnswers, Reveal, RevealDecision
from labeling.models.rounds import Draft, Replacement, Round, Skip, Slot
from labeling.models.runs import Pick, QuestionScore, SelectionRun
from labeling.models.tokens import AnsweredRequest, ApiToken

__all__ = [
    "Adjudication",
    "Annotation",
    "AnswerKind",
    "AnsweredRequest",
    "ApiToken",
    "AuditEvent",
    "Budget",
    "BudgetUnit",
    "CalibrationItem",
    "CalibrationSet",
    "CheckGrade",
    "Comparison",
    "Curriculum",
    "DatasetSnapshot",
    "Draft",
    "Embedding",
    "Export",
    "Flag",
    "GenerationSettings",
    "GoldAnswer",
    "Guideline",
    "GuidelineReading",
    "ImportBatch",
    "Invitation",
    "MeaningVerdict",
    "Membership",
    "ModelAnswers",
    "Pick",
    "PolicyModel",
    "Pool",
    "PracticeAnswer",
    "Proposal",
    "Question",
    "QuestionScore",
    "RecordedVotes",
    "Replacement",
    "Reveal",
    "RevealDecision",
    "RewardEvent",
    "Role",
    "RolloutScores",
    "Round",
    "SelectionRun",
    "Skip",
    "Slot",
    "StoredClustering",
    "StoredCompletion",
    "StoredInternals",
    "StoredVerdict",
    "UnanswerableReason",
    "User",
    "Withdrawal",
]
