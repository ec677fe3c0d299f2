"""Rewards that the exported file reports while a training runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from selector import rewards
from selector.curriculum import RewardLog

SOURCE = Path(rewards.__file__)
SCRIPT = """
import sys; sys.path.insert(0, {folder!r})
import rewards
class State: global_step = 7
def boxed(answer): return "so \\\\boxed{{" + answer + "}}"
completions = [boxed("1"), boxed("2"), boxed("1"), boxed("1")]
rewards.accuracy_reward(completions, answer=["1"] * 4, uid=["a", "a", "b", "b"], trainer_state=State())
"""


class Collector(ThreadingHTTPServer):
    """Takes reports as the application does, after refusing the first ``n_failures`` with ``status``."""

    def __init__(self, n_failures: int = 0, status: int = 503) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.n_failures, self.status = n_failures, status
        self.events: list[dict[str, Any]] = []
        self.tokens: set[str] = set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api/v1/curricula/3/"


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.n_failures > 0:
            self.server.n_failures -= 1
            self.send_response(self.server.status)
            self.end_headers()
            return
        self.server.tokens.add(self.headers["Authorization"])
        self.server.events += body["events"]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"accepted": len(body["events"]), "repeated": 0, "rejected": []}).encode())

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def collector(request: pytest.FixtureRequest) -> Iterator[Collector]:
    with Collector(*getattr(request, "param", ())) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def train(tmp_path: Path, script: str = SCRIPT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a trainer of one step in a folder of its own, with nothing but the exported file."""
    (tmp_path / "rewards.py").write_text(SOURCE.read_text())
    return subprocess.run(
        [sys.executable, "-c", script.format(folder=str(tmp_path))],
        env={**os.environ, **environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


def outcomes(events: list[dict[str, Any]]) -> list[tuple[str, list[float], int]]:
    return sorted((event["uid"], event["rewards"], event["step"]) for event in events)


def test_a_log_has_each_questions_rewards_under_the_trainers_step(tmp_path: Path) -> None:
    path = tmp_path / "rewards.jsonl"

    train(tmp_path, ASSAY_REWARD_LOG=str(path))

    events, _ = RewardLog(path).read_from()
    assert sorted((event.uid, event.rewards, event.step) for event in events) == [
        ("a", (1.0, 0.0), 7),
        ("b", (1.0, 1.0), 7),
    ]


def test_a_torn_line_of_a_killed_writer_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "rewards.jsonl"
    path.write_text('{"id": "x", "uid": "a", "rew')

    train(tmp_path, ASSAY_REWARD_LOG=str(path))

    log = RewardLog(path)
    events, _ = log.read_from()
    assert len(events) == 2
    assert len(log.damaged) == 1


def test_without_the_environment_nothing_is_written(tmp_path: Path) -> None:
    train(tmp_path)

    assert {path.name for path in tmp_path.iterdir()} <= {"rewards.py", "__pycache__"}


def test_a_log_that_cannot_be_written_is_said_and_does_not_end_the_training(tmp_path: Path) -> None:
    done = train(tmp_path, ASSAY_REWARD_LOG=str(tmp_path / "no such folder" / "log"))

    assert "2 rewards are not in" in done.stderr


def test_reports_arrive_before_the_process_ends(collector: Collector, tmp_path: Path) -> None:
    train(tmp_path, ASSAY_REWARD_URL=collector.address, ASSAY_REWARD_TOKEN="assay_x")

    assert outcomes(collector.events) == [("a", [1.0, 0.0], 7), ("b", [1.0, 1.0], 7)]
    assert collector.tokens == {"Bearer assay_x"}


@pytest.mark.parametrize("collector", [(1,)], indirect=True)
def test_a_server_that_is_busy_is_asked_again(collector: Collector, tmp_path: Path) -> None:
    train(tmp_path, SCRIPT + "import time; time.sleep(2)\n", ASSAY_REWARD_URL=collector.address)

    assert len(collector.events) == 2


@pytest.mark.parametrize("collector", [(99, 503), (99, 404)], indirect=True)
def test_what_is_not_taken_is_kept_in_a_file(collector: Collector, tmp_path: Path) -> None:
    done = train(tmp_path, ASSAY_REWARD_URL=collector.address)

    (kept,) = tmp_path.glob("assay-rewards-not-sent-*.jsonl")
    events, _ = RewardLog(kept).read_from()
    assert {event.uid for event in events} == {"a", "b"}
    assert str(kept) in done.stderr
    assert str(collector.status) in done.stderr


def test_an_address_that_is_none_is_said(tmp_path: Path) -> None:
    done = train(tmp_path, ASSAY_REWARD_URL="file:///etc/passwd")

    assert "http://" in done.stderr


def test_forked_workers_report_too(collector: Collector, tmp_path: Path) -> None:
    forked = SCRIPT + (
        "import os\n"
        "child = os.fork()\n"
        "rewards.accuracy_reward(completions, answer=['1'] * 4, uid=list('cdef'), trainer_state=State())\n"
        "if child: os.waitpid(child, 0)\n"
    )

    train(tmp_path, forked, ASSAY_REWARD_URL=collector.address)

    uids = [event["uid"] for event in collector.events]
    assert sorted(set(uids)) == list("abcdef")
    assert uids.count("c") == 2


def test_verl_reports_training_rows_and_no_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    monkeypatch.setenv("ASSAY_REWARD_LOG", str(path))

    for info in ({"uid": "a", "split": "train", "step": 3}, {"uid": "b", "split": "test"}, {"split": "train"}, None):
        assert rewards.compute_score("assay", r"\boxed{4}", "4", info) == 1.0

    events, _ = RewardLog(path).read_from()
    assert [(event.uid, event.rewards, event.step) for event in events] == [("a", (1.0,), 3)]


def test_many_processes_write_one_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    (tmp_path / "rewards.py").write_text(SOURCE.read_text())
    endless = SCRIPT.format(folder=str(tmp_path)) + (
        "for i in range(10**6): rewards.compute_score('', boxed('1'), '1', {'uid': str(i)})\n"
    )
    environment = {**os.environ, "ASSAY_REWARD_LOG": str(path)}
    writers = [subprocess.Popen([sys.executable, "-c", endless], env=environment) for _ in range(3)]
    log = RewardLog(path)
    deadline = time.monotonic() + 60
    while (not path.exists() or path.stat().st_size < 200_000) and time.monotonic() < deadline:
        time.sleep(0.05)
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
        writer.wait()

    events, _ = log.read_from()

    assert len(events) > 1000
    assert len({event.id for event in events}) == len(events)
    assert log.damaged == []
