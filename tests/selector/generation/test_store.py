"""Completions in compressed shards: what is kept, what a crash costs, what is read without the rest."""

import gzip
import json

import pytest

from selector.errors import InvalidRow
from selector.generation import store as stores
from selector.generation.contract import Completion, CompletionKind
from selector.generation.store import CompletionShards, answer_only

TRAJECTORY, PROBE, OUTCOME = CompletionKind.TRAJECTORY, CompletionKind.PROBE, CompletionKind.OUTCOME


def completion(uid="q", kind=OUTCOME, index=0, text="so it is \\boxed{4}", n_tokens=7, **fields):
    return Completion(uid, kind, index, text, n_tokens, n_prompt_tokens=9, finish_reason="stop", **fields)


def chunk(n_questions=3, n_outcomes=4):
    return [completion(f"q{n}", OUTCOME, i, f"{n} and {i}: \\boxed{{{n}}}") for n in range(n_questions)
            for i in range(n_outcomes)]  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return tmp_path / "completions"


def test_the_store_gives_back_what_it_was_given(path):
    odd = completion(kind=TRAJECTORY, text="line\nbreak \u2028 \ud800 é", token_ids=(1, 2, 3))

    store = CompletionShards(path)
    store.add([odd, completion(index=5)])
    store.add([completion(kind=TRAJECTORY, text="a later one"), completion(index=6)])

    for opened in (store, CompletionShards(path)):
        assert list(opened.load(["q", "another"], TRAJECTORY)) == [odd]
        assert sorted(each.index for each in opened.load(["q"], OUTCOME)) == [5, 6]
        assert len(list(opened.load(["q"]))) == 3
        assert opened.keys(["q", "another"]) == {("q", TRAJECTORY, 0), ("q", OUTCOME, 5), ("q", OUTCOME, 6)}
        assert opened.tokens(["q", "another"]) == {OUTCOME: 14, TRAJECTORY: 7, PROBE: 0}


def test_shards_are_gzip_files_of_json_lines(path):
    CompletionShards(path).add(chunk())

    with gzip.open(path / "00000.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]

    assert [(row["uid"], row["index"]) for row in rows] == [(each.uid, each.index) for each in chunk()]


def test_what_is_stored_already_is_not_stored_again(path):
    store = CompletionShards(path)
    store.add(chunk())
    size = (path / "00000.jsonl.gz").stat().st_size

    store.add(chunk())
    store.add([*chunk(n_questions=1), *chunk(n_questions=1)])

    assert (path / "00000.jsonl.gz").stat().st_size == size


def test_a_new_shard_begins_where_one_is_full(path, monkeypatch):
    monkeypatch.setattr(stores, "SHARD_BYTES", 100)
    store = CompletionShards(path)

    for each in chunk():
        store.add([each])

    assert len(list(path.iterdir())) > 3
    for opened in (store, CompletionShards(path)):
        assert set(opened.load(["q0", "q1", "q2"])) == set(chunk())


@pytest.mark.parametrize("n_torn", [1, 9, 40])
def test_a_torn_tail_is_dropped_and_told(path, n_torn):
    store = CompletionShards(path)
    store.add(chunk(2))
    whole = (path / "00000.jsonl.gz").stat().st_size
    store.add([completion("late")])
    with (path / "00000.jsonl.gz").open("r+b") as file:
        file.truncate(whole + n_torn)

    opened = CompletionShards(path)

    assert opened.n_torn_bytes == n_torn
    assert set(opened.load(["q0", "q1", "late"])) == set(chunk(2))
    opened.add([completion("late")])
    assert list(CompletionShards(path).load(["late"])) == [completion("late")]


def test_what_is_not_a_completion_is_named(path):
    CompletionShards(path).add(chunk(1))
    shard = path / "00000.jsonl.gz"
    shard.write_bytes(shard.read_bytes() + b"something else, of some length")

    with pytest.raises(InvalidRow, match="member 2 is not a completion: no gzip member of ours begins here"):
        CompletionShards(path)


def test_a_damaged_member_is_named_when_it_is_read(path):
    CompletionShards(path).add(chunk(1))
    shard = path / "00000.jsonl.gz"
    data = bytearray(shard.read_bytes())
    data[-12] ^= 0xFF
    shard.write_bytes(data)

    with pytest.raises(InvalidRow, match=r"00000\.jsonl\.gz"):
        list(CompletionShards(path).load(["q0"]))


def test_a_shard_that_is_missing_is_named(path, monkeypatch):
    monkeypatch.setattr(stores, "SHARD_BYTES", 1)
    store = CompletionShards(path)
    for each in chunk():
        store.add([each])
    (path / "00001.jsonl.gz").unlink()

    with pytest.raises(InvalidRow, match=r"00001\.jsonl\.gz is missing"):
        CompletionShards(path)


def test_every_chunk_is_heard_of(path):
    heard = []
    store = CompletionShards(path, added=lambda made: heard.append(len(made)))

    store.add(chunk(1))
    store.add(chunk(2))

    assert heard == [4, 8]


def test_answers_alone_take_less_and_read_the_same(path):
    long = "Let me think. " * 500
    made = [
        completion(index=0, text=f"{long}\\boxed{{\\frac{{1}}{{2}}}}."),
        completion(index=1, text=f"{long}The answer is 7."),
        completion(index=2, text=long),
        completion(index=3, text=f"{long}\\boxed{{1}}, \\boxed{{2}}"),
        completion(kind=TRAJECTORY, text=long, token_ids=tuple(range(900))),
        completion(kind=PROBE, index=4, text="4} and more"),
    ]

    store = CompletionShards(path, keep="answers")
    store.add(made)

    kept = {(each.kind, each.index): each for each in CompletionShards(path).load(["q"])}
    assert [kept[OUTCOME, i].text for i in range(4)] == [
        "\\boxed{\\frac{1}{2}}", "\\boxed{7}", "", "\\boxed{1, 2}",
    ]  # fmt: skip
    assert kept[TRAJECTORY, 0] == made[4]
    assert kept[PROBE, 4] == made[5]
    assert [kept[OUTCOME, i].n_tokens for i in range(4)] == [7] * 4


def test_an_answer_that_would_be_read_otherwise_keeps_its_words():
    odd = completion(text="The answer is }{ perhaps, and much more of it than a box would hold.\n")

    assert answer_only(odd) == odd
