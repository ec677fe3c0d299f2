"""Three scripted model servers as one fleet: all well, one slow, one that dies and comes back; and one server alone.

Same work in one run: a chain and eight outcomes of every question. Every server answers 8 requests at once, each in 0.4
seconds (the slow one 8 times that), and is a process of its own; the dying one is killed with SIGKILL after a
third of the work and started again after two thirds. Prints one JSON line: seconds, requests by server, what was
answered twice or never, and how much faster than one server alone.

    python -m benchmarks.fleets [--questions 150]
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from selector.generation import Completion, CompletionKind, Prompt, Request, SamplingSettings, open_engine

ROOT = Path(__file__).resolve().parents[1]
SECONDS, SLOTS, SLOW = 0.4, 8, 8
SETTINGS = SamplingSettings(max_tokens=40, probe_max_tokens=16, temperature=1.0)


class Server:
    """A scripted server in a process of its own."""

    def __init__(self, directory: Path, seconds: float) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.log, self._seconds = directory / f"{self.port}.jsonl", seconds
        self.log.touch()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.selector.generation.fake_server", str(self.port), str(self.log)]
        self.process = subprocess.Popen([*command, str(self._seconds), str(SLOTS)], cwd=ROOT)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def listens(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def n_asked(self) -> int:
        return sum('"max_tokens": 1,' not in line for line in self.log.read_text().splitlines())


@contextmanager
def fleet(seconds: Sequence[float]) -> Iterator[list[Server]]:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        servers = [Server(Path(directory), each) for each in seconds]
        for server in servers:
            server.start()
            stack.callback(server.kill)
        while not all(server.listens() for server in servers):
            time.sleep(0.05)
        yield servers


def measure(seconds: Sequence[float], prompts: Sequence[Prompt], *, dies: bool = False) -> dict[str, object]:
    chains = [Request(prompt, CompletionKind.TRAJECTORY, 0) for prompt in prompts]
    outcomes = [Request(prompt, CompletionKind.OUTCOME, index) for prompt in prompts for index in range(8)]
    wanted = Counter((r.prompt.uid, r.kind, r.index) for r in [*chains, *outcomes])
    made: Counter[tuple[str, str, int]] = Counter()
    with fleet(seconds) as servers, ExitStack() as stack:
        urls = [server.url for server in servers]
        engine = stack.enter_context(closing(open_engine("openai", model="assay-tiny", base_url=urls, concurrency=64)))
        feed = stack.enter_context(closing(engine.feed(SETTINGS, 1)))
        started = time.perf_counter()
        feed.submit([*chains, *outcomes])
        events = [(len(wanted) // 3, servers[-1].kill), (2 * len(wanted) // 3, servers[-1].start)] if dies else []
        while feed.n_in_flight:
            made.update((c.uid, c.kind, c.index) for c in feed.results() if isinstance(c, Completion))
            while events and made.total() >= events[0][0]:
                events.pop(0)[1]()
        taken = time.perf_counter() - started
        asked = [server.n_asked() for server in servers]
    return {
        "seconds": round(taken, 2),
        "requests_by_server": asked,
        "answered_twice": sum((made - wanted).values()),
        "never_answered": sum((wanted - made).values()),
        "asked_again": sum(asked) - 2 * len(prompts),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=150)
    options = parser.parse_args()
    prompts = [Prompt(f"q{i}", f"Compute {i}+{i}.") for i in range(options.questions)]

    well, slow = [SECONDS] * 3, [SECONDS, SECONDS, SECONDS * SLOW]
    found = {
        "alone": measure(well[:1], prompts),
        "well": measure(well, prompts),
        "one_slow": measure(slow, prompts),
        "one_dying": measure(well, prompts, dies=True),
    }
    speed = {name: round(found["alone"]["seconds"] / result["seconds"], 2) for name, result in found.items()}
    print(json.dumps({"benchmark": "fleets", "questions": options.questions, **found, "times_as_fast_as_one": speed}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
