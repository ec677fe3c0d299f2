"""A curriculum of the application, asked over its API: a trainer on another machine is steered from there."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from selector.curriculum.log import RewardEvent
from selector.errors import CurriculumUnreachable
from selector.state import write_atomically

FIRST_PAUSE_SECONDS = 0.5  # before the second attempt; each further pause is twice as long
LONGEST_PAUSE_SECONDS = 30.0
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


class RemoteCurriculum:
    """The curriculum at ``url`` (``https://.../api/v1/curricula/7/``), for whoever has its pool's ``token``.

    Rewards come from the reward function (ASSAY_REWARD_URL and ASSAY_REWARD_TOKEN), in the background, or through
    ``observe``. A proposal is asked for under the name of the training and its number, so that asking again, after a
    lost answer or a resumption, gets the same questions. All but ``refill`` is tried ``n_attempts`` times. Raises
    CurriculumUnreachable with what the server said.
    """

    hears_at_once = False

    def __init__(
        self, url: str, token: str, *, name: str = "", n_attempts: int = 6, timeout_seconds: float = 30.0
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise CurriculumUnreachable(url=url, problem="an address begins with http:// or https://")
        self.url, self.name = url.rstrip("/") + "/", name or uuid.uuid4().hex
        self._token, self._n_attempts, self._timeout_seconds = token, n_attempts, timeout_seconds
        self.n_proposed = 0
        self._batch: list[str] = []

    def describe(self) -> dict[str, Any]:
        """Return what the curriculum is: name, kind, seed, options, and how many questions, events and proposals."""
        return self._ask("", None)

    def propose(self, k: int) -> list[str]:
        """Return the uids of k different questions to roll out now."""
        asked = {"k": k, "idempotency_key": f"{self.name} {self.n_proposed}"}
        self._batch = list(self._ask("propose/", asked)["uids"])
        self.n_proposed += 1
        return list(self._batch)

    def observe(self, events: Iterable[RewardEvent]) -> dict[str, Any]:
        """Report rewards, and return how many were accepted, repeated and rejected. An event's id counts once."""
        rows = [json.loads(event.to_line()) for event in events]
        return self._ask("rewards/", {"events": rows})

    def refill(self) -> list[str]:
        """Return the uids to roll out in place of dropped ones; ask when the rewards of the batch have arrived."""
        answer = self._ask("refill/", {}, n_attempts=1)
        self._batch = list(answer["kept"])
        return list(answer["uids"])

    def kept(self) -> list[str]:
        """Return the uids of this batch that are to be trained on, as of the last refill."""
        return list(self._batch)

    def save(self, path: Path) -> None:
        """Write which proposal is next; beliefs are kept by the server."""
        write_atomically(path, [json.dumps({"url": self.url, "name": self.name, "n_proposed": self.n_proposed}), "\n"])

    def load(self, path: Path) -> None:
        """Go on with the next proposal of a saved training. Raises FileNotFoundError."""
        saved = json.loads(path.read_text(encoding="utf-8"))
        self.name, self.n_proposed = saved["name"], saved["n_proposed"]

    def _ask(self, what: str, data: Any, *, n_attempts: int | None = None) -> dict[str, Any]:
        address, problem, pause = self.url + what, "", FIRST_PAUSE_SECONDS
        for attempt in range(n_attempts or self._n_attempts):
            if attempt:
                time.sleep(pause)
                pause = min(LONGEST_PAUSE_SECONDS, 2 * pause)
            try:
                return self._ask_once(address, data)
            except urllib.error.HTTPError as error:
                problem = f"{error.code} {error.read(2000).decode('utf-8', 'replace')}"
                if error.code not in TRY_AGAIN:
                    break
            except (OSError, ValueError) as error:
                problem = str(error)
        raise CurriculumUnreachable(url=address, problem=problem)

    def _ask_once(self, address: str, data: Any) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310
            address,
            data=None if data is None else json.dumps(data).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"},
        )
        opener = urllib.request.build_opener(_StayHere)
        with opener.open(request, timeout=self._timeout_seconds) as answer:
            found = json.load(answer)
        if not isinstance(found, dict):
            raise ValueError(f"an answer of type {type(found).__name__}: is this the address of a curriculum?")
        return found


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Follows nobody: the token is for this server."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None
