"""The races that a server flies: one worker process each, everything it told kept for a client that comes back."""

from __future__ import annotations

import asyncio
import functools
import json
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from phygail.config import ONE_THREAD, InputError
from phygail.methods.base import Method, load_methods, make_method
from phygail.methods.controller import controller
from phygail.swarm.simulator import Controller, initial_state, step
from phygail.web.messages import Fly, frame_bytes

# What the worker sends: ("frame", lane, step, positions) or ("end", lane, steps, converged, flag).
Report = tuple[str, int, int, np.ndarray] | tuple[str, int, int, bool, str]

MOST_RACES = 8  # at once, of all clients
MOST_PER_CLIENT = 2  # at once, of one connection
GRACE_S = 60.0  # a race without a listener is ended after this


@functools.cache
def _workers() -> Any:
    """Where workers come from: a process that has all methods loaded and nothing else, or fresh ones where none can be.

    Forking the server itself would copy the locks of its event loop; a fresh process takes a second to load everything,
    which is long after a click that strikes a planner's lane.
    """
    os.environ.update(ONE_THREAD | os.environ)  # workers inherit it
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def fly_race(reports: Connection, order: Fly, plugins: tuple[Path, ...]) -> None:
    """Fly all lanes side by side, the one with the fewest steps first, and report every step; has its own process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's business: it ends its workers
    try:
        load_methods(plugins)
        lanes = [Lane(number, name, order) for number, name in enumerate(order.methods)]
        while flying := [lane for lane in lanes if not lane.over]:
            min(flying, key=lambda lane: lane.step).advance(reports.send)
    except (BrokenPipeError, ConnectionResetError):
        pass  # nobody listens any more
    finally:
        reports.close()


class Lane:
    """One method in flight. Strikes are the events of its world (swarm/flight.py), as they are in the page."""

    def __init__(self, number: int, name: str, order: Fly) -> None:
        self.number, self.name, self.order = number, name, order
        self.state = initial_state(order.struck)
        self.over = False
        self._method: Method | None = None
        self._command: Controller | None = None

    @property
    def step(self) -> int:
        """Steps since the beginning of the race."""
        return self.state.step

    def advance(self, report: Callable[[Report], None]) -> None:
        """One step; whatever a method raises ends its lane, not the race."""
        try:
            self._step(report)
        except (BrokenPipeError, ConnectionResetError):
            raise
        except Exception as error:  # a method from a plugin may raise anything
            self.over = True
            report(("end", self.number, self.step, False, f"{type(error).__name__}: {error}"[:200]))

    def _step(self, report: Callable[[Report], None]) -> None:
        if self.state.terminated or self.state.truncated:
            self.over = True
            report(("end", self.number, self.step, self.state.terminated, self._method.flag if self._method else ""))
            return
        if self._command is None:
            self._method = make_method(self.name)
            self._command = controller(self._method, self.state.scenario)
        before, self.state = self.state, step(self.state, self._command(self.state), safety=self.order.safety)
        if self.step > self.order.begin:
            # Positions of all UAVs that made the move, struck ones included: the page removes those itself.
            flight = self.state.flight
            moved = self.state.positions if flight is None else flight.places[before.members]
            report(("frame", self.number, self.step, moved))


class LiveRace:
    """One race: its worker and all messages so far."""

    def __init__(self, order: Fly, plugins: tuple[Path, ...]) -> None:
        self.order = order
        self.messages: list[bytes | str] = []
        self.over = False
        self.listeners = 0
        self._news = asyncio.Condition()
        reports, theirs = _workers().Pipe(duplex=False)
        self._process = _workers().Process(
            target=fly_race,
            args=(theirs, order, plugins),
            daemon=True,
            name=f"phygail-race-{order.race}",
        )
        self._process.start()
        theirs.close()
        self._pump = asyncio.create_task(self._listen(reports))

    async def _listen(self, reports: Connection) -> None:
        """Take the worker's reports as they come; waiting happens in a thread, never in the event loop."""
        try:
            while (report := await asyncio.to_thread(_receive, reports)) is not None:
                await self._add(self._message(report))
        finally:
            reports.close()
            self._process.terminate()
            await asyncio.to_thread(self._process.join, 5.0)
            ended = sum(isinstance(message, str) for message in self.messages)
            self.over = True
            if ended < len(self.order.methods):  # the worker died before it could say why
                lost = {"type": "error", "race": self.order.race, "text": "the race was ended"}
                await self._add(json.dumps(lost))
            else:
                async with self._news:
                    self._news.notify_all()

    def _message(self, report: Report) -> bytes | str:
        if report[0] == "frame":
            return frame_bytes(self.order.race, len(self.messages), report[1], report[2], report[3])  # type: ignore[arg-type]
        _, lane, steps, converged, flag = report  # type: ignore[misc]
        end = {
            "type": "end",
            "race": self.order.race,
            "lane": lane,
            "steps": steps,
            "converged": converged,
            "flag": flag,
        }
        return json.dumps(end)

    async def _add(self, message: bytes | str) -> None:
        async with self._news:
            self.messages.append(message)
            self._news.notify_all()

    async def follow(self, have: int) -> AsyncIterator[bytes | str]:
        """All messages from number `have` on, as they come, to the end of the race."""
        self.listeners += 1
        try:
            sent = min(have, len(self.messages))
            while True:
                async with self._news:
                    await self._news.wait_for(lambda: self.over or len(self.messages) > sent)  # noqa: B023
                fresh = self.messages[sent:]
                if not fresh:
                    return
                for message in fresh:
                    yield message
                sent += len(fresh)
        finally:
            self.listeners -= 1

    def stop(self) -> None:
        """End the worker; `pump` then cleans up."""
        self._process.terminate()

    async def gone(self) -> None:
        """Wait until the worker has ended."""
        await asyncio.wait([self._pump])


def _receive(reports: Connection) -> Report | None:
    try:
        return reports.recv()
    except (EOFError, OSError):
        return None


class Hub:
    """All races of a server."""

    def __init__(self, plugins: tuple[Path, ...] = ()) -> None:
        self._plugins = plugins
        self._races: dict[int, LiveRace] = {}

    def start(self, order: Fly, mine: set[int]) -> LiveRace:
        """Start a race of a client that has the races `mine`, or refuse it."""
        if order.race in self._races:
            raise InputError("a race of this number is being flown already: choose another number")
        for tag in [tag for tag in mine if tag in self._races and self._races[tag].over]:
            self.stop(tag)  # what has been told to its end need not be kept
        running = [tag for tag, race in self._races.items() if not race.over]
        if len([tag for tag in running if tag in mine]) >= MOST_PER_CLIENT:
            raise InputError(f"{MOST_PER_CLIENT} races of yours are being flown: stop one first")
        if len(running) >= MOST_RACES:
            raise InputError(f"{MOST_RACES} races are being flown: try again when one has ended")
        race = self._races[order.race] = LiveRace(order, self._plugins)
        return race

    def find(self, tag: int) -> LiveRace:
        """A race by its number, for a client that comes back."""
        if tag not in self._races:
            raise InputError("this race is not known any more: start it again")
        return self._races[tag]

    def stop(self, tag: int) -> None:
        """End and forget a race."""
        race = self._races.pop(tag, None)
        if race is not None:
            race.stop()

    async def leave(self, tags: set[int], grace_s: float | None = None) -> None:
        """A client has gone: its races end unless somebody listens to them again within the grace."""
        await asyncio.sleep(GRACE_S if grace_s is None else grace_s)
        for tag in tags:
            race = self._races.get(tag)
            if race is not None and not race.listeners:
                self.stop(tag)

    async def close(self) -> None:
        """End all races."""
        races = list(self._races.values())
        for tag in list(self._races):
            self.stop(tag)
        for race in races:
            await race.gone()

    @property
    def running(self) -> int:
        """Races whose worker is alive."""
        return sum(not race.over for race in self._races.values())
