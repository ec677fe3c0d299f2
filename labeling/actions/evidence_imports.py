"""Taking in what was made on another machine: votes, and picks as a finished run."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from labeling import policies
from labeling.audit import record_event
from labeling.engine.rows import FileSource
from labeling.errors import Conflict, LabelingError
from labeling.imports.destination import Destination
from labeling.imports.picks import read_report, record_picks
from labeling.imports.report import ImportReport
from labeling.imports.votes import record_votes
from labeling.models import CalibrationSet, Pool, User

MAX_REPORT_BYTES = 16 << 20


def import_votes(
    *,
    file: FileSource,
    filename: str,
    pool: Pool | None,
    calibration_set: CalibrationSet | None = None,
    fingerprint: str = "",
    by: User | None,
) -> ImportReport:
    """Record the votes of a file for the pool, or for the calibration set where one is given; all in one transaction.

    ``fingerprint`` names the generation settings where the rows do not; the report's ``details`` say under which
    fingerprints votes were recorded. The same file again changes nothing.
    """
    owner_pool = pool if calibration_set is None else calibration_set.pool
    if owner_pool is None:
        policies.check_can_manage_shared(by)
    else:
        policies.check_can_manage(owner_pool, by)
    if calibration_set is not None:
        destination = Destination.of_calibration_set(calibration_set, owner_pool)
    else:
        destination = Destination.of_pool(pool)
    name = PurePath(filename).name
    try:
        with transaction.atomic():
            report = record_votes(file, name=name, destination=destination, fingerprint=fingerprint)
            if report.new:
                target = calibration_set or pool
                assert target is not None  # noqa: S101  # a destination without an owner holds no question
                record_event("votes.imported", target=target, by=by, pool=owner_pool, filename=name, **report.counts())
    except IntegrityError as error:
        raise Conflict(_("Another import recorded some of these votes just now. Run this one again.")) from error
    return report


def import_picks(
    *, file: FileSource, filename: str, pool: Pool, report_file: Any = None, by: User | None
) -> ImportReport:
    """Record a picks file as a finished run; ``details["run"]`` is its id. Whole or not at all.

    ``report_file`` is the report.json written with the picks. The same file again changes nothing.
    """
    policies.check_can_manage(pool, by)
    report_json = None
    if report_file is not None:
        content = report_file.read(MAX_REPORT_BYTES + 1)
        if len(content) > MAX_REPORT_BYTES:
            raise LabelingError(
                _("The report has more than %(most)s bytes.") % {"most": f"{MAX_REPORT_BYTES:,}"},
                code="invalid_report",
            )
        report_json = read_report(content)
    name = PurePath(filename).name
    with transaction.atomic():
        report = record_picks(file, name=name, pool=pool, report_json=report_json, by=by)
        if report.new:
            about: dict[str, Any] = {"filename": name, **report.counts(), **report.details}
            record_event("picks.imported", target=pool, by=by, pool=pool, **about)
    return report
