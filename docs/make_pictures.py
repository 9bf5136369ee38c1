"""Takes the pictures of the page for the documents: `python docs/make_pictures.py` (needs a chromium, extra `dev`).

The flights of gallery.md and worlds.md are made by the commands that stand there: add `--flights`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from phygail.web.build import PAGE

IMAGES = Path(__file__).parent / "images"
CHROMIUM = os.environ.get("PHYGAIL_CHROMIUM") or shutil.which("chromium")
CASE = "n=200&lost=0.7&seed=1"


def open_page(browser: Browser, link: str, width: int, height: int, scheme: str = "light", ratio: float = 1.0) -> Page:
    """The page with a case, its clock stopped."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, device_scale_factor=ratio
    )
    page = context.new_page()
    page.goto(f"{PAGE.as_uri()}#{link}")
    page.wait_for_timeout(500)
    page.evaluate("phygail.app.playing = false")
    return page


def show(page: Page, step: int) -> None:
    """The race at a step; a negative one is before the strike."""
    if step < 0:
        page.evaluate("phygail.app.clock = -1; phygail.app.changed()")
    else:
        page.evaluate(f"phygail.app.race.advanceTo({step}); phygail.app.seek({step})")
    page.wait_for_timeout(300)


def take_lane(browser: Browser, name: str, step: int, method: str = "reach-evolved") -> None:
    """A picture of one lane."""
    page = open_page(browser, f"{CASE}&race={method}", 1280, 900)
    show(page, step)
    page.locator(".lane").screenshot(path=IMAGES / f"{name}.png")
    page.context.close()


def finish_of(browser: Browser) -> int:
    """The step at which the evolved rule has one network."""
    page = open_page(browser, f"{CASE}&race=reach-evolved", 800, 600)
    page.evaluate("phygail.app.race.advanceTo(5000)")
    step = page.evaluate("phygail.app.race.lanes[0].flight.finish")
    page.context.close()
    return int(step)


def make_flights() -> None:
    """Fly the commands of docs/gallery.md and docs/worlds.md: movies into `_static`, pictures into `images`."""
    text = "\n".join((IMAGES.parent / name).read_text(encoding="utf-8") for name in ("gallery.md", "worlds.md"))
    for line in text.splitlines():
        if line.startswith("    phygail recover ") and " --picture " in line:
            *words, file = line.split()[1:]
            folder = IMAGES if file.endswith((".gif", ".png")) else IMAGES.parent / "_static"
            subprocess.run([sys.executable, "-m", "phygail", *words, str(folder / file)], check=True)


def main() -> None:
    """Take all of them."""
    if sys.argv[1:] == ["--flights"]:
        make_flights()
        return
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        end = finish_of(browser)
        for number, (what, step) in enumerate((("whole", -1), ("strike", 0), ("search", end // 2), ("one", end)), 1):
            take_lane(browser, f"how-{number}-{what}", step)
        take_lane(browser, "how-5-bound", 5, "bound")
        for name, width, height, scheme, ratio in (
            ("page-desk", 1280, 1010, "light", 1.0),
            ("page-phone", 360, 740, "dark", 2.0),
            ("page-wide", 3840, 2160, "dark", 0.5),
        ):
            page = open_page(browser, f"{CASE}&race=reach-evolved,sidr", width, height, scheme, ratio)
            show(page, end)
            page.screenshot(path=IMAGES / f"{name}.png")
            page.context.close()
        browser.close()


if __name__ == "__main__":
    main()
