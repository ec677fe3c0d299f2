"""Write an export: check the rows, make the files, say what was made."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from labeling.errors import LabelingError
from labeling.exports import jsonl, trl, verl
from labeling.exports.checking import check_rows, warnings_about
from labeling.exports.contract import CanonicalRow, ExportSettings, GoldChecks, Manifest

REWARDS = "rewards.py"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Writer:
    """One trainer's format."""

    files: Callable[[Sequence[CanonicalRow], ExportSettings], dict[str, bytes]]
    columns: Mapping[str, str]
    usage: str


WRITERS: Mapping[str, Writer] = {
    "trl": Writer(trl.files, trl.COLUMNS, trl.USAGE),
    "verl": Writer(verl.files, verl.COLUMNS, verl.USAGE),
    "jsonl": Writer(jsonl.files, jsonl.COLUMNS, jsonl.USAGE),
}


def write_export(
    rows: Sequence[CanonicalRow],
    *,
    format: str,
    out_dir: Path,
    settings: ExportSettings,
    checks: GoldChecks,
    rewards_source: str,
    versions: Mapping[str, str],
    provenance: Mapping[str, Any],
) -> Manifest:
    """Write the rows for one trainer, the reward function beside them and the manifest last; return the manifest.

    The same rows and settings give the same bytes. ``versions`` and ``provenance`` go into the manifest as they are.
    Raises ExportRefused, before anything is written, when the data would not train as it should, and LabelingError
    cannot_write.
    """
    writer = WRITERS[format]
    kept, left_out = check_rows(rows, checks)
    contents = {**writer.files(kept, settings), REWARDS: rewards_source.encode()}
    manifest = Manifest(
        format=format,
        n_rows=len(kept),
        files=tuple(
            {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in sorted(contents.items())
        ),
        columns=writer.columns,
        settings=asdict(settings),
        usage=writer.usage,
        versions=versions,
        duplicates_left_out=left_out,
        warnings=warnings_about(kept),
        provenance=provenance,
    )
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        (out_dir / MANIFEST).unlink(missing_ok=True)
        for name, content in {**contents, MANIFEST: manifest.to_bytes()}.items():
            _replace(out_dir / name, content)
    except OSError as error:
        raise LabelingError(
            _(
                "The export cannot be written to %(out_dir)s: %(strerror)s. Name a folder that can be made and "
                "written to."
            )
            % {"out_dir": out_dir, "strerror": error.strerror},
            code="cannot_write",
        ) from error
    return manifest


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)
