"""Before an annotator has answered, no byte of any response says what a model, a gold or another person answered.

Every answer of a model, score, set size, gold and answer of somebody else is a number that stands nowhere else. Every
address there is, known by walking through the URL configuration, is asked for as an annotator may, and each answer
(status line, headers, cookies, body) is searched for these numbers.
"""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from labeling.actions import annotation, rounds
from labeling.actions.reveals import stored_model_answers
from labeling.actions.runs import create_run
from labeling.actions.tokens import create_token
from labeling.models import Annotation, ApiToken, Draft, GoldAnswer, RecordedVotes, Reveal, Round, Slot
from tests import factories
from tests.labeling.runs.conftest import run_to_its_end
from tests.labeling.views.conftest import HX
from tests.labeling.views.test_access import undone

pytestmark = pytest.mark.timeout(900)  # some three thousand requests, on a machine that may do other things as well
SECRET_FIELDS = ("set_size", "acquisition_score", "entropy", "n_readable", "n_distinct", "x", "y")
PARAMETER = re.compile(r"<(?:(?P<kind>\w+):)?(?P<name>\w+)>")


@dataclass
class Secrets:
    """Numbers that stand nowhere but where they are secret, and what each of them is."""

    names: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(70_000_001, 1_234_567))
    _set_sizes: Iterator[int] = field(default_factory=lambda: itertools.count(7_418_001))  # a histogram has them all

    def new(self, name: str) -> str:
        number = str(next(self._set_sizes if name.startswith("set_size") else self._numbers))
        self.names[number] = name
        return number

    def within(self, response: Any) -> set[str]:
        """Name what a response gives away, also where a thousands separator stands in it."""
        body = b"".join(response.streaming_content) if response.streaming else response.content
        told = b"\n".join(
            [
                *(f"{name}: {value}".encode() for name, value in response.items()),
                response.cookies.output().encode(),
                body,
            ]
        )
        without_separators = re.sub(rb"(?<=\d)(?:,|\.|_|'|&#x27;|\xc2\xa0|\xe2\x80\xaf)(?=\d)", b"", told)
        return {
            name
            for number, name in self.names.items()
            if number.encode() in told or number.encode() in without_separators
        }


@dataclass
class Blind:
    """A pool in which everything is secret, and an annotator who holds a question and has answered none."""

    secrets: Secrets
    round: Round
    held: Slot
    check: Slot
    values: dict[str, list[Any]]  # by parameter of a URL


def record(row: Any, answers: list[str]) -> None:
    RecordedVotes.objects.create(
        question_fingerprint=row.fingerprint,
        question_uid=row.uid,
        generation_fingerprint="recorded",
        votes={"id": row.uid, "probe_answers": answers[:2], "outcome_answers": answers[2:]},
    )


@pytest.fixture
def blind(pool, manager, annotator, other_annotator, adjudicator, settings, tmp_path) -> Blind:
    """Made by a real run on recorded votes; its figures are then replaced by secret ones."""
    settings.MEDIA_ROOT = tmp_path
    settings.ASSAY_API_RATE = "100000/min"
    cache.clear()
    secrets = Secrets()
    questions = [
        factories.make_question(pool=pool, text=f"How many ways are there to place {n} rooks?", metadata={"cluster": n})
        for n in range(8)
    ]
    calibration_set = factories.make_calibration_set(pool=pool)
    for n in range(12):
        truth = secrets.new(f"the sealed answer {n}")
        item = factories.make_calibration_item(
            calibration_set=calibration_set, text=f"How many ways are there to place {n} kings?", answer=truth
        )
        wrong = [secrets.new(f"a model's answer to the sealed question {n}") for _ in range(2)]
        record(item, [wrong[0], truth, truth, wrong[1]])
    for question in questions:
        answers = [secrets.new(f"a model's answer to {question.uid}") for _ in range(3)]
        record(question, [answers[0], answers[1], answers[1], answers[2]])
    run = run_to_its_end(
        create_run(
            pool=pool,
            calibration_set=calibration_set,
            generation_fingerprint="recorded",
            budget=6,
            alpha="0.5",
            embedder="",
            by=manager,
        )
    )
    for row in [*run.picks.all(), *run.scores.all()]:
        for name in SECRET_FIELDS:
            if hasattr(row, name):
                setattr(row, name, int(secrets.new(f"{name} of a score")))
        row.save()
    run.q_hat = -float(secrets.new("the threshold"))
    run.report = {**run.report, "coverage_of_all": secrets.new("a figure of the report")}
    run.save()

    earlier_run = factories.make_run(pool=pool, questions=[factories.make_question(pool=pool)])
    earlier = factories.make_round(run=earlier_run, blindness="blind")
    slot = factories.make_held_slot(round=earlier, user=other_annotator)
    annotation.submit_annotation(
        slot=slot,
        answer=secrets.new("a gold of an earlier round"),
        note=secrets.new("a note of an earlier round"),
        idempotency_key=uuid4(),
        by=other_annotator,
    )
    assert GoldAnswer.objects.count() == 1

    round = rounds.open_round(
        run=run,
        budget=factories.make_budget(pool=pool, units=30),
        overlap=2,
        calibration_set=calibration_set,
        check_rate=0.5,
        control_share=0,
        by=manager,
    )
    for _ in range(4):
        slot = annotation.claim_slot(user=other_annotator, round=round)
        annotation.submit_annotation(
            slot=slot,
            answer=secrets.new("somebody else's answer"),
            note=secrets.new("somebody else's note"),
            idempotency_key=uuid4(),
            by=other_annotator,
        )
    theirs = annotation.claim_slot(user=other_annotator, round=round)
    annotation.save_draft(slot=theirs, draft={"answer": secrets.new("somebody else's draft")}, by=other_annotator)
    for each in [*questions, *calibration_set.items.all()]:
        stored_model_answers(run, each)
    held = annotation.claim_slot(user=annotator, round=round)
    assert held.question is not None
    check = round.slots.filter(purpose=Slot.Purpose.CHECK, state=Slot.State.OPEN).first()
    return Blind(
        secrets=secrets,
        round=round,
        held=held,
        check=check,
        values={
            "pool_slug": [pool.slug],
            "round_id": [round.pk, earlier.pk],
            "run_id": [run.pk, earlier_run.pk],
            "slot_id": [held.pk, theirs.pk, check.pk, slot.pk, round.slots.filter(state="open").first().pk],
            "question_id": [held.question_id, slot.question_id or questions[0].pk],
            "set_id": [calibration_set.pk],
            "filename": ["train.jsonl", "manifest.json", "rewards.py"],
            "username": [other_annotator.username],
            "uid": [questions[0].uid],
        },
    )


def values_for(name: str, kind: str, known: dict[str, list[Any]]) -> list[Any]:
    """What a parameter of a URL may be; the small numbers are the ids of whatever it names."""
    if name in known:
        return known[name]
    return {"int": [1, 2, 3], "uuid": [uuid4()], "slug": known["pool_slug"]}.get(kind, ["1", "x"])


def all_paths(known: dict[str, list[Any]], resolver: URLResolver | None = None, prefix: str = "/") -> Iterator[str]:
    """Every path that the URL configuration has, with each value that its parameters may take."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = prefix + str(pattern.pattern).removeprefix("^").removesuffix("$").removesuffix(r"\Z")
        if isinstance(pattern, URLResolver):
            yield from all_paths(known, pattern, route)
            continue
        assert isinstance(pattern, URLPattern)
        parameters = [(each["name"], each["kind"] or "str") for each in PARAMETER.finditer(route)]
        for values in itertools.product(*(values_for(name, kind, known) for name, kind in parameters)):
            filled = iter(values)
            yield PARAMETER.sub(lambda _, filled=filled: str(next(filled)), route)  # type: ignore[misc]


TYPED = {
    "answer": "12",
    "note": "n",
    "reason": "ill_posed",
    "problem": "n",
    "choice": "another",
    "why": "a slip",
    "budget": 1,
    "overlap": 1,
    "to": "pause",
    "flag_note": "n",
}


def requests_of(client: Client, program: Client, path: str) -> Iterator[Any]:
    """Ask for a path in every way a person or their program can; what it changes is undone."""
    typed = {**TYPED, "idempotency_key": str(uuid4()), "flag_key": str(uuid4())}
    ways = [lambda: client.get(path), lambda: client.post(path, typed)]
    if path.startswith("/api/"):
        body = json.dumps(typed)
        ways += [
            lambda: client.get(path + "?page=2&ordering=-answer&search=7&answer=7&fields=*"),
            lambda: client.get(path, headers={"accept": "text/html"}),
            lambda: program.get(path),
            lambda: program.post(path, body, content_type="application/json"),
            lambda: program.post(path, "{", content_type="application/json"),
            lambda: program.patch(path, body, content_type="application/json"),
            lambda: program.options(path),
        ]
    elif not path.startswith("/admin/"):
        ways += [
            lambda: client.get(path, **HX),
            lambda: client.post(path, typed, **HX),
            lambda: client.post(path, {**typed, "answer": "???"}),
        ]
    for way in ways:
        with undone():
            yield way()


@pytest.fixture
def program(blind, annotator) -> Client:
    """The annotator's program, which may do all that they may."""
    _, token = create_token(name="program", by=annotator, scopes=ApiToken.Scope.values)
    return Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=False)


def test_no_byte_before_an_answer_gives_anything_away(blind, annotator, login, program):
    held = Slot.objects.filter(holder=annotator).get()
    client = login(annotator)
    client.raise_request_exception = False
    session = client.cookies["sessionid"].value
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(annotator)
    leaks, statuses = [], []

    def look(response, path):
        statuses.append(response.status_code)
        if found := blind.secrets.within(response):
            leaks.append((response.request["REQUEST_METHOD"], path, response.status_code, sorted(found)[:3]))

    for path in all_paths(blind.values):
        client.cookies["sessionid"] = session  # an address may have logged out
        for response in requests_of(client, program, path):
            look(response, path)
    look(client.get("/nowhere/"), "/nowhere/")
    look(strict.post(reverse("slot-submit", args=[held.pk]), TYPED), "without a token against forgery")

    assert leaks == []
    assert held == Slot.objects.filter(holder=annotator).get()
    assert not Annotation.objects.filter(annotator=annotator).exists()
    assert statuses.count(200) > 30  # pages were seen, not refusals alone
    assert {302, 400, 403, 404, 405, 422} <= set(statuses)


def test_the_same_search_finds_everything_on_a_managers_pages(blind, manager, login):
    client = login(manager)
    run, round = blind.round.run, blind.round
    addresses = [
        reverse("round", args=[round.pk]),
        reverse("round", args=[Round.objects.exclude(pk=round.pk).get().pk]),
        reverse("run-question", args=[run.pk, blind.held.question_id]),
        f"/api/v1/runs/{run.pk}/scores/",
        f"/api/v1/runs/{run.pk}/report/",
        f"/api/v1/pools/{blind.values['pool_slug'][0]}/recorded-votes/",
    ]

    found = set().union(*(blind.secrets.within(client.get(address)) for address in addresses))

    kinds = {re.sub(r"[\d ]*$| to q\d+$", "", name) for name in found}
    assert {
        "a model's answer",
        "a gold of an earlier round",
        "set_size of a score",
        "acquisition_score of a score",
    } <= kinds


def test_once_the_answer_is_stored_the_models_are_found_and_nothing_else(blind, annotator, login):
    client, url = login(annotator), reverse("slot-reveal", args=[blind.held.pk])
    typed = {"answer": "12", "idempotency_key": uuid4()}
    assert client.get(url).status_code == 404

    submitted = client.post(reverse("slot-submit", args=[blind.held.pk]), typed)
    shown = client.get(url)

    assert submitted["Location"] == url
    assert blind.secrets.within(submitted) == set()
    assert blind.secrets.within(shown) == {f"a model's answer to {blind.held.question.uid}"}
    assert sum(number.encode() in shown.content for number in Reveal.objects.get().answers) == 3
    assert b"recorded" not in shown.content.replace(b"It is recorded.", b"")  # the name of the settings


# A check beside a question: whatever is asked for, the same bytes but for ids and for what the two say

SAME_FOR_BOTH = [
    (re.compile(rb"csrfmiddlewaretoken\" value=\"[^\"]+|csrftoken=[^;]+"), b"TOKEN"),
    (re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), b"KEY"),
    (re.compile(rb"How many ways are there to place \d+ (rooks|kings)\?"), b"TEXT"),
    (re.compile(rb"/slots/\d+/|slot\" value=\"\d+|assay-draft-\d+-\d+|\"(id|slot|slot_id|held)\": ?\d+"), b"ID"),
    (
        re.compile(rb"\d{4}-\d\d-\d\d(T[\d:.]+(\+00:00|Z)?)?|\d+ \w{3} \d{4} \d\d:\d\d(:\d\d)?|\d\d:\d\d(:\d\d)?"),
        b"TIME",
    ),
    (re.compile(rb"expires=[^;]+|data-lease-seconds=\"\d+\"|data-seconds-left=\"\d+\"|\b\d+ s\b"), b"TIME"),
    (re.compile(rb"Content-Length: \d+"), b"LENGTH"),
    (re.compile(rb"messages=[^;]+"), b"SIGNED"),  # what the next page says, with the slot's id inside
]


def without_ids(response: Any, secrets: Secrets) -> bytes:
    headers = "\n".join(f"{name}: {value}" for name, value in sorted(response.items()))
    told = b"\n".join(
        [str(response.status_code).encode(), headers.encode(), response.cookies.output().encode(), response.content]
    )
    told = re.sub(b"|".join(number.encode() for number in secrets.names), b"ANSWER", told)
    for pattern, put in SAME_FOR_BOTH:
        told = pattern.sub(put, told)
    return told


def what_is_seen(blind: Blind, slot: Slot, user: Any, client: Client, program: Client) -> dict[str, bytes]:
    """All that a person gets to see of a slot from holding it to having answered it; undone afterwards."""
    with undone():
        Slot.objects.filter(holder=user).update(state=Slot.State.OPEN, holder=None, lease_until=None, claimed_at=None)
        Draft.objects.filter(author=user).delete()
        slot.refresh_from_db()
        factories.make_held_slot(round=blind.round, user=user, slot=slot)
        page, api = f"/slots/{slot.pk}/", f"/api/v1/slots/{slot.pk}/"
        typed = {**TYPED, "idempotency_key": str(uuid4()), "flag_key": str(uuid4())}
        unreadable = {**typed, "answer": "the usual one"}
        asked = {
            "round": lambda: client.get(f"/rounds/{blind.round.pk}/"),
            "page": lambda: client.get(page),
            "fragment": lambda: client.get(page, **HX),
            "draft": lambda: client.post(f"{page}draft/", typed, **HX),
            "read-as": lambda: client.post(f"{page}read-as/", typed, **HX),
            "nothing": lambda: client.post(f"{page}submit/", {}),
            "unreadable": lambda: client.post(f"{page}submit/", unreadable, **HX),
            "no reason": lambda: client.post(f"{page}unanswerable/", {}),
            "too early": lambda: client.get(f"{page}reveal/"),
            "api": lambda: program.get(api),
            "api read-as": lambda: program.post(f"{api}read-as/", typed, content_type="application/json"),
            "api work": lambda: program.get(reverse("api-work")),
            "claimed again": lambda: client.post(f"/rounds/{blind.round.pk}/annotate/"),
            "submitted": lambda: client.post(f"{page}submit/", typed),
            "revealed": lambda: client.get(f"{page}reveal/"),
            "kept": lambda: client.post(f"{page}reveal/", {**typed, "choice": "keep"}),
            "afterwards": lambda: client.get(f"{page}reveal/"),
            "done": lambda: client.get(page),
            "revising": lambda: client.get(f"{page}revise/"),
            "undo": lambda: client.post(f"{page}undo/", typed),
            "api done": lambda: program.get(api),
            "api own answers": lambda: program.get(f"/api/v1/rounds/{blind.round.pk}/answers/"),
        }
        return {name: without_ids(ask(), blind.secrets) for name, ask in asked.items()}


def first_difference(name: str, one: bytes, other: bytes) -> tuple[str, bytes, bytes]:
    place = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return name, one[place - 60 : place + 60], other[place - 60 : place + 60]


def test_a_check_is_a_question_like_any_other_to_the_byte(blind, annotator, login, program):
    client = login(annotator)
    seen = what_is_seen(blind, blind.held, annotator, client, program)
    check = what_is_seen(blind, blind.check, annotator, client, program)

    assert seen["revealed"].count(b"ANSWER") >= 3
    assert [first_difference(name, told, check[name]) for name, told in seen.items() if told != check[name]] == []
