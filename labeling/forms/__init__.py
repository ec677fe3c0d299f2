"""What people fill in. A form checks its fields; the rules are the actions', whose refusals views show on the form."""

from labeling.forms.answers import (
    AnswerForm,
    DecisionForm,
    DraftForm,
    ExportForm,
    FlagForm,
    RevisionForm,
    UnanswerableForm,
)
from labeling.forms.curricula import CurriculumForm
from labeling.forms.people import InvitationForm, JoinForm, LoginForm, MemberRoleForm
from labeling.forms.pools import CalibrationFileForm, FileForm, GuidelineForm, MappingForm, PoolForm, VotesForm
from labeling.forms.reveals import RevealForm
from labeling.forms.runs import BudgetForm, PolicyModelForm, RoundForm, RoundStatusForm, RunForm, UnitsForm
from labeling.forms.tokens import TokenForm

__all__ = [
    "AnswerForm",
    "BudgetForm",
    "CalibrationFileForm",
    "CurriculumForm",
    "DecisionForm",
    "DraftForm",
    "ExportForm",
    "FileForm",
    "FlagForm",
    "GuidelineForm",
    "InvitationForm",
    "JoinForm",
    "LoginForm",
    "MappingForm",
    "MemberRoleForm",
    "PolicyModelForm",
    "PoolForm",
    "RevealForm",
    "RevisionForm",
    "RoundForm",
    "RoundStatusForm",
    "RunForm",
    "TokenForm",
    "UnanswerableForm",
    "UnitsForm",
    "VotesForm",
]
