"""The rules between the packages, and what a stranger relies on."""

import subprocess
import sys
import tomllib

from tests.conftest import ROOT


def test_the_engine_is_imported_without_django():
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, pkgutil, importlib, selector\n"
            "for m in pkgutil.walk_packages(selector.__path__, 'selector.'):\n"
            "    if '__main__' in m.name: continue\n"
            "    try: importlib.import_module(m.name)\n"
            "    except ModuleNotFoundError as error:\n"
            "        if error.name not in ('verl', 'ray'): raise\n"  # for those who have them
            "print([m for m in sys.modules if m.split('.')[0] in ('django', 'labeling')])",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )

    assert found.stdout.strip() == "[]"


def test_the_engine_starts_quickly_because_heavy_imports_wait():
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, selector.cli\nprint([m for m in ('torch', 'transformers', 'sympy') if m in sys.modules])",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )

    assert found.stdout.strip() == "[]"


def test_only_the_seam_imports_the_engine():
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in (ROOT / "labeling").rglob("*.py")
        if "engine" not in path.relative_to(ROOT / "labeling").parts
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip().startswith(("import selector", "from selector"))
    ]

    assert found == []


def test_every_dependency_has_a_reason_beside_it():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = tomllib.loads(text)["project"]["dependencies"]

    without = [need for need in wanted if not any(f'"{need}",' in line and "#" in line for line in text.splitlines())]

    assert without == []


def test_every_strategy_and_adr_is_documented():
    from selector.strategies import STRATEGIES

    described = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")

    assert [key for key in STRATEGIES if f"`{key}`" not in described] == []


def test_no_machine_paths_in_the_tree():
    tracked = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    found = [
        name
        for name in tracked
        if name.endswith((".py", ".md", ".html", ".js", ".css", ".toml", ".sh", "Makefile"))
        and "vendor/" not in name
        and any(part in (ROOT / name).read_text(encoding="utf-8") for part in ("/wor" + "k/", "/ro" + "ot/"))
    ]

    assert found == []
