"""Engines that are installed apart from the project, started for a test and ended with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VLLM_PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
TCMALLOC = Path("/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4")
VLLM_START_SECONDS = 480  # 25 on a quiet machine
on_many_machines = pytest.mark.skipif(
    not os.environ.get("ASSAY_CLUSTERS"), reason="several engines take minutes to start: set ASSAY_CLUSTERS=1"
)


class EngineMissingError(Exception):
    """An engine that a test needs is not installed; the message says how to install it."""


@contextmanager
def vllm_server(
    model_dir: Path,
    *,
    name: str | None = None,
    max_model_len: int | None = None,
    started: Callable[[subprocess.Popen[bytes]], object] = lambda server: None,
) -> Iterator[str]:
    """Serve a model with the CPU build of vLLM and yield the base URL of its API.

    ``name`` is what the server calls the model (its directory, unless given); ``started`` is given its process, the
    leader of a group. The whole group is ended on the way out: vLLM's engine process outlives a parent that is merely
    killed.
    """
    if not (VLLM_PYTHON.parent.parent / ".installed").exists():
        raise EngineMissingError("vLLM is not installed in .venv-vllm: run .ci/vllm.sh")
    port = _free_port()
    command = [str(VLLM_PYTHON), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model_dir)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--enforce-eager", "--block-size", "32"]
    command += ["--dtype", "float32"]  # bfloat16 is ten times slower on a CPU without instructions for it
    command += ["--served-model-name", name] if name else []
    command += ["--max-model-len", str(max_model_len)] if max_model_len else []
    log = ROOT / "var" / f"vllm-{port}.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("wb") as output:
        server = subprocess.Popen(
            command, env=vllm_environment(), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    started(server)
    try:
        _wait_until_healthy(server, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        _end_group(server)
    log.unlink()


def vllm_environment() -> dict[str, str]:
    preload = [str(TCMALLOC)] if TCMALLOC.exists() else []
    preload.append(str(VLLM_PYTHON.parents[1] / "lib" / "libiomp5.so"))
    cache = ROOT / "var" / "vllm"
    return {
        **os.environ,
        "PATH": f"{VLLM_PYTHON.parent}{os.pathsep}{os.environ['PATH']}",
        "LD_PRELOAD": ":".join(path for path in preload if Path(path).exists()),
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_CPU_OMP_THREADS_BIND": "auto",
        "VLLM_CACHE_ROOT": str(cache),
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
    }


def _wait_until_healthy(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + VLLM_START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(0.5)
    tail = log.read_text(errors="replace")[-4000:]
    raise RuntimeError(f"vLLM is not healthy (exit status {server.poll()}); the end of {log}:\n{tail}")


def _end_group(server: subprocess.Popen[bytes]) -> None:
    for ending in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(server.pid, ending)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and _group_is_alive(server):
            time.sleep(0.1)


def _group_is_alive(server: subprocess.Popen[bytes]) -> bool:
    server.poll()  # reap the leader
    try:
        os.killpg(server.pid, 0)
    except ProcessLookupError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
