"""A chromium for the tests that open the page as a user does."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from phygail.web.build import PAGE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
HOW = "install one (Debian: apt-get install chromium) or name it in PHYGAIL_CHROMIUM"
NEEDED = "PHYGAIL_NEED_BROWSER"  # set by .ci/run: there a skipped browser test is a failure


def find_chromium() -> str | None:
    """Where a chromium is, if there is one."""
    return os.environ.get("PHYGAIL_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def give_up(what: str) -> None:
    """Skip, or fail where browser tests must run."""
    if os.environ.get(NEEDED):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One chromium for all tests."""
    path = find_chromium()
    if path is None:
        give_up(f"no chromium was found: {HOW}")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make .venv/full")
    with sync_api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Visit:
    """A page that is open, and everything it complained about or asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, link: str = "", address: str = PAGE.as_uri()) -> Page:
        """Open the page with a link, e.g. `n=50&seed=3`."""
        self.page.goto(f"{address}#{link}" if link else address)
        self.until("window.phygail && phygail.timing.frames > 1")
        return self.page

    def until(self, condition: str, timeout_s: float = 30.0) -> None:
        """Wait for a condition. (`wait_for_function` needs `eval`, which the page's own policy forbids.)"""
        end = time.monotonic() + timeout_s
        while not self.page.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < end, f"not within {timeout_s:g} s: {condition}"
            self.page.wait_for_timeout(30)


@pytest.fixture
def visit(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A fresh page; options of its context by `@pytest.mark.parametrize("visit", [{...}], indirect=True)`.

    Whatever the test does, the page must neither log an error nor ask for anything but itself.
    """
    options = {"viewport": {"width": 1280, "height": 900}, "accept_downloads": True} | getattr(request, "param", {})
    context = browser.new_context(**options)
    context.set_default_timeout(20_000)
    opened = Visit(context.new_page())
    yield opened
    context.close()
    assert opened.errors == []
    strangers = [url for url in opened.requests if not url.startswith((PAGE.as_uri(), "data:", "blob:"))]
    assert strangers == []


@pytest.fixture(scope="session")
def node() -> str:
    """Where node is."""
    path = shutil.which("node")
    if path is None:
        give_up("node was not found: install it to run the tests of the page's modules")
    assert path is not None
    return path


ROOT = Path(__file__).parents[2]
