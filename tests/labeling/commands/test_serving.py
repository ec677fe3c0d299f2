"""What the demo starts ends with it, however it ends."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.journeys.command_line import CommandLine

ROOT = Path(__file__).resolve().parents[3]
SERVE = """
import threading, django
django.setup()
from labeling.demo.serving import free_port, served
port = free_port()
with served(port, with_worker=True):
    print(port, flush=True)
    threading.Event().wait()
"""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_server_and_the_worker_and_frees_the_port(tmp_path, end):
    site = CommandLine(tmp_path)
    site.migrate()
    environment = {**site.environment, "DJANGO_SETTINGS_MODULE": "labeling.settings"}
    demo = subprocess.Popen([sys.executable, "-c", SERVE], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    port = int(demo.stdout.readline())
    started = psutil.Process(demo.pid).children(recursive=True)
    assert len(started) >= 2

    demo.send_signal(end)

    assert demo.wait(timeout=60) == 128 + end
    demo.stdout.close()
    _, left = psutil.wait_procs(started, timeout=20)  # the grader's process ends by itself, at the end of its input
    assert not [each for each in left if each.status() != psutil.STATUS_ZOMBIE]
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
