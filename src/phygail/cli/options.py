"""Flags that several commands share, as annotated types, and the checks that belong to them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from phygail.config import InputError, Physics

if TYPE_CHECKING:
    from phygail.evaluation.failures import Failures
    from phygail.evaluation.pool import Engine

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
        """What the flags say, the rest as in the paper."""
        from phygail.swarm.checks import positive

        return Physics(**{name: positive(_flag(name), value) for name, value in self._given().items()})

    def refuse_beside(self, scenarios: Path) -> None:
        """A scenario file brings radio and vehicle along."""
        for name, value in self._given().items():
            raise InputError(
                f"--scenarios and {_flag(name)} cannot be combined: {scenarios} says what radio and vehicle "
                f"its scenarios have; put {name!r}: {value:g} there"
            )

    def _given(self) -> dict[str, float]:
        return {name: value for name, value in asdict(self).items() if value is not None}


Radio = Annotated[RadioFlags, tyro.conf.arg(name="")]  # flags without a prefix
PAPER_RADIO = RadioFlags()


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def require_one(what: str, given: dict[str, object]) -> str | None:
    """The one flag of `given` that is set, None if none is; two are an error."""
    used = [flag for flag, value in given.items() if value is not None]
    if len(used) > 1:
        raise InputError(f"{' and '.join(used)} cannot be combined: choose one {what}")
    return used[0] if used else None


def require_failures(source: FailureSource) -> None:
    """A source of failures without failures is an error."""
    if source is not None:
        raise InputError(f"--source {source} says where UAVs fail: give --failures 1,2,3 in place of --damage")


def drawn_failures(
    uavs: str, failures: str, source: FailureSource, cases: int, seed: int, physics: Physics
) -> Failures:
    """The cases of --uavs and --failures."""
    from phygail.evaluation.failures import Failures
    from phygail.evaluation.grid import parse_whole

    sizes, counts = parse_whole(uavs, "--uavs"), parse_whole(failures, "--failures")
    return Failures(sizes, counts, source or "single", cases, seed, physics)


def make_engine(name: EngineName, workers: int) -> Engine:
    """Where to fly: so many processes on this machine, or Ray, which knows from RAY_ADDRESS where it runs."""
    if name == "ray":
        from phygail.evaluation.ray_engine import RayEngine

        return RayEngine(workers)
    from phygail.evaluation.local_engine import LocalEngine

    return LocalEngine(workers)
