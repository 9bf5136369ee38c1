"""Cases, flights and layouts that go into the page and out of it, in chromium: links, files, commands."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from tests.web.conftest import settle
from tests.web.test_build_page import SMALL, app, paused, uav_on_screen

from phygail.cli.main import main
from phygail.cli.recover import save_trajectory
from phygail.methods.controller import run_episode
from phygail.swarm.scenario import load_scenarios, scenario_from_json

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(600)]


def drop_file(page: Page, name: str, text: str) -> None:
    """Drop a file onto the page."""
    page.evaluate(
        """([name, text]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([text], name, { type: "application/json" }));
            for (const kind of ["dragenter", "dragover", "drop"]) {
                const how = { dataTransfer: transfer, bubbles: true, cancelable: true };
                document.body.dispatchEvent(new DragEvent(kind, how));
            }
        }""",
        [name, text],
    )


@pytest.mark.parametrize("visit", [{"permissions": ["clipboard-read", "clipboard-write"]}], indirect=True)
def test_a_copied_link_brings_the_case_back(visit):
    page = visit.open(SMALL)
    paused(page, 6)
    x, y, _ = uav_on_screen(page, 2)
    page.mouse.click(x, y)
    page.click("#copy-link")
    page.wait_for_selector("text=The link is copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    page.evaluate("phygail.app.race.advanceTo(5000)")
    steps = page.evaluate("phygail.app.race.results().map(row => [row.name, row.steps])")
    other = page.context.new_page()  # two tabs do not know of each other
    other.goto(copied)
    settle(other)
    other.evaluate("phygail.app.race.advanceTo(5000)")
    assert other.evaluate("phygail.app.race.results().map(row => [row.name, row.steps])") == steps


def test_a_saved_case_is_the_same_in_python_and_when_dropped(visit, tmp_path):
    page = visit.open(SMALL)
    with page.expect_download() as download:
        page.click("#save")
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    assert file.name == "page-n60-s3.json"
    (scenario,) = load_scenarios(file)
    assert scenario.layout.ravel().tolist() == page.evaluate("[...phygail.app.world.layout]")
    assert scenario.damaged.tolist() == app(page, "world.damaged")
    assert scenario.budget_steps == app(page, "world.budget")
    page.evaluate("phygail.app.race.advanceTo(5000)")
    steps = page.evaluate("phygail.app.race.results().map(row => row.steps)")
    with page.expect_file_chooser() as chooser:
        page.click("#open")
    chooser.value.set_files(file)
    page.wait_for_selector("text=/60 UAVs from page-n60-s3.json/")
    page.evaluate("phygail.app.race.advanceTo(5000)")
    assert page.evaluate("phygail.app.race.results().map(row => row.steps)") == steps
    page.click("#copy-link")
    page.wait_for_selector("text=This case came from a file")


@pytest.mark.parametrize("visit", [{"permissions": ["clipboard-read", "clipboard-write"]}], indirect=True)
def test_the_copied_command_names_file_methods_and_filter(visit):
    page = visit.open(f"{SMALL}&race=sidr,center-fly,bound&safety=on")
    page.click("#copy-command")
    page.wait_for_selector("#message code")
    command = page.evaluate("navigator.clipboard.readText()")
    assert command == "phygail recover --scenarios page-n60-s3.json --methods sidr,center-fly --safety on"
    assert page.inner_text("#message code") == command


def test_a_case_struck_in_flight_is_flown_by_the_command_as_by_the_page(visit, tmp_path, capsys):
    page = visit.open(f"{SMALL}&race=reach-evolved,sidr")
    paused(page, 6)
    x, y, number = uav_on_screen(page, 2)
    page.mouse.click(x, y)
    paused(page, 20)
    page.click("#shatter")
    page.evaluate("phygail.app.playing = false; phygail.app.race.advanceTo(5000)")
    steps = page.evaluate("Object.fromEntries(phygail.app.race.results().map(row => [row.name, row.steps]))")
    with page.expect_download() as download:
        page.click("#save")
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    (scenario,) = load_scenarios(file)
    assert [event.step for event in scenario.world.events] == [6, 20]
    assert scenario.world.events[0].uavs == (number,)
    assert main(["recover", "--scenarios", str(file), "--methods", "reach-evolved,sidr"]) == 0
    told = capsys.readouterr().out
    for name, count in steps.items():
        assert re.search(rf"{name}\b.*\b{count}\b", told), (name, count, told)
    drop_file(page, file.name, file.read_text())
    page.wait_for_selector("text=/60 UAVs from page-n60-s3.json/")
    page.evaluate("phygail.app.race.advanceTo(5000)")
    assert page.evaluate("Object.fromEntries(phygail.app.race.results().map(row => [row.name, row.steps]))") == steps


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("x,y\n1,2\n", "not JSON"),
        ('{"scenarios": [{"id": "a", "positions": [[NaN, 0], [1, 1]], "damaged": []}]}', "not JSON"),
        (
            json.dumps({"scenarios": [{"id": "a", "positions": [[i, 0] for i in range(10_000)], "damaged": []}]}),
            "10,000 UAVs in this file",
        ),
    ],
)
def test_a_dropped_file_that_is_no_case_leaves_the_race_alone(visit, text, wrong):
    page = visit.open(SMALL)
    before = app(page, "world.id")
    drop_file(page, "mine.json", text)
    page.wait_for_selector("#message.bad")
    assert wrong in page.inner_text("#message")
    assert app(page, "world.id") == before
    assert page.is_hidden("#drop")


def test_a_dropped_case_is_flown(visit):
    page = visit.open(SMALL)
    case = {"id": "mine", "positions": [[0, 0], [100, 0], [400, 0], [500, 0], [250, 0]], "damaged": [4]}
    drop_file(page, "mine.json", json.dumps({"scenarios": [case]}))
    page.wait_for_selector("text=/^mine: 5 UAVs from mine.json/")
    page.evaluate("phygail.app.race.advanceTo(5000)")
    assert app(page, "race.bound.steps") == 90
    assert app(page, "race.lanes[0].flight.finish") == 90


def test_a_dropped_flight_is_replayed_beside_its_case(visit, tmp_path):
    page = visit.open(SMALL)
    case = {"id": "mine", "positions": [[0, 0], [100, 0], [400, 0], [500, 0], [250, 0]], "damaged": [4]}
    episode = run_episode(scenario_from_json(case, "mine"), "sidr", record=True)
    save_trajectory(tmp_path / "mine.sidr.csv", episode)
    drop_file(page, "mine.json", json.dumps({"scenarios": [case]}))
    page.wait_for_selector("text=/^mine: 5 UAVs/")
    drop_file(page, "mine.sidr.csv", (tmp_path / "mine.sidr.csv").read_text())
    page.wait_for_selector(f"text=/^mine.sidr.csv: recorded flight of 4 UAVs, {episode.steps} steps/")
    settle(page)
    assert page.inner_text('.lane[data-method="recorded-mine.sidr"] h2') == "mine.sidr"
    assert page.is_checked('#methods input[value="recorded-mine.sidr"]')
    page.evaluate("phygail.app.race.advanceTo(5000); phygail.app.seek(5000)")
    settle(page)
    cells = page.locator('#table tr[data-method="recorded-mine.sidr"] td').all_inner_texts()
    assert cells[1:4] == [str(episode.steps), f"{episode.steps / 10:.1f} s", f"{episode.steps / 90:.2f}"]
    page.click("#dice")  # another case: the recording does not belong to it
    settle(page)
    assert page.locator(".lane").count() >= 1
    assert page.is_hidden('#methods input[value="recorded-mine.sidr"]')


def test_a_dropped_flight_that_is_none_is_refused(visit):
    page = visit.open(SMALL)
    drop_file(page, "mine.csv", "t,uav,x,y,vx,vy\n0.0,0,nan,0,0,0\n")
    page.wait_for_selector("#message.bad")
    assert page.inner_text("#message").startswith("mine.csv: line 2")


def test_a_dropped_layout_waits_for_your_strike(visit):
    page = visit.open(SMALL)
    drop_file(page, "mine.csv", "x_m,y_m\n0,0\n100,0\n200,0\n300,0\n400,0\n")
    page.wait_for_selector("text=/^mine: 5 UAVs from mine.csv/")
    settle(page)
    assert "one network. Click UAVs" in page.inner_text("#story")
