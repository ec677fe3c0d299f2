"""Rewards for training on questions with checked answers: 1.0 for the gold answer in a \\boxed{}, else 0.0.

This file travels with an exported dataset and needs math-verify and nothing else. Each export's rows name the golds:

- TRL:  ``GRPOTrainer(reward_funcs=rewards.accuracy_reward, train_dataset=rows)``, columns ``answer`` (or ``solution``)
- verl: ``reward.custom_reward_function.path=rewards.py``, ``reward.custom_reward_function.name=compute_score``

What is graded is the last balanced ``\\boxed{}`` after any ``</think>``; a completion without one earns 0.0. Numbers
and equal spellings are decided at once. The rest is decided by math-verify in processes of their own that the system
ends when an expression takes longer than TIME_LIMIT_SECONDS of their processor time: such an answer earns 0.0 too, and
a reward is never None. Safe in threads, in forked children and in daemonic workers (Linux and macOS).

Rewards can steer the training that earns them. With ``ASSAY_REWARD_LOG=file`` in the environment every reward of a
training row is appended to that file, under its uid and step; with ``ASSAY_REWARD_URL=https://.../curricula/7/`` and
``ASSAY_REWARD_TOKEN=assay_...`` it is sent there, in the background: no reward waits for the network.

A gold that cannot be read is a fault of the data: ``check_golds`` names it before training, and both reward functions
raise UnreadableGold when they meet one.
"""

from __future__ import annotations

import atexit
import encodings.idna  # noqa: F401  urllib needs it, and a forked child may find it half imported
import http.client
import json
import os
import queue
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from typing import IO, Any, cast

TIME_LIMIT_SECONDS = 2.0  # of a worker's processor time, for one comparison
WALL_LIMIT_SECONDS = 10.0  # the same on a machine that is overloaded
MEMORY_LIMIT_BYTES = 2 * 1024**3
RELATIVE_ERROR = 1e-12  # of a number written as a decimal against one that has none
LONGEST_ANSWER = 2000  # characters; a longer answer is only compared as text
N_WORKERS = min(4, os.cpu_count() or 1)
READ_AS_TEXT = frozenset({"choice", "text"})  # kinds that no algebra may touch


class UnreadableGold(ValueError):
    """A gold answer that a grader cannot read: no completion could ever earn its reward."""


def accuracy_reward(
    completions: Sequence[str | Sequence[Mapping[str, Any]]],
    solution: Sequence[str] | None = None,
    answer: Sequence[str] | None = None,
    answer_kind: Sequence[str] | None = None,
    **kwargs: object,
) -> list[float]:
    """Return one reward per completion, as TRL's trainers ask for it.

    ``completions`` are strings or chat messages; the golds come in the column ``answer`` (bare) or ``solution``
    (wrapped in dollars), the kinds, if at all, in ``answer_kind``. Raises UnreadableGold.
    """
    golds = answer if answer is not None else solution
    if golds is None:
        raise TypeError("accuracy_reward needs the column 'answer' or 'solution'.")
    kinds = answer_kind if answer_kind is not None else [""] * len(golds)
    texts = [text if isinstance(text, str) else _text_of(text) for text in completions]
    rewards = _grade_many(list(zip(golds, texts, kinds, strict=True)))
    uids = kwargs.get("uid")
    if isinstance(uids, Sequence) and not isinstance(uids, str):
        _report(uids, rewards, getattr(kwargs.get("trainer_state"), "global_step", None))
    return rewards


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **kwargs: object,
) -> float:
    """Return the reward of one completion, as verl's custom reward function. Raises UnreadableGold."""
    extra_info = extra_info or {}
    (reward,) = _grade_many([(ground_truth, solution_str, str(extra_info.get("answer_kind") or ""))])
    if extra_info.get("uid") and extra_info.get("split", "train") == "train":  # validation teaches nothing
        _report([extra_info["uid"]], [reward], extra_info.get("step"))
    return reward


def check_golds(golds: Sequence[str], kinds: Sequence[str] | None = None) -> dict[int, str]:
    """Return what is wrong with which golds, by position: each must earn its own reward and refuse a wrong answer."""
    kinds = kinds if kinds is not None else [""] * len(golds)
    with ThreadPoolExecutor(N_WORKERS) as threads:
        problems = list(threads.map(_problem_with, golds, kinds))
    return {position: problem for position, problem in enumerate(problems) if problem}


def read_boxed(completion: str) -> str:
    """Return what stands in the last balanced ``\\boxed{}`` of the final part of a completion, or ""."""
    text = completion.rpartition("</think>")[2]
    start = len(text)
    while (start := text.rfind("\\boxed{", 0, start)) >= 0:
        begin = start + len("\\boxed{")
        depth = 1
        for brace in re.finditer(r"\\?[{}]", text[begin:]):
            depth += {"{": 1, "}": -1}.get(brace.group(), 0)
            if depth == 0:
                return text[begin : begin + brace.start()].strip()
    return ""


def _text_of(messages: Sequence[Mapping[str, Any]]) -> str:
    content = messages[-1]["content"] if messages else ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or "") for part in content or ())


def _grade_many(items: Sequence[tuple[str, str, str]]) -> list[float]:
    """Grade (gold, completion, kind) triples; each distinct comparison is made once."""
    keys = [(unwrap(gold), read_boxed(completion), kind or "") for gold, completion, kind in items]
    for gold, _, kind in dict.fromkeys(keys):
        _refuse_unreadable(gold, kind)
    verdicts: dict[tuple[str, str, str], bool | None] = {key: _compare_quickly(*key) for key in keys}
    slow = [key for key, verdict in verdicts.items() if verdict is None]
    if len(slow) == 1:
        verdicts[slow[0]] = _compare_in_worker(*slow[0][:2])
    elif slow:
        with ThreadPoolExecutor(N_WORKERS) as threads:
            verdicts.update(zip(slow, threads.map(lambda key: _compare_in_worker(*key[:2]), slow), strict=True))
    return [1.0 if verdicts[key] else 0.0 for key in keys]


# --- Golds -----------------------------------------------------------------------------------------------------------

_readable: set[tuple[str, str]] = set()


def _refuse_unreadable(gold: str, kind: str) -> None:
    if (gold, kind) not in _readable:
        if problem := _problem_with(gold, kind):
            raise UnreadableGold(f"The gold answer {gold[:200]!r} {problem}.")
        _readable.add((gold, kind))


def _problem_with(gold: object, kind: str) -> str:
    """Return why a gold could not serve as one, or ""."""
    if not isinstance(gold, str):
        return f"is of type {type(gold).__name__}; golds are text"
    gold = unwrap(gold)
    if not gold:
        return "is empty"
    if read_boxed(f"\\boxed{{{gold}}}") != gold:
        return "cannot be put in a \\boxed{}: its braces do not balance"
    if kind in READ_AS_TEXT:
        return "" if any(map(str.isalnum, gold)) else "has no letter or digit"
    if _as_fraction(_respell(gold)) is not None:
        return ""
    if not _ask_worker({"gold": gold}):
        return "cannot be read by math-verify"
    if _compare_in_worker(gold, WRONG_ANSWER):
        return "is matched by a wrong answer"
    return ""


WRONG_ANSWER = "-987654321.123"


# --- Reports ---------------------------------------------------------------------------------------------------------

SEND_AT_MOST = 500  # events in one request
SEND_TIMEOUT_SECONDS = 10.0
LAST_WORDS_SECONDS = 15.0  # at the end of the process, for what has not been sent

_to_send: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
_sender: threading.Thread | None = None
_starting = threading.Lock()
_is_ending = threading.Event()


def _begin_anew() -> None:
    """Leave what a forked process inherited to its parent, whose thread sends it."""
    global _to_send, _sender, _starting, _is_ending
    _to_send, _sender, _starting, _is_ending = queue.SimpleQueue(), None, threading.Lock(), threading.Event()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def _report(uids: Sequence[Any], rewards: Sequence[float], step: int | None) -> None:
    """Tell whoever steers the training what the rollouts of each question earned. A failure is said, not raised."""
    log, url = os.environ.get("ASSAY_REWARD_LOG"), os.environ.get("ASSAY_REWARD_URL")
    if not (log or url):
        return
    groups: dict[str, list[float]] = {}
    for uid, reward in zip(uids, rewards, strict=True):
        groups.setdefault(str(uid), []).append(reward)
    events = [{"id": uuid.uuid4().hex, "uid": uid, "rewards": earned, "step": step} for uid, earned in groups.items()]
    if log:
        try:
            _append(log, [{**event, "step": step or 0} for event in events])
        except OSError as error:
            _say(f"{len(events)} rewards are not in {log}: {error}")
    if url:
        for event in events:
            _to_send.put(event)
        _start_sender(url)


def _append(path: str, events: Sequence[Mapping[str, Any]]) -> None:
    """Write whole lines behind all others, as selector.curriculum.RewardLog reads them."""
    import fcntl

    text = "".join(json.dumps(event) + "\n" for event in events).encode()
    with open(path, "ab+", buffering=0) as file:  # the lock goes with the file
        fcntl.flock(file, fcntl.LOCK_EX)
        end = file.seek(0, os.SEEK_END)
        if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
            text = b"\n" + text  # a writer was killed: its torn line stays alone, and is skipped
        try:
            written = 0
            while written < len(text):
                written += os.write(file.fileno(), text[written:])
        except BaseException:
            os.ftruncate(file.fileno(), end)
            raise


def _start_sender(url: str) -> None:
    global _sender
    with _starting:
        if _sender is None:
            atexit.register(_last_words, os.getpid())
            _sender = threading.Thread(target=_send_all, args=(url.rstrip("/") + "/rewards/",), daemon=True)
            _sender.start()


def _send_all(address: str) -> None:
    pause = 0.5
    batch: list[dict[str, Any]] = []
    while True:
        try:
            batch.append(_to_send.get(timeout=0.2))
            while len(batch) < SEND_AT_MOST and not _to_send.empty():
                batch.append(_to_send.get())
        except queue.Empty:
            if _is_ending.is_set() and not batch:
                return
        if not batch:
            continue
        problem, is_final = _send(address, batch)
        if problem:
            _say(f"{len(batch)} rewards could not be reported to {address}: {problem}")
        if problem and (is_final or _is_ending.wait(pause)):
            _keep(batch)
        elif problem:
            pause = min(60.0, 2 * pause)
            continue
        batch, pause = [], 0.5


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Follows nobody: a redirected report would be an empty one, and the token another server's."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _send(address: str, events: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    """Return what went wrong, "" for nothing, and whether sending the same again would go wrong again."""
    if not address.startswith(("http://", "https://")):
        return "the address must begin with http:// or https://", True
    token = os.environ.get("ASSAY_REWARD_TOKEN", "")
    request = urllib.request.Request(  # noqa: S310
        address,
        data=json.dumps({"events": events}).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
    )
    try:
        with urllib.request.build_opener(_StayHere).open(request, timeout=SEND_TIMEOUT_SECONDS) as answer:
            for each in json.load(answer).get("rejected", [])[:3]:
                _say(f"a reward was not taken: {each.get('message')}")
            return "", True
    except urllib.error.HTTPError as error:
        said = error.read(2000).decode("utf-8", "replace")
        return f"{error.code} {said}", error.code < 500 and error.code not in {401, 408, 429}
    except (OSError, ValueError, http.client.HTTPException) as error:
        return str(error), False


def _last_words(process: int) -> None:
    """Give the sender a last moment; what it cannot send is kept in a file."""
    if os.getpid() != process or _sender is None:
        return
    _is_ending.set()
    _sender.join(LAST_WORDS_SECONDS)
    left = []
    while not _to_send.empty():
        left.append(_to_send.get())
    if left:
        _keep(left)


def _keep(events: Sequence[Mapping[str, Any]]) -> None:
    path = os.path.abspath(f"assay-rewards-not-sent-{os.getpid()}.jsonl")
    try:
        _append(path, [{**event, "step": event["step"] or 0} for event in events])
        _say(f"{len(events)} rewards that were not taken are kept in {path}")
    except OSError as error:
        _say(f"{len(events)} rewards are lost: {error}")


def _say(message: str) -> None:
    print(f"rewards.py: {message}", file=sys.stderr, flush=True)


# --- What needs no algebra -------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"[+-]?(?:(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_FRACTION = re.compile(r"([+-]?)\\frac\{(\d+)\}\{(\d+)\}|([+-]?\d+)/(\d+)")
_UNIT = re.compile(r"[\d}](?:\s*\\(?:text|mathrm)\{\s*([^{}]+?)\s*\}|\s+([a-zA-Z]+))$")
_SPELLINGS = (
    (re.compile(r"\\[dt]frac"), r"\\frac"),
    (re.compile(r"\\(?:left|right)(?![a-zA-Z])|\\[!,;: ]"), ""),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"^\\?\$\s*(?=[\d.])"), ""),
    (re.compile(r"\\varnothing(?![a-zA-Z])"), r"\\emptyset"),
    (re.compile(r"\s+"), " "),
)
_LONGEST_NUMBER = 300  # digits; a longer one is only compared as text


def unwrap(gold: str) -> str:
    """Return a gold without the dollars that math-verify's own readers need around it, or a \\boxed{} of its own."""
    gold = gold.strip()
    if len(gold) > 2 and gold[0] == gold[-1] == "$" and "$" not in gold[1:-1] and not gold.endswith("\\$"):
        gold = gold[1:-1].strip()
    inside = read_boxed(gold)
    return inside if inside and gold == f"\\boxed{{{inside}}}" else gold


def _compare_quickly(gold: str, answer: str, kind: str) -> bool | None:
    """Return whether the two are the same, or None when only algebra could tell."""
    if not answer:
        return False
    if answer == gold:
        return True
    if kind in READ_AS_TEXT:
        return _plain(gold) == _plain(answer)
    if max(len(gold), len(answer)) > LONGEST_ANSWER:
        return False
    gold, answer = _respell(gold), _respell(answer)
    if gold == answer:
        return True
    gold_number, answer_number = _as_fraction(gold), _as_fraction(answer)
    if gold_number is None or answer_number is None:
        gold_unit, answer_unit = _UNIT.search(gold), _UNIT.search(answer)
        differ = gold_unit and answer_unit and set(gold_unit.groups()) != set(answer_unit.groups())
        return False if differ else None
    if {"." in gold, "." in answer} == {True, False} and 1 not in (gold_number.denominator, answer_number.denominator):
        return abs(gold_number - answer_number) <= abs(gold_number) * Fraction(RELATIVE_ERROR)  # 1/12, 0.08333333333333
    return gold_number == answer_number


def _respell(answer: str) -> str:
    for pattern, replacement in _SPELLINGS:
        answer = pattern.sub(replacement, answer)
    return answer.strip().removesuffix(".").strip()


def _plain(answer: str) -> str:
    """Return a choice or a text without markup, brackets and case: \\text{(B)} is b."""
    answer = re.sub(r"\\(?:text|textbf|mathrm|mathbf|textit)\{([^{}]*)\}", r"\1", answer)
    return " ".join(answer.replace("$", "").strip(" .()").casefold().split())


def _as_fraction(answer: str) -> Fraction | None:
    """Return a plain number or fraction exactly, or None."""
    if len(answer) > _LONGEST_NUMBER:
        return None
    if _NUMBER.fullmatch(answer):
        return Fraction(answer.replace(",", ""))
    if match := _FRACTION.fullmatch(answer):
        sign, top, bottom, plain_top, plain_bottom = match.groups()
        if int(bottom or plain_bottom):
            return Fraction(int(sign + top) if top else int(plain_top), int(bottom or plain_bottom))
    return None


# --- Workers: this file, run as a program, asked line by line --------------------------------------------------------


class _Worker:
    """A process that compares; the system ends it when a comparison takes too long."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1"},
        )
        self.questions, self.answers = cast("IO[str]", self.process.stdin), cast("IO[str]", self.process.stdout)
        if self.answers.readline() != "ready\n":
            self.close()
            raise RuntimeError("The grader did not start: is math-verify[antlr4_13_2] installed for this Python?")

    def ask(self, request: Mapping[str, str]) -> bool | None:
        """Return the worker's yes or no, or None when it was ended over the question."""
        try:
            self.questions.write(json.dumps(request) + "\n")
            self.questions.flush()
            return {"yes\n": True, "no\n": False}.get(self.answers.readline())
        except BrokenPipeError:
            return None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.answers.close()
        with suppress(BrokenPipeError):  # the rest of a question to a worker that is gone
            self.questions.close()


_idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
_free_places = threading.BoundedSemaphore(N_WORKERS)


def _forget_workers() -> None:
    """In a forked child the workers belong to the parent: leave them alone and start afresh."""
    global _idle, _free_places
    _idle, _free_places = queue.LifoQueue(), threading.BoundedSemaphore(N_WORKERS)


def _close_workers() -> None:
    while not _idle.empty():
        _idle.get().close()


os.register_at_fork(after_in_child=_forget_workers)
atexit.register(_close_workers)


def _ask_worker(request: Mapping[str, str]) -> bool:
    """Return the answer of a worker; False when the question took too long or too much memory."""
    with _free_places:
        try:
            worker = _idle.get_nowait()
        except queue.Empty:
            worker = _Worker()
        verdict = worker.ask(request)
        if verdict is None:
            worker.close()
        else:
            _idle.put(worker)
    return bool(verdict)


def _compare_in_worker(gold: str, answer: str) -> bool:
    return _ask_worker({"gold": gold, "answer": answer})


def _work() -> None:
    """Answer comparisons from standard input until it ends."""
    import logging
    import resource
    import signal

    from math_verify import parse, verify

    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    logging.disable()
    for limit_signal in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(limit_signal, signal.SIG_DFL)  # ends the process, even inside one long multiplication

    def read(answer: str) -> list[Any]:
        return list(parse(answer if "$" in answer else f"${answer}$", parsing_timeout=None))

    def is_near(gold: Any, answer: Any) -> bool:
        """math-verify rounds to six decimals, where all small numbers are equal."""
        if gold == answer or not (getattr(gold, "is_number", False) and getattr(answer, "is_number", False)):
            return True
        difference = gold - answer
        return bool(difference == 0 or abs(difference.evalf(30)) <= RELATIVE_ERROR * abs(gold.evalf(30)))

    def is_yes(request: Mapping[str, str]) -> bool:
        try:
            gold = read(request["gold"])
            answer = read(request["answer"]) if "answer" in request else gold
            return bool(gold and answer and verify(gold, answer, timeout_seconds=None) and is_near(gold[0], answer[0]))
        except Exception:  # whatever sympy makes of it, it is not the gold
            return False

    print("ready", flush=True)
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, TIME_LIMIT_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, WALL_LIMIT_SECONDS)
        verdict = is_yes(json.loads(line))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print("yes" if verdict else "no", flush=True)


if __name__ == "__main__" and "--worker" in sys.argv:
    _work()
