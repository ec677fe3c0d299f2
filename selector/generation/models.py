"""Which model a name means, and which weights it has."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import selector.tiny
from selector.errors import ModelNotFound
from selector.generation.prompts import INSTRUCTION

if TYPE_CHECKING:
    from transformers import GenerationConfig

TINY_NAME = "assay-tiny"
WEIGHT_SUFFIXES = {".safetensors", ".bin", ".gguf", ".pt"}


def resolve_model(model: str, instruction: str | None = None) -> tuple[str, str]:
    """Return where the model's files are (or its name on a hub) and the instruction it is asked with.

    `assay-tiny` is the model shipped with this project; it was trained on bare questions and is asked no more.
    """
    if model == TINY_NAME:
        from selector.tiny import MODEL_DIR

        model = str(MODEL_DIR)
    if instruction is None:
        is_tiny = Path(model).resolve().is_relative_to(Path(selector.tiny.__file__).parent)
        instruction = "" if is_tiny else INSTRUCTION
    return model, instruction


@contextmanager
def named_if_missing(model: str, path: str) -> Iterator[None]:
    """Raise ModelNotFound for what transformers raises where a model's files are not there or not usable."""
    try:
        yield
    except (OSError, ValueError) as error:
        where = "this directory" if Path(path).is_dir() else "this machine or the model hub"
        is_path = path.startswith(("/", ".", "~")) and not Path(path).exists()
        reason = "there is no such directory" if is_path else str(error).splitlines()[0]
        raise ModelNotFound(model=model, where=where, reason=reason) from error


def model_name(model: str) -> str:
    """Return the name that goes into a fingerprint: of a path its last part, so that moving a model changes nothing."""
    return Path(model).name if model.startswith(("/", ".", "~")) or Path(model).is_dir() else model


def hash_of_weights(directory: Path) -> str:
    """Return a hash of the names and contents of a directory's weight files."""
    digest = hashlib.sha256()
    for path in sorted(directory.iterdir()):
        if path.suffix in WEIGHT_SUFFIXES:
            with path.open("rb") as file:
                digest.update(path.name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def load_generation_config(path: str, revision: str | None = None) -> GenerationConfig:
    """Return what the model's authors say about generating with it; an empty one where they say nothing."""
    from transformers import GenerationConfig

    try:
        return GenerationConfig.from_pretrained(path, revision=revision or "main")
    except OSError:
        return GenerationConfig()


def recommended_sampling(config: GenerationConfig) -> Mapping[str, float]:
    found = {name: getattr(config, name, None) for name in ("temperature", "top_p")}
    return {name: float(value) for name, value in found.items() if value is not None}


def end_ids(config: GenerationConfig) -> list[int]:
    """Return the tokens that end a completion."""
    ids = config.eos_token_id
    return [] if ids is None else [ids] if isinstance(ids, int) else list(ids)
