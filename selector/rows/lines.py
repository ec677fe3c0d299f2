"""Bytes into rows' bytes, in bounded memory: lines, and the elements of a JSON list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

_CHUNK = 1 << 16
_INSIDE_STRING = re.compile(rb'["\\\n]')
_STRUCTURE = re.compile(rb'["{}\[\],]')


class RawRow(NamedTuple):
    """The bytes of one row; ``content`` is cut to nothing where the row has more than the limit."""

    line: int
    content: bytes
    size: int
    too_long: bool


def lines(stream: BinaryIO, max_bytes: int) -> Iterator[RawRow]:
    """Yield the lines of the stream, without their ends; of a line past ``max_bytes`` only its size is kept."""
    number = 0
    while content := stream.readline(max_bytes + 2):
        number += 1
        size = len(content)
        rest = content
        while not rest.endswith(b"\n") and size > max_bytes and (rest := stream.readline(_CHUNK)):
            size += len(rest)
        body = content.rstrip(b"\r\n")
        too_long = len(body) > max_bytes
        yield RawRow(number, b"" if too_long else body, size, too_long)


def elements(stream: BinaryIO, max_bytes: int) -> Iterator[RawRow]:
    """Yield the elements of a JSON list, or of objects that follow one another over several lines.

    Only brackets and quotes are followed, so that one element with bad JSON inside does not end the reading.
    """
    scanner = _ElementScanner(max_bytes)
    while chunk := stream.read(_CHUNK):
        yield from scanner.feed(chunk)
    yield from scanner.finish()


class _ElementScanner:
    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.line, self.in_list = 1, False
        self._forget()

    def _forget(self) -> None:
        self.buffer, self.size, self.start_line, self.depth = bytearray(), 0, 0, 0
        self.in_string = self.is_escaped = self.is_broken = False

    def keep(self, piece: bytes) -> None:
        """Add a piece to the element being read; leading white space and separators are no part of it."""
        if not self.size:
            piece = piece.lstrip(b" \t\r\n")
            if not piece:
                return
            self.start_line = self.line
        self.size += len(piece)
        if self.size <= self.max_bytes:
            self.buffer += piece

    def feed(self, chunk: bytes) -> Iterator[RawRow]:
        """Read on; yield the elements that end in this chunk."""
        position = 0
        while position < len(chunk):
            if self.in_string:
                position = self._string(chunk, position)
            else:
                found = _STRUCTURE.search(chunk, position)
                end = max(found.start(), position + 1) if found else len(chunk)
                yield from self._outside(chunk[position:end])
                position = end

    def _string(self, chunk: bytes, position: int) -> int:
        """Read on inside a text; return the position after its end, or the end of the chunk."""
        if self.is_escaped:
            self.keep(chunk[position : position + 1])
            self.is_escaped = False
            return position + 1
        found = _INSIDE_STRING.search(chunk, position)
        end = found.end() if found else len(chunk)
        self.keep(chunk[position:end])
        match found.group() if found else b"":
            case b'"':
                self.in_string = False
            case b"\\":
                self.is_escaped = True
            case b"\n":  # no JSON text goes over a line break: the closing quote is missing
                self.in_string, self.is_broken = False, True
                self.line += 1
        return end

    def _outside(self, piece: bytes) -> Iterator[RawRow]:
        if piece == b"[" and self.depth == 0 and not self.size and not self.in_list:
            self.in_list = True
        elif piece == b"{" and self.is_broken:
            yield from self.finish()
            yield from self._outside(piece)
        elif piece == b"]" and self.depth == 0:
            yield from self.finish()
            self.in_list = False
        elif piece == b"," and self.depth == 0:
            yield from self.finish()
        else:
            before = len(piece) - len(piece.lstrip())
            self.line += piece[:before].count(b"\n")
            self.keep(piece)
            self.line += piece[before:].count(b"\n")
            self.in_string = piece == b'"'
            self.depth += (piece in b"{[") - (piece in b"}]")
            if piece in b"}]" and self.depth <= 0:
                yield from self.finish()

    def finish(self) -> Iterator[RawRow]:
        """Yield the element read so far, if there is one."""
        if self.size:
            too_long = self.size > self.max_bytes
            yield RawRow(self.start_line, b"" if too_long else bytes(self.buffer).rstrip(), self.size, too_long)
        self._forget()
