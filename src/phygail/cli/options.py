"""Flags that several commands share, as annotated types, and the checks that belong to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from phygail.config import InputError

if TYPE_CHECKING:
    from phygail.evaluation.pool import Engine

EngineName = Literal["local", "ray"]
Safety = Literal["on", "off"]
Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff]
Plugins = Annotated[tuple[Path, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="FILE.py")]
Policy = Annotated[Path | None, tyro.conf.arg(metavar="FILE.onnx", help_behavior_hint="")]
Names = Annotated[str, tyro.conf.arg(metavar="NAMES")]
Numbers = Annotated[str, tyro.conf.arg(metavar="LIST")]
MaybeNumbers = Annotated[str | None, tyro.conf.arg(metavar="LIST", help_behavior_hint="")]
Count = Annotated[int, tyro.conf.arg(metavar="INT")]


def require_one(what: str, given: dict[str, object]) -> str | None:
    """The one flag of `given` that is set, None if none is; two are an error."""
    used = [flag for flag, value in given.items() if value is not None]
    if len(used) > 1:
        raise InputError(f"{' and '.join(used)} cannot be combined: choose one {what}")
    return used[0] if used else None


def make_engine(name: EngineName, workers: int) -> Engine:
    """Where to fly: so many processes on this machine, or Ray, which knows from RAY_ADDRESS where it runs."""
    if name == "ray":
        from phygail.evaluation.ray_engine import RayEngine

        return RayEngine(workers)
    from phygail.evaluation.local_engine import LocalEngine

    return LocalEngine(workers)
