"""Checks of the numbers that users give: a clean value or one line that names the value, the bound and the remedy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from phygail.config import InputError, Physics

LARGEST_COORDINATE_M = 1e7  # beyond this, meters lose the 1e-6 tolerance of a link in double precision
SMALLEST_QUANTITY = 1e-6  # of a width, range, speed or step: smaller ones overflow when divided by
MOST_CASES = 100_000  # per cell
LARGEST_SEED = 2**63 - 1  # seeds stand in a column of 64-bit numbers
LARGEST_BUDGET_STEPS = 16_000_000  # that of the widest layout, from -1e7 to 1e7 m


def checked_layout(layout: Any) -> np.ndarray:
    """(N, 2) float copy of a layout, or a clear error: shape, size, text, NaN, too large, duplicates."""
    points = _numbers(layout)
    if points is None:
        raise InputError("positions must be a list of [x, y] pairs of numbers, all of the same length")
    if points.ndim != 2 or points.shape[1] != 2:
        raise InputError(f"positions have shape {points.shape}: give a list of [x, y] pairs, at least two")
    if len(points) < 2:
        raise InputError(f"{len(points)} UAV in the layout: at least two are needed")
    bad = np.flatnonzero(~(np.abs(points) <= LARGEST_COORDINATE_M).all(axis=1))  # NaN fails too
    if len(bad):
        raise InputError(
            f"position {bad[0]} ({points[bad[0], 0]:g}, {points[bad[0], 1]:g}): "
            f"coordinates must be numbers of meters up to {LARGEST_COORDINATE_M:g} in size"
        )
    _, first, counts = np.unique(points, axis=0, return_index=True, return_counts=True)
    if (counts > 1).any():
        twin = first[counts > 1].min()
        raise InputError(
            f"position {twin} ({points[twin, 0]:g}, {points[twin, 1]:g}) occurs twice: move one of the UAVs"
        )
    return points


def checked_center(center: Any) -> np.ndarray:
    """(2,) m, the reference point."""
    point = _numbers(center)
    if point is None or point.shape != (2,) or not (np.abs(point) <= LARGEST_COORDINATE_M).all():
        raise InputError(f"center {shown(center)}: give [x, y] in meters, up to {LARGEST_COORDINATE_M:g} in size")
    return point


def positive(name: str, value: Any) -> float:
    """A width, range, speed or duration as a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise InputError(f"{name} {shown(value)}: give a positive number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not SMALLEST_QUANTITY <= number <= LARGEST_COORDINATE_M:
        raise InputError(f"{name} {number:g}: choose from {SMALLEST_QUANTITY:g} to {LARGEST_COORDINATE_M:g}")
    return number


def checked_physics(given: Mapping[str, Any]) -> Physics:
    """Radio and vehicle from the fields of `Physics` that are given; the others have their defaults."""
    named = {field.name: given[field.name] for field in fields(Physics) if field.name in given}
    return Physics(**{name: positive(name, value) for name, value in named.items()})


def checked_budget(steps: Any) -> int:
    """A step budget T_max."""
    whole = isinstance(steps, (int, np.integer)) and not isinstance(steps, bool)
    if not whole or not 1 <= steps <= LARGEST_BUDGET_STEPS:
        raise InputError(
            f"budget_steps {shown(steps)}: give a whole number of steps from 1 to {LARGEST_BUDGET_STEPS:,}"
        )
    return int(steps)


def checked_cases(cases: int, per: str = "cell") -> int:
    """How many scenarios are drawn alike."""
    if not 1 <= cases <= MOST_CASES:
        raise InputError(f"{cases} cases per {per}: choose from 1 to {MOST_CASES:,}")
    return cases


def checked_seed(seed: Any) -> int:
    """The seed of what is drawn."""
    whole = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
    if not whole or not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"seed {shown(seed)}: choose from 0 to {LARGEST_SEED:,}")
    return int(seed)


def shown(value: Any, longest: int = 60) -> str:
    """A user's value for an error message: on one line, and short even if the value is not."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python refuses to print integers beyond 4300 digits
        text = f"of type {type(value).__name__}"
    return text if len(text) <= longest else f"{text[:longest]}..."


def _numbers(value: Any) -> np.ndarray | None:
    """A float copy of (nested) numbers, or None. numpy alone would also take "1.5", true and null for numbers."""
    try:
        raw = value if isinstance(value, np.ndarray) and value.dtype != object else np.array(value, dtype=object)
        if raw.dtype == object and not all(map(_is_number, raw.flat)):
            return None
        return np.array(raw, dtype=float) if raw.dtype.kind in "iufO" else None
    except (TypeError, ValueError, OverflowError, RuntimeError):  # RuntimeError: nested deeper than numpy can look
        return None


def _is_number(entry: Any) -> bool:
    return isinstance(entry, (int, float, np.integer, np.floating)) and not isinstance(entry, bool)
