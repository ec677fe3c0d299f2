"""Files for trainers: canonical rows in, one module per trainer, nothing of the database or of the engine."""

from labeling.exports.contract import CanonicalRow, ExportRefused, ExportSettings, GoldChecks, Manifest, Provenance
from labeling.exports.writing import WRITERS, write_export

__all__ = [
    "WRITERS",
    "CanonicalRow",
    "ExportRefused",
    "ExportSettings",
    "GoldChecks",
    "Manifest",
    "Provenance",
    "write_export",
]
