"""The page as a user meets it, in chromium, from file://: every control is pressed, and what it changes is seen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from tests.web.conftest import settle

from phygail.web.build import PAGE, SCRIPTS

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(600)]

SMALL = "n=60&lost=0.5&seed=3&speed=1"  # quick to fly
PICTURE = """index => {
    const canvas = document.querySelectorAll(".lane canvas")[index];
    return canvas.toDataURL().length + canvas.toDataURL().slice(-4000);
}"""


def list_presets() -> list[str]:
    """Names of the presets, from their module."""
    return re.findall(r'^  "?([\w-]+)"?: \{ title:', (SCRIPTS / "presets.js").read_text(), re.MULTILINE)


def app(page: Page, what: str) -> Any:
    """A value of the page's own state."""
    return page.evaluate(f"phygail.app.{what}")


def link(page: Page) -> str:
    """What the address bar says after the #. (`page.url` is what playwright has heard of it so far.)"""
    return page.evaluate("location.hash")


def paused(page: Page, step: int = 0) -> None:
    """Hold the clock at a step."""
    page.evaluate(f"phygail.app.race.advanceTo({step}); phygail.app.seek({step})")
    settle(page)


def uav_on_screen(page: Page, row: int = 0) -> tuple[float, float, int]:
    """Where a UAV of the first lane is on the screen, and its number."""
    box = page.locator(".lane canvas").first.bounding_box()
    assert box is not None
    x, y, number = page.evaluate(
        """row => {
            const { place, shown } = phygail.lanes.cards[0];
            return [place.x(shown.points[2 * row]), place.y(shown.points[2 * row + 1]), shown.frame.ids[row]];
        }""",
        row,
    )
    return box["x"] + x, box["y"] + y, number


def test_a_new_user_sees_the_swarm_struck_and_one_again(visit):
    page = visit.open("n=100&lost=0.5&seed=7&speed=8")
    assert "one network" in page.inner_text("#story")
    visit.go_on()
    visit.until("phygail.app.race.done && phygail.app.clock >= phygail.app.race.length")
    settle(page)
    whole, struck, *_, again = visit.told()
    assert whole.startswith("100 UAVs, one network: ")
    assert struck.startswith("Strike: 50 UAVs lost")
    assert again.startswith("One network again: ")
    assert page.locator(".lane.won").count() >= 1
    assert int(page.locator('#table tr[data-method="sidr"] td').nth(1).inner_text()) > 0


def test_play_pause_and_replay(visit):
    page = visit.open(SMALL)
    page.click("#play")
    held = app(page, "clock")
    visit.go_on()
    settle(page)
    assert app(page, "clock") == held
    assert page.inner_text("#play-text") == "Play"
    page.click("#play")
    visit.until(f"phygail.app.clock > {held} + 2")
    page.evaluate("phygail.app.race.advanceTo(5000); phygail.app.seek(5000)")
    settle(page)
    assert page.inner_text("#play-text") == "Replay"
    before = len(visit.told())
    page.click("#play")
    visit.until(f"told.slice({before}).some((text) => text.includes('one network:'))")  # from before the strike


def test_restart_step_and_scrub(visit):
    page = visit.open(SMALL)
    paused(page, 8)
    page.click("#forward")
    page.click("#forward")
    assert app(page, "clock") == 10
    page.click("#back")
    settle(page)
    assert page.inner_text("#time") == "0.9 s"
    page.locator("#scrub").fill("4")
    settle(page)
    assert (app(page, "clock"), page.inner_text("#time")) == (4, "0.4 s")
    page.click("#restart")
    settle(page)
    assert app(page, "clock") < 0
    assert page.inner_text("#time") == "before"


def test_speed(visit):
    page = visit.open(SMALL)
    page.select_option("#speed", "8")
    settle(page)
    assert app(page, "settings.speed") == 8
    assert "speed=8" in link(page)


def test_scrubbing_back_shows_an_earlier_picture(visit):
    page = visit.open(SMALL)
    paused(page, 12)
    late = page.evaluate(PICTURE, 0)
    paused(page, 3)
    assert page.evaluate(PICTURE, 0) != late
    paused(page, 12)
    assert page.evaluate(PICTURE, 0) == late


def test_presets_layouts_sizes_losses_and_seeds(visit):
    page = visit.open(SMALL)
    page.select_option("#preset", "clusters")
    settle(page)
    assert app(page, "settings.source") == "clusters"
    assert app(page, "race.events.length") == 1
    page.select_option("#source", "paper-50")
    settle(page)
    assert (page.inner_text("#n-out"), app(page, "world.width")) == ("50", 500)
    page.locator("#n").fill("120")
    settle(page)
    assert (page.inner_text("#n-out"), app(page, "settings.source")) == ("120", "random")
    page.locator("#lost").fill("0.75")
    settle(page)
    assert (page.inner_text("#lost-out"), app(page, "world.damaged.length")) == ("75 %", 90)
    page.locator("#seed").fill("41")
    page.locator("#seed").press("Tab")
    settle(page)
    assert "seed=41" in link(page)
    before = app(page, "world.layout[0]")
    page.click("#dice")
    settle(page)
    assert (app(page, "settings.seed"), app(page, "world.layout[0]") != before) == (42, True)
    page.locator("#seed").fill("-4")
    page.locator("#seed").press("Tab")
    assert "whole number" in page.inner_text("#message.bad")


def test_a_click_kills_one_uav_in_every_lane(visit):
    page = visit.open(SMALL)
    paused(page, 6)
    x, y, number = uav_on_screen(page, 5)
    page.mouse.click(x, y)
    settle(page)
    assert app(page, "race.events") == [{"step": 6, "ids": [number]}]
    flying = page.evaluate("phygail.app.race.lanes.map(({ flight }) => flight.last.ids.length)")
    assert flying == [29, 29]
    assert "Strike in flight: 1 more UAV lost" in page.inner_text("#story")
    assert "hit=6-" in link(page)


def test_a_drag_strikes_a_disc_and_undo_takes_it_back(visit):
    page = visit.open(SMALL.replace("lost=0.5", "lost=0"))
    settle(page)
    box = page.locator(".lane canvas").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + box["height"] / 2, steps=4)
    assert page.evaluate("phygail.lanes.aim.ids.length") > 5
    page.mouse.up()
    settle(page)
    gone = 60 - page.evaluate("phygail.app.race.firstFrame().ids.length")
    assert gone > 5
    assert app(page, "playing")
    page.click("#heal")
    settle(page)
    assert page.evaluate("phygail.app.race.firstFrame().ids.length") == 60
    assert page.is_disabled("#heal")


@pytest.mark.parametrize("visit", [{"has_touch": True, "viewport": {"width": 360, "height": 740}}], indirect=True)
def test_a_finger_strikes_too(visit):
    page = visit.open(SMALL)
    paused(page, 2)
    x, y, number = uav_on_screen(page, 3)
    page.touchscreen.tap(x, y)
    settle(page)
    assert app(page, "race.events") == [{"step": 2, "ids": [number]}]


def test_the_keyboard_alone_strikes(visit):
    page = visit.open(SMALL.replace("lost=0.5", "lost=0"))
    page.locator(".lane canvas").first.focus()
    for key in ("ArrowLeft", "ArrowUp", "+", "+", "+", "+", "+", "+", "-"):
        page.keyboard.press(key)
    aim = page.evaluate("[phygail.lanes.aim.x, phygail.lanes.aim.y]")
    width = app(page, "world.width")
    assert aim[0] < width / 2 < aim[1]
    page.keyboard.press("Enter")
    settle(page)
    assert app(page, "race.events.length") == 1
    page.keyboard.press("Escape")
    assert page.evaluate("phygail.lanes.aim") is None


def test_keys_press_the_buttons(visit):
    page = visit.open(SMALL)
    paused(page, 5)
    page.locator("h1").click()
    page.keyboard.press(".")
    assert app(page, "clock") == 6
    page.keyboard.press(",")
    assert app(page, "clock") == 5
    page.keyboard.press(" ")
    assert app(page, "playing")
    page.keyboard.press("n")
    assert app(page, "settings.seed") == 4
    page.keyboard.press("r")
    assert app(page, "clock") < 0
    page.keyboard.press("s")
    assert app(page, "race.events.length") == 1
    page.keyboard.press("u")
    assert app(page, "race.events.length") == 0


def test_keys_faster_than_the_next_frame_count(visit):
    page = visit.open(SMALL)
    paused(page, 5)
    strikes, clock = page.evaluate(
        """() => {
            const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            const { app } = phygail;
            press("s");
            const struck = app.race.events.length;
            press("u");
            const undone = app.race.events.length;
            app.seek(1);
            press("u"); // nothing to take back: the button is off
            return [[struck, undone], app.clock];
        }"""
    )
    assert strikes == [1, 0]
    assert clock == 1


def test_shatter_takes_half_of_those_flying(visit):
    page = visit.open(SMALL.replace("lost=0.5", "lost=0"))
    settle(page)
    page.click("#shatter")
    page.wait_for_selector("text=/^Strike: 30 UAVs lost/")


def test_lanes_come_and_go_up_to_four(visit):
    page = visit.open(SMALL)
    names = page.eval_on_selector_all("#methods input", "inputs => inputs.map(input => input.value)")
    chosen = set(app(page, "settings.methods"))
    for name in names:
        if name not in chosen and len(chosen) < 4:
            page.check(f'#methods input[value="{name}"]')
            chosen.add(name)
    settle(page)
    assert page.locator(".lane").count() == len(chosen)
    if len(names) > 4:
        extra = next(name for name in names if name not in chosen)
        page.click(f'#methods input[value="{extra}"]')
        assert "Up to 4 lanes" in page.inner_text("#message.bad")
    for name in sorted(chosen - {"sidr"}):
        page.uncheck(f'#methods input[value="{name}"]')
    settle(page)
    assert page.locator(".lane").count() == 1
    for name in sorted(set(names) - {"sidr"}):
        page.check(f'#methods input[value="{name}"]')
        settle(page)
        assert page.locator(f'.lane[data-method="{name}"] canvas').count() == 1
        page.uncheck(f'#methods input[value="{name}"]')
    page.click('#methods input[value="sidr"]')
    assert "needs a lane" in page.inner_text("#message.bad")
    assert page.is_checked('#methods input[value="sidr"]')


def test_the_safety_filter_ends_contacts(visit):
    page = visit.open("n=100&lost=0.6&seed=1&race=center-fly&speed=8")
    page.evaluate("phygail.app.race.advanceTo(5000)")
    assert app(page, "race.lanes[0].flight.last.contacts") > 0
    page.check("#safety")
    page.evaluate("phygail.app.race.advanceTo(5000)")
    assert app(page, "race.lanes[0].flight.last.contacts") == 0
    settle(page)
    assert "safety=on" in link(page)


def test_what_is_shown_can_be_chosen(visit):
    page = visit.open(SMALL)
    paused(page, 20)
    before = page.evaluate(PICTURE, 0)
    for control in ("show-reach", "show-links", "show-trails"):
        page.uncheck(f"#{control}")
        settle(page)
        assert page.evaluate(PICTURE, 0) != before, control
        page.check(f"#{control}")
        settle(page)
        assert page.evaluate(PICTURE, 0) == before, control


def test_the_theme_follows_the_system_and_the_button(visit):
    page = visit.open(SMALL)
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.emulate_media(color_scheme="dark")
    visit.until("document.documentElement.dataset.theme === 'dark'")
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_the_bound_is_a_lane_of_its_own(visit):
    page = visit.open(f"{SMALL}&race=sidr,bound")
    page.evaluate("phygail.app.race.advanceTo(5000); phygail.app.seek(5000)")
    settle(page)
    bound = app(page, "race.bound.steps")
    assert page.inner_text('.lane[data-method="bound"] .state') == f"{bound / 10:.1f} s"
    assert page.inner_text('#table tr[data-method="bound"] td:nth-child(4)') == "1.00"


def test_a_link_of_garbage_opens_the_usual_case(visit):
    page = visit.open("n=1e9&seed=<script>alert(1)</script>&hit=%00&race=constructor&layout=../../etc/passwd")
    assert re.match(r"Not understood in the link: layout, n, seed, hit, race\.", page.inner_text("#message"))
    assert app(page, "world.layout.length") == 400


def test_a_resized_window_in_mid_flight_keeps_the_race(visit):
    page = visit.open(f"{SMALL}&speed=4")
    visit.go_on()
    visit.until("phygail.app.clock > 3")
    for width in (360, 2000, 800):
        page.set_viewport_size({"width": width, "height": 700})
        settle(page)
        sizes = page.eval_on_selector_all(".lane canvas", "all => all.map(c => [c.width, c.clientWidth])")
        assert all(pixels == shown > 100 for pixels, shown in sizes)
    assert app(page, "step") > 3


@pytest.mark.parametrize("visit", [{"reduced_motion": "reduce"}], indirect=True)
def test_who_wants_no_motion_is_not_moved(visit):
    page = visit.open(SMALL)
    settle(page)
    assert (app(page, "clock"), app(page, "playing")) == (0, False)
    assert page.inner_text("#story").startswith("Strike: 30 UAVs lost")
    page.click("#play")
    visit.go_on()
    visit.until("phygail.app.clock > 1")


@pytest.mark.parametrize("width", [360, 1280, 3840])
def test_nothing_is_cut_off_and_every_choice_of_a_list_can_be_read(visit, width):
    page = visit.open(f"{SMALL}&race=sidr,center-fly,bound")
    page.evaluate("phygail.app.playing = false")
    page.set_viewport_size({"width": width, "height": width * 9 // 16 if width > 400 else 740})
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.evaluate(
        """[...document.querySelectorAll("button, h1, h2, .state, label, th, td, #story")].filter(
            (e) => e.offsetParent && e.scrollWidth > e.clientWidth + 2 && getComputedStyle(e).display !== "inline"
        ).map((e) => e.textContent)"""
    )
    assert cut == []
    cut = page.evaluate(
        """[...document.querySelectorAll(".row select")].flatMap((select) => {
            const context = document.createElement("canvas").getContext("2d"), style = getComputedStyle(select);
            context.font = style.font;
            const arrow = 20; // px, as chromium draws it
            const room = select.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - arrow;
            return [...select.options].map((o) => o.text).filter((text) => context.measureText(text).width > room);
        })"""
    )
    assert cut == []


def test_every_preset_is_a_struck_swarm_that_one_rule_heals(visit):
    page = visit.open(f"{SMALL}&race=center-fly")
    assert len(list_presets()) == 12
    for preset in list_presets():
        page.select_option("#preset", preset)
        page.evaluate("phygail.app.playing = false")
        first = page.evaluate("phygail.app.race.firstFrame().links.count")
        assert (first == 1) == (preset == "whole"), preset
        page.evaluate("phygail.app.race.advanceTo(5000)")
        assert app(page, "race.lanes[0].flight.last.links.count") == 1, preset


def test_the_keys_are_listed_where_one_asks_for_them(visit):
    page = visit.open(SMALL)
    assert page.is_hidden("dl")
    page.click("summary")
    assert page.is_visible("dl")


def test_a_document_around_the_page_may_choose_its_colors_and_nothing_else(visit):
    page = visit.open(SMALL)
    page.evaluate("postMessage({ theme: 'dark', seed: 9 }, '*')")
    visit.until("document.documentElement.dataset.theme === 'dark'")
    page.evaluate("postMessage({ theme: '<b>' }, '*'); postMessage(null, '*')")
    settle(page)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert app(page, "settings.seed") == 3


def test_an_embedded_page_shows_the_race_only(visit):
    page = visit.page
    page.goto(f"{PAGE.as_uri()}?embed#{SMALL}")
    visit.until("window.phygail && phygail.timing.frames > 1")
    assert page.is_hidden(".panel")
    assert page.locator(".lane canvas").count() == 2
