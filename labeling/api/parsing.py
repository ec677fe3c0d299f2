"""Reading a request's body, which must fit into memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import APIException
from rest_framework.parsers import JSONParser

MOST_BYTES = 16 * 1024 * 1024  # of one request


class RequestTooLarge(APIException):
    """The body is larger than a request may be."""

    status_code = 413
    default_code = "too_large"


class LimitedJSONParser(JSONParser):
    """JSON of at most ``MOST_BYTES``; a longer body is refused before it is read."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        request = (parser_context or {})["request"]
        n_bytes = int(request.META.get("CONTENT_LENGTH") or 0)
        if n_bytes > MOST_BYTES:
            raise RequestTooLarge(
                f"The request has {n_bytes:,} bytes; at most {MOST_BYTES:,} are read. Report fewer events at a time."
            )
        return super().parse(stream, media_type, parser_context)
