"""What happens inside a model while it answers: hidden states, attention and token probabilities of one greedy chain.

Only an engine that runs the model in this process (``transformers``) can show them. torch waits until reading begins.
"""

from selector.internals.contract import (
    READER_VERSION,
    Internals,
    InternalsStore,
    JsonlInternalsStore,
    concatenate,
    required,
)

__all__ = ["READER_VERSION", "Internals", "InternalsStore", "JsonlInternalsStore", "concatenate", "required"]
