"""One swarm at a time: `phygail recover`, and the page to play, `phygail play` and `phygail serve`."""

from __future__ import annotations

import json
import os
import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from phygail.cli.options import (
    PAPER_RADIO,
    PLAIN_WORLD,
    Count,
    Plugins,
    Policy,
    Radio,
    Safety,
    Switch,
    WorldOptions,
    require_one,
)
from phygail.config import ONE_THREAD, InputError, physics_line, physics_values, require_extra

if TYPE_CHECKING:
    import numpy as np

    from phygail.experiments.rows import Case
    from phygail.swarm.scenario import Scenario
    from phygail.swarm.simulator import Episode

FAVORITES = ("sidr", "reach-evolved", "convex")  # flown unless methods are named
MOVIES = (".gif", ".mp4")
PICTURES = (".png", *MOVIES)
_SWARM, _RATIO = 200, 0.5  # swarm size and damage ratio if no flag is given


@dataclass(frozen=True)
class Recover:
    """Reconnect one swarm with several methods: a table, a picture or movie, trajectories.

    For example:
      phygail recover --uavs 200 --damage 0.5 --picture recovery.png
      phygail recover --layout layout.csv --kill 3,17 --methods sidr,convex --trajectory flight.csv
      phygail recover --layout layout.csv --strike 400,300,150 --safety on
      phygail recover --uavs 100 --damage 0.75 --waves 3:40:150 --picture waves.gif
      phygail recover --scenarios cases.json --id a1 --methods all --json
    """

    uavs: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """Draw a swarm of this size, 200 if no swarm is named."""
    layout: Annotated[Path | None, tyro.conf.arg(metavar="FILE.csv", help_behavior_hint="")] = None
    """Your own layout: CSV with the header x_m,y_m; or one of the paper's, paper-20 ... paper-1000."""
    scenarios: Annotated[Path | None, tyro.conf.arg(metavar="FILE.json", help_behavior_hint="")] = None
    """Scenario file; the scenario brings its damage along."""
    id: Annotated[str | None, tyro.conf.arg(metavar="ID", help_behavior_hint="")] = None
    """Which scenario of the file."""
    damage: Annotated[float | None, tyro.conf.arg(metavar="RATIO", help_behavior_hint="")] = None
    """Random damage, redrawn until it splits the swarm; 0.5 if no damage is named."""
    strike: Annotated[str | None, tyro.conf.arg(metavar="X,Y,RADIUS", help_behavior_hint="")] = None
    """Damage all UAVs within RADIUS of (X, Y), in meters."""
    kill: Annotated[str | None, tyro.conf.arg(metavar="LIST", help_behavior_hint="")] = None
    """Damage exactly these UAVs, e.g. 3,17."""
    seed: Count = 0
    """Of what is drawn."""
    methods: Annotated[str | None, tyro.conf.arg(metavar="NAMES", help_behavior_hint="")] = None
    """Names separated by commas, or all; unless given, reach-evolved (of the decentralized methods the fastest
    measured) between sidr and convex."""
    safety: Safety = "off"
    """Filter every command so that no new contact can happen."""
    policy: Policy = None
    """Policy for the methods that fly one."""
    plugin: Plugins = ()
    """Python file that registers further methods."""
    picture: Annotated[Path | None, tyro.conf.arg(metavar="FILE.png|.gif|.mp4", help_behavior_hint="")] = None
    """Draw (.png) or animate (.gif, .mp4) the recovery."""
    trajectory: Annotated[Path | None, tyro.conf.arg(metavar="FILE.csv", help_behavior_hint="")] = None
    """Save t,uav,x,y,vx,vy of the alive (s, m, m/s); with several methods one file each, FILE.METHOD.csv."""
    json: Switch = False
    """Print JSON instead of a table."""
    radio: Radio = PAPER_RADIO
    world: WorldOptions = PLAIN_WORLD

    def run(self) -> int:
        """Fly all methods on the one scenario and show how they did."""
        if "numpy" not in sys.modules:  # one thread, as in `compare`: the same command gives the same flight
            os.environ.update(ONE_THREAD)
        from phygail.cli.options import note
        from phygail.experiments.rows import case_row, episode_row, make_case
        from phygail.methods import METHODS
        from phygail.methods.base import check_policy, choose_methods, load_methods, named_faults, nonfinite_fault
        from phygail.methods.controller import fly_case

        load_methods(self.plugin)
        names = choose_methods([n for n in FAVORITES if n in METHODS] if self.methods is None else self.methods)
        policy = check_policy(self.policy, names)
        self._check_outputs(names)
        self.world.tell(self.radio.physics())
        case = make_case(self.world.applied([self._scenario()])[0])
        flights: dict[str, Episode] = {}
        rows = []
        record = self.picture is not None or self.trajectory is not None
        safety = self.safety == "on"
        for name in names:
            with named_faults(METHODS.get(name)):  # a method from a plugin may raise anything
                flights[name], method = fly_case(case.scenario, name, safety=safety, policy=policy, record=record)
                facts = case_row(case, name, safety=safety, policy=policy)
                rows.append(facts | episode_row(flights[name], method))
            if flights[name].nonfinite:
                note(nonfinite_fault(method))
        rows.sort(key=lambda row: (-row["converged"], row["steps"]))
        self._save(flights)
        _print_json(case, rows) if self.json else _print_table(case, rows)
        if self.picture is not None:
            note(f"picture: {self.picture}")
        for path in self._trajectories(names).values():
            note(f"trajectory: {path}")
        return 0

    def _scenario(self) -> Scenario:
        """The scenario that the flags describe."""
        source = require_one("swarm", {"--uavs": self.uavs, "--layout": self.layout, "--scenarios": self.scenarios})
        damage = require_one("damage", {"--damage": self.damage, "--strike": self.strike, "--kill": self.kill})
        if self.scenarios is not None:
            if damage:
                raise InputError(f"--scenarios and {damage} cannot be combined: a scenario brings its damage along")
            self.radio.refuse_beside(self.scenarios)
            return _pick(self.scenarios, self.id)
        if self.id is not None:
            raise InputError("--id needs --scenarios: name the file that holds the scenario")
        if damage in (None, "--damage"):
            return self._drawn(_RATIO if self.damage is None else self.damage, fresh=source != "--layout")
        return self._struck()

    def _drawn(self, ratio: float, *, fresh: bool) -> Scenario:
        from phygail.experiments.grid import Grid, damaged_layouts

        physics = self.radio.physics()
        # Case 0 of a grid: the same scenario as in a comparison.
        if fresh:
            return Grid((_SWARM if self.uavs is None else self.uavs,), (ratio,), 1, self.seed, physics).scenario(0)
        return damaged_layouts([str(self.layout)], [ratio], 1, self.seed, physics)[0]

    def _struck(self) -> Scenario:
        from phygail.experiments.grid import parse_whole
        from phygail.rng import generator
        from phygail.swarm.layout import draw_layout, find_layout, strike_damage, width_for
        from phygail.swarm.scenario import make_scenario

        physics = self.radio.physics()
        layout: np.ndarray
        width: float | None
        if self.layout is not None:
            ground = find_layout(self.layout)
            layout, name, width = ground.positions, ground.name, ground.width_m
        else:
            uavs = _SWARM if self.uavs is None else self.uavs
            name, width = f"n{uavs:04d}-s{self.seed}", width_for(uavs, physics.range_m)
            layout = draw_layout(uavs, generator(self.seed, "layout", uavs), width, physics)
        if self.kill is not None:
            damaged = parse_whole(self.kill, "--kill")
        else:
            damaged = tuple(strike_damage(layout, *_parse_strike(self.strike or "")).tolist())
        return make_scenario(name, layout, damaged, width_m=width, physics=physics, seed=self.seed)

    def _check_outputs(self, names: Sequence[str]) -> None:
        """Refuse files that cannot be written before anything is flown."""
        from phygail.files import check_writable

        if self.picture is not None and self.picture.suffix.lower() not in PICTURES:
            raise InputError(f"cannot draw {self.picture}: name a file that ends in {', '.join(PICTURES)}")
        if self.picture is not None and self.picture.suffix.lower() == ".mp4":
            require_extra("MP4 movies", "movie", "imageio_ffmpeg")
        for path in (*([self.picture] if self.picture else []), *self._trajectories(names).values()):
            check_writable(path)

    def _trajectories(self, names: Sequence[str]) -> dict[str, Path]:
        """The file for the trajectory of every method: the one that was named, or one each beside it."""
        file = self.trajectory
        if file is None:
            return {}
        if len(names) == 1:
            return {names[0]: file}
        return {name: file.with_name(f"{file.stem}.{name}{file.suffix}") for name in names}

    def _save(self, flights: dict[str, Episode]) -> None:
        for name, file in self._trajectories(list(flights)).items():
            save_trajectory(file, flights[name])
        if self.picture is None:
            return
        if self.picture.suffix.lower() in MOVIES:
            from phygail.render.animation import animate_recovery

            animate_recovery(flights, self.picture)
        else:
            from phygail.render.scene import draw_recovery

            draw_recovery(flights, self.picture)


def save_trajectory(path: Path, episode: Episode) -> None:
    """CSV t,uav,x,y,vx,vy (s, roster index, m, m/s): every alive UAV at every step, the first at t = 0."""
    from phygail.files import write_text

    scenario = episode.scenario
    lines = ["t,uav,x,y,vx,vy\n"]
    for state in episode.states:
        t = round(state.step * scenario.physics.step_s, 9)
        for uav, (x, y), (vx, vy) in zip(
            state.members.tolist(), state.positions.tolist(), state.velocities.tolist(), strict=True
        ):
            lines.append(f"{t!r},{uav},{x!r},{y!r},{vx!r},{vy!r}\n")
    write_text(path, "".join(lines))


def _pick(path: Path, name: str | None) -> Scenario:
    from phygail.swarm.scenario import load_scenarios

    found = {s.id: s for s in load_scenarios(path)}
    ids = ", ".join(list(found)[:5]) + (", ..." if len(found) > 5 else "")
    if name is None:
        if len(found) > 1:
            raise InputError(f"{path} holds {len(found)} scenarios: choose one with --id ({ids})")
        return next(iter(found.values()))
    if name not in found:
        raise InputError(f"{path} holds no scenario {name!r}: there are {ids}")
    return found[name]


def _parse_strike(text: str) -> tuple[float, float, float]:
    try:
        x, y, radius = map(float, text.split(","))
    except ValueError:
        raise InputError(f"--strike {text!r}: give X,Y,RADIUS in meters, e.g. 400,300,150") from None
    return x, y, radius


def _print_json(case: Case, rows: list[dict[str, Any]]) -> None:
    from phygail.swarm.scenario import scenario_to_json

    facts = {"subnets": case.subnets, "bound_steps": case.bound}
    print(json.dumps({"scenario": scenario_to_json(case.scenario), **facts, "methods": rows}))


def _print_table(case: Case, rows: list[dict[str, Any]]) -> None:
    from phygail.cli.options import stdout
    from phygail.render.tables import TextTable, cell_text

    scenario = case.scenario
    state = f"{case.subnets} subnets" if case.subnets > 1 else "still connected: nothing to do"
    title = f"{scenario.id}: {scenario.uavs} UAVs, {len(scenario.damaged)} damaged, {state}"
    header = ["method", "reconnected", "steps", "time s", "bound", "x bound", "contacts per UAV", "distance m",
              "first action ms", "flag"]  # fmt: skip
    cells = [
        [
            row["method"], "yes" if row["converged"] else "no", str(row["steps"]), cell_text(row["time_s"], ".1f"),
            cell_text(case.bound, "d"), cell_text(row["steps"] / case.bound if case.bound else None, ".2f"),
            cell_text(row["contact_events_per_uav"], ".3f"), cell_text(row["distance_m_per_uav"], ".1f"),
            cell_text(row["first_action_ms"], ".2f"), row["flag"],
        ]
        for row in rows
    ]  # fmt: skip
    if not any(row["flag"] for row in rows):  # an empty column would take width from others
        header, cells = header[:-1], [line[:-1] for line in cells]
    console = stdout()
    console.print(physics_line(physics_values([scenario.physics])))
    console.print(TextTable(title, header, cells))


# --- the page to play ------------------------------------------------------------------------------------------------

MOST_PORT = 65_535


@dataclass(frozen=True)
class Play:
    """Open the page to play: strike a swarm with a click and watch rules race to reconnect it.

    The page is one file that needs no network. For example:
      phygail play
      phygail play --out swarm.html
    """

    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE.html", help_behavior_hint="")] = None
    """Write the page to this file, to pass it on or to put it on a web server, instead of opening it."""
    quiet: Switch = False
    """Only print where the page is."""

    def run(self) -> int:
        """Open the page, or copy it; print where it is."""
        from phygail.cli.options import note
        from phygail.files import read_text, write_text
        from phygail.web.build import PAGE

        page = PAGE
        if self.out is not None:
            page = self.out
            write_text(page, read_text(PAGE))
        elif not self.quiet and not webbrowser.open(PAGE.as_uri()):
            note("there is no browser here: open the file below in one")
        print(page)
        return 0


@dataclass(frozen=True)
class Serve:
    """The page to play with a server behind it: planners, your plugins, recorded runs.

    Only this machine can reach it unless --host says otherwise; then a token guards it. For example:
      phygail serve
      phygail serve --plugin own_method.py --runs results
    """

    host: str = "127.0.0.1"
    """Where to listen, e.g. 0.0.0.0 for the network."""
    port: Count = 8765
    """0 takes one that is free."""
    plugin: Plugins = ()
    """Python file that registers further methods."""
    runs: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder with results of phygail compare, to look at and to fly again."""
    quiet: Switch = False
    """Open no browser."""

    def run(self) -> int:
        """Serve until Ctrl-C."""
        import socket

        if not 0 <= self.port <= MOST_PORT:
            raise InputError(f"port {self.port}: choose from 0 to {MOST_PORT:,}")
        try:
            import uvicorn

            from phygail.web.messages import MOST_BYTES
            from phygail.web.server import make_app, make_settings
        except ModuleNotFoundError as error:
            raise InputError(f"serving needs {error.name}: pip install 'phygail[web]'") from None
        from phygail.methods.base import load_methods

        load_methods(self.plugin)
        settings = make_settings(self.host, tuple(file.resolve() for file in self.plugin), self.runs)
        app = make_app(settings)
        try:
            listener = socket.create_server((self.host, self.port), family=_family(self.host))
        except OSError as error:
            raise InputError(
                f"cannot listen on {self.host}:{self.port}: {error.strerror or error}; choose another --port"
            ) from None
        address = f"http://{_bracketed(self.host)}:{listener.getsockname()[1]}/"
        address += f"?token={settings.token}" if settings.token else ""
        print(address, flush=True)
        if not self.quiet:
            webbrowser.open(address)
        config = uvicorn.Config(
            app, log_level="warning", ws_max_size=MOST_BYTES, timeout_graceful_shutdown=3, server_header=False
        )
        uvicorn.Server(config).run(sockets=[listener])
        return 0


def _family(host: str) -> int:
    import socket

    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
