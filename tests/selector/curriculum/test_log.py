"""The reward log: nothing acknowledged is lost and nothing counts twice, whoever dies while writing."""

import errno
import json
import math
import multiprocessing
import os
import signal
import threading
import time

import pytest

from selector.curriculum import CURRICULA, LogFollower, RewardEvent, RewardLog
from selector.curriculum import log as log_module
from selector.errors import CurriculumMismatch, InvalidConfig, RewardLogChanged
from tests.selector.curriculum import reward_worker

N_REWARDS = int(os.environ.get("ASSAY_REWARDS", "6000"))  # 100000 shows the full size
N_WORKERS, N_QUESTIONS = 8, 50


def events(*numbers):
    return [RewardEvent(f"q{number}", (1.0, 0.0), number, f"e{number}") for number in numbers]


def read_all(log, **options):
    found, offset = [], 0
    while True:
        more, following = log.read_from(offset, **options)
        if following == offset:
            return found
        found, offset = found + more, following


def curriculum(key="insight", n=10, **settings):
    return CURRICULA[key]([f"q{i}" for i in range(n)], seed=1, **settings)


def test_what_is_appended_is_read(tmp_path):
    log = RewardLog(tmp_path / "new" / "rewards.jsonl")

    log.append(events(1, 2))
    log.append([])
    log.append(events(3))

    assert read_all(log) == events(1, 2, 3)


def test_reading_goes_on_from_an_offset(tmp_path):
    log = RewardLog(tmp_path / "rewards.jsonl")
    assert log.read_from(0) == ([], 0)

    log.append(events(1, 2))
    first, offset = log.read_from(0)
    nothing = log.read_from(offset)
    log.append(events(3))

    assert first == events(1, 2)
    assert nothing == ([], offset)
    assert log.read_from(offset)[0] == events(3)


@pytest.mark.parametrize("max_bytes", [1, 7, 64, 100, 1000])
def test_pieces_of_any_size_give_the_same_events(tmp_path, max_bytes):
    log = RewardLog(tmp_path / "rewards.jsonl")
    odd = RewardEvent("ein Haus\n\r\u2028 ∑", (None, 0.1), 0, "x\ny")
    log.append([*events(*range(5)), odd])

    assert read_all(log, max_bytes=max_bytes) == [*events(*range(5)), odd]


def test_each_event_has_an_id_of_its_own(tmp_path):
    made = [RewardEvent("q", (1.0,), 0) for _ in range(1000)]

    assert len({event.id for event in made}) == 1000


def test_a_missing_reward_is_written_as_null(tmp_path):
    log = RewardLog(tmp_path / "rewards.jsonl")
    log.append([RewardEvent("q", (None, math.nan, math.inf, 1), 3, "e")])

    assert json.loads(log.path.read_text()) == {"id": "e", "uid": "q", "rewards": [None, None, None, 1.0], "step": 3}


@pytest.mark.parametrize(
    "wrong",
    [
        RewardEvent("q", ("right",), 0),
        RewardEvent("q", (1.0,), -1),
        RewardEvent(7, (1.0,), 0),
        RewardEvent("q", (1.0,), 0, ""),
        RewardEvent("\ud800", (1.0,), 0),
        RewardEvent("q", (1.0,), 0, "\ud800"),
        RewardEvent("q", (10**400,), 0),
        RewardEvent("q", (1.0,), 2**63),
        "q",
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path, wrong):
    log = RewardLog(tmp_path / "rewards.jsonl")

    with pytest.raises(InvalidConfig):
        log.append([*events(1), wrong])
    assert read_all(log) == []


@pytest.mark.parametrize(
    "torn", [b'{"id": "e9", "uid', b'{"id": "e9", "uid": "q", "rewards": [], "step": 1}', b"x" * 9000]
)
def test_a_torn_last_line_is_not_read_and_the_next_writer_removes_it(tmp_path, torn):
    log = RewardLog(tmp_path / "rewards.jsonl")
    log.append(events(1))
    with log.path.open("ab") as file:
        file.write(torn)

    first, offset = log.read_from(0)
    log.append(events(2))

    assert first == events(1)
    assert log.read_from(offset)[0] == events(2)
    assert log.path.read_bytes().count(b"\n") == 2
    assert log.damaged == []


def test_a_file_that_is_nothing_but_a_torn_line_is_begun_again(tmp_path):
    log = RewardLog(tmp_path / "rewards.jsonl")
    log.path.write_bytes(b"{")

    log.append(events(1))

    assert read_all(log) == events(1)


def test_lines_of_another_program_that_are_no_events_are_named(tmp_path):
    log = RewardLog(tmp_path / "rewards.jsonl")
    log.append(events(1))
    place = log.path.stat().st_size
    foreign = [b"not json", b"[]", b'{"id": "a", "uid": "q", "rewards": 1, "step": 0}', b"\xff\r{}"]
    with log.path.open("ab") as file:
        file.write(b"".join(line + b"\n" for line in foreign))
    log.append(events(2))

    assert read_all(log) == events(1, 2)
    assert [offset for offset, _ in log.damaged] == [
        place + sum(len(line) + 1 for line in foreign[:before]) for before in range(4)
    ]


@pytest.mark.parametrize(
    "field",
    [{"step": 2**63}, {"rewards": [10**400]}, {"id": "\ud800"}, {"uid": "\ud800"}],
    ids=["step", "reward", "id", "uid"],
)
def test_a_line_that_no_curriculum_could_count_holds_up_nobody(tmp_path, field):
    log = RewardLog(tmp_path / "rewards.jsonl")
    row = {"id": "a", "uid": "q1", "rewards": [1], "step": 0} | field
    log.path.write_text(json.dumps(row) + "\n")
    log.append([RewardEvent("q1", (1.0,), 0)])
    follower = LogFollower(CURRICULA["random"](["q1"]), log)

    assert follower.catch_up() == 1
    assert [offset for offset, _ in log.damaged] == [0]


def test_other_programs_may_say_more_than_an_event_needs(tmp_path):
    log = RewardLog(tmp_path / "rewards.jsonl")
    log.path.write_text('{"id": "a", "uid": "q", "rewards": [1, null], "step": 0, "host": "gpu7"}\n')

    assert read_all(log) == [RewardEvent("q", (1, None), 0, "a")]


def test_a_batch_that_does_not_fit_the_disk_is_not_there_at_all(tmp_path, monkeypatch):
    log = RewardLog(tmp_path / "rewards.jsonl")
    log.append(events(1))
    write = os.write

    def half_then_full(file, text):
        if len(text) < 100:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, text[: len(text) // 2])

    monkeypatch.setattr(log_module.os, "write", half_then_full)
    with pytest.raises(OSError, match="No space"):
        log.append(events(2, 3, 4))
    monkeypatch.undo()

    assert read_all(log) == events(1)
    log.append(events(2, 3, 4))
    assert read_all(log) == events(1, 2, 3, 4)


def test_a_reader_waits_for_a_write_to_end(tmp_path, monkeypatch):
    log = RewardLog(tmp_path / "rewards.jsonl")
    written, go_on = threading.Event(), threading.Event()
    write = os.write

    def slowly(file, text):
        n = write(file, text[: text.index(b"\n") + 1])
        written.set()
        go_on.wait(10)
        return n

    monkeypatch.setattr(log_module.os, "write", slowly)
    writer = threading.Thread(target=log.append, args=(events(1, 2),))
    writer.start()
    written.wait(10)
    found = []
    reader = threading.Thread(target=lambda: found.extend(log.read_from(0)[0]))
    reader.start()
    reader.join(0.2)
    waited = reader.is_alive()
    go_on.set()
    writer.join(10)
    reader.join(10)

    assert waited
    assert found == events(1, 2)


def test_threads_do_not_mix_their_lines(tmp_path):
    log = RewardLog(tmp_path / "rewards.jsonl", is_synced=True)
    threads = [
        threading.Thread(target=lambda t=t: [log.append(events(t * 20 + i)) for i in range(20)]) for t in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(event.step for event in read_all(log)) == list(range(100))
    assert log.damaged == []


def test_a_log_that_was_cut_or_taken_away_is_noticed(tmp_path):
    log = RewardLog(tmp_path / "rewards.jsonl")
    log.append(events(1))
    _, offset = log.read_from(0)

    os.truncate(log.path, 5)
    with pytest.raises(RewardLogChanged, match="5 bytes"):
        log.read_from(offset)
    log.path.unlink()
    with pytest.raises(RewardLogChanged, match="gone"):
        log.read_from(offset)


def test_a_follower_counts_each_id_once(tmp_path):
    log = RewardLog(tmp_path / "rewards.jsonl")
    follower = LogFollower(curriculum(), log)

    log.append(events(1, 2))
    log.append([*events(2), RewardEvent("elsewhere", (1.0,), 0, "x")])
    first = follower.catch_up()
    log.append(events(1, 3))
    second = follower.catch_up()

    assert (first, second, follower.catch_up()) == (2, 1, 0)
    assert (follower.n_counted, follower.n_repeated, follower.n_unknown) == (3, 2, 1)
    assert follower.curriculum.beliefs.n_rollouts.sum() == 6


def test_a_follower_goes_on_from_its_checkpoint(tmp_path):
    log, checkpoint = RewardLog(tmp_path / "rewards.jsonl"), tmp_path / "checkpoint.json"
    first = LogFollower(curriculum(), log, checkpoint)
    log.append(events(1, 2))
    first.catch_up()
    first.curriculum.propose(3)
    first.save()
    expected = first.curriculum.propose(3)
    log.append([*events(2), *events(3)])

    second = LogFollower(curriculum(), log, checkpoint)

    assert second.curriculum.propose(3) == expected
    assert second.catch_up() == 1
    assert (second.n_counted, second.n_repeated) == (3, 1)


def test_a_checkpoint_saved_before_anything_was_written_is_good(tmp_path):
    log, checkpoint = RewardLog(tmp_path / "rewards.jsonl"), tmp_path / "checkpoint.json"
    LogFollower(curriculum(), log, checkpoint).save()
    log.append(events(1))

    assert LogFollower(curriculum(), log, checkpoint).catch_up() == 1


def test_a_checkpoint_of_another_log_or_curriculum_is_refused(tmp_path):
    log, checkpoint = RewardLog(tmp_path / "rewards.jsonl"), tmp_path / "checkpoint.json"
    log.append(events(1))
    follower = LogFollower(curriculum(), log, checkpoint)
    follower.catch_up()
    follower.save()

    with pytest.raises(CurriculumMismatch, match="mopps"):
        LogFollower(curriculum("mopps"), log, checkpoint)
    log.path.unlink()
    with pytest.raises(RewardLogChanged):
        LogFollower(curriculum(), log, checkpoint)
    log.append(events(4))
    with pytest.raises(RewardLogChanged, match=r"delete the checkpoint"):
        LogFollower(curriculum(), log, checkpoint)


def start_worker(folder, name, n_events):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", reward_worker.__name__])
    files = folder / "rewards.jsonl", folder / f"{name}.acknowledged"
    process = context.Process(target=reward_worker.work, args=(*files, name, n_events, N_QUESTIONS), daemon=True)
    process.start()
    return process


@pytest.mark.timeout(900)
def test_eight_writers_one_of_them_killed_lose_nothing_and_count_nothing_twice(tmp_path):
    """Writers append while a trainer proposes and is itself restarted; a killed writer's successor sends again what
    nobody had acknowledged.
    """
    log, checkpoint = RewardLog(tmp_path / "rewards.jsonl"), tmp_path / "checkpoint.json"
    names = [f"worker{i}" for i in range(N_WORKERS)]
    share = N_REWARDS // N_WORKERS
    workers = {name: start_worker(tmp_path, name, share) for name in names}
    victim = tmp_path / "worker3.acknowledged"
    n_proposals = n_restarts = 0
    killed_at = None
    trainer = LogFollower(curriculum("mopps", N_QUESTIONS), log, checkpoint)

    while any(worker.is_alive() for worker in workers.values()):
        trainer.catch_up()
        assert len(set(trainer.curriculum.propose(8))) == 8
        n_proposals += 1
        if killed_at is None and victim.exists() and len(victim.read_bytes().splitlines()) > share // 4:
            workers["worker3"].kill()
            workers["worker3"].join()
            assert workers["worker3"].exitcode == -signal.SIGKILL
            killed_at = len(victim.read_bytes().splitlines())
            workers["worker3"] = start_worker(tmp_path, "worker3", share)
        if n_proposals % 25 == 0:
            trainer.save()
            trainer = LogFollower(curriculum("mopps", N_QUESTIONS), log, checkpoint)
            n_restarts += 1
        time.sleep(0.01)
    trainer.catch_up()

    assert {worker.exitcode for worker in workers.values()} == {0}
    assert killed_at is not None
    assert killed_at < share
    acknowledged = {line for name in names for line in (tmp_path / f"{name}.acknowledged").read_text().splitlines()}
    written = read_all(log)
    wanted = {f"{name}-{number}" for name in names for number in range(share)}
    assert acknowledged == wanted == {event.id for event in written}
    assert trainer.n_counted == len(wanted) == trainer.curriculum.beliefs.n_rollouts.sum()
    assert trainer.n_repeated == len(written) - len(wanted)
    assert log.damaged == []

    successes = dict.fromkeys(trainer.curriculum.beliefs.uids, 0.0)
    for name in names:
        for number in range(share):
            made = reward_worker.event(name, number, N_QUESTIONS)
            successes[made.uid] += made.rewards[0]
    assert dict(zip(trainer.curriculum.beliefs.uids, trainer.curriculum.beliefs.a - 1, strict=True)) == successes
    print(
        f"\n{len(wanted):,} rewards by {N_WORKERS} processes, one killed after {killed_at:,} and replaced: "
        f"{trainer.n_counted:,} counted, {trainer.n_repeated} sent twice and counted once; "
        f"{n_proposals} proposals, {n_restarts} restarts of the trainer meanwhile"
    )
