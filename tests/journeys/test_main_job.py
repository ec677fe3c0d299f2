"""The whole job in a browser: a file of questions becomes a dataset, with the small model and people who disagree."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow.parquet
import pytest
from playwright.sync_api import Page, expect

from tests.conftest import ROOT
from tests.journeys.browser import new_window, open_browser
from tests.journeys.command_line import CommandLine

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.timeout(900)]
DEMO = ROOT / "labeling" / "demo"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[CommandLine, str]]:
    """The application served by gunicorn, with a worker, on a database of its own."""
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    shell = CommandLine(tmp_path / "var", HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1")
    shell.migrate()
    server = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "labeling.wsgi", "--bind", f"127.0.0.1:{port}", "--threads", "4"],
        cwd=ROOT,
        env=shell.environment,
        stderr=subprocess.DEVNULL,
    )
    shell.start_worker()
    try:
        _wait_for(f"http://127.0.0.1:{port}/login/")
        yield shell, f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=120)
        shell.close()


@pytest.mark.xdist_group("journeys")
@pytest.mark.parametrize("javascript", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_a_file_of_questions_becomes_a_dataset(site: tuple[CommandLine, str], tmp_path: Path, javascript: bool) -> None:
    shell, address = site
    answers = _first_rows("pool_answers.jsonl", 12)
    pool_file = _write(tmp_path / "questions.jsonl", [{"question": question} for question in answers])
    calibration = _first_rows("calibration.jsonl", 20)
    calibration_file = _write(tmp_path / "known.jsonl", [{"question": q, "answer": a} for q, a in calibration.items()])
    complaints: list[str] = []

    with open_browser() as browser:

        def window() -> Page:
            return new_window(browser, address=address, complaints=complaints, javascript=javascript)

        mira = window()
        link = shell.run("create_manager", "mira", "--base-url", address).split()[-1]
        mira.goto(link)
        mira.get_by_role("button", name="Log in").click()

        # a pool, a calibration set, a model
        mira.goto("/pools/new/")
        mira.get_by_label("Name", exact=True).fill("Sums")
        mira.get_by_role("button", name="Make the pool").click()
        mira.goto("/pools/sums/import/")
        mira.get_by_label("File").set_input_files(pool_file)
        mira.get_by_role("button", name="Upload and look").click()
        mira.get_by_role("button", name="Import 12 questions").click()
        mira.goto("/calibration-sets/import/")
        mira.get_by_label("Name of the calibration set").fill("Known sums")
        mira.get_by_label("File").set_input_files(calibration_file)
        mira.get_by_role("button", name="Upload and look").click()
        mira.get_by_role("button", name="Import 20 questions").click()
        mira.goto("/models/new/")
        mira.get_by_label("Name", exact=True).fill("tiny")
        mira.get_by_label("Model", exact=True).fill("assay-tiny")
        mira.get_by_text("Sampling and keeping", exact=True).click()
        mira.get_by_label("Longest answer, in tokens").fill("80")
        mira.get_by_role("button", name="Add the model").click()

        # a run with the real model
        mira.goto("/pools/sums/runs/new/")
        mira.get_by_label("Questions to pick").fill("3")
        mira.get_by_label("Alpha, the miscoverage level").fill("0.3")
        mira.get_by_text("Everything else").click()
        mira.get_by_label("Full answers per question").fill("4")
        mira.get_by_label("Probes per question").fill("4")
        mira.get_by_role("button", name="Start the run").click()
        run_page = mira.url
        picks = mira.get_by_role("heading", name="Picks")
        deadline = time.monotonic() + 240
        while not picks.is_visible():
            assert time.monotonic() < deadline, mira.locator("main").inner_text()
            mira.wait_for_timeout(1000)
            if not javascript:
                mira.goto(run_page)
        assert shell.status(1)[0] == "finished"

        # money, a round, people
        mira.goto("/pools/sums/budgets/new/")
        mira.get_by_label("Name", exact=True).fill("Grant")
        mira.get_by_label("Human answers").fill("8")
        mira.get_by_role("button", name="Grant").click()
        mira.goto("/runs/1/round/new/")
        mira.get_by_label("Answers per question").fill("2")
        mira.get_by_label("Practice questions").fill("0")
        mira.get_by_label("Checks for each answer").fill("0")
        mira.get_by_role("button", name="Open the round").click()
        people = {name: window() for name in ("ana", "ben", "ada")}
        for name, page in people.items():
            _join(page, name, _invitation(mira, "Adjudicator" if name == "ada" else "Annotator"))

        # ana is right three times; ben is wrong once
        for name, page in people.items():
            if name == "ada":
                continue
            page.goto("/rounds/1/")
            for number in range(3):
                if page.locator("#answer-form").count() == 0:
                    page.get_by_role("button", name="Answer the next").click()
                truth = answers[page.locator(".question.large").inner_text().strip()]
                typed = str(int(truth) + 1) if (name, number) == ("ben", 0) else truth
                page.get_by_role("textbox", name="Your answer", exact=True).fill(typed)
                if javascript:
                    expect(page.locator("#read-as code")).to_have_text(typed)
                    expect(page.locator("#draft-status")).to_contain_text("Saved")
                url = page.url
                page.get_by_role("button", name="Submit and next").click()
                page.wait_for_url(lambda now, before=url: now != before)
                if page.url.endswith("/reveal/"):  # what the model answers; a tenth of the questions stays blind
                    page.get_by_role("radio", name="Keep").check()
                    url = page.url
                    page.get_by_role("button", name="Save and next").click()
                    page.wait_for_url(lambda now, before=url: now != before)

        # ada decides
        ada = people["ada"]
        ada.goto("/rounds/1/")
        ada.get_by_role("button", name="Decide the next").click()
        truth = answers[ada.locator(".question.large").inner_text().strip()]
        ada.locator("label.choice").filter(has=ada.get_by_text(truth, exact=True)).get_by_role("radio").check()
        ada.get_by_role("button", name="Decide", exact=True).click()
        expect(ada.get_by_text("Decided.")).to_be_visible()

        # the dataset
        mira.goto("/pools/sums/export/")
        mira.get_by_role("radio", name="TRL").check()
        mira.get_by_role("button", name="Export").click()
        with mira.expect_download() as download:
            mira.get_by_role("link", name=".parquet").click()
        rows = pyarrow.parquet.read_table(download.value.path()).to_pylist()

    assert complaints == []
    assert len(rows) == 3
    golds = {row["prompt"][-1]["content"].split("\n")[0]: row["solution"].strip("$") for row in rows}
    assert golds == {question: answers[question] for question in golds}


def _first_rows(name: str, n: int) -> dict[str, str]:
    lines = (DEMO / name).read_text(encoding="utf-8").splitlines()[:n]
    return {row["question"]: row["answer"] for row in map(json.loads, lines)}


def _write(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _invitation(manager: Page, role: str) -> str:
    manager.goto("/pools/sums/people/")
    manager.get_by_label("Role").select_option(label=role)
    manager.get_by_role("button", name="Make a link").click()
    return manager.get_by_label("Invitation link").input_value()


def _join(page: Page, name: str, link: str) -> None:
    page.goto(link)
    page.get_by_label("Your name here").fill(name)
    page.get_by_label("Password").fill("seven ducks at dawn")
    page.get_by_role("button", name="Make an account and join").click()


def _wait_for(address: str) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            assert time.monotonic() < deadline, f"{address} does not answer"
            time.sleep(0.2)
