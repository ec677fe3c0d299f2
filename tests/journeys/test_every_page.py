"""Every page of an application full of data, in light and dark: no barrier, no complaint, no sideways scroll."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import skip_or_fail
from tests.journeys.browser import CHROMIUM


@pytest.mark.skipif(not os.environ.get("ASSAY_EVERY_PAGE"), reason="takes minutes: set ASSAY_EVERY_PAGE=1")
@pytest.mark.timeout(900)
def test_no_page_has_a_serious_barrier_or_complains(tmp_path: Path) -> None:
    if not CHROMIUM.exists():
        skip_or_fail(f"there is no Chromium at {CHROMIUM}")
    command = [sys.executable, "tests/journeys/screenshots.py", str(tmp_path), "--axe", "--width", "desk"]

    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
