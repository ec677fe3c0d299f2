"""Browser assets are what their list says, byte by byte."""

import hashlib
import re
from pathlib import Path

VENDOR = Path(__file__).resolve().parents[3] / "labeling" / "static" / "labeling" / "vendor"


def test_every_vendored_file_has_the_hash_that_is_written_down():
    listed = dict(re.findall(r"^\| (\S+) \| ([0-9a-f]{64}) \|$", (VENDOR / "README.md").read_text(), re.M))

    found = {
        str(path.relative_to(VENDOR)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "README.md"
    }

    assert found == listed


def test_every_vendored_package_has_its_licence():
    assert {path.name for path in VENDOR.iterdir() if path.is_dir()} == {"katex", "echarts", "fonts"}
    assert all(list(folder.glob("LICENSE*")) for folder in VENDOR.iterdir() if folder.is_dir())
