"""Where completions are kept, so that nothing is asked of a model twice."""

from __future__ import annotations

import json
import os
import struct
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, Protocol

from selector.answers import extract_answer
from selector.errors import InvalidRow
from selector.generation.contract import Completion, CompletionKind

Key = tuple[str, CompletionKind, int]  # uid, kind, index
KEEP = ("completions", "answers")  # what is kept of an outcome: all that the model wrote, or the answer in it
SHARD_BYTES = 256 << 20
KINDS = tuple(CompletionKind)


class CompletionStore(Protocol):
    """Completions of one generation fingerprint."""

    def keys(self, uids: Collection[str]) -> set[Key]:
        """Name what is stored of these questions."""
        ...

    def load(self, uids: Collection[str], kind: CompletionKind | None = None) -> Iterator[Completion]:
        """Yield all that is stored of these questions, of one kind or of every kind, in any order."""
        ...

    def tokens(self, uids: Collection[str]) -> Mapping[CompletionKind, int]:
        """Return how many tokens were generated for these questions, by kind."""
        ...

    def add(self, completions: Sequence[Completion]) -> None:
        """Store one chunk, all of it or nothing that counts. A key already stored keeps its first completion."""
        ...


def answer_only(completion: Completion) -> Completion:
    """Return an outcome with nothing but the answer in its text, to be read as before; others unchanged.

    Chains are needed for cuts yet to come, and probes are short. An answer that would be read otherwise from fewer
    words keeps them all.
    """
    if completion.kind is not CompletionKind.OUTCOME:
        return completion
    answer = extract_answer(completion.text)
    text = f"\\boxed{{{answer}}}" if answer else ""
    is_same = extract_answer(text) == answer and len(text) < len(completion.text)
    return replace(completion, text=text) if is_same else completion


class CompletionShards:
    """Completions in a directory of gzip files (``zcat`` shows JSON Lines), appended and flushed chunk by chunk.

    A question's completions of one chunk are one gzip member, which names in its header what it holds: opening reads
    the headers alone, and a question is read without its neighbours. ``keep``: "answers" leaves out what models write
    around the answers of outcomes. ``added`` hears of every chunk stored.
    A member torn by a crash is dropped when the store is next opened (``n_torn_bytes``); its completions are made
    again. Raises InvalidRow, naming file and member, where anything else is not a completion.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        keep: str = "completions",
        added: Callable[[Sequence[Completion]], None] = lambda completions: None,
    ) -> None:
        self.path, self.keep, self.added = Path(path), keep, added
        self.path.mkdir(parents=True, exist_ok=True)
        self._questions: dict[str, _Question] = {}
        self.n_torn_bytes = 0
        shards = sorted(self.path.glob("*.jsonl.gz"))
        for number, shard in enumerate(shards):
            if shard.name != _shard_name(number):
                raise InvalidRow(
                    path=str(shard), line=0, row_code="missing_shard", message=f"{_shard_name(number)} is missing"
                )
            self._open(shard, number, is_last=shard == shards[-1])
        self._shard = max(0, len(shards) - 1)

    def _open(self, path: Path, number: int, *, is_last: bool) -> None:
        size = path.stat().st_size
        with path.open("rb") as file:
            position = n_members = 0
            while position < size:
                header = _read_header(file, path, n_members + 1)
                if header is None or position + header.n_bytes > size:
                    break
                self._note(header, number, position)
                position += header.n_bytes
                n_members += 1
                file.seek(position)
        if position < size:
            if not is_last:
                raise InvalidRow(
                    path=str(path), line=n_members + 1, row_code="torn_shard", message="the file breaks off here"
                )
            self.n_torn_bytes = size - position
            os.truncate(path, position)

    def _note(self, header: _Header, shard: int, position: int) -> None:
        question = self._questions.setdefault(header.uid, _Question())
        question.members.append(shard << 48 | position << 8 | sum(1 << kind for kind in header.indices))
        for kind, indices in header.indices.items():
            question.keys.extend(index << 2 | kind for index in indices)
            question.tokens[kind] += header.tokens[kind]

    def keys(self, uids: Collection[str]) -> set[Key]:
        return {
            (uid, KINDS[key & 3], key >> 2)
            for uid in set(uids)
            if uid in self._questions
            for key in self._questions[uid].keys
        }

    def tokens(self, uids: Collection[str]) -> dict[CompletionKind, int]:
        found = [self._questions[uid].tokens for uid in set(uids) if uid in self._questions]
        return {kind: sum(tokens[number] for tokens in found) for number, kind in enumerate(KINDS)}

    def counts(self, uids: Collection[str]) -> dict[CompletionKind, int]:
        """Return how many completions are stored of these questions, by kind."""
        found = Counter(key & 3 for uid in set(uids) if uid in self._questions for key in self._questions[uid].keys)
        return {kind: found[number] for number, kind in enumerate(KINDS)}

    def load(self, uids: Collection[str], kind: CompletionKind | None = None) -> Iterator[Completion]:
        wanted = 0xFF if kind is None else 1 << KINDS.index(kind)
        found = [self._questions[uid].members for uid in set(uids) if uid in self._questions]
        members = sorted(member for of_question in found for member in of_question if member & wanted)
        for number, in_shard in groupby(members, key=lambda member: member >> 48):
            path = self.path / _shard_name(number)
            with path.open("rb") as file:
                for member in in_shard:
                    file.seek(member >> 8 & (1 << 40) - 1)
                    for completion in _read_member(file, path):
                        if kind is None or completion.kind is kind:
                            yield completion

    def add(self, completions: Sequence[Completion]) -> None:
        of_question: dict[str, dict[int, Completion]] = {}
        for completion in completions:
            key = completion.index << 2 | KINDS.index(completion.kind)
            question = self._questions.get(completion.uid)
            if question is None or key not in question.keys:
                of_question.setdefault(completion.uid, {}).setdefault(key, completion)
        members = [_member(uid, list(made.values()), self.keep) for uid, made in of_question.items()]
        if members:
            self._append(members)
        self.added(completions)

    def _append(self, members: Sequence[tuple[_Header, bytes]]) -> None:
        path = self.path / _shard_name(self._shard)
        if path.exists() and path.stat().st_size >= SHARD_BYTES:
            self._shard += 1
            path = self.path / _shard_name(self._shard)
        with path.open("ab") as file:
            position = file.seek(0, os.SEEK_END)
            file.write(b"".join(data for _, data in members))
            file.flush()
            os.fsync(file.fileno())
        for header, data in members:
            self._note(header, self._shard, position)
            position += len(data)


@dataclass(slots=True)
class _Question:
    """Where a question's members are (shard, position, mask of kinds), their keys (index, kind), tokens by kind."""

    members: array[int] = field(default_factory=lambda: array("Q"))
    keys: array[int] = field(default_factory=lambda: array("Q"))
    tokens: array[int] = field(default_factory=lambda: array("Q", [0] * len(KINDS)))


@dataclass(frozen=True, slots=True)
class _Header:
    """What a member says of itself in its gzip header; kinds by their number in KINDS."""

    uid: str
    indices: Mapping[int, Sequence[int]]
    tokens: Mapping[int, int]
    n_bytes: int = 0  # of the member


_FIXED = struct.Struct("<4sIHH")  # gzip magic, deflate, "extra" flag; time (0); compression and system; length of extra
_SUBFIELD = struct.Struct("<2sHI")  # name, length, and our first four bytes: those of the whole member
_MAGIC, _NAME, _SYSTEM = b"\x1f\x8b\x08\x04", b"AY", 0xFF00


def _shard_name(number: int) -> str:
    return f"{number:05d}.jsonl.gz"


def _member(uid: str, completions: Sequence[Completion], keep: str) -> tuple[_Header, bytes]:
    kept = completions if keep == "completions" else [answer_only(completion) for completion in completions]
    body = b"".join(_line(completion) for completion in kept)
    indices: dict[int, list[int]] = {}
    tokens: dict[int, int] = {}
    for completion in kept:
        kind = KINDS.index(completion.kind)
        indices.setdefault(kind, []).append(completion.index)
        tokens[kind] = tokens.get(kind, 0) + completion.n_tokens
    named = json.dumps([uid, *([kind, tokens[kind], indices[kind]] for kind in indices)], separators=(",", ":"))
    data = zlib.compress(body, 6, wbits=-zlib.MAX_WBITS)
    trailer = struct.pack("<II", zlib.crc32(body), len(body) & 0xFFFFFFFF)
    n_extra = _SUBFIELD.size + len(named)
    n_bytes = _FIXED.size + n_extra + len(data) + len(trailer)
    header = _FIXED.pack(_MAGIC, 0, _SYSTEM, n_extra) + _SUBFIELD.pack(_NAME, n_extra - 4, n_bytes) + named.encode()
    return _Header(uid, indices, tokens, n_bytes), header + data + trailer


def _line(completion: Completion) -> bytes:
    fields = {name: value for name, value in vars(completion).items() if name != "token_ids" or value}
    return json.dumps(fields).encode() + b"\n"


def _read_header(file: BinaryIO, path: Path, number: int) -> _Header | None:
    """Return the header at the file's position, None where the file ends within it."""
    fixed = file.read(_FIXED.size)
    if len(fixed) < _FIXED.size:
        return None
    magic, _, _, n_extra = _FIXED.unpack(fixed)
    extra = file.read(n_extra)
    try:
        if magic != _MAGIC:
            raise ValueError("no gzip member of ours begins here")
        if len(extra) < n_extra:
            return None
        _, _, n_bytes = _SUBFIELD.unpack_from(extra)
        uid, *kinds = json.loads(extra[_SUBFIELD.size :])
        indices = {kind: indices for kind, _, indices in kinds}
        return _Header(uid, indices, {kind: n for kind, n, _ in kinds}, n_bytes)
    except (ValueError, TypeError, struct.error) as error:
        raise _not_a_completion(path, number, error) from error


def _read_member(file: BinaryIO, path: Path) -> list[Completion]:
    header = _read_header(file, path, 0)
    try:
        if header is None:
            raise ValueError("the file breaks off")
        rest = file.read(header.n_bytes)
        reader = zlib.decompressobj(-zlib.MAX_WBITS)
        body = reader.decompress(rest)
        if reader.unused_data[:4] != struct.pack("<I", zlib.crc32(body)):
            raise ValueError("its checksum is another")
        return [parse_completion(line) for line in body.splitlines()]
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise _not_a_completion(path, 0, error) from error


def parse_completion(line: bytes) -> Completion:
    """Read one completion, as JSON. Raises ValueError, KeyError or TypeError."""
    fields = json.loads(line)
    return Completion(
        **{**fields, "kind": CompletionKind(fields["kind"]), "token_ids": tuple(fields.get("token_ids", ()))}
    )


def _not_a_completion(path: Path, number: int, error: Exception) -> InvalidRow:
    where = f"member {number}" if number else "a member"
    return InvalidRow(
        path=str(path), line=number, row_code="not_a_completion", message=f"{where} is not a completion: {error}"
    )
