"""One model on several servers, asked over real connections: who is asked what, and what becomes of the work of one
that is slow, fails, or is killed."""

import json
import logging
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from selector.errors import EngineUnavailable, InvalidConfig
from selector.generation import Completion, CompletionKind, Prompt, Request, SamplingSettings, SetAside, open_engine
from selector.generation.addresses import server_urls
from selector.generation.fleet import LONGEST_PAUSE_SECONDS, pause_seconds
from selector.tiny import MODEL_DIR
from tests.selector.generation.fake_server import DROPPED, MODEL, completion_body, fake_server

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = SamplingSettings(max_tokens=40, probe_max_tokens=16, temperature=1.0)
PATIENCE_SECONDS = 60
OUTCOME, TRAJECTORY, PROBE = CompletionKind
BROKEN = (500, {"error": {"message": "assertion failed"}})


def prompts(n, start=0):
    return [Prompt(uid=f"q{i}", text=f"Compute {i}+{i}.") for i in range(start, start + n)]


def trajectories(n, start=0):
    return [Request(prompt, TRAJECTORY, 0) for prompt in prompts(n, start)]


def outcomes(n_questions, n):
    return [Request(prompt, OUTCOME, index) for prompt in prompts(n_questions) for index in range(n)]


def open_fleet(*urls, **options):
    return closing(open_engine("openai", model=MODEL, base_url=urls, **options))


def keys(results):
    """Count completions by what they are; every count is 1 when nothing was answered twice."""
    return Counter((c.uid, c.kind, c.index) for c in results if isinstance(c, Completion))


def once(requests):
    return Counter((r.prompt.uid, r.kind, r.index) for r in requests)


def wait_until(holds, what):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"waited too long until {what}"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def question_of():
    tokenizer = AutoTokenizer.from_pretrained(MODEL_DIR)

    def uid(body):
        """Name the question of a request, or None for what is asked only to see whether the server answers."""
        if body["max_tokens"] == 1:
            return None
        text = re.sub(r"\s", "", tokenizer.decode(body["prompt"][0]))
        return "q" + re.search(r"Compute(\d+)\+", text)[1]

    return uid


class Replicas:
    """Servers in threads, and the questions that each was asked, one entry per request."""

    def __init__(self, stack, question_of):
        self._stack, self._question_of, self._lock = stack, question_of, threading.Lock()
        self.asked = defaultdict(list)

    def add(self, name, answer=lambda uid, body: (200, completion_body(body)), **options):
        """Start a server and return its address; ``answer`` hears None for a question where only a token is asked."""

        def serve(path, body):
            uid = self._question_of(body)
            if uid is not None:
                with self._lock:
                    self.asked[name].append(uid)
            return answer(uid, body)

        return self._stack.enter_context(fake_server(serve, **options))

    def homes(self):
        homes = defaultdict(set)
        for name, uids in self.asked.items():
            for uid in uids:
                homes[uid].add(name)
        return homes


@pytest.fixture
def replicas(question_of):
    with ExitStack() as stack:
        yield Replicas(stack, question_of)


def test_a_question_meets_one_replica_and_they_share_the_work(replicas):
    def steady(uid, body):  # so that a busy machine makes none look slow, which would lose its questions to the others
        time.sleep(0.5 if uid else 0)
        return 200, completion_body(body)

    with open_fleet(*(replicas.add(name, steady) for name in "abc")) as engine:
        chains = list(engine.complete(trajectories(15), SETTINGS, 1))
        chain_of = {chain.uid: chain.token_ids for chain in chains}
        probes = [Request(prompt, PROBE, cut, chain_of[prompt.uid]) for prompt in prompts(15) for cut in (1, 2)]
        made = chains + list(engine.complete([*probes, *outcomes(15, 2)], SETTINGS, 1))

    assert keys(made) == once([*trajectories(15), *probes, *outcomes(15, 2)])
    assert [len(names) for names in replicas.homes().values()] == [1] * 15
    assert len(replicas.asked) > 1
    assert sum(map(len, replicas.asked.values())) == 15 * 3


def test_a_slow_replica_holds_nothing_back_but_what_it_was_trusted_with(replicas):
    n_questions, trust = 60, 4
    others_are_done, was_asked = threading.Event(), []

    def slow(uid, body):
        if uid is not None:
            was_asked.append(others_are_done.wait(PATIENCE_SECONDS))
        return 200, completion_body(body)

    def quick(uid, body):
        if sum(len(replicas.asked[name]) for name in "ab") >= n_questions - trust:
            others_are_done.set()
        return 200, completion_body(body)

    urls = [replicas.add("a", quick), replicas.add("b", quick), replicas.add("slow", slow)]
    with open_fleet(*urls, concurrency=trust) as engine:
        made = list(engine.complete(trajectories(n_questions), SETTINGS, 1))

    assert keys(made) == once(trajectories(n_questions))
    assert len(replicas.asked["slow"]) == trust
    assert was_asked == [True] * trust  # it answered only after the others had done all else
    assert [len(names) for names in replicas.homes().values()] == [1] * n_questions


def test_a_replica_at_half_the_pace_is_trusted_with_less_and_less(replicas):
    def slow(uid, body):
        time.sleep(1 if uid else 0)
        return 200, completion_body(body)

    urls = [replicas.add("a"), replicas.add("slow", slow)]
    with open_fleet(*urls, concurrency=100) as engine:
        made = list(engine.complete(outcomes(120, 8), SETTINGS, 1))

    assert keys(made) == once(outcomes(120, 8))
    assert len(replicas.asked["slow"]) < len(replicas.asked["a"]) / 2


class Process:
    """A replica in a process of its own, which can be killed and started again at the same address."""

    def __init__(self, directory):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.log = directory / f"{self.port}.jsonl"
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def start(self):
        command = [sys.executable, "-m", "tests.selector.generation.fake_server", str(self.port), str(self.log)]
        self.process = subprocess.Popen(command, cwd=ROOT)
        wait_until(self._listens, "the server listens")

    def _listens(self):
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=PATIENCE_SECONDS)

    def asked(self, question_of):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [uid for line in lines if (uid := question_of(json.loads(line))) is not None]


def test_what_a_killed_replica_had_goes_to_the_others_and_once_it_is_back_it_works_again(
    replicas, question_of, tmp_path
):
    goes_on, n_questions, trust = threading.Event(), 60, 4
    mortal = Process(tmp_path)
    mortal.start()

    def patient(uid, body):  # so that the run is in its middle until the third replica is dead
        if uid is not None:
            goes_on.wait(PATIENCE_SECONDS)
        return 200, completion_body(body)

    try:
        urls = [replicas.add("a", patient), replicas.add("b", patient), mortal.url]
        with open_fleet(*urls, concurrency=trust) as engine, closing(engine.feed(SETTINGS, 1)) as feed:
            feed.submit(trajectories(n_questions))
            made = feed.results(PATIENCE_SECONDS)
            mortal.kill()
            goes_on.set()
            while feed.n_in_flight:
                made += feed.results(PATIENCE_SECONDS)
            n_by_mortal = len(mortal.asked(question_of))
            n_asked = n_by_mortal + sum(map(len, replicas.asked.values()))
            mortal.start()
            n_asked_before, start = n_by_mortal, n_questions
            while len(mortal.asked(question_of)) == n_asked_before:
                feed.submit(trajectories(12, start))
                start += 12
                while feed.n_in_flight:
                    made += feed.results(PATIENCE_SECONDS)
    finally:
        mortal.kill()

    assert n_by_mortal > 0
    assert keys(made) == once(trajectories(start))
    assert n_questions <= n_asked <= n_questions + trust  # twice at most what was in flight at the dead one


def test_one_that_fails_at_everything_but_lives_is_left_to_itself(replicas):
    def broken(uid, body):
        return BROKEN if uid else (200, completion_body(body))

    with open_fleet(replicas.add("a"), replicas.add("broken", broken), concurrency=4, max_retries=1) as engine:
        results = list(engine.complete(trajectories(40), SETTINGS, 1))

    assert keys(results) == once(trajectories(40))
    assert set(replicas.asked["a"]) == {f"q{i}" for i in range(40)}


def test_what_one_refuses_is_not_asked_again_anywhere(replicas):
    def refuses(uid, body):
        return (400, {"error": {"message": "I do not like it."}}) if uid == "q3" else (200, completion_body(body))

    urls = [replicas.add(name, refuses) for name in "abc"]
    with open_fleet(*urls) as engine, closing(engine.feed(SETTINGS, 1)) as feed:
        feed.submit(outcomes(6, 4))
        results = []
        while feed.n_in_flight:
            results += feed.results(PATIENCE_SECONDS)

    assert [(r.uid, r.code) for r in results if isinstance(r, SetAside)] == [("q3", "refused")]
    assert sum(uids.count("q3") for uids in replicas.asked.values()) == 1
    assert keys(results) == once([r for r in outcomes(6, 4) if r.prompt.uid != "q3"])


def test_a_question_that_every_replica_fails_at_is_set_aside(replicas):
    def fails(uid, body):
        return BROKEN if uid == "q3" else (200, completion_body(body))

    urls = [replicas.add(name, fails) for name in "ab"]
    with open_fleet(*urls, max_retries=1, concurrency=2) as engine:
        results = list(engine.complete(outcomes(40, 1), SETTINGS, 1))

    assert [(r.uid, r.code) for r in results if isinstance(r, SetAside)] == [("q3", "server_error")]
    assert keys(results) == once([r for r in outcomes(40, 1) if r.prompt.uid != "q3"])
    assert {name for name, uids in replicas.asked.items() if "q3" in uids} == {"a", "b"}


@pytest.mark.parametrize("failure", [(429, {"error": {"message": "too many"}}), DROPPED], ids=["busy", "dropped"])
def test_a_busy_replica_and_a_lost_connection_are_tried_again_and_answered_once(replicas, failure):
    seen = set()

    def fails_first(uid, body):
        if uid is None or uid in seen:
            return 200, completion_body(body)
        seen.add(uid)
        return failure

    urls = [replicas.add(name, fails_first) for name in "ab"]
    with open_fleet(*urls, concurrency=4) as engine:
        made = list(engine.complete(trajectories(8), SETTINGS, 1))

    assert keys(made) == once(trajectories(8))
    assert seen == {f"q{i}" for i in range(8)}


def test_when_all_are_dead_the_work_stops_and_each_is_named(replicas):
    is_dead = threading.Event()

    def dies(uid, body):
        return (503, {"error": {"message": "out of memory"}}) if is_dead.is_set() else (200, completion_body(body))

    urls = [replicas.add(name, dies) for name in "ab"]
    with open_fleet(*urls, max_retries=1) as engine, closing(engine.feed(SETTINGS, 1)) as feed:
        feed.submit(trajectories(3))
        made = []
        while feed.n_in_flight:
            made += feed.results(PATIENCE_SECONDS)
        is_dead.set()
        feed.submit(trajectories(5, 3))
        with pytest.raises(EngineUnavailable, match="out of memory") as caught:
            feed.results(PATIENCE_SECONDS)

    assert len(made) == 3
    assert all(url in str(caught.value) for url in urls)


def test_one_that_is_not_there_at_first_is_named_and_the_others_do_the_work(replicas, question_of, tmp_path, caplog):
    late = Process(tmp_path)
    with open_fleet(replicas.add("a"), late.url, concurrency=2) as engine:
        made = list(engine.complete(trajectories(10), SETTINGS, 1))
        late.start()
        try:
            start = 10
            while not late.asked(question_of):
                made += engine.complete(trajectories(10, start), SETTINGS, 1)
                start += 10
        finally:
            late.kill()

    assert keys(made) == once(trajectories(start))
    assert [
        record.levelname for record in caplog.records if late.url in record.message and "tried again" in record.message
    ]


def test_none_there_at_all_is_said_with_every_address():
    urls = ["http://127.0.0.1:9/v1", "http://127.0.0.1:10/v1"]

    with pytest.raises(EngineUnavailable, match="no connection") as caught:
        open_engine("openai", model=MODEL, base_url=", ".join(urls))

    assert caught.value.where == ", ".join(urls)


def test_servers_of_different_models_are_not_one_fleet(replicas):
    urls = [replicas.add("a"), replicas.add("b", context=512)]

    with pytest.raises(InvalidConfig, match="256 tokens") as caught:
        open_engine("openai", model=MODEL, base_url=urls)

    assert caught.value.setting == "base_url"
    assert "512 tokens" in str(caught.value)


def test_answers_of_one_server_and_of_three_are_the_same_evidence(replicas):
    urls = [replicas.add(name) for name in "abc"]
    with open_fleet(urls[0]) as one, open_fleet(*urls) as three:
        assert one.fingerprint(SETTINGS) == three.fingerprint(SETTINGS)
        assert not any(url in json.dumps(three.describe(SETTINGS)) for url in urls)


def test_the_key_is_in_no_log_and_no_message_even_if_a_server_repeats_it(replicas, monkeypatch, caplog):
    key = "sk-a-secret-of-ours"
    monkeypatch.setenv("ASSAY_TEST_API_KEY", key)
    monkeypatch.setattr(logging.getLogger("openai"), "level", logging.DEBUG)
    monkeypatch.setattr(logging.getLogger("httpx"), "level", logging.DEBUG)

    def tells(uid, body):
        if uid == "q0":
            return 400, {"error": {"message": f"no q0 for {key}"}}
        return (503, {"error": {"message": f"broken by {key}"}}) if uid == "q1" else (200, completion_body(body))

    with (
        caplog.at_level(logging.DEBUG),
        open_fleet(
            replicas.add("a", tells), replicas.add("b", tells), api_key_env="ASSAY_TEST_API_KEY", max_retries=0
        ) as engine,
    ):
        (refused,) = engine.complete(trajectories(1), SETTINGS, 1)
        with pytest.raises(EngineUnavailable) as caught:
            list(engine.complete(trajectories(1, 1), SETTINGS, 1))
        described = json.dumps(engine.describe(SETTINGS))

    assert "no q0 for ***" in refused.message
    assert "broken by ***" in str(caught.value)
    assert key not in caplog.text + described


def test_a_feed_takes_more_while_others_are_in_flight_and_ends_with_nothing_left(replicas):
    holds, n_held = threading.Event(), []

    def held(uid, body):
        if uid == "q0":
            n_held.append(uid)
            holds.wait(PATIENCE_SECONDS)
        return 200, completion_body(body)

    with open_fleet(replicas.add("a", held)) as engine:
        with closing(engine.feed(SETTINGS, 1)) as feed:
            assert (feed.n_in_flight, feed.results()) == (0, [])
            feed.submit(trajectories(1))
            wait_until(lambda: n_held, "the first is in flight")
            assert feed.results(timeout=0.01) == []
            feed.submit(trajectories(5, 1))
            made = []
            while feed.n_in_flight > 1:
                made += feed.results(PATIENCE_SECONDS)
            assert keys(made) == once(trajectories(5, 1))
        holds.set()
        assert feed.n_in_flight == 0
        assert keys(engine.complete(trajectories(2), SETTINGS, 1)) == once(trajectories(2))


def test_pauses_grow_and_differ_within_bounds():
    rng = random.Random(3)
    for n_failures in range(2000):
        longest = min(LONGEST_PAUSE_SECONDS, 2.0 ** min(n_failures - 1, 10))
        pauses = [pause_seconds(n_failures, None, rng) for _ in range(20)]
        assert all(longest / 2 <= pause <= longest for pause in pauses)
        assert len(set(pauses)) == 20

    asked_for = [pause_seconds(3, 8.0, rng) for _ in range(200)]
    assert 8.0 <= min(asked_for) < 8.5 < 9.5 < max(asked_for) <= 10.0
    assert pause_seconds(0, 86_400.0, rng) <= 75.0


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("http://a/v1", ["http://a/v1"]),
        ("http://a/v1/, http://b:8000/v1\nhttps://c/v1", ["http://a/v1", "http://b:8000/v1", "https://c/v1"]),
        (["http://a/v1", "http://b/v1,http://c/v1"], ["http://a/v1", "http://b/v1", "http://c/v1"]),
    ],
)
def test_addresses_are_read_as_people_write_them(given, found):
    assert server_urls(given) == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "the address of a server"),
        (" , ", "the address of a server"),
        ("localhost:8000", "starts with http://"),
        ("http://a/v1 ftp://b", "starts with http://"),
        ("http://a/v1 http://a/v1/", "each address is one server"),
        ("http://me:secret@a/v1", "without user or password"),
    ],
)
def test_addresses_that_mean_nothing_are_named(given, message):
    with pytest.raises(InvalidConfig, match=re.escape(message)) as caught:
        server_urls(given)

    assert "secret" not in str(caught.value)
