"""The application as it is served to people: gunicorn and a worker, in processes of their own."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

from labeling.errors import LabelingError

SECONDS_TO_START = 60


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def served(port: int, *, with_worker: bool) -> Iterator[str]:
    """Serve the application on loopback and yield its address; everything is stopped at the end.

    Raises LabelingError when the port is taken or the server does not come up.
    """
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise LabelingError(
                f"Port {port} is taken by another program. Stop it, or choose another port with --port.",
                code="port_taken",
            )
    python, processes = sys.executable, []
    commands = [
        [
            python,
            "-m",
            "gunicorn",
            "labeling.wsgi",
            "--bind",
            f"127.0.0.1:{port}",
            "--threads",
            "4",
            "--log-level",
            "warning",
        ]
    ]
    if with_worker:
        commands.append([python, "manage.py", "worker"])
    try:
        for command in commands:
            processes.append(subprocess.Popen(command, start_new_session=True))
        address = f"http://127.0.0.1:{port}"
        _wait_until_up(f"{address}/login/", processes[0])
        yield address
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in processes:
            process.wait(timeout=30)


def _wait_until_up(address: str, server: "subprocess.Popen[bytes]") -> None:
    started = time.monotonic()
    while time.monotonic() - started < SECONDS_TO_START:
        if server.poll() is not None:
            raise LabelingError(f"The server stopped at once with exit status {server.returncode}.", code="server_died")
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5):  # noqa: S310 (our own address)
            return
        time.sleep(0.2)
    raise LabelingError(f"The server did not answer within {SECONDS_TO_START} seconds.", code="server_silent")
