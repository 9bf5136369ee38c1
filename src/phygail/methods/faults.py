"""Faults of methods, which users write themselves, in one line: file, line, what was found and what was expected."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from phygail.config import EndedFromOutside, InputError
from phygail.swarm.checks import shown

EXPECTED = "one velocity [vx, vy] in m/s per UAV of the view"
_LONGEST = 200  # characters of somebody else's message


class CommandError(InputError):
    """A method gave something that is no command, or no flag."""


def checked_command(values: Any, shape: tuple[int, ...], method: object) -> np.ndarray:
    """What a method commands, as it is, if it is an array of numbers of this shape; else an error that names the place.

    NaN passes: the world takes it as zero and the row says `nonfinite`.
    """
    if isinstance(values, np.ndarray) and values.shape == shape and values.dtype.kind in "fiu":
        return values
    try:
        found = np.asarray(values)
    except Exception:  # rows of unlike length, or an object that objects to being an array
        found = np.asarray(None)
    if found.dtype.kind not in "fiu":
        raise CommandError(f"{place_of(method)}: act gave {_described(values)}, expected an array {shape}: {EXPECTED}")
    if found.shape != shape:
        raise CommandError(f"{place_of(method)}: act gave the shape {found.shape}, expected {shape}: {EXPECTED}")
    return found


def checked_flag(method: Any) -> str:
    """The flag that a method has set, on one line."""
    if not isinstance(method.flag, str):
        raise CommandError(f"{place_of(method)}: flag is {shown(method.flag)}, expected a text")
    return " ".join(method.flag.split())


def nonfinite_fault(method: object) -> str:
    """What there is to say about a method whose commands were no numbers."""
    return f"{place_of(method)}: act gave NaN or infinite velocities, which were flown as zero; expected {EXPECTED}"


@contextlib.contextmanager
def named_faults(method: type) -> Iterator[None]:
    """Whatever is raised in the block, even SystemExit, becomes an InputError that says where; Ctrl-C stays itself."""
    try:
        yield
    except (KeyboardInterrupt, EndedFromOutside):
        raise
    except BaseException as error:
        raise InputError(explained(error, method)) from error


def explained(error: BaseException, method: type) -> str:
    """An exception of a method in one line."""
    line = line_in(_file_of(method), error.__traceback__)
    if isinstance(error, InputError) and (line is None or isinstance(error, CommandError)):
        return str(error)  # it says all that there is to say
    where = place_of(method) if line is None else f"{_brief(_file_of(method))}, line {line}"
    return f"{where}: the method {getattr(method, 'name', method.__name__)!r} raised {told(error)}"


def told(error: BaseException) -> str:
    """Type and words of an exception, whose words may fail themselves."""
    try:
        words = " ".join(str(error).split())
    except Exception:
        words = ""
    words = words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def place_of(method: object) -> str:
    """File and line of a method's rule, e.g. "mine.py, line 12"; of its class where the rule is inherited."""
    cls = method if isinstance(method, type) else type(method)
    file = _file_of(cls)
    rule = inspect.unwrap(cls.__dict__.get("act") or cls.__dict__.get("velocities") or cls)
    if inspect.isfunction(rule):
        return f"{_brief(rule.__code__.co_filename)}, line {rule.__code__.co_firstlineno}"
    with contextlib.suppress(OSError, TypeError):
        return f"{_brief(file)}, line {inspect.getsourcelines(cls)[1]}"
    return _brief(file)


def line_in(file: str, trace: TracebackType | None) -> int | None:
    """The line of a file where an exception passed through it last."""
    lines = [frame.lineno for frame in traceback.extract_tb(trace) if frame.filename == file]
    return lines[-1] if lines else None


def _file_of(cls: type) -> str:
    return getattr(sys.modules.get(cls.__module__), "__file__", None) or cls.__module__


def _brief(file: str) -> str:
    """A path as short as it may be from here."""
    with contextlib.suppress(ValueError, OSError):
        return os.fspath(Path(file).relative_to(Path.cwd()))
    return file


def _described(values: Any) -> str:
    return "nothing (None)" if values is None else f"{shown(values, 40)} of type {type(values).__name__}"
