"""What every address of the API is: scoped, in pages where it lists, and done once for each ``Idempotency-Key``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import PageNumberPagination
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from labeling.actions.idempotency import begin_request, forget_request, keep_answer
from labeling.api.errors import AnsweredBefore
from labeling.models import AnsweredRequest, ApiToken

Scope = ApiToken.Scope
MOST_KEY_CHARACTERS = 200


class Pages(PageNumberPagination):
    """``?page=2&page_size=100``; the answer says how many rows there are and where the next page is."""

    page_size = 50
    max_page_size = 500
    page_size_query_param = "page_size"


class Endpoint(APIView):
    """An address. ``scopes``: which a token needs, by method.

    ``is_repeatable``: sent twice it changes nothing more than once, so that no answer has to be kept.
    ``shown_once``: fields of an answer that are not kept with it.
    """

    scopes: ClassVar[Mapping[str, str]] = {}
    is_repeatable: ClassVar[bool] = False
    takes_key: ClassVar[bool] = False  # it keeps the key with what it records
    shown_once: ClassVar[Sequence[str]] = ()
    tag: ClassVar[str] = ""
    _kept: AnsweredRequest | None = None

    def scope_of(self, method: str | None) -> str:
        return self.scopes.get(method or "", Scope.READ if method in {"GET", "HEAD", "OPTIONS"} else Scope.MANAGE)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        key = request.headers.get("Idempotency-Key", "") or _key_of_form(request)
        if request.method != "POST" or not key or self.is_repeatable:
            return
        if len(key) > MOST_KEY_CHARACTERS or not key.isascii() or not key.isprintable():
            raise ValidationError(
                {"Idempotency-Key": [f"Give at most {MOST_KEY_CHARACTERS} printable ASCII characters, such as a UUID."]}
            )
        row, is_new = begin_request(user=request.user, key=key, fingerprint=_fingerprint(request))
        if not is_new:
            raise AnsweredBefore(row.status or 200, row.body)
        self._kept = row

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        if self._kept is not None and answer.status_code < 300:
            body = json.loads(JSONRenderer().render(getattr(answer, "data", None)) or b"null")
            if self.shown_once:
                body |= dict.fromkeys(self.shown_once)
            keep_answer(self._kept, status=answer.status_code, body=body)
        elif self._kept is not None:
            forget_request(self._kept)
        return answer

    def asked(self, kind: type[Serializer], **context: Any) -> dict[str, Any]:
        """The request's body as the serializer reads it. Raises ValidationError that names each field."""
        return self._valid(kind, self.request.data, context)

    def query(self, kind: type[Serializer], **context: Any) -> dict[str, Any]:
        """The address's parameters as the serializer reads them."""
        return self._valid(kind, self.request.query_params, context)

    def _valid(self, kind: type[Serializer], data: Any, context: dict[str, Any]) -> dict[str, Any]:
        serializer = kind(data=data, context={"request": self.request, **context})
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def paged(self, rows: QuerySet[Any] | Sequence[Any], kind: type[Serializer]) -> Response:
        """One page of the rows."""
        pages = Pages()
        page = pages.paginate_queryset(rows, self.request, view=self)
        return pages.get_paginated_response(kind(page, many=True, context={"request": self.request}).data)


def _key_of_form(request: Request) -> str:
    """The key that a form on an address's page brings, so that a double click is one request."""
    return "" if request.auth is not None else str(request._request.POST.get("idempotency_key", ""))


def _fingerprint(request: Request) -> str:
    """What makes two requests the same: method, address, what is asked, and the content of files."""
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    files = request.FILES
    fields = {name: value for name, value in request.data.items() if name not in files} if files else request.data
    digest.update(json.dumps(fields, sort_keys=True, default=str).encode())
    for name in sorted(files):
        digest.update(f"\n{name}\n".encode())
        for chunk in files[name].chunks():
            digest.update(chunk)
        files[name].seek(0)
    return digest.hexdigest()
