"""Flags that several commands share, their checks, and output: results on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import logging
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from phygail.config import InputError, Physics

if TYPE_CHECKING:
    from rich.console import Console

    from phygail.experiments.engine import Engine
    from phygail.experiments.failures import Failures
    from phygail.swarm.scenario import Scenario

EngineName = Literal["local", "ray"]
Safety = Literal["on", "off"]
Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff]
Plugins = Annotated[tuple[Path, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="FILE.py")]
Policy = Annotated[Path | None, tyro.conf.arg(metavar="FILE.onnx", help_behavior_hint="")]
Names = Annotated[str, tyro.conf.arg(metavar="NAMES")]
Numbers = Annotated[str, tyro.conf.arg(metavar="LIST")]
MaybeNumbers = Annotated[str | None, tyro.conf.arg(metavar="LIST", help_behavior_hint="")]
FailureSource = Annotated[Literal["single", "region"] | None, tyro.conf.arg(help_behavior_hint="")]
Count = Annotated[int, tyro.conf.arg(metavar="INT")]

PLAIN_WIDTH = 100_000  # of output to a file or a pipe, where nothing is cut; tables choose their own width
QUIET_S = 30.0  # seconds between two lines of progress without a terminal


def command_line() -> str:
    """The command as given, ready to be repeated; it is recorded beside every result."""
    return shlex.join(["phygail", *sys.argv[1:]])


@dataclass(frozen=True)
class RadioFlags:
    """Radio and vehicle; None is the paper's."""

    range_m: Annotated[float | None, tyro.conf.arg(metavar="M", help_behavior_hint="")] = None
    """Radio range in meters, 120 unless given; drawn maps grow with it, so that swarms split as the paper's do."""
    speed_mps: Annotated[float | None, tyro.conf.arg(metavar="M/S", help_behavior_hint="")] = None
    """Speed limit in meters per second, 10 unless given."""
    step_s: Annotated[float | None, tyro.conf.arg(metavar="S", help_behavior_hint="")] = None
    """Duration of a step in seconds, 0.1 unless given."""
    contact_m: Annotated[float | None, tyro.conf.arg(metavar="M", help_behavior_hint="")] = None
    """Contact distance in meters, 10 unless given: UAVs closer than this are in contact; drawn layouts keep it."""

    def physics(self) -> Physics:
        """Radio and vehicle of the flags; values that are not given are the paper's."""
        from phygail.swarm.checks import positive

        return Physics(**{name: positive(_flag(name), value) for name, value in self._given().items()})

    def refuse_beside(self, scenarios: Path) -> None:
        """Refuse radio flags beside a scenario file, which has its own radio and vehicle."""
        for name, value in self._given().items():
            raise InputError(
                f"--scenarios and {_flag(name)} cannot be combined: {scenarios} says what radio and vehicle "
                f"its scenarios have; put {name!r}: {value:g} there"
            )

    def _given(self) -> dict[str, float]:
        return {name: value for name, value in asdict(self).items() if value is not None}


Radio = Annotated[RadioFlags, tyro.conf.arg(name="")]  # flags without a prefix
PAPER_RADIO = RadioFlags()


@dataclass(frozen=True)
class WorldFlags:
    """What a scenario has beyond the plain world, one flag per concept (docs/worlds.md)."""

    world: Annotated[str | None, tyro.conf.arg(metavar="SPEC", help_behavior_hint="")] = None
    """All of the following in one text, e.g. "waves=3:40:150 hold=10", as in the column world of rows.csv."""
    waves: Annotated[str | None, tyro.conf.arg(metavar="COUNT:EVERY:RADIUS", help_behavior_hint="")] = None
    """Strikes in flight: so many, one every so many steps, each of this radius in meters around a random survivor."""
    trickle: Annotated[str | None, tyro.conf.arg(metavar="SHARE:WITHIN", help_behavior_hint="")] = None
    """This share of the survivors is lost one by one within so many steps."""
    battery: Annotated[str | None, tyro.conf.arg(metavar="MEAN:SPREAD", help_behavior_hint="")] = None
    """Batteries are empty after a normal time in seconds with this mean and spread."""
    obstacles: Annotated[str | None, tyro.conf.arg(metavar="COUNT:FROM-TO", help_behavior_hint="")] = None
    """Round obstacles: so many, with radii from-to in meters."""
    walls: Annotated[str | None, tyro.conf.arg(metavar="COUNT:LENGTH", help_behavior_hint="")] = None
    """Walls across ways to the center: so many, each this long in meters."""
    shadow: Switch = False
    """Obstacles and walls block radio, too."""
    no_map: Switch = False
    """Nobody knows the obstacles before the flight."""
    outages: Annotated[str | None, tyro.conf.arg(metavar="SHARE:SECONDS", help_behavior_hint="")] = None
    """Links on the disc fail: this share of the time, for so many seconds on average."""
    links: Annotated[str | None, tyro.conf.arg(metavar="MODEL", help_behavior_hint="")] = None
    """Fading links, e.g. rician:k=10,outage=0.1,shadow=3,heard=9/10,drop=5."""
    center_error: Annotated[str | None, tyro.conf.arg(metavar="M", help_behavior_hint="")] = None
    """Every copy of the center is off by so many meters, each in another direction."""
    no_center: Annotated[str | None, tyro.conf.arg(metavar="roster|own", help_behavior_hint="")] = None
    """No shared center: meet at the centroid of the roster, or of the own subnet."""
    roster_missing: Annotated[str | None, tyro.conf.arg(metavar="SHARE", help_behavior_hint="")] = None
    """Share of the roster that a UAV does not know."""
    roster_error: Annotated[str | None, tyro.conf.arg(metavar="M", help_behavior_hint="")] = None
    """Standard deviation of the roster that a UAV knows, in meters."""
    roster_hops: Annotated[str | None, tyro.conf.arg(metavar="COUNT", help_behavior_hint="")] = None
    """The roster holds only UAVs at most so many hops away."""
    detect_miss: Annotated[str | None, tyro.conf.arg(metavar="SHARE", help_behavior_hint="")] = None
    """Share of the damaged in range that nobody recognizes."""
    detect_false: Annotated[str | None, tyro.conf.arg(metavar="SHARE", help_behavior_hint="")] = None
    """Share of the living within two radio ranges that count as damaged."""
    knowledge_bias: Annotated[str | None, tyro.conf.arg(metavar="M", help_behavior_hint="")] = None
    """Standard deviation of an error of the roster that all copies share, in meters."""
    accel: Annotated[str | None, tyro.conf.arg(metavar="M/S2", help_behavior_hint="")] = None
    """Limit of the acceleration in meters per second squared."""
    lag: Annotated[str | None, tyro.conf.arg(metavar="S", help_behavior_hint="")] = None
    """Time constant with which a UAV follows a velocity, in seconds."""
    wind: Annotated[str | None, tyro.conf.arg(metavar="M/S", help_behavior_hint="")] = None
    """Constant wind from a random direction; the speed limit is that of the airspeed."""
    altitude_spread: Annotated[str | None, tyro.conf.arg(metavar="M", help_behavior_hint="")] = None
    """Standard deviation of the heights, which stay; links are judged in 3-D."""
    level: Switch = False
    """UAVs climb and sink to one layer while they fly."""
    hold: Annotated[str | None, tyro.conf.arg(metavar="STEPS", help_behavior_hint="")] = None
    """Reconnected means one network in each of the last so many steps."""
    redundant: Switch = False
    """A network that is one goes on until no single UAV would split it, if the budget allows."""

    def spec(self) -> str:
        """The canonical text of what the flags say; empty for the plain world."""
        given = {name.replace("_", "-"): value for name, value in asdict(self).items() if value not in (None, False)}
        if not given:
            return ""
        from phygail.swarm.recipe import canonical, checked_options, parse_world

        text = given.pop("world", None)
        if text is not None and given:
            raise InputError(f"--world and --{next(iter(given))} cannot be combined: write all options into --world")
        if text is not None:
            return canonical(parse_world(text))
        return canonical(checked_options({name: "" if value is True else value for name, value in given.items()}))

    def tell(self, physics: Physics) -> None:
        """Say on stderr what a fading model means; readers of figures with fading need it."""
        from phygail.swarm.links import calibration
        from phygail.swarm.recipe import link_model

        options = dict(part.partition("=")[::2] for part in self.spec().split())
        if "links" in options:
            note(calibration(link_model(options["links"]), physics))

    def applied(self, scenarios: list[Scenario]) -> list[Scenario]:
        """Scenarios that were not drawn from a grid, in this world."""
        from phygail.swarm.recipe import parse_world, with_world

        options = parse_world(self.spec())
        for scenario in scenarios if options else ():
            if not scenario.world.plain:
                raise InputError(
                    f"--{next(iter(options))}: the scenario {scenario.id} brings its own world along "
                    f"({scenario.world.label()}); leave the flag out or take the keys of the world from the file"
                )
        return [with_world(scenario, options) for scenario in scenarios]


WorldOptions = Annotated[WorldFlags, tyro.conf.arg(name="")]  # flags without a prefix
PLAIN_WORLD = WorldFlags()


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def require_one(what: str, given: dict[str, object]) -> str | None:
    """The one flag of `given` that is set, None if none is; two are an error."""
    used = [flag for flag, value in given.items() if value is not None]
    if len(used) > 1:
        raise InputError(f"{' and '.join(used)} cannot be combined: choose one {what}")
    return used[0] if used else None


def require_failures(source: FailureSource) -> None:
    """Refuse a source of failures without a number of failures."""
    if source is not None:
        raise InputError(f"--source {source} says where UAVs fail: give --failures 1,2,3 in place of --damage")


def drawn_failures(
    uavs: str, failures: str, source: FailureSource, cases: int, seed: int, physics: Physics
) -> Failures:
    """The cases of --uavs and --failures."""
    from phygail.experiments.failures import Failures
    from phygail.experiments.grid import parse_whole

    sizes, counts = parse_whole(uavs, "--uavs"), parse_whole(failures, "--failures")
    return Failures(sizes, counts, source or "single", cases, seed, physics)


def make_engine(name: EngineName, workers: int) -> Engine:
    """The engine: processes on this machine, or Ray, which runs where RAY_ADDRESS says."""
    if name == "ray":
        from phygail.experiments.ray_engine import RayEngine

        return RayEngine(workers)
    from phygail.experiments.engine import LocalEngine

    return LocalEngine(workers)


def stdout() -> Console:
    """The console for results; plain text of any width where there is no terminal."""
    from rich.console import Console

    # Names come from users: [brackets] and :colons: in them are not markup.
    if sys.stdout.isatty():
        return Console(markup=False, emoji=False, highlight=False)
    return Console(
        width=PLAIN_WIDTH, force_terminal=False, color_system=None, markup=False, emoji=False, highlight=False
    )


def note(message: str) -> None:
    """One line on stderr."""
    print(f"phygail: {' '.join(message.split())}", file=sys.stderr, flush=True)


def log_to_stderr(*, details: bool = False) -> None:
    """Warnings of the library as lines on stderr; with details, what lies behind them too."""
    level = logging.DEBUG if details else logging.WARNING
    logger = logging.getLogger("phygail")
    logger.handlers = [_LineHandler(level)]
    logger.setLevel(level)
    logger.propagate = False


class _LineHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.INFO:  # tracebacks keep their lines
            print(record.getMessage(), file=sys.stderr, flush=True)
        elif record.levelno >= logging.WARNING:
            note(record.getMessage())


@contextlib.contextmanager
def episodes_bar() -> Iterator[Callable[[int, int], None]]:
    """A function to report (finished, all) to: a bar with the time left on a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("episodes"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("episodes", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Lines:
    """Progress as a line every QUIET_S seconds."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._last > QUIET_S:
            self._last = time.monotonic()
            note(f"{done:,} of {total:,} episodes")
