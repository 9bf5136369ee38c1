"""The page with a server behind it, for what a browser cannot do: planners, plugins, recorded runs (extra `web`)."""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from phygail.config import InputError, Physics
from phygail.experiments.experiment import drawn_scenario, is_drawn
from phygail.experiments.rows import read_rows
from phygail.files import read_json, read_text
from phygail.methods import METHODS
from phygail.methods.base import installed
from phygail.swarm.scenario import Scenario, load_scenarios, scenario_to_json
from phygail.web.build import PAGE, page_methods
from phygail.web.messages import MOST_BYTES, MOST_UAVS, Fly, Resume, Stop, parse_message
from phygail.web.races import Hub, LiveRace

COOKIE = "phygail-token"
LOCAL = ("127.0.0.1", "localhost", "::1")
REFUSED = 1008  # code of a websocket that the server closes: client or message not allowed

ROWS = "rows.csv"
MOST_ROWS = 2_000  # of one run
MOST_RUNS = 200
SHOWN = (
    "scenario",
    "method",
    "uavs",
    "damaged",
    "subnets",
    "converged",
    "steps",
    "bound_steps",
    "safety",
    "variant",
    "noise_m",
    "delay_steps",
    "bias_m",
)
TRAJECTORY = "t,uav,x,y,vx,vy"  # first line of a trajectory file
MOST_FLIGHT_BYTES = 60_000_000


@dataclass(frozen=True)
class ServeSettings:
    """What a server offers, and which clients it admits.

    Attributes:
        host: Where it listens; anything but this machine needs a token.
        plugins: Python files that register methods.
        runs: Folder of recorded runs.
        token: Whoever has it may use the server; none is needed on this machine.
    """

    host: str = LOCAL[0]
    plugins: tuple[Path, ...] = ()
    runs: Path | None = None
    token: str = ""

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOCAL


def make_settings(host: str, plugins: tuple[Path, ...] = (), runs: Path | None = None) -> ServeSettings:
    """Settings with a fresh token where one is needed."""
    return ServeSettings(host, plugins, runs, "" if host in LOCAL else secrets.token_urlsafe(16))


@dataclass
class _Client:
    """One open websocket: its races and the tasks that send it their messages."""

    races: set[int] = field(default_factory=set)
    tellers: dict[int, asyncio.Task[None]] = field(default_factory=dict)


def make_app(settings: ServeSettings, grace_s: float | None = None) -> Starlette:
    """The ASGI application."""
    hub, runs = Hub(settings.plugins), Runs(settings.runs)
    offered = {name: METHODS.get(name).summary for name in METHODS if installed(METHODS.get(name))}
    page = served_page({name: text for name, text in offered.items() if name not in page_methods()}, runs)
    leaving: set[asyncio.Task[None]] = set()

    def show_page(request: Request) -> Response:
        _check(request, settings)
        response = HTMLResponse(page)
        if settings.token:
            response.set_cookie(COOKIE, settings.token, httponly=True, samesite="strict")
        return response

    def list_runs(request: Request) -> Response:
        _check(request, settings)
        return JSONResponse(runs.listing())

    def show_run(request: Request) -> Response:
        _check(request, settings)
        try:
            asked = request.query_params
            return JSONResponse(runs.show(request.path_params["name"], asked.get("scenario"), asked.get("find", "")))
        except InputError as error:
            return PlainTextResponse(str(error), status_code=404)

    async def race(socket: WebSocket) -> None:
        try:
            _check(socket, settings)
        except HTTPException as error:
            return await socket.close(REFUSED, error.detail)
        client = _Client()
        try:
            await _answer_all(socket, client, hub, frozenset(offered))
        finally:
            task = asyncio.create_task(hub.leave(client.races, grace_s))
            leaving.add(task)
            task.add_done_callback(leaving.discard)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        for task in leaving:
            task.cancel()
        await hub.close()

    routes = [Route("/", show_page), Route("/runs", list_runs), Route("/runs/{name:path}", show_run)]
    app = Starlette(routes=[*routes, WebSocketRoute("/race", race)], lifespan=lifespan)
    app.state.hub = hub
    return app


async def _answer_all(socket: WebSocket, client: _Client, hub: Hub, offered: frozenset[str]) -> None:
    """Accept a client and answer its messages until it is gone; then nobody tells it anything."""
    await socket.accept()
    try:
        while True:
            await _answer(socket, client, hub, await _text(socket), offered)
    except WebSocketDisconnect:
        pass
    finally:
        for teller in client.tellers.values():
            teller.cancel()


def served_page(methods: dict[str, str], runs: Runs) -> str:
    """The page, allowed to talk to its own server, with what that offers."""
    offer = json.dumps({"methods": methods, "runs": bool(runs)})
    text = PAGE.read_text(encoding="utf-8")
    for old, new in (
        ("base-uri 'none'", "connect-src 'self'; base-uri 'none'"),
        (
            '<meta name="color-scheme"',
            f'<meta name="phygail-server" content="{html.escape(offer)}">\n<meta name="color-scheme"',
        ),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def _check(connection: HTTPConnection, settings: ServeSettings) -> None:
    """Refuse a foreign request: another Host (a name that was made to point here), another Origin, or no token."""
    host = urlsplit(f"//{connection.headers.get('host', '')}").hostname or ""
    if settings.local and host not in LOCAL:
        raise HTTPException(403, f"this server answers to {settings.host} only")
    origin = connection.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != connection.headers.get("host", ""):
        raise HTTPException(403, "a page from elsewhere may not use this server")
    given = connection.query_params.get("token") or connection.cookies.get(COOKIE, "")
    if settings.token and not secrets.compare_digest(given.encode(), settings.token.encode()):
        raise HTTPException(403, "the token is missing or wrong: open the address that phygail serve has printed")


async def _text(socket: WebSocket) -> str:
    """The text of the next message; a binary message gives an empty text, which is refused."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code") or 1000)
    text = message.get("text")
    return text if isinstance(text, str) else ""


async def _answer(socket: WebSocket, client: _Client, hub: Hub, text: str, known: frozenset[str]) -> None:
    """Do what one message asks for; a wrong message is answered with an error, and the connection stays open."""
    try:
        order = parse_message(text, known)
        if isinstance(order, Stop):
            _forget(client, order.race)
            hub.stop(order.race)
            return
        race = hub.start(order, client.races) if isinstance(order, Fly) else hub.find(order.race)
    except InputError as error:
        await socket.send_json({"type": "error", "race": _race_of(text), "text": str(error)})
        return
    _forget(client, order.race)
    client.races.add(order.race)
    have = order.have if isinstance(order, Resume) else 0
    client.tellers[order.race] = asyncio.create_task(_tell(socket, race, have))


def _forget(client: _Client, race: int) -> None:
    teller = client.tellers.pop(race, None)
    if teller is not None:
        teller.cancel()


def _race_of(text: str) -> Any:
    """The race that a refused message was about, if it says so."""
    try:
        return json.loads(text[:MOST_BYTES]).get("race")
    except (ValueError, AttributeError, RecursionError):
        return None


async def _tell(socket: WebSocket, race: LiveRace, have: int) -> None:
    """Send a race to a client; a client that has left is no error."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        await socket.send_json({"type": "welcome", "race": race.order.race, "methods": list(race.order.methods)})
        async for message in race.follow(have):
            await (socket.send_bytes(message) if isinstance(message, bytes) else socket.send_text(message))


class Runs:
    """The recorded runs below one folder, by name: rows of comparisons, and trajectories of flights.

    A client names a run; it never names a path.
    """

    def __init__(self, folder: Path | None) -> None:
        if folder is not None and not folder.is_dir():
            raise InputError(f"no folder {folder}: name one that holds results of phygail compare or trajectories")
        self._folder = folder

    def __bool__(self) -> bool:
        return self._folder is not None

    def _rows(self) -> dict[str, Path]:
        """Files of rows by the name of their folder."""
        return {self._name(file.parent): file for file in self._files(ROWS)[:MOST_RUNS]}

    def _flights(self) -> dict[str, Path]:
        """Trajectories by name."""
        flights = (file for file in self._files("*.csv") if file.name != ROWS and _is_trajectory(file))
        return {self._name(file): file for file in islice(flights, MOST_RUNS)}

    def _files(self, pattern: str) -> list[Path]:
        return [] if self._folder is None else sorted(self._folder.rglob(pattern))

    def _name(self, path: Path) -> str:
        assert self._folder is not None
        name = path.relative_to(self._folder).as_posix()
        return self._folder.resolve().name or ROWS if name == "." else name

    def listing(self) -> dict[str, list[str]]:
        """The names of all runs."""
        return {"rows": list(self._rows()), "flights": list(self._flights())}

    def show(self, name: str, scenario: str | None = None, find: str = "") -> dict[str, Any]:
        """The rows of a run in which every word of `find` stands, the case of one of them, or a recorded flight."""
        flight, file = self._flights().get(name), self._rows().get(name)
        if flight is not None:
            return recorded_flight(flight)
        if file is None:
            raise InputError(f"no run {name[:60]!r}: the page lists those that there are")
        if scenario is not None:
            return recorded_case(file.parent, scenario)
        rows = read_rows(file)
        words = find.split()
        found = [row for row in rows if all(word in f"{row['scenario']} {row['method']}" for word in words)]
        shown = [{key: row.get(key) for key in SHOWN} for row in found[:MOST_ROWS]]
        return {"rows": shown, "found": len(found), "all": len(rows)}


def _is_trajectory(file: Path) -> bool:
    try:
        with file.open(encoding="utf-8-sig") as lines:
            return lines.readline(100).strip() == TRAJECTORY
    except (OSError, UnicodeDecodeError):
        return False


def recorded_flight(file: Path) -> dict[str, Any]:
    """A trajectory, and the cases of the scenario files beside it: the page knows its own by where it begins."""
    size = file.stat().st_size
    if size > MOST_FLIGHT_BYTES:
        raise InputError(f"{file.name} has {size / 1e6:.0f} MB: at most {MOST_FLIGHT_BYTES / 1e6:.0f} MB are shown")
    return {"text": read_text(file), "scenarios": [scenario_to_json(case) for case in _cases_beside(file.parent)]}


def recorded_case(folder: Path, name: str) -> dict[str, Any]:
    """The case of a row: from a scenario file beside the rows, or drawn again by its id with the radio of the run."""
    found = [case for case in _cases_beside(folder) if case.id == name]
    if found:
        return scenario_to_json(found[0])
    if not is_drawn(name):
        raise InputError(f"the case {name[:60]!r} was not drawn: put its scenario file beside {ROWS}")
    record = folder / "run.json"
    config = read_json(record)["config"] if record.is_file() else {}
    radio = {key: config[key] for key in asdict(Physics()) if isinstance(config.get(key), int | float)}
    return scenario_to_json(drawn_scenario(name, Physics(**radio)))


def _cases_beside(folder: Path) -> list[Scenario]:
    """The cases of all scenario files in a folder; other files are passed over."""
    cases: list[Scenario] = []
    for file in sorted(folder.glob("*.json"))[:MOST_RUNS]:
        with contextlib.suppress(InputError):
            cases += load_scenarios(file) if file.stat().st_size <= MOST_FLIGHT_BYTES else []
    return [case for case in cases if case.uavs <= MOST_UAVS]
