"""Where completions are kept, so that nothing is asked of a model twice."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from selector.errors import InvalidRow
from selector.generation.contract import Completion, CompletionKind

Key = tuple[str, CompletionKind, int]  # uid, kind, index


class CompletionStore(Protocol):
    """Completions of one generation fingerprint."""

    def keys(self, uids: Collection[str]) -> set[Key]:
        """Name what is stored of these questions."""
        ...

    def load(self, uids: Collection[str]) -> Iterator[Completion]:
        """Yield all that is stored of these questions, in any order."""
        ...

    def add(self, completions: Sequence[Completion]) -> None:
        """Store one chunk, all of it or nothing that counts. A key already stored keeps its first completion."""
        ...


class JsonlCompletionStore:
    """Completions in one JSONL file, appended and flushed to disk chunk by chunk.

    A line torn by a crash is dropped when the file is next opened; its completion is made again.
    Raises InvalidRow, naming the line, when the file holds anything else that is not a completion.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._offsets: dict[str, dict[tuple[CompletionKind, int], int]] = {}
        with self.path.open("ab+") as file:
            whole_lines = 0
            file.seek(0)
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                self._note(self._parse(line, number), whole_lines)
                whole_lines += len(line)
            file.truncate(whole_lines)

    def _note(self, completion: Completion, offset: int) -> None:
        of_question = self._offsets.setdefault(completion.uid, {})
        of_question.setdefault((completion.kind, completion.index), offset)

    def _parse(self, line: bytes, number: int) -> Completion:
        try:
            fields = json.loads(line)
            return Completion(
                **{**fields, "kind": CompletionKind(fields["kind"]), "token_ids": tuple(fields["token_ids"])}
            )
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidRow(
                path=str(self.path), line=number, row_code="not_a_completion", message=f"not a completion: {error}"
            ) from error

    def keys(self, uids: Collection[str]) -> set[Key]:
        return {(uid, kind, index) for uid in uids for kind, index in self._offsets.get(uid, ())}

    def load(self, uids: Collection[str]) -> Iterator[Completion]:
        offsets = sorted(offset for uid in set(uids) for offset in self._offsets.get(uid, {}).values())
        with self.path.open("rb") as file:
            for offset in offsets:
                file.seek(offset)
                yield self._parse(file.readline(), 0)

    def add(self, completions: Sequence[Completion]) -> None:
        with self.path.open("ab") as file:
            offset = file.seek(0, os.SEEK_END)
            lines = [json.dumps(asdict(completion)).encode() + b"\n" for completion in completions]
            file.write(b"".join(lines))
            file.flush()
            os.fsync(file.fileno())
        for completion, line in zip(completions, lines, strict=True):
            self._note(completion, offset)
            offset += len(line)
