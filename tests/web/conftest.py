"""A chromium for the tests that open the page as a user does."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


# Frames come, but no time passes until `goOn()`; every sentence of the story is kept. What a test sees does not depend
# on how long the machine takes between two of its lines.
HELD = """(() => {
    const ask = window.requestAnimationFrame.bind(window), tell = performance.now.bind(performance), begun = tell();
    let held = true;
    performance.now = () => (held ? begun : tell());
    window.requestAnimationFrame = (draw) => ask((now) => draw(held ? begun : now));
    window.goOn = () => (held = false);
    window.told = [];
    new MutationObserver(() => {
        const text = document.getElementById("story")?.textContent;
        if (text && text !== told.at(-1)) told.push(text);
    }).observe(document, { subtree: true, childList: true, characterData: true });
})()"""


USUAL = {"viewport": {"width": 1280, "height": 900}, "accept_downloads": True}


class Visit:
    """A page that is open, and everything it complained about or asked for. Its clock stands until `go_on`."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.add_init_script(HELD)
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def begin(self) -> None:
        """As a browser that was just started; the next page is not the last one with another link."""
        self.page.goto("about:blank")
        self.page.set_viewport_size(USUAL["viewport"])
        self.page.emulate_media(color_scheme="light")
        self.errors.clear()
        self.requests.clear()

    def check(self) -> None:
        """Whatever a test does, the page must neither log an error nor ask for anything but itself."""
        assert self.errors == []
        strangers = [url for url in self.requests if not url.startswith((PAGE.as_uri(), "data:", "blob:"))]
        assert strangers == []

    def open(self, link: str = "", address: str = PAGE.as_uri()) -> Page:
        """Open the page with a link, e.g. `n=50&seed=3`."""
        self.page.goto(f"{address}#{link}" if link else address)
        self.until("window.phygail && phygail.timing.frames > 1")
        return self.page

    def go_on(self) -> None:
        """Let time pass."""
        self.page.evaluate("goOn()")

    def told(self) -> list[str]:
        """Every sentence of the story so far."""
        return self.page.evaluate("told")

    def until(self, condition: str, timeout_s: float = 120.0) -> None:
        """Wait for a condition. (`wait_for_function` needs `eval`, which the page's own policy forbids.)"""
        end = time.monotonic() + timeout_s
        while not self.page.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < end, f"not within {timeout_s:g} s: {condition}"
            self.page.wait_for_timeout(30)


def settle(page: Page) -> None:
    """Wait until what was pressed is drawn."""
    page.evaluate(
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))"
    )


def new_visit(browser: Browser, options: dict[str, Any]) -> Visit:
    """A fresh page in a context of its own."""
    context = browser.new_context(**USUAL | options)
    context.set_default_timeout(120_000)
    return Visit(context.new_page())


@pytest.fixture(scope="session")
def usual_visit(browser: Browser) -> Iterator[Visit]:
    """One page for all tests that want nothing special: a new one costs two seconds of a core."""
    opened = new_visit(browser, {})
    yield opened
    opened.page.context.close()


@pytest.fixture
def visit(browser: Browser, usual_visit: Visit, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A page; a context of its own by `@pytest.mark.parametrize("visit", [{...}], indirect=True)` with its options."""
    options = getattr(request, "param", None)
    opened = usual_visit if options is None else new_visit(browser, options)
    if options is None:
        opened.begin()
    yield opened
    if options is not None:
        opened.page.context.close()
    opened.check()


@pytest.fixture(scope="session")
def node() -> str:
    """Where node is."""
    path = shutil.which("node")
    if path is None:
        give_up("node was not found: install it to run the tests of the page's modules")
    assert path is not None
    return path


ROOT = Path(__file__).parents[2]
