"""Reading a request's body, which must fit into memory; files are streamed instead."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import IO, Any, NoReturn

from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser, FileUploadParser, FormParser, JSONParser

MOST_BYTES = 16 * 1024 * 1024  # of one request


class RequestTooLarge(APIException):
    """The body is larger than a request may be."""

    status_code = 413
    default_code = "too_large"


class LimitedJSONParser(JSONParser):
    """JSON in UTF-8, of at most ``MOST_BYTES``; a longer body is refused before it is read."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        request = (parser_context or {})["request"]
        n_bytes = int(request.META.get("CONTENT_LENGTH") or 0)
        if n_bytes > MOST_BYTES:
            raise RequestTooLarge(
                f"The request has {n_bytes:,} bytes; at most {MOST_BYTES:,} are read. Report fewer events at a time."
            )
        return read_json(stream.read())


class PageFormParser(BaseParser):
    """The form below an operation's page: JSON in the field ``content``, so that the page needs no JavaScript."""

    media_type = FormParser.media_type

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        form = FormParser().parse(stream, media_type, parser_context or {})
        return read_json((form.get("content") or "{}").encode())


class FileParser(FileUploadParser):
    """A file as the whole body; ``?filename=`` names it."""

    media_type = "application/octet-stream"

    def get_filename(self, stream: IO[Any], media_type: str, parser_context: Mapping[str, Any]) -> str:
        return str(parser_context["request"].query_params.get("filename", ""))[:255] or "upload.jsonl"


def read_json(content: bytes) -> Any:
    """Decode JSON. Raises ParseError for what is not UTF-8, not JSON, nested too deep, or holds no finite number."""
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ParseError("The JSON is nested too deep.") from error
    except ValueError as error:
        raise ParseError(f"The body is not JSON: {error}") from error


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON knows")


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError(f"{digits[:40]} is too large")
    return number
