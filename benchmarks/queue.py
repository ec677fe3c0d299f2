"""Time what an annotator waits for: from sending an answer until the next question is there.

    python -m benchmarks.queue [--questions 10000 100000] [--rate 20] [--seconds 30] [--annotators 16] [--overlap 2]

Makes a pool, selects some thousands of its questions into a round, serves the application with gunicorn as
docs/operations.md says, and has annotators answer over HTTP: from this machine, so that the load generator takes its
share of the cores.

A pair is one answer submitted and the next question claimed and shown: one POST, as the page sends it where JavaScript
is on; with ``--plain`` a POST that redirects and the GET of the whole page. Twice: with answers falling due at
``--rate`` a second whether or not the server keeps up (an answer that must wait for its annotator is late from the
moment it was due), and with no pause at all. Prints one JSON line for each, times in milliseconds.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parents[1]
N_PICKS = 4000
HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')
FORM = re.compile(r'<form id="answer-form".*?</form>', re.DOTALL)
ANSWERS = (str, lambda n: f"\\frac{{{n}}}{{7}}", lambda n: f"{n / 8:g}", lambda n: f"{n}\\sqrt{{2}}", str)


def environment(directory: Path, database_url: str) -> dict[str, str]:
    """Return the variables of a server in production."""
    return {
        **os.environ,
        "DATABASE_URL": database_url,
        "ASSAY_VAR": str(directory),
        "ASSAY_DEBUG": "0",
        "ASSAY_HTTPS": "0",
        "ASSAY_SECRET_KEY": "benchmark" * 6,
        "ASSAY_ALLOWED_HOSTS": "127.0.0.1",
        "PYTHONPATH": str(ROOT),
    }


def prepare(n_questions: int, n_annotators: int, overlap: int) -> None:
    """Fill the database of the environment; print the annotators' session keys and the round's number as JSON."""
    import django

    django.setup()
    from importlib import import_module

    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.core.management import call_command
    from django.db import transaction

    from labeling.actions.budgets import grant_budget
    from labeling.actions.rounds import open_round
    from labeling.models import Membership, Pick, Pool, Question, Role, SelectionRun, User

    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    with transaction.atomic():
        pool = Pool.objects.create(name="Benchmark", slug="benchmark")
        Question.objects.bulk_create(
            (
                Question(
                    pool=pool,
                    uid=f"q{n}",
                    fingerprint=f"{n:064x}",
                    text=f"A triangle has sides ${n}$, ${n + 3}$ and ${n + 5}$. {'Find its area. ' * (1 + n % 9)}",
                    answer_kind=("number", "expression", "")[n % 3],
                )
                for n in range(n_questions)
            ),
            batch_size=500,
        )
        n_picks = min(N_PICKS, n_questions)
        run = SelectionRun.objects.create(
            pool=pool, config={"strategy": "const"}, status="finished", generation_fingerprint="recorded"
        )
        questions = Question.objects.filter(pool=pool).order_by("fingerprint").values_list("pk", flat=True)
        picked = random.Random(0).sample(list(questions), n_picks)
        Pick.objects.bulk_create(
            Pick(run=run, question_id=pk, rank=rank, set_size=2, acquisition_score=2.0)
            for rank, pk in enumerate(picked, 1)
        )
        budget = grant_budget(pool=pool, name="Benchmark", units=n_picks * overlap + n_picks, by=None)
        round = open_round(run=run, budget=budget, overlap=overlap, by=None)
        sessions = []
        for number in range(n_annotators):
            user = User.objects.create(username=f"annotator{number}")
            user.set_unusable_password()
            user.save()
            Membership.objects.create(pool=pool, user=user, role=Role.ANNOTATOR)
            session = import_module(settings.SESSION_ENGINE).SessionStore()
            session[SESSION_KEY] = str(user.pk)
            session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
            session[HASH_SESSION_KEY] = user.get_session_auth_hash()
            session.save()
            sessions.append(session.session_key)
    print(json.dumps({"sessions": sessions, "round": round.pk}))


class Annotator:
    """One person with a browser, which keeps its connection, and the question in front of them."""

    def __init__(self, port: int, session: str, round_id: int, seed: int, *, plain: bool) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.token = secrets.token_hex(16)
        self.cookies = {"sessionid": session, "csrftoken": self.token}
        self.round_id, self.rng, self.plain = round_id, random.Random(seed), plain
        self.page = self.address = ""

    def start(self) -> None:
        """Take the first question."""
        self.claim(f"/rounds/{self.round_id}/annotate/", {})

    def pair(self) -> tuple[float, float]:
        """Submit an answer and see the next question; return the seconds of the one and of the other."""
        form = FORM.search(self.page)
        if form is None:
            raise RuntimeError(f"No form to answer on {self.address}: {self.page[:2000]}")
        fields = dict(HIDDEN.findall(form[0]))
        fields["answer"] = self.rng.choice(ANSWERS)(self.rng.randint(2, 4))
        return self.claim(f"{self.address}submit/", fields)

    def claim(self, action: str, fields: dict[str, str]) -> tuple[float, float]:
        """Send a form that leads to the next question; return the seconds of reply and page."""
        started = time.monotonic()
        response, text = self.ask("POST", action, fields)
        claimed = time.monotonic()
        address = response.headers.get("Location" if self.plain else "HX-Push-Url") or ""
        if response.status != (302 if self.plain else 200) or not address.startswith("/slots/"):
            raise RuntimeError(f"{action} answered {response.status} and led to {address!r}: {text[:2000]}")
        self.address, self.page = address, text
        if self.plain:
            response, self.page = self.ask("GET", address, None)
            if response.status != 200:
                raise RuntimeError(f"{address} answered {response.status}: {self.page[:2000]}")
        return claimed - started, time.monotonic() - claimed

    def ask(self, method: str, address: str, fields: dict[str, str] | None) -> tuple[http.client.HTTPResponse, str]:
        """Send a request, once more where the server had closed a connection that was idle, as browsers do."""
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        if not self.plain:
            headers |= {"HX-Request": "true", "HX-Current-URL": f"http://127.0.0.1{self.address}"}
        body = None
        if fields is not None:
            headers |= {"X-CSRFToken": self.token, "Content-Type": "application/x-www-form-urlencoded"}
            body = urlencode(fields)
        try:
            self.connection.request(method, address, body, headers)
            response = self.connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self.connection.close()
            self.connection.request(method, address, body, headers)
            response = self.connection.getresponse()
        text = response.read().decode()
        for cookie in response.headers.get_all("Set-Cookie", []):
            name, _, rest = cookie.partition("=")
            if name != "csrftoken":
                self.cookies[name] = rest.partition(";")[0]
        return response, text


class Load:
    """Annotators at work in threads of their own, and what they waited for."""

    def __init__(self, annotators: list[Annotator]) -> None:
        self.annotators = annotators
        self.waits: list[tuple[float, float, float]] = []  # from due to shown, of which submitting, showing
        self.errors: list[str] = []

    def run(self, due: Queue[float] | None, ends: float) -> float:
        """Work until nothing falls due any more, or until ``ends``; return the seconds it took."""
        started = time.monotonic()
        threads = [threading.Thread(target=self._work, args=(each, due, ends)) for each in self.annotators]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.monotonic() - started

    def _work(self, annotator: Annotator, due: Queue[float] | None, ends: float) -> None:
        try:
            while due is not None or time.monotonic() < ends:
                at = time.monotonic()
                if due is not None:
                    at = due.get_nowait()
                    time.sleep(max(0.0, at - time.monotonic()))
                submitting, showing = annotator.pair()
                self.waits.append((time.monotonic() - at, submitting, showing))
        except Empty:
            return
        except Exception as error:
            self.errors.append(f"{type(error).__name__}: {error}")


def open_loop(rate: float, seconds: float) -> Queue[float]:
    """Return when answers fall due: at random, ``rate`` a second."""
    rng, due, at = random.Random(1), Queue[float](), time.monotonic() + 0.2
    for _ in range(int(rate * seconds)):
        at += rng.expovariate(rate)
        due.put(at)
    return due


@contextmanager
def served(environ: dict[str, str], workers: int, threads: int) -> Iterator[tuple[int, int]]:
    """Serve the application with gunicorn on a free port of the loopback."""
    from labeling.demo.serving import free_port

    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "labeling.wsgi", "--bind", f"127.0.0.1:{port}"]
    command += ["--workers", str(workers), "--threads", str(threads), "--log-level", "warning"]
    server = subprocess.Popen(command, cwd=ROOT, env=environ)
    try:
        for _ in range(300):
            try:
                asking = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                asking.request("GET", "/login/")
                asking.getresponse().read()
                break
            except OSError:
                time.sleep(0.2)
        else:
            raise RuntimeError("The server did not come up.")
        yield port, server.pid
    finally:
        server.terminate()
        server.wait(timeout=30)


def cpu_seconds(server: int) -> float:
    """Return the processor time that the server's processes have taken, without those that compare answers."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        if server in (int(fields[1]), int(stat.parent.name)):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def percentiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    picked = {"p50": len(ordered) // 2, "p99": int(len(ordered) * 0.99), "max": len(ordered) - 1}
    return {name: round(ordered[place] * 1000, 1) for name, place in picked.items()}


def measure(n_questions: int, options: argparse.Namespace) -> None:
    """Print one line for each way of working, on a pool of so many questions."""
    directory = Path(tempfile.mkdtemp(prefix="assay-queue-"))
    environ = environment(directory, options.database_url or f"sqlite:///{directory / 'queue.sqlite3'}")
    try:
        size = [str(n_questions), str(options.annotators), str(options.overlap)]
        prepared = subprocess.run(
            [sys.executable, "-m", "benchmarks.queue", "--prepare", *size],
            cwd=ROOT,
            env={**environ, "DJANGO_SETTINGS_MODULE": "labeling.settings"},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        made = json.loads(prepared.stdout.splitlines()[-1])
        with served(environ, options.workers, options.threads) as (port, server):
            annotators = [
                Annotator(port, session, made["round"], seed, plain=options.plain)
                for seed, session in enumerate(made["sessions"])
            ]
            for annotator in annotators:
                annotator.start()
            Load(annotators).run(None, time.monotonic() + options.warm_seconds)
            for mode in ("open loop", "no think time"):
                load, cpu = Load(annotators), cpu_seconds(server)
                if mode == "open loop":
                    took = load.run(open_loop(options.rate, options.seconds), 0)
                else:
                    took = load.run(None, time.monotonic() + options.seconds)
                totals, submits, shows = zip(*load.waits, strict=True)
                result = {
                    "benchmark": "queue",
                    "database": environ["DATABASE_URL"].partition(":")[0],
                    "questions": n_questions,
                    "annotators": options.annotators,
                    "overlap": options.overlap,
                    "workers": options.workers,
                    "threads": options.threads,
                    "page": "plain" if options.plain else "htmx",
                    "mode": mode,
                    "asked_pairs_per_second": options.rate if mode == "open loop" else None,
                    "pairs": len(totals),
                    "pairs_per_second": round(len(totals) / took, 1),
                    "server_cpu_ms_per_pair": round((cpu_seconds(server) - cpu) * 1000 / len(totals), 1),
                    "submit_claim_and_show_ms": percentiles(list(totals)),
                    "post_ms": percentiles(list(submits)),
                    "get_ms": percentiles(list(shows)) if options.plain else None,
                    "errors": load.errors,
                    "load_average": round(os.getloadavg()[0], 1),
                }
                print(json.dumps(result), flush=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--rate", type=float, default=20.0, help="answers due in a second, in the open loop")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each way of working")
    parser.add_argument("--warm-seconds", type=float, default=3.0)
    parser.add_argument("--annotators", type=int, default=16)
    parser.add_argument("--overlap", type=int, default=2)
    parser.add_argument("--workers", type=int, default=3, help="gunicorn's processes")
    parser.add_argument("--threads", type=int, default=1, help="threads of each")
    parser.add_argument("--plain", action="store_true", help="as browsers without JavaScript")
    parser.add_argument("--database-url", default="", help="an empty database; a new SQLite file where not given")
    parser.add_argument("--prepare", type=int, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.prepare:
        prepare(*options.prepare)
        return
    for n_questions in options.questions:
        measure(n_questions, options)


if __name__ == "__main__":
    main()
