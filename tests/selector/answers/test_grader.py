"""The grader's workers: killed in time, started again, safe under threads, forks and unguarded scripts."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from selector.answers import AnswerPolicy, Grader, JsonlVerdictStore, MemoryVerdictStore, Verdict
from selector.answers.prover import Prover, WorkerFailed
from selector.answers.syntax import parse
from selector.answers.tokens import tokenize
from selector.answers.worker import MEMORY_BYTES

ROOT = Path(__file__).resolve().parents[3]
NEEDS_PROOF = ("\\sin 2x", "2\\sin x\\cos x")


def tree(text):
    return parse(tokenize(text))


def worker_pids():
    listing = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=True
    )
    return {int(line.split()[0]) for line in listing.stdout.splitlines() if "selector.answers.worker" in line}


def test_nothing_is_started_for_what_arithmetic_decides():
    before = worker_pids()
    with Grader() as grader:
        assert grader.compare("1/2", "0.5") is Verdict.EQUIVALENT
        assert grader.compare("x+y", "x-y") is Verdict.DIFFERENT
        assert worker_pids() == before


def test_a_proof_needs_a_worker_that_is_gone_after_closing():
    before = worker_pids()
    with Grader(timeout_seconds=20) as grader:
        assert grader.compare(*NEEDS_PROOF) is Verdict.EQUIVALENT
        assert len(worker_pids() - before) == 1
    assert worker_pids() == before


def test_a_proof_that_takes_too_long_is_undecided_and_stays_so():
    store = MemoryVerdictStore()
    with Grader(timeout_seconds=0.001, verdicts=store) as hurried:
        hurried.warm()
        assert hurried.compare(*NEEDS_PROOF) is Verdict.UNDECIDED

    with Grader(timeout_seconds=20, verdicts=store) as patient:
        assert patient.compare(*NEEDS_PROOF) is Verdict.UNDECIDED
    with Grader(timeout_seconds=20) as without_the_store:
        assert without_the_store.compare(*NEEDS_PROOF) is Verdict.EQUIVALENT


def test_a_store_is_asked_by_policy_and_kind():
    asked = []

    class Store(MemoryVerdictStore):
        def get(self, key):
            asked.append(key)
            return super().get(key)

    with Grader(timeout_seconds=20, verdicts=Store()) as grader:
        grader.compare(*NEEDS_PROOF)
        grader.compare(*reversed(NEEDS_PROOF))
        grader.compare(*NEEDS_PROOF, kind="expression")
        grader.compare(*NEEDS_PROOF, policy=AnswerPolicy(case="keep"))

    assert asked[0] == asked[1]
    assert len(set(asked)) == 3


def test_a_killed_worker_is_replaced():
    before = worker_pids()
    with Grader(timeout_seconds=20) as grader:
        assert grader.compare(*NEEDS_PROOF) is Verdict.EQUIVALENT
        (pid,) = worker_pids() - before
        os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)

        grader.compare("\\cos 2x", "1-2\\sin^2 x")
        assert grader.compare("\\cos 2y", "1-2\\sin^2 y") is Verdict.EQUIVALENT


def test_a_worker_that_is_stuck_is_killed_in_time():
    prover = Prover(timeout_seconds=1, n_workers=1)
    prover.warm()
    start = time.monotonic()
    try:
        assert prover.prove(tree("(x+y+z+1)^{90}-(x+y+z+1)^{90}+x"), tree("(x+1+y+z)^{91}/(x+y+z+1)"), 0.5) is None
        assert time.monotonic() - start < 5
        assert prover.prove(tree("\\sin^2 x"), tree("1-\\cos^2 x"), 30) is True
    finally:
        prover.close()


def test_a_worker_limits_its_own_memory():
    before = worker_pids()
    with Grader() as grader:
        grader.warm()
        (pid,) = worker_pids() - before
        limits = Path(f"/proc/{pid}/limits").read_text().splitlines()

    (limit,) = [line.split()[3] for line in limits if line.startswith("Max address space")]
    assert int(limit) == MEMORY_BYTES


def test_threads_share_a_grader():
    verdicts = []
    with Grader(timeout_seconds=20, n_workers=1) as grader:

        def compare(name):
            verdicts.append(grader.compare(f"\\sin 2{name}", f"2\\sin {name}\\cos {name}"))

        threads = [threading.Thread(target=compare, args=(name,)) for name in "xyzabc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert verdicts == [Verdict.EQUIVALENT] * 6


def test_math_verify_judges_what_the_grammar_does_not_know():
    with Grader(timeout_seconds=30) as grader:
        assert grader.compare("\\sum_{k=1}^{n} k", "\\sum_{j=1}^{n} j") is Verdict.EQUIVALENT
        assert grader.compare("\\sum_{k=1}^{n} k", "\\sum_{j=1}^{n} j^2") is not Verdict.EQUIVALENT
        assert grader.compare("\\int_0^1 x dx", "\\int_0^1 x^2 dx") is not Verdict.EQUIVALENT


def test_a_script_without_a_main_guard_runs_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "print('started')\n"
        "from selector.answers import Grader\n"
        "grader = Grader(timeout_seconds=30)\n"
        f"print(grader.compare({NEEDS_PROOF[0]!r}, {NEEDS_PROOF[1]!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=90, cwd=ROOT, check=True
    )

    assert done.stdout.split() == ["started", "equivalent"]
    assert done.stderr == ""


def test_workers_end_with_a_killed_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import os, signal\n"
        "from selector.answers import Grader\n"
        "grader = Grader()\n"
        "grader.warm()\n"
        "print(grader._prover._idle[0].process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=90, cwd=ROOT, check=False
    )
    pid = int(killed.stdout)

    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_worker_that_cannot_start_decides_nothing_and_nothing_is_kept(monkeypatch):
    store = MemoryVerdictStore()
    with Grader(verdicts=store) as grader:
        monkeypatch.setattr(sys, "executable", "/bin/false")
        assert grader.compare(*NEEDS_PROOF) is Verdict.UNDECIDED
        with pytest.raises(WorkerFailed):
            grader.warm()
        monkeypatch.undo()
        grader._timeout_seconds = 20
        assert grader.compare(*NEEDS_PROOF) is Verdict.EQUIVALENT


def test_importing_answers_loads_nothing_heavy():
    code = (
        "import sys, selector.answers;"
        "print([name for name in ('torch', 'sympy', 'math_verify', 'numpy', 'django') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)

    assert done.stdout.strip() == "[]"


def test_a_verdict_file_survives_a_torn_last_line(tmp_path):
    path = tmp_path / "state" / "verdicts.jsonl"
    store = JsonlVerdictStore(path)
    store.put("a", Verdict.EQUIVALENT)
    store.put("a", Verdict.DIFFERENT)
    store.put("b", Verdict.UNDECIDED)
    store.close()
    with path.open("ab") as file:
        file.write(b'{"key": "c", "verd')

    again = JsonlVerdictStore(path)
    again.put("d", Verdict.DIFFERENT)
    again.close()

    last = JsonlVerdictStore(path)
    assert [last.get(key) for key in "abcd"] == [Verdict.EQUIVALENT, Verdict.UNDECIDED, None, Verdict.DIFFERENT]
    last.close()
