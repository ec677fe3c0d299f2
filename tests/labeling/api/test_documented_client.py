"""The programs in docs/api.md, taken out of it and run against a server."""

import re
import threading
from uuid import uuid4

import pytest
from django.db import connections

from labeling.actions.annotation import claim_slot, submit_annotation
from labeling.actions.tokens import create_token
from labeling.models import ApiToken, Pool, Role, Round
from labeling.runs.worker import work
from tests import factories
from tests.conftest import ROOT

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def programs():
    """The client, the program that asks, and the one that fetches."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.DOTALL)


def test_the_documented_programs_do_what_they_say(programs, manager, live_server, settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path
    factories.make_pool(manager=manager)
    _, token = create_token(name="program", by=manager, scopes=ApiToken.Scope.values)
    monkeypatch.setenv("ASSAY_URL", live_server.url)
    monkeypatch.setenv("ASSAY_TOKEN", token)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pool.jsonl").write_text('{"question": "1 + 1?"}\n{"question": "1 + 2?"}\n{"question": "1 + 3?"}\n')
    stop = threading.Event()
    worker = threading.Thread(target=worked, args=(stop,))
    worker.start()
    names: dict = {}
    try:
        client, asks, fetches = programs
        exec(client, names)
        exec(asks, names)
    finally:
        stop.set()
        worker.join()
    answer_everything(Round.objects.get(pk=names["round"]))
    exec(fetches, names)

    assert names["preview"]["counts"]["new"] == 3
    assert {file["name"] for file in names["export"]["files"]} >= {"rewards.py"}
    assert isinstance(names["content"], bytes)


def test_the_documented_client_reads_every_page_and_says_what_was_refused(programs, pool, manager, live_server):
    factories.make_questions(pool=pool, n=3)
    _, token = create_token(name="program", by=manager, scopes=["read"])
    names: dict = {}
    exec(programs[0], names)
    assay = names["Assay"](live_server.url, token)

    assert len(list(assay.rows(f"pools/{pool.slug}/questions/"))) == 3
    with pytest.raises(RuntimeError, match=r"403 .*needs a token with the scope"):
        assay.post("pools/", {"name": "New"})


def worked(stop):
    try:
        work(should_stop=stop.is_set, poll_seconds=0.1)
    finally:
        connections.close_all()


def answer_everything(round):
    annotator = factories.make_user(pool=Pool.objects.get(slug="algebra"), roles=(Role.ANNOTATOR,))
    while slot := claim_slot(round=round, user=annotator):
        left, right = slot.asked.text.rstrip("?").split(" + ")
        submit_annotation(slot=slot, answer=str(int(left) + int(right)), idempotency_key=uuid4(), by=annotator)
