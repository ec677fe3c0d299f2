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
SECONDS_TO_STOP = 30


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def served(port: int, *, with_worker: bool) -> Iterator[str]:
    """Serve the application on loopback and yield its address; everything is stopped at the end.

    A SIGTERM or SIGHUP (a closed terminal) is an end too: it raises SystemExit inside. Raises LabelingError when the
    port is taken or the server does not come up.
    """
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise LabelingError(
                f"Port {port} is taken by another program. Stop it, or choose another port with --port.",
                code="port_taken",
            )
    python, processes = sys.executable, list[subprocess.Popen[bytes]]()
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
    with contextlib.ExitStack() as at_the_end:
        at_the_end.enter_context(_exit_on_signals())
        at_the_end.callback(_stop, processes)
        for command in commands:
            processes.append(subprocess.Popen(command, start_new_session=True))
        address = f"http://127.0.0.1:{port}"
        _wait_until_up(f"{address}/login/", processes[0])
        yield address


@contextlib.contextmanager
def _exit_on_signals() -> Iterator[None]:
    def leave(number: int, _frame: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)  # what is being stopped is stopped once
        raise SystemExit(128 + number)

    before = {each: signal.signal(each, leave) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _stop(processes: "list[subprocess.Popen[bytes]]") -> None:
    """Ask the processes and their children to end, and end those that do not."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    for process in processes:
        try:
            process.wait(timeout=SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_until_up(address: str, server: "subprocess.Popen[bytes]") -> None:
    started = time.monotonic()
    while time.monotonic() - started < SECONDS_TO_START:
        if server.poll() is not None:
            raise LabelingError(f"The server stopped at once with exit status {server.returncode}.", code="server_died")
        with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5):  # noqa: S310 (our own address)
            return
        time.sleep(0.2)
    raise LabelingError(f"The server did not answer within {SECONDS_TO_START} seconds.", code="server_silent")
