"""The page with a server behind it, for what a browser cannot do: planners, plugins, recorded runs (extra `web`)."""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from phygail.config import InputError
from phygail.evaluation.roster import installed
from phygail.methods import METHODS
from phygail.web.build import PAGE
from phygail.web.messages import MOST_BYTES, Fly, Resume, Stop, parse_message
from phygail.web.names import PAGE_METHODS
from phygail.web.races import Hub, LiveRace
from phygail.web.runs import Runs

COOKIE = "phygail-token"
LOCAL = ("127.0.0.1", "localhost", "::1")
REFUSED = 1008  # code of a websocket that is closed because of what the client is or does


@dataclass(frozen=True)
class ServeSettings:
    """What a server offers and to whom.

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
    """One open websocket: its races and the tasks that tell it about them."""

    races: set[int] = field(default_factory=set)
    tellers: dict[int, asyncio.Task[None]] = field(default_factory=dict)


def make_app(settings: ServeSettings, grace_s: float | None = None) -> Starlette:
    """The ASGI application."""
    hub = Hub(settings.plugins)
    runs = Runs(settings.runs)
    offered = {name: METHODS.get(name).summary for name in METHODS if installed(METHODS.get(name))}
    page = served_page({name: text for name, text in offered.items() if name not in PAGE_METHODS.values()}, runs)
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
            return JSONResponse(runs.find(request.path_params["name"], request.query_params.get("scenario")))
        except InputError as error:
            return PlainTextResponse(str(error), status_code=404)

    async def race(socket: WebSocket) -> None:
        try:
            _check(socket, settings)
        except HTTPException as error:
            await socket.close(REFUSED, error.detail)
            return
        await socket.accept()
        client = _Client()
        try:
            while True:
                await _answer(socket, client, hub, await _text(socket), frozenset(offered))
        except WebSocketDisconnect:
            pass
        finally:
            for teller in client.tellers.values():
                teller.cancel()
            task = asyncio.create_task(hub.leave(client.races, grace_s))
            leaving.add(task)
            task.add_done_callback(leaving.discard)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        for task in leaving:
            task.cancel()
        await hub.close()

    routes = [
        Route("/", show_page),
        Route("/runs", list_runs),
        Route("/runs/{name}", show_run),
        WebSocketRoute("/race", race),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.hub = hub
    return app


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
    """Refuse who comes from elsewhere: a foreign Host (a name that was made to point here), Origin or no token."""
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
    """The next message; a binary one is read as a text and refused as one."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code") or 1000)
    text = message.get("text")
    return text if isinstance(text, str) else ""


async def _answer(socket: WebSocket, client: _Client, hub: Hub, text: str, known: frozenset[str]) -> None:
    """Do what one message asks for; one that is wrong is answered with an error, and the connection stays."""
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
    """Send a race to a client; one that has vanished is no error."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        await socket.send_json({"type": "welcome", "race": race.order.race, "methods": list(race.order.methods)})
        async for message in race.follow(have):
            await (socket.send_bytes(message) if isinstance(message, bytes) else socket.send_text(message))
