"""Whatever servers do: every request is answered once, or its question is set aside, or all is given up."""

import asyncio
import random
from collections import Counter

import pytest

from selector.errors import EngineUnavailable
from selector.generation import Completion, CompletionKind, Prompt, Request, SamplingSettings, SetAside
from selector.generation.fleet import Fleet
from selector.generation.replica import Group, RefusedError, Replica, TryError

SETTINGS = SamplingSettings()


class Answers:
    """A sink that counts."""

    def __init__(self):
        self.made, self.set_aside, self.n_open, self.failure = Counter(), set(), 0, None

    def put(self, result, n_requests):
        self.n_open -= n_requests
        if isinstance(result, SetAside):
            self.set_aside.add(result.uid)
        else:
            self.made[result.uid, result.index] += 1

    def fail(self, error):
        self.failure = error


def completion(request):
    return Completion(request.prompt.uid, request.kind, request.index, "", 1, 1, "stop")


def broken(replica, **kind):
    return TryError(EngineUnavailable(where=replica.url, reason="x"), "x", retry_after=0, **kind)


async def run(seed):
    """Let one to four servers of random speed and reliability answer some questions; return what came of it."""
    rng = random.Random(seed)
    trouble, n_replicas = rng.choice([0.0, 0.1, 0.5]), rng.randint(1, 4)
    pace = {f"http://{i}": rng.choice([0.0, 0.0, 0.001, 0.01]) for i in range(n_replicas)}
    poison = {f"q{i}" for i in range(60) if rng.random() < 0.03}
    asked_at_once, homes, wrong = Counter(), {}, []

    async def ask(replica, requests, settings):
        uid = requests[0].prompt.uid
        asked_at_once[replica.url] += len(requests)
        if asked_at_once[replica.url] > max(16, len(requests)):
            wrong.append("more at once than allowed")
        homes.setdefault(uid, []).append(replica.url)
        if not trouble and uid not in poison and len(set(homes[uid])) > 1:
            wrong.append("a question in two places")
        try:
            await asyncio.sleep(pace[replica.url] * rng.random())
        finally:
            asked_at_once[replica.url] -= len(requests)
            homes[uid].remove(replica.url)
        if uid in poison:
            raise RefusedError("no") if seed % 2 else broken(replica)
        if rng.random() < trouble:
            raise broken(replica, **rng.choice([{}, {"is_lost": True}, {"is_busy": True}]))
        return [completion(request) for request in requests[: rng.randint(1, len(requests))]]

    async def check(replica):
        await asyncio.sleep(0)
        if rng.random() < trouble:
            raise broken(replica)

    replicas = [Replica(url, None) for url in pace]
    fleet = Fleet(replicas, ask=ask, check=check, concurrency=16, max_retries=3, rng=rng)
    answers, wanted = Answers(), Counter()
    for i in range(60):
        prompt, size = Prompt(f"q{i}", ""), rng.randint(1, 8)
        requests = [Request(prompt, CompletionKind.OUTCOME, index) for index in range(rng.randint(1, 20))]
        wanted.update((prompt.uid, request.index) for request in requests)
        answers.n_open += len(requests)
        fleet.submit(Group(requests[at : at + size], SETTINGS, answers) for at in range(0, len(requests), size))
        if rng.random() < 0.2:
            await asyncio.sleep(0.002)
    async with asyncio.timeout(60):
        while answers.n_open and answers.failure is None:
            await asyncio.sleep(0.001)
    await fleet.close()
    assert wrong == []
    return wanted, answers, poison


@pytest.mark.parametrize("seed", range(30))
def test_every_request_is_answered_once_or_its_question_is_named(seed):
    wanted, answers, poison = asyncio.run(run(seed))

    assert max(answers.made.values(), default=1) == 1
    assert answers.made <= wanted
    if answers.failure is None:
        missing = {uid for uid, _ in wanted - answers.made}
        assert answers.n_open == 0
        assert missing <= answers.set_aside
        assert poison & {uid for uid, _ in wanted} <= answers.set_aside
    else:
        assert isinstance(answers.failure, EngineUnavailable)
