"""Uploaded files, kept below the media root under random names until they are committed or discarded."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import NamedTuple

from django.conf import settings
from django.utils.translation import gettext as _

from labeling.errors import LabelingError

_FOLDER = "imports"
_READ_BYTES = 1 << 20


class StoredFile(NamedTuple):
    """A file below the media root."""

    name: str  # relative to the media root
    sha256: str


def store_upload(chunks: Iterable[bytes]) -> StoredFile:
    """Keep an upload, readable by this account alone. Refused, and nothing kept, past ASSAY_MAX_UPLOAD_BYTES."""
    name = str(PurePath(_FOLDER, uuid.uuid4().hex))
    path = path_of(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as kept:
            for chunk in chunks:
                size += len(chunk)
                if size > settings.ASSAY_MAX_UPLOAD_BYTES:
                    raise LabelingError(
                        _(
                            "The file has more than %(most)s bytes. Import it in parts, or on the server with "
                            "manage.py import_questions."
                        )
                        % {"most": f"{settings.ASSAY_MAX_UPLOAD_BYTES:,}"},
                        code="upload_too_large",
                    )
                digest.update(chunk)
                kept.write(chunk)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return StoredFile(name, digest.hexdigest())


def path_of(name: str) -> Path:
    """Return where a stored file is."""
    return Path(settings.MEDIA_ROOT, name)


def remove_stored(name: str) -> None:
    """Delete a stored file; one that is gone already is no matter."""
    if name:
        path_of(name).unlink(missing_ok=True)


def chunks_of(path: Path) -> Iterator[bytes]:
    """Yield a file's bytes. Raises LabelingError where it cannot be opened."""
    try:
        with path.open("rb") as file:
            while chunk := file.read(_READ_BYTES):
                yield chunk
    except OSError as error:
        raise LabelingError(
            _("%(path)s cannot be opened: %(strerror)s.") % {"path": path, "strerror": error.strerror},
            code="unreadable_file",
        ) from error


def sha256_of(path: Path) -> str:
    """Return the hash of a file's bytes."""
    digest = hashlib.sha256()
    for chunk in chunks_of(path):
        digest.update(chunk)
    return digest.hexdigest()
