"""The server behind the page: who may use it, what it flies, and what it survives."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from phygail.cli.recover import save_trajectory
from phygail.config import InputError, Physics
from phygail.methods.controller import run_episode
from phygail.swarm.scenario import Scenario, save_scenarios, scenario_from_json, scenario_to_json

pytest.importorskip("starlette", reason="the extra web is not installed")
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from phygail.experiments.grid import Grid
from phygail.experiments.rows import case_row, make_case, save_rows
from phygail.web import races, server
from phygail.web.messages import read_frame
from phygail.web.server import ServeSettings, make_app, make_settings

pytestmark = [pytest.mark.xdist_group("server"), pytest.mark.timeout(120)]
HOST = "127.0.0.1:8765"
RACE = f"ws://{HOST}/race"
CASE = {
    "id": "a",
    "positions": [[0.0, 0.0], [100.0, 0.0], [400.0, 0.0], [500.0, 0.0], [250.0, 0.0]],
    "damaged": [4],
    "budget_steps": 400,
}


def fly_message(race: int = 1, methods: tuple[str, ...] = ("sidr",), **extra: object) -> str:
    return json.dumps({"type": "fly", "race": race, "scenario": CASE, "methods": methods, "safety": False} | extra)


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(make_app(ServeSettings(), grace_s=0.2), base_url=f"http://{HOST}") as opened:
        yield opened


def hear(socket, count: int | None = None) -> list:
    """Messages of a race to its end, or so many of them."""
    heard: list = []
    while count is None or len(heard) < count:
        message = socket.receive()
        heard.append(message.get("bytes") or json.loads(message["text"]))
        if count is None and isinstance(heard[-1], dict) and heard[-1]["type"] in ("end", "error"):
            break
    return heard


def test_the_served_page_may_talk_to_its_server_and_knows_its_methods(client):
    text = client.get("/").text
    assert "connect-src 'self'" in text
    assert "&quot;convex&quot;" in text
    assert "&quot;sidr&quot;" not in text.split('name="phygail-server"')[1].split(">")[0]


def test_a_race_is_flown_as_everywhere(client):
    with client.websocket_connect(RACE, headers={"origin": f"http://{HOST}"}) as socket:
        socket.send_text(fly_message(methods=("sidr", "convex")))
        heard = hear(socket) + hear(socket)
    ends = {message["lane"]: message for message in heard if isinstance(message, dict) and message["type"] == "end"}
    scenario = scenario_from_json(CASE, "test")
    for lane, name in enumerate(("sidr", "convex")):
        episode = run_episode(scenario, name, record=True)
        assert (ends[lane]["steps"], ends[lane]["converged"]) == (episode.steps, episode.terminated)
        frames = [read_frame(message) for message in heard if isinstance(message, bytes)]
        mine = [frame for frame in frames if frame[2] == lane]
        assert [frame[3] for frame in mine] == list(range(1, episode.steps + 1))
        assert mine[-1][4].tolist() == episode.states[-1].positions.tolist()


def test_a_lost_connection_is_resumed_where_it_broke(client):
    with client.websocket_connect(RACE) as socket:
        socket.send_text(fly_message(race=5))
        first = [message for message in hear(socket, 20) if isinstance(message, bytes)]
    with client.websocket_connect(RACE) as socket:
        socket.send_text(json.dumps({"type": "resume", "race": 5, "have": len(first)}))
        rest = [message for message in hear(socket) if isinstance(message, bytes)]
    numbers = [read_frame(message)[1] for message in first + rest]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) == run_episode(scenario_from_json(CASE, "test"), "sidr").steps


def test_a_client_that_vanishes_takes_its_worker_along(client):
    far = {"scenario": CASE | {"positions": [[0, 0], [9e5, 0], [9e5, 90]], "damaged": [], "budget_steps": 1_000_000}}
    with client.websocket_connect(RACE) as socket:
        socket.send_text(fly_message(race=6, **far))
        hear(socket, 3)
        assert client.app.state.hub.running == 1
    deadline = time.monotonic() + 120
    while client.app.state.hub.running and time.monotonic() < deadline:
        time.sleep(0.1)
    assert client.app.state.hub.running == 0


def test_bad_messages_are_answered_and_the_connection_stays(client):
    with client.websocket_connect(RACE) as socket:
        for text in ("garbage", "[1]", fly_message(methods=("rm -rf",)), fly_message(scenario={"id": "a"})):
            socket.send_text(text)
            assert socket.receive_json()["type"] == "error"
        socket.send_bytes(b"\x00\x01")
        assert socket.receive_json()["type"] == "error"
        socket.send_text(json.dumps({"type": "resume", "race": 99, "have": 0}))
        assert "not known any more" in socket.receive_json()["text"]
        socket.send_text(fly_message())
        assert hear(socket)[-1]["converged"]


def test_races_of_one_client_are_limited(client):
    far = {"scenario": CASE | {"positions": [[0, 0], [9e5, 0], [9e5, 90]], "damaged": [], "budget_steps": 1_000_000}}
    with client.websocket_connect(RACE) as socket:
        for race in (1, 2):
            socket.send_text(fly_message(race=race, **far))
        socket.send_text(fly_message(race=3))
        refusals = []
        while not refusals:
            message = socket.receive()
            if message.get("text") and json.loads(message["text"])["type"] == "error":
                refusals.append(json.loads(message["text"])["text"])
        assert refusals == [f"{races.MOST_PER_CLIENT} races of yours are being flown: stop one first"]
        for race in (1, 2):
            socket.send_text(json.dumps({"type": "stop", "race": race}))


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1.evil.example"]
)
def test_a_foreign_origin_is_refused(client, origin):
    assert client.get("/", headers={"origin": origin}).status_code == 403
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(RACE, headers={"origin": origin}):
        pass


def test_a_foreign_host_name_is_refused(client):
    assert client.get("/", headers={"host": "evil.example"}).status_code == 403


@pytest.mark.parametrize(
    "path",
    ["/..%2f..%2fetc%2fpasswd", "/runs/..%2f..%2fetc", "/runs/%2e%2e", "/static/js/main.js", "/runs/a%00b", "/runs/"],
)
def test_no_path_leads_out(client, path):
    assert client.get(path).status_code == 404


def test_a_token_guards_a_server_that_others_can_reach():
    settings, far = make_settings("0.0.0.0"), "ws://10.0.0.5:8765/race"
    assert make_settings("127.0.0.1").token == ""
    assert len(settings.token) >= 20
    with TestClient(make_app(settings), base_url="http://10.0.0.5:8765") as client:
        assert client.get("/").status_code == 403
        assert client.get("/", params={"token": settings.token + "x"}).status_code == 403
        with pytest.raises(WebSocketDisconnect), client.websocket_connect(far):
            pass
        assert client.get("/", params={"token": settings.token}).status_code == 200
        assert client.get("/").status_code == 200  # the cookie
        with client.websocket_connect(far, headers={"origin": "http://10.0.0.5:8765"}) as socket:
            socket.send_text("garbage")
            assert socket.receive_json()["type"] == "error"


def save_run(folder: Path, scenario: Scenario, names: tuple[str, ...] = ("sidr",)) -> None:
    folder.mkdir(parents=True)
    rows = [case_row(make_case(scenario), name, safety=False, policy=None) for name in names]
    save_rows(folder / "rows.csv", rows)


def ask_runs(folder: Path) -> TestClient:
    return TestClient(make_app(ServeSettings(runs=folder)), base_url=f"http://{HOST}")


def test_recorded_rows_are_listed_found_and_their_cases_drawn_again(tmp_path: Path):
    scenario = Grid((20,), (0.5,), 2, 3).scenario(1)
    save_run(tmp_path / "first" / "fast", scenario, ("reach", "sidr"))
    with ask_runs(tmp_path) as client:
        assert client.get("/runs").json() == {"rows": ["first/fast"], "flights": []}
        answer = client.get("/runs/first/fast").json()
        assert (answer["all"], answer["rows"][0]["scenario"]) == (2, scenario.id)
        found = client.get("/runs/first/fast", params={"find": "sidr n0020"}).json()
        assert (found["all"], found["found"], [row["method"] for row in found["rows"]]) == (2, 1, ["sidr"])
        again = client.get("/runs/first/fast", params={"scenario": scenario.id}).json()
        assert again == scenario_to_json(scenario)
        assert "put its scenario file beside" in client.get("/runs/first/fast", params={"scenario": "../x"}).text
        assert client.get("/runs/second").status_code == 404
        assert client.get("/runs/first/fast/../../../etc").status_code == 404


def test_a_recorded_case_keeps_the_radio_of_its_run_and_comes_from_the_file_beside_it(tmp_path: Path):
    short = Grid((20,), (0.5,), 1, 3, Physics(range_m=100.0)).scenario(0)
    save_run(tmp_path / "short", short)
    (tmp_path / "short" / "run.json").write_text(json.dumps({"config": {"range_m": 100.0, "speed_mps": [5, 10]}}))
    mine = scenario_from_json(CASE, "test")
    save_run(tmp_path / "mine", mine)
    save_scenarios(tmp_path / "mine" / "cases.json", [mine])
    (tmp_path / "mine" / "other.json").write_text("[]")
    with ask_runs(tmp_path) as client:
        assert client.get("/runs/short", params={"scenario": short.id}).json() == scenario_to_json(short)
        assert client.get("/runs/mine", params={"scenario": "a"}).json() == scenario_to_json(mine)


def test_recorded_flights_come_with_the_cases_beside_them(tmp_path: Path, monkeypatch):
    scenario = scenario_from_json(CASE, "test")
    save_trajectory(tmp_path / "flight.csv", run_episode(scenario, "sidr", record=True))
    save_scenarios(tmp_path / "case.json", [scenario])
    (tmp_path / "layout.csv").write_text("x_m,y_m\n0,0\n")
    (tmp_path / "picture.csv").write_bytes(b"\xff\xfe\x00")
    with ask_runs(tmp_path) as client:
        assert client.get("/runs").json() == {"rows": [], "flights": ["flight.csv"]}
        answer = client.get("/runs/flight.csv").json()
        assert answer["scenarios"] == [scenario_to_json(scenario)]
        assert answer["text"] == (tmp_path / "flight.csv").read_text()
        monkeypatch.setattr(server, "MOST_FLIGHT_BYTES", 1000)
        assert "MB are shown" in client.get("/runs/flight.csv").text


def test_a_missing_folder_of_runs_is_named(tmp_path: Path):
    with pytest.raises(InputError, match="no folder"):
        make_app(ServeSettings(runs=tmp_path / "nowhere"))
