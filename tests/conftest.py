"""Fixtures shared by all tests. Sockets outside loopback are closed; engines that are installed apart may be absent."""

import os
from pathlib import Path

import pytest
from pytest_socket import socket_allow_hosts

ROOT = Path(__file__).resolve().parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def skip_or_fail(reason: str) -> None:
    """Skip for want of an engine; fail instead where the environment promises that all are there."""
    if os.environ.get("ASSAY_REQUIRE_ENGINES") == "1":
        pytest.fail(f"ASSAY_REQUIRE_ENGINES=1, but {reason}")
    pytest.skip(reason)


@pytest.fixture(autouse=True)
def _no_network_outside_loopback():
    socket_allow_hosts(["127.0.0.1", "localhost", "::1"], allow_unix_socket=True)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public pools and fixtures beside the project; tests that need it skip without it."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no shared data at {SHARED_DATA}")
    return SHARED_DATA
