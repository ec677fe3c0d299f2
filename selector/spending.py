"""What a run of a model has spent and what it still will: tokens, hours, money, by what came in of late."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from selector.generation.contract import Completion, CompletionKind

WINDOW_SECONDS = 60.0  # a rate is that of this last while
PROBE_TOKENS = 24  # a forced answer in tokens of a chain, as long as none was measured: its reply and words read


@dataclass
class Rate:
    """What came in lately of one kind: entries of (seconds, completions, tokens), together about a minute."""

    entries: deque[tuple[float, int, int]] = field(default_factory=deque)
    seconds: float = 0.0
    n_made: int = 0
    tokens: int = 0

    def add(self, seconds: float, n_made: int, tokens: int) -> None:
        self.entries.append((seconds, n_made, tokens))
        self._count(1, self.entries[-1])
        while self.seconds - self.entries[0][0] >= WINDOW_SECONDS:
            self._count(-1, self.entries.popleft())

    def _count(self, sign: int, entry: tuple[float, int, int]) -> None:
        self.seconds += sign * entry[0]
        self.n_made += sign * entry[1]
        self.tokens += sign * entry[2]


class Spending:
    """Hears of completions as they are stored (``hear``), and knows how many are to come (``expect``).

    Time before the first of a stage is told by ``start``, so that loading a model counts for nothing. ``gpu_price`` is
    that of one GPU for an hour, in whatever currency.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heard_at: float | None = None
        self._rates = {kind: Rate() for kind in CompletionKind}
        self._missing = dict.fromkeys(CompletionKind, 0)
        self._is_at_most = False
        self.tokens = 0
        self.seconds = 0.0
        self.gpu_price: float | None = None
        self.n_gpus = 1
        self._last: CompletionKind | None = None

    def expect(self, missing: Mapping[CompletionKind, int], *, is_at_most: bool = False) -> None:
        """Say how many completions of each kind are still to be made; at most so many where a race may leave some."""
        self._missing |= missing
        self._is_at_most = is_at_most

    def start(self) -> None:
        """Say that time is spent from now on."""
        self._heard_at = self._clock()

    def hear(self, completions: Sequence[Completion]) -> None:
        """Count completions that were made since the last call."""
        now = self._clock()
        seconds = 0.0 if self._heard_at is None else now - self._heard_at
        self._heard_at = now
        self.seconds += seconds
        for kind in CompletionKind:
            made = [completion for completion in completions if completion.kind is kind]
            if made:
                tokens = sum(completion.n_tokens for completion in made)
                self._rates[kind].add(seconds * len(made) / len(completions), len(made), tokens)
                self._missing[kind] = max(0, self._missing[kind] - len(made))
                self.tokens += tokens
                self._last = kind

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens generated a second, of the kind of completion that came in last."""
        rate = self._rates[self._last] if self._last else None
        return rate.tokens / rate.seconds if rate and rate.seconds else None

    @property
    def cost(self) -> float | None:
        """What has been spent, where there is a price."""
        return None if self.gpu_price is None else self.seconds / 3600 * self.n_gpus * self.gpu_price

    def seconds_left(self) -> float | None:
        """Return how long all that is expected will take; None while too little is known.

        A kind that has not come in yet is taken to be as long as what is like it: outcomes as chains.
        """
        left = 0.0
        for kind, n_missing in self._missing.items():
            if n_missing:
                each = self._seconds_each(kind)
                if each is None:
                    return None
                left += n_missing * each
        return left or None

    def _seconds_each(self, kind: CompletionKind) -> float | None:
        own = self._rates[kind]
        if own.n_made and own.seconds:
            return own.seconds / own.n_made
        chains, outcomes = self._rates[CompletionKind.TRAJECTORY], self._rates[CompletionKind.OUTCOME]
        like = outcomes if outcomes.n_made else chains
        if not (like.n_made and like.seconds and like.tokens):
            return None
        if kind is CompletionKind.PROBE:
            return PROBE_TOKENS * like.seconds / like.tokens
        return like.seconds / like.n_made

    def describe(self) -> str:
        """Say it in a few words: ``5,210 tokens/s; all: about 5 h left, 2.1 million tokens so far``; "" for nothing."""
        if not self.tokens:
            return ""
        parts = []
        if rate := self.tokens_per_second:
            parts.append(f"{rate:,.0f} tokens/s")
        if left := self.seconds_left():
            parts.append(f"all of it {'at most' if self._is_at_most else 'about'} {duration(left)} more")
        spent = f"{self.tokens:,} tokens so far"
        if self.cost is not None:
            spent += f", {self.cost:,.2f} spent"
        return "; ".join([*parts, spent])

    def total(self) -> str:
        """Say in a sentence what was spent in all; "" where nothing was."""
        if not self.tokens:
            return ""
        cost = "" if self.cost is None else f", for {self.cost:,.2f}"
        return f"The model generated {self.tokens:,} tokens in {duration(self.seconds)}{cost}."


def duration(seconds: float) -> str:
    """Return a length of time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"
