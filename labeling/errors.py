"""Every error that is raised on purpose: one family, a stable code each, a message for whoever is at the screen."""


class LabelingError(Exception):
    """Something could not be done as asked; the message says what was found, what was wanted and what to do."""

    code = "labeling_error"
    status = 400

    def __init__(self, message: str, *, code: str | None = None, **details: object) -> None:
        self.message, self.details = message, details
        if code is not None:
            self.code = code
        super().__init__(message)


class NotAllowed(LabelingError):
    """The person's role does not include this."""

    code = "not_allowed"
    status = 403


class Conflict(LabelingError):
    """The thing has changed since it was read, or its state forbids this."""

    code = "conflict"
    status = 409


class EngineFailure(LabelingError):
    """The engine refused; its message is passed on."""

    code = "engine_failure"
