"""A reward worker for the tests: appends events until none is left, and notes which were acknowledged.

Started again after a kill, it goes on behind the last acknowledged event, with the same ids.
"""

import time
from pathlib import Path

from selector.curriculum.log import RewardEvent, RewardLog

AT_ONCE = 10
PAUSE_SECONDS = 0.02  # between appends: so that all are at work at once, and a kill finds one of them in the middle


def event(name: str, number: int, n_questions: int) -> RewardEvent:
    """The same event for the same name and number, whoever makes it."""
    uid = f"q{(number * 7 + len(name)) % n_questions}"
    return RewardEvent(uid, (float(number % 3 == 0),), number // 100, f"{name}-{number}")


def work(log: Path, path: Path, name: str, n_events: int, n_questions: int) -> None:
    """Append this worker's events to ``log``, and the ids of those acknowledged to the file at ``path``."""
    done = len(path.read_text().splitlines()) if path.exists() else 0
    with path.open("a", buffering=1) as file:
        for start in range(done, n_events, AT_ONCE):
            numbers = range(start, min(start + AT_ONCE, n_events))
            RewardLog(log).append(event(name, number, n_questions) for number in numbers)
            file.write("".join(f"{name}-{number}\n" for number in numbers))
            time.sleep(PAUSE_SECONDS)
