"""Every error the engine raises: one family, a stable code each, attributes instead of text to parse."""


class SelectorError(Exception):
    """Something the engine was asked to do cannot be done as asked."""

    code = "selector_error"


class InvalidConfig(SelectorError):
    """A setting has a value that means nothing here."""

    code = "invalid_config"

    def __init__(self, setting: str, found: object, wanted: str) -> None:
        self.setting, self.found, self.wanted = setting, found, wanted
        super().__init__(f"{setting} is {found!r}; it must be {wanted}.")


class NoClusters(SelectorError):
    """A strategy wants clusters, and nothing says which questions are alike."""

    code = "no_clusters"

    def __init__(self) -> None:
        super().__init__(
            "The votes have no field 'cluster', and not every row has a 'text' to find clusters by. Add one of them to "
            "each row, give the questions' embeddings (--embeddings X.npy, a row for each line), or choose a strategy "
            "without clusters (--strategy v2)."
        )


class CalibrationSetTooSmall(SelectorError):
    """The calibration set has too few questions for the wanted alpha."""

    code = "calibration_set_too_small"

    def __init__(self, *, n: int, alpha: str, n_wanted: int) -> None:
        self.n, self.alpha, self.n_wanted = n, alpha, n_wanted
        super().__init__(
            f"The calibration set has {n} questions; alpha = {alpha} needs at least {n_wanted}. "
            "Add calibration questions or raise alpha."
        )


class PoolTooSmall(SelectorError):
    """The pool has fewer eligible questions than the budget asks for."""

    code = "pool_too_small"

    def __init__(self, *, n_eligible: int, n_questions: int, budget: int) -> None:
        self.n_eligible, self.n_questions, self.budget = n_eligible, n_questions, budget
        super().__init__(
            f"The pool has {n_questions} questions, {n_eligible} of them eligible; the budget asks for {budget}. "
            "Lower the budget or add questions."
        )


class MissingEvidence(SelectorError):
    """A strategy was run without something it cannot do without."""

    code = "missing_evidence"

    def __init__(self, *, strategy: str, need: str, how_to_get: str) -> None:
        self.strategy, self.need, self.how_to_get = strategy, need, how_to_get
        super().__init__(
            f"Strategy {strategy!r} needs {need.replace('_', ' ')}, and there is none here. "
            f"Give {how_to_get}, or take another strategy."
        )


class CannotRace(SelectorError):
    """A strategy needs every answer, or answers that a race would not save."""

    code = "cannot_race"

    def __init__(self, *, strategy: str, why: str) -> None:
        self.strategy, self.why = strategy, why
        super().__init__(
            f"Strategy {strategy!r} cannot be raced: {why}. Draw all answers and leave racing off (--race off), "
            "or take a strategy that can be raced: const, v2 or v5."
        )


class FingerprintMismatch(SelectorError):
    """Pool and calibration answers were generated with different settings, so the threshold would mean nothing."""

    code = "fingerprint_mismatch"

    def __init__(self, *, pool: str, calibration: str, differences: str = "") -> None:
        self.pool, self.calibration, self.differences = pool, calibration, differences
        detail = f" ({differences})" if differences else ""
        super().__init__(
            f"The pool was generated with settings {pool}, the calibration set with {calibration}{detail}. "
            "Generate both with the same model and settings."
        )


class InvalidRow(SelectorError):
    """A row of an input file cannot be used."""

    code = "invalid_row"

    def __init__(self, *, path: str, line: int, row_code: str, message: str) -> None:
        self.path, self.line, self.row_code, self.message = path, line, row_code, message
        super().__init__(f"{path}, line {line}: {message}")


class EngineError(SelectorError):
    """A model could not be reached, loaded or asked."""

    code = "engine_error"


class ModelNotFound(EngineError):
    """There is no such model where it was looked for."""

    code = "model_not_found"

    def __init__(self, *, model: str, where: str, available: str = "", reason: str = "") -> None:
        self.model, self.where, self.available, self.reason = model, where, available, reason
        hint = f" Available there: {available}." if available else ""
        because = f" ({reason.rstrip('. ')})" if reason else ""
        super().__init__(f"No model {model!r} at {where}{because}.{hint} Check the name and the revision.")


class TokenizerNotFound(EngineError):
    """The tokenizer of a served model is not on this machine, so that prompts cannot be made of its tokens."""

    code = "tokenizer_not_found"

    def __init__(self, *, tokenizer: str, model: str) -> None:
        self.tokenizer, self.model = tokenizer, model
        super().__init__(
            f"No tokenizer for the served model {model!r} at {tokenizer!r} on this machine. "
            "Give a directory or a hub name that has it, with --tokenizer."
        )


class EngineUnavailable(EngineError):
    """The model server did not answer, or kept failing after every retry."""

    code = "engine_unavailable"

    def __init__(self, *, where: str, reason: str) -> None:
        self.where, self.reason = where, reason
        super().__init__(
            f"The model server at {where} did not answer: {reason}. "
            "Start it or check the address, then try again; everything answered so far is kept."
        )


class InternalsUnavailable(EngineError):
    """A model does not show, or not in usable numbers, what happens inside it."""

    code = "internals_unavailable"

    def __init__(self, *, what: str, where: str, reason: str) -> None:
        self.what, self.where, self.reason = what, where, reason
        super().__init__(f"No {what} from {where}: {reason}.")


class MissingCompletions(SelectorError):
    """Votes were asked for before everything they are read from was generated."""

    code = "missing_completions"

    def __init__(self, *, uid: str, kind: str, n_missing: int) -> None:
        self.uid, self.kind, self.n_missing = uid, kind, n_missing
        super().__init__(f"Question {uid!r} lacks {n_missing} {kind} completion(s); finish generating first.")


class Stopped(SelectorError):
    """The work was asked to stop; what was finished is kept."""

    code = "stopped"


class UnusableFile(SelectorError):
    """Rows of a votes file cannot be used; recorded answers with holes would make a threshold that means nothing."""

    code = "unusable_file"

    def __init__(self, rows: "list[InvalidRow]") -> None:
        self.rows = rows
        shown = [str(row) for row in rows[:20]]
        more = f"\n... and {len(rows) - 20} more rows." if len(rows) > 20 else ""
        super().__init__("\n".join(shown) + more)


class StateInUse(SelectorError):
    """Another process is working in the same state directory."""

    code = "state_in_use"

    def __init__(self, *, path: str) -> None:
        self.path = path
        super().__init__(f"Another assay process is working in {path}. Wait for it, or choose another --state.")


class StateMismatch(SelectorError):
    """A state directory holds answers that were generated with other settings."""

    code = "state_mismatch"

    def __init__(self, *, path: str, differences: str) -> None:
        self.path, self.differences = path, differences
        super().__init__(
            f"The answers in {path} were generated with other settings ({differences}). "
            "Use the same settings again, or another --state."
        )


class UnknownQuestion(SelectorError):
    """A reward or a prior names a question that the curriculum does not have."""

    code = "unknown_question"

    def __init__(self, *, uid: str, n_questions: int) -> None:
        self.uid, self.n_questions = uid, n_questions
        super().__init__(
            f"No question {uid!r} among the {n_questions} of this curriculum. "
            "Report rewards under the uids the curriculum was made with."
        )


class CurriculumMismatch(SelectorError):
    """A saved state belongs to another curriculum, or to one with other settings."""

    code = "curriculum_mismatch"

    def __init__(self, *, differences: str) -> None:
        self.differences = differences
        super().__init__(
            f"The saved state does not fit this curriculum ({differences}). "
            "Make the curriculum with the settings the state was saved with, or start without the state."
        )


class RewardLogChanged(SelectorError):
    """A reward log is no longer the file that was read before: it was cut or replaced."""

    code = "reward_log_changed"

    def __init__(self, *, path: str, offset: int, found: str) -> None:
        self.path, self.offset, self.found = path, offset, found
        super().__init__(
            f"{path} was read up to byte {offset} before, and now {found}: it was cut or replaced. "
            "Put the old file back, or delete the checkpoint to count this file from its beginning."
        )


class NoRewardsHeard(SelectorError):
    """A training goes on, and its curriculum hears of no reward: it would be steered by nothing."""

    code = "no_rewards_heard"

    def __init__(self, *, path: str, n_proposed: int, n_unknown: int) -> None:
        self.path, self.n_proposed, self.n_unknown = path, n_proposed, n_unknown
        found = f"only {n_unknown} events of other questions" if n_unknown else "no event"
        super().__init__(
            f"After {n_proposed} proposals {path} holds {found}. Set ASSAY_REWARD_LOG={path} for the processes that "
            "run the reward function, and keep the column uid in the training rows."
        )


class CurriculumUnreachable(SelectorError):
    """The application that steers a training did not answer, or refused."""

    code = "curriculum_unreachable"

    def __init__(self, *, url: str, problem: str) -> None:
        self.url, self.problem = url, problem
        super().__init__(f"{url} did not give what was asked for: {problem}")
