"""Progress of long work on standard error: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from selector.errors import Stopped
from selector.spending import WINDOW_SECONDS, Spending, duration

SECONDS_BETWEEN_LINES = 5.0


class StageProgress:
    """Shows one stage after another, called as progress(stage, done, total); ``seconds`` keeps how long each took.

    Rates are those of the last minute. ``spending`` hears of completions where a model is asked: its tokens a second,
    the time left for everything and the money spent are then shown as well.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._stage = ""
        self._started = self._shown_at = 0.0
        self._seen: deque[tuple[float, int]] = deque()  # when, done; the first one is about a minute old
        self.seconds: dict[str, float] = {}
        self.spending = Spending()

    def __enter__(self) -> StageProgress:
        if self._stream.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            rate = TextColumn("{task.fields[rate]}")
            self._bar = Progress(*columns, rate, console=Console(file=self._stream))
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if self._bar:
            self._bar.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage != self._stage:
            self.close()
            self._stage, self._started, self._shown_at = stage, now, now
            self._seen = deque([(now, done)])
            self.spending.start()
            if self._bar:
                self._task = self._bar.add_task(stage, total=total, completed=done, rate="")
            elif total > 1:
                self._line(f"{stage}: {done:,} of {total:,}")
            return
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[1][0] >= WINDOW_SECONDS:
            self._seen.popleft()
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=done, total=total, rate=self._rate(done, total))
        elif now - self._shown_at >= SECONDS_BETWEEN_LINES or (done == total and self._shown_at > self._started):
            self._shown_at = now
            self._line(f"{stage}: {done:,} of {total:,} ({self._rate(done, total) or '0.0/s'})")

    def _rate(self, done: int, total: int) -> str:
        (since, done_then), (now, _) = self._seen[0], self._seen[-1]
        rate = (done - done_then) / (now - since) if now > since else 0.0
        left = f", about {duration((total - done) / rate)} left" if rate and done < total else ""
        spent = self.spending.describe()
        return (f"{rate:,.1f}/s{left}" if rate else "") + (f"; {spent}" if rate and spent else spent)

    def say(self, message: str) -> None:
        """Write a line without disturbing the bar."""
        if self._bar:
            self._bar.console.print(message, markup=False, highlight=False)
        else:
            self._line(message)

    def close(self) -> None:
        """End the stage at hand, so that its seconds are known."""
        if self._stage:
            spent = time.monotonic() - self._started
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + round(spent, 3)
        self._stage = ""

    def _line(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class StopOnSignal:
    """Turns the first Ctrl-C (or SIGTERM) into a request to stop cleanly; the second one ends the process at once."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, announce: Callable[[str], None]) -> None:
        self._announce = announce
        self._asked = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopOnSignal:
        self._before = {number: signal.signal(number, self._handle) for number in self.SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def __call__(self) -> bool:
        """Say whether the work should stop."""
        return self._asked

    def check(self) -> None:
        """Raise Stopped once a signal has come."""
        if self._asked:
            raise Stopped("Stopped as asked; what was finished is kept.")

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        self._restore()
        self._announce("Stopping after the answers in flight are saved; press Ctrl-C again to stop at once.")

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
