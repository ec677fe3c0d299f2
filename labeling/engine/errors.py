"""The engine's errors in the application's words."""

from collections.abc import Iterator
from contextlib import contextmanager

from labeling.errors import EngineFailure
from selector.errors import SelectorError


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise EngineFailure, with the engine's code and message, for a SelectorError from inside."""
    try:
        yield
    except SelectorError as error:
        raise EngineFailure(str(error), code=error.code) from error
