"""What is accepted as an answer, a reason or a note."""

from django.utils.translation import gettext as _

from labeling.engine.answers import ReadAs, policy_of, read_as
from labeling.errors import LabelingError
from labeling.models import CalibrationItem, Pool, Question, UnanswerableReason

MOST_ANSWER_CHARACTERS = 10_000
MOST_NOTE_CHARACTERS = 20_000


def check_answer(question: Question | CalibrationItem, pool: Pool, answer: str, *, confirm_unreadable: bool) -> ReadAs:
    """Return how a trainer's grader reads the answer.

    Raises LabelingError: answer_empty, answer_too_long, text_invalid; answer_unreadable unless confirmed.
    """
    if not any(letter.isprintable() and not letter.isspace() for letter in answer):
        raise LabelingError(
            _("The answer is empty. Type the final answer, skip the question, or mark it as unanswerable."),
            code="answer_empty",
        )
    if len(answer) > MOST_ANSWER_CHARACTERS:
        raise LabelingError(
            _(
                "The answer has %(n)s characters; the most is %(most)s. Give the final "
                "answer only; put the reasoning into the note."
            )
            % {"n": f"{len(answer):,}", "most": f"{MOST_ANSWER_CHARACTERS:,}"},
            code="answer_too_long",
        )
    _check_storable(answer)
    read = read_as(answer.strip(), kind=question.answer_kind, policy=policy_of(pool))
    if not read.readable and not confirm_unreadable:
        raise LabelingError(
            " ".join(
                [
                    _("No trainer's grader can read this answer, so a model could never be rewarded for it."),
                    *read.warnings,
                    _("Write it another way, or confirm that you mean it as it stands."),
                ]
            ),
            code="answer_unreadable",
            warnings=list(read.warnings),
        )
    return read


def check_reason(reason: str) -> UnanswerableReason:
    """Return the reason, or refuse one that does not exist."""
    if reason not in UnanswerableReason.values:
        raise LabelingError(
            _("Say why the question cannot be answered: choose one of the reasons."), code="unanswerable_reason_invalid"
        )
    return UnanswerableReason(reason)


def check_note(note: str) -> str:
    """Return the note as it is stored."""
    if len(note) > MOST_NOTE_CHARACTERS:
        raise LabelingError(
            _("The note has %(n)s characters; the most is %(most)s.")
            % {"n": f"{len(note):,}", "most": f"{MOST_NOTE_CHARACTERS:,}"},
            code="note_too_long",
        )
    _check_storable(note)
    return note.strip()


def _check_storable(text: str) -> None:
    for letter in text:
        if letter == "\x00" or "\ud800" <= letter <= "\udfff":
            raise LabelingError(
                _("The text contains a character that cannot be stored (U+%(code)s). Delete it and try again.")
                % {"code": f"{ord(letter):04X}"},
                code="text_invalid",
            )
