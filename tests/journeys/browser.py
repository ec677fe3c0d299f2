"""People in a real browser, each in a window of their own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.conftest import skip_or_fail

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MILLISECONDS_TO_WAIT = 60_000  # for a machine that does other things as well


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start the system's Chromium; skip where there is none."""
    if not CHROMIUM.exists():
        skip_or_fail(f"there is no Chromium at {CHROMIUM}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def new_window(browser: Browser, *, address: str, complaints: list[str], javascript: bool = True) -> Page:
    """Open a private window; whatever the page complains of (errors, refused code) is added to ``complaints``."""
    context = browser.new_context(base_url=address, java_script_enabled=javascript)
    context.set_default_timeout(MILLISECONDS_TO_WAIT)
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
    page.on("console", lambda message: _note(message.type, message.text, page, complaints))
    return page


def _note(kind: str, text: str, page: Page, complaints: list[str]) -> None:
    if kind == "error":
        complaints.append(f"{page.url}: {text}")
