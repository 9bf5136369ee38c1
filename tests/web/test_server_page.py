"""`phygail serve` as a user has it: a process of its own, the page from it in chromium."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from phygail.cli.main import main
from phygail.cli.recover import save_trajectory
from phygail.experiments.grid import Grid
from phygail.experiments.rows import case_row, episode_row, make_case, save_rows
from phygail.methods.controller import fly_case, run_episode
from phygail.swarm.scenario import make_scenario, save_scenarios, scenario_from_json
from phygail.web.messages import Fly, Strike

pytest.importorskip("uvicorn", reason="the extra web is not installed")

from phygail.web.races import Lane

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(600)]

PLUGIN = """
import time

import numpy as np
from phygail.methods.base import SubnetMethod, register

@register
class Drift(SubnetMethod):
    name = "drift"
    summary = "everybody drifts <b>north</b>"

    def act(self, view):
        return np.tile([0.0, 10.0], (len(view.members), 1))

@register
class Stroll(Drift):
    name = "stroll"
    summary = "takes its time, so that whoever wants to disturb the flight comes in time"

    def act(self, view):
        time.sleep(0.03)
        return super().act(view)
"""


@dataclass
class Served:
    """A running `phygail serve`."""

    process: subprocess.Popen[str]
    address: str
    arguments: list[str]


def start(arguments: list[str]) -> Served:
    command = [sys.executable, "-m", "phygail", "serve", "--quiet", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert address.startswith("http://"), process.communicate(timeout=60)
    return Served(process, address, arguments)


def stop(served: Served) -> int:
    served.process.send_signal(signal.SIGINT)
    try:
        served.process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        served.process.kill()
        served.process.communicate()
    return served.process.returncode


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    plugin = folder / "drift.py"
    plugin.write_text(PLUGIN)
    run = folder / "runs" / "first"
    run.mkdir(parents=True)
    case = make_case(Grid((30,), (0.5,), 1, 3).scenario(0))
    rows = []
    for name in ("convex", "sidr"):
        episode, method = fly_case(case.scenario, name, record=True)
        rows.append(case_row(case, name, safety=False, policy=None) | episode_row(episode, method))
        save_trajectory(run.parent / f"flight.{name}.csv", episode)
    save_rows(run / "rows.csv", rows)
    save_scenarios(run.parent / "case.json", [case.scenario])
    server = start(["--port", "0", "--plugin", str(plugin), "--runs", str(run.parent)])
    yield server
    stop(server)


@pytest.fixture
def guest(browser, served):
    """A page of the server; it may ask its own server only."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(120_000)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    yield page
    context.close()
    assert errors == []
    assert all(url.startswith((served.address, "data:", "blob:")) for url in requests)


def wait(page, condition: str, timeout_s: float = 120.0) -> None:
    end = time.monotonic() + timeout_s
    while not page.evaluate(f"Boolean({condition})"):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(50)


def test_a_planner_races_in_the_page(guest, served):
    guest.goto(f"{served.address}#n=40&lost=0.5&seed=3&race=sidr,convex&speed=8")
    wait(guest, "window.phygail && phygail.app.race.lanes[1].flight.done")
    scenario = guest.evaluate("phygail.app.server.races.values().next().value.order.scenario")
    steps = guest.evaluate("phygail.app.race.lanes[1].flight.finish")
    assert steps == run_episode(scenario_from_json(scenario, "page"), "convex").steps
    wait(guest, "phygail.app.race.done && phygail.app.clock >= phygail.app.race.length")
    assert guest.locator('.lane[data-method="convex"]').inner_text().startswith("convex")


def test_a_plugin_is_a_lane_and_its_words_are_only_text(guest, served):
    guest.goto(f"{served.address}#n=40&lost=0.5&seed=3")
    guest.check('#methods input[value="drift"]')
    wait(guest, "phygail.app.race.lanes.at(-1).flight.step > 5")
    assert "drifts <b>north</b> (on the server)" in guest.inner_text("#methods")


def test_a_strike_at_the_start_is_flown_anew_on_the_server(guest, served):
    guest.goto(f"{served.address}#n=40&lost=0.5&seed=3&race=convex,sidr&speed=8")
    wait(guest, "window.phygail && phygail.app.race.lanes[0].flight.done")
    guest.evaluate("phygail.app.seek(0); phygail.app.strike(phygail.app.race.firstFrame().ids.slice(0, 4), [], 0)")
    wait(guest, "phygail.app.race.lanes[0].flight.done")
    assert guest.evaluate("phygail.app.race.lanes[0].flight.last.ids.length") == 16


def test_a_strike_in_flight_hits_the_lanes_of_the_server(guest, served):
    """The server flies on from the strike, and the browser's lane of the same rule agrees step by step."""
    guest.goto(f"{served.address}#n=40&lost=0.5&seed=3&race=convex,sidr&speed=8")
    wait(guest, "window.phygail && phygail.app.race.lanes[0].flight.done")
    before = guest.evaluate("phygail.app.race.lanes[0].flight.step")
    kept = guest.evaluate(  # in one go: the server sends the next steps at once
        """(() => {
            phygail.app.seek(3);
            phygail.app.strike(phygail.app.race.firstFrame().ids.slice(0, 4), [], 0);
            return phygail.app.race.lanes[0].flight.step;
        })()"""
    )
    assert kept == 3 < before
    wait(guest, "phygail.app.race.lanes[0].flight.done")
    flying = guest.evaluate("phygail.app.race.lanes[0].flight.frames.map(frame => frame.ids.length)")
    assert flying[:5] == [20, 20, 20, 16, 16]
    order = guest.evaluate("[...phygail.app.server.races.values()].at(-1).order")
    order = Fly(1, scenario_from_json(order["scenario"], "page"), ("convex",), False, (strike_of(order["strikes"]),))
    lane = Lane(0, "convex", order)
    told: list = []
    while not lane.over:
        lane.advance(told.append)
    assert guest.evaluate("phygail.app.race.lanes[0].flight.finish") == told[-1][2]
    guest.click("#heal")
    wait(guest, f"phygail.app.race.lanes[0].flight.done && phygail.app.race.lanes[0].flight.step === {before}")


def test_a_strike_hits_all_lanes_of_the_server_in_one_race(guest, served):
    """As many races as lanes would be more than one client may have."""
    guest.goto(f"{served.address}#n=40&lost=0.5&seed=3&race=convex,bridge,cist,drift&speed=8")
    wait(guest, "window.phygail && phygail.app.race.lanes.slice(0, 3).every(({ flight }) => flight.done)")
    guest.evaluate("phygail.app.seek(5); phygail.app.strike(phygail.app.race.firstFrame().ids.slice(0, 4), [], 0)")
    wait(guest, "phygail.app.race.done")
    assert guest.evaluate("phygail.app.race.lanes.map(({ flight }) => flight.frames[5].ids.length)") == [16] * 4
    assert guest.evaluate("phygail.app.race.lanes.map(({ flight }) => flight.trouble)") == [""] * 4
    assert guest.evaluate("phygail.app.server.races.size") == 1


def test_your_own_layout_is_flown_by_a_planner(guest, served):
    guest.goto(f"{served.address}#n=40&lost=0.5&seed=3&race=convex&speed=8")
    wait(guest, "window.phygail && phygail.app.race.lanes[0].flight.done")
    points = "".join(f"{90 * k},{7 * (k % 2)}\n" for k in range(9))
    guest.set_input_files(
        "#file", files=[{"name": "mine.csv", "mimeType": "text/csv", "buffer": b"x_m,y_m\n" + points.encode()}]
    )
    guest.wait_for_selector("text=/^mine: 9 UAVs from mine.csv/")
    guest.evaluate("phygail.app.strike([4], [], 0)")
    wait(guest, "phygail.app.race.lanes[0].flight.done && phygail.app.race.lanes[0].flight.step > 0")
    case = make_scenario("mine", [[90 * k, 7 * (k % 2)] for k in range(9)], [4])
    assert guest.evaluate("phygail.app.race.lanes[0].flight.finish") == run_episode(case, "convex").steps


def strike_of(strikes: list[dict]) -> Strike:
    (only,) = strikes
    return Strike(only["step"], tuple(only["ids"]))


def test_recorded_rows_are_flown_again(guest, served):
    guest.goto(served.address)
    guest.wait_for_selector("#runs select")
    guest.select_option("#runs select", "first")
    guest.wait_for_selector("#runs tbody tr:nth-child(2)")
    guest.fill("#find", "sidr")
    wait(guest, "document.querySelectorAll('#runs tbody tr').length === 1")
    guest.click("#runs table button")
    guest.wait_for_selector("text=/^sidr needed \\d+ steps in first/")
    assert guest.evaluate("phygail.app.world.layout.length") == 60
    guest.fill("#find", "convex")
    wait(guest, "document.querySelector('#runs td:nth-child(2)')?.textContent === 'convex'")
    guest.click("#runs table button")
    wait(guest, "phygail.app.race.lanes.length === 2 && phygail.app.race.lanes[1].flight.done")
    guest.evaluate("phygail.app.race.advanceTo(5000)")
    flown = guest.evaluate("phygail.app.race.lanes.map(({ name, flight }) => [name, flight.finish])")
    recorded = guest.evaluate("fetch('runs/first').then((a) => a.json())")["rows"]
    assert sorted(map(tuple, flown)) == [(row["method"], row["steps"]) for row in recorded]


def test_recorded_flights_are_replayed_on_their_case(guest, served):
    guest.goto(served.address)
    guest.wait_for_selector("#runs select")
    guest.select_option("#runs select", "flight.sidr.csv")
    guest.wait_for_selector("text=/recorded flight of 15 UAVs/")
    assert guest.evaluate("phygail.app.world.damaged.length") == 15
    guest.select_option("#runs select", "flight.convex.csv")
    wait(guest, "phygail.app.race.lanes.length === 2")
    guest.check('#methods input[value="sidr"]')
    guest.evaluate("phygail.app.race.advanceTo(5000)")
    again, recorded = guest.evaluate(
        "['sidr', 'recorded-flight.sidr'].map((name) => phygail.app.race.results().find((row) => row.name === name))"
    )
    assert (again["steps"], again["contacts"]) == (recorded["steps"], recorded["contacts"])
    assert again["way"] == pytest.approx(recorded["way"], abs=1e-6)


def test_a_lost_connection_comes_back_and_goes_on(guest, served):
    """The websocket is cut after five messages; the page reconnects by itself and misses nothing."""
    guest.add_init_script(
        """(() => {
            const Whole = window.WebSocket;
            window.sockets = 0;
            window.WebSocket = class extends Whole {
                constructor(address) {
                    super(address);
                    let left = window.sockets++ ? Infinity : 5;
                    this.addEventListener("message", () => --left || this.close());
                }
            };
        })()"""
    )
    guest.goto(f"{served.address}#n=40&lost=0.5&seed=3&race=convex&speed=8")
    wait(guest, "window.phygail && phygail.app.race.lanes[0].flight.done")
    assert guest.evaluate("sockets") > 1
    scenario = guest.evaluate("phygail.app.server.races.values().next().value.order.scenario")
    steps = guest.evaluate("phygail.app.race.lanes[0].flight.finish")
    assert steps == run_episode(scenario_from_json(scenario, "page"), "convex").steps > 5


def test_a_server_that_was_started_anew_flies_on(browser, served):
    plugin = served.arguments[2:4]
    first = start(["--port", "0", *plugin])
    page = browser.new_context().new_page()
    page.goto(f"{first.address}#n=100&lost=0.7&seed=3&race=stroll&speed=8")
    wait(page, "window.phygail && phygail.app.race.lanes[0].flight.step > 3")
    stop(first)
    wait(page, "phygail.app.server.away")
    before = page.evaluate("phygail.app.race.lanes[0].flight.step")
    second = start(["--port", first.address.rsplit(":", 1)[1].strip("/"), *plugin])
    try:
        wait(page, f"phygail.app.race.lanes[0].flight.step > {before} + 3")
        page.wait_for_selector("text=The server is back.")
    finally:
        page.context.close()
        stop(second)


def test_a_message_of_100_mb_is_refused_and_the_server_lives(served):
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    address = served.address.replace("http", "ws") + "race"
    # Either the sending or the receiving notices that the server has closed the connection.
    with connect(address) as socket, pytest.raises(ConnectionClosed):  # noqa: PT012
        socket.send("x" * 100_000_000)
        socket.recv(timeout=120)
    with connect(address) as socket:
        socket.send("garbage")
        assert json.loads(socket.recv(timeout=120))["type"] == "error"


def test_ctrl_c_ends_the_server_and_its_workers():
    server = start(["--port", "0"])
    from websockets.sync.client import connect

    case = {"id": "far", "positions": [[0, 0], [9e5, 0], [9e5, 90]], "damaged": [], "budget_steps": 1_000_000}
    order = {"type": "fly", "race": 1, "scenario": case, "methods": ["sidr"], "safety": False}
    with connect(server.address.replace("http", "ws") + "race", close_timeout=1) as socket:
        socket.send(json.dumps(order))
        for _ in range(3):
            socket.recv(timeout=120)
        workers = children(server.process.pid)
        assert workers
        stop(server)
    deadline = time.monotonic() + 120
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(alive, workers))


def test_a_port_that_is_taken_is_named(served, capsys):
    port = served.address.rsplit(":", 1)[1].strip("/")
    assert main(["serve", "--quiet", "--port", port]) == 2
    told = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1:{port}" in told
    assert told.count("\n") == 1


def children(pid: int) -> list[int]:
    """All that a process has started, and what they have."""
    direct = [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return direct + [further for child in direct for further in children(child)]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]
