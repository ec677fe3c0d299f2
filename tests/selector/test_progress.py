import io
import os
import signal

import pytest

from selector.errors import Stopped
from selector.progress import StageProgress, StopOnSignal


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_stages_are_named_and_timed(monkeypatch):
    clock = iter([0.0, 1.0, 7.0, 7.0, 9.0, 9.0, 9.5])
    monkeypatch.setattr("selector.progress.time.monotonic", lambda: next(clock))
    stream = io.StringIO()

    with StageProgress(stream) as progress:
        progress("probes", 0, 100)
        progress("probes", 1, 100)
        progress("probes", 14, 100)
        progress("outcomes", 0, 50)
        progress("outcomes", 1, 50)

    assert stream.getvalue().splitlines() == [
        "probes: 0 of 100",
        "probes: 14 of 100 (2.0/s, about 43 s left)",
        "outcomes: 0 of 50",
    ]
    assert progress.seconds == {"probes": 9.0, "outcomes": 2.5}


def test_what_was_stored_before_does_not_count_in_the_rate(monkeypatch):
    clock = iter([0.0, 10.0, 10.0])
    monkeypatch.setattr("selector.progress.time.monotonic", lambda: next(clock))
    stream = io.StringIO()

    with StageProgress(stream) as progress:
        progress("outcomes", 900, 1000)
        progress("outcomes", 910, 1000)

    assert "910 of 1,000 (1.0/s, about 2 min left)" in stream.getvalue()


def test_a_rate_is_that_of_the_last_minute(monkeypatch):
    clock = iter([0.0, *(float(t) for t in range(10, 210, 10)), 200.0])
    monkeypatch.setattr("selector.progress.time.monotonic", lambda: next(clock))
    stream = io.StringIO()

    with StageProgress(stream) as progress:
        progress("outcomes", 0, 10_000)
        for tick in range(1, 21):
            progress("outcomes", 1000 if tick <= 10 else 1000 + 10 * (tick - 10), 10_000)

    assert stream.getvalue().splitlines()[-1] == "outcomes: 1,100 of 10,000 (1.0/s, about 2.5 h left)"


def test_a_terminal_gets_a_bar():
    stream = Terminal()

    with StageProgress(stream) as progress:
        progress("probes", 0, 10)
        progress("probes", 10, 10)
        progress.say("A [message] with brackets")

    assert "probes" in stream.getvalue()
    assert "10/10" in stream.getvalue()
    assert "A [message] with brackets" in stream.getvalue()


def test_the_first_signal_asks_to_stop_and_the_second_is_the_usual_one():
    said = []
    before = signal.getsignal(signal.SIGINT)

    with StopOnSignal(said.append) as stop:
        assert not stop()
        stop.check()
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()
        with pytest.raises(Stopped):
            stop.check()
        assert signal.getsignal(signal.SIGINT) is before

    assert len(said) == 1
    assert signal.getsignal(signal.SIGINT) is before
