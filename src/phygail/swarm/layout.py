"""Layouts: where the UAVs of a swarm are before the damage, and which of them are damaged."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from phygail.config import PAPER_RANGE_M, InputError, Physics
from phygail.files import parse_number, read_text, write_text
from phygail.swarm.checks import LARGEST_COORDINATE_M, checked_layout, positive, shown
from phygail.swarm.links import find_links, near_pairs

PAPER_WIDTHS_M = {20: 320.0, 50: 500.0, 100: 750.0, 200: 1000.0, 500: 1600.0}  # side of the square map by N
LARGEST_SWARM = 10_000
WHOLE_REDRAWS = 200  # layouts drawn afresh before strays are moved instead
STRAY_REDRAWS = 400  # rounds of moving strays
PLACEMENT_ROUNDS = 300  # rounds of redrawing UAVs that stand too close

LEAST_ALIVE = 2
PERMILLE = 1000  # damage ratios are whole permille: the ratio stands in the id and in the seed of a scenario

PAPER_SIZES = (20, 50, 100, 200, 500, 1000)
PAPER_LAYOUTS = tuple(f"paper-{n}" for n in PAPER_SIZES)  # one fixed layout per N; some hold pairs closer than 10 m


def width_for(uavs: int, range_m: float = PAPER_RANGE_M) -> float:
    """Side of the square map for a swarm of `uavs` (METHODS 2.2): the paper's five, with the same density in between.

    The paper's maps are made for a radio of 120 m. With another radio they grow in proportion, so that as many UAVs are
    in range of each other as in the paper: on the paper's maps a swarm with a 300 m radio would hardly ever split.
    """
    size = max((n for n in PAPER_WIDTHS_M if n <= uavs), default=20)
    width = PAPER_WIDTHS_M[size] * math.sqrt(uavs / size) * (range_m / PAPER_RANGE_M)
    if not width <= LARGEST_COORDINATE_M:
        raise InputError(
            f"a radio range of {range_m:g} m: the map of {uavs} UAVs would be {width:g} m wide, "
            f"more than {LARGEST_COORDINATE_M:g} m; choose a shorter range"
        )
    return width


def check_size(uavs: int) -> None:
    """Refuse swarm sizes outside 2 .. 10,000."""
    if not 2 <= uavs <= LARGEST_SWARM:
        raise InputError(f"a swarm of {uavs} UAVs: choose from 2 to {LARGEST_SWARM:,}")


def check_radio(physics: Physics) -> None:
    """Refuse a radio that reaches no farther than the contact distance, which fresh layouts keep."""
    if physics.contact_m >= physics.range_m:
        raise InputError(
            f"UAVs that keep a contact distance of {physics.contact_m:g} m have no links with a radio range of "
            f"{physics.range_m:g} m: choose a longer range or a shorter contact distance"
        )


def draw_layout(
    uavs: int, rng: np.random.Generator, width_m: float | None = None, physics: Physics | None = None
) -> np.ndarray:
    """A connected uniform layout without contacts: any two UAVs are at least the contact distance apart.

    Whole layouts are redrawn until one is connected. Where that is hopeless (above some 2,000 UAVs at the paper's
    density nearly every draw leaves a stray at the rim) the UAVs outside the largest subnet are redrawn instead.

    Args:
        uavs: Swarm size N, 2 to 10,000.
        rng: Source of randomness.
        width_m: Side of the map; `width_for` this swarm and radio if None.
        physics: Radio range that decides what is connected, and contact distance.

    Returns:
        (N, 2) m, in [0, width]^2.
    """
    check_size(uavs)
    radio = physics or Physics()
    check_radio(radio)
    width = width_for(uavs, radio.range_m) if width_m is None else positive("width", width_m)
    redraws = max(1, min(WHOLE_REDRAWS, 100_000 // uavs))
    layout = np.empty((0, 2))
    for _ in range(redraws):
        layout = _spread(layout[:0], uavs, width, radio, rng)
        if find_links(layout, radio.range_m).connected:
            return layout
    return _move_strays(layout, width, radio, rng)


def _spread(fixed: np.ndarray, uavs: int, width: float, physics: Physics, rng: np.random.Generator) -> np.ndarray:
    """Fill up `fixed` ((k, 2) m) to `uavs` points, uniform, each a contact distance from every earlier one."""
    points, apart = fixed, physics.contact_m
    # Oler's inequality: no more points than this fit at all. Refused at once, because the number of pairs that stand
    # too close, and with it time and memory, would grow with the square of the swarm.
    side = width / apart
    hopeless = uavs > 2 / math.sqrt(3) * side**2 + 2 * side + 1
    for _ in range(0 if hopeless else PLACEMENT_ROUNDS):
        points = np.vstack([points, rng.uniform(0.0, width, size=(uavs - len(points), 2))])
        close, distance = near_pairs(points, apart)
        redrawn = np.unique(close[distance < apart].max(axis=1, initial=0))
        redrawn = redrawn[redrawn >= len(fixed)]
        if not len(redrawn):
            return points
        points = np.delete(points, redrawn, axis=0)
    raise InputError(
        f"{uavs} UAVs do not fit {apart:g} m apart into a map {width:g} m wide: use fewer UAVs, "
        "a shorter contact distance or a wider map"
    )


def _move_strays(layout: np.ndarray, width: float, physics: Physics, rng: np.random.Generator) -> np.ndarray:
    """Redraw the UAVs outside the largest subnet until there is one subnet."""
    for _ in range(STRAY_REDRAWS):
        links = find_links(layout, physics.range_m)
        if links.connected:
            return layout
        sizes = np.bincount(links.subnet)
        if sizes.max() < len(layout) / 2:  # no large subnet: moving the rest would grow a clump
            break
        layout = _spread(layout[links.subnet == sizes.argmax()], len(layout), width, physics, rng)
    raise InputError(
        f"{len(layout)} UAVs with a radio range of {physics.range_m:g} m stay split on a map {width:g} m wide: "
        "use more UAVs, a longer range or a narrower map"
    )


def permille(ratio: float) -> int:
    """A damage ratio as it stands in the seed of a scenario."""
    return round(ratio * PERMILLE)


def check_damage(uavs: int, ratio: float) -> None:
    """Refuse a ratio that cannot stand in an id, or that splits no swarm of this size."""
    lost = damage_count(uavs, ratio)  # refuses ratios outside 0..1
    if abs(ratio * PERMILLE - permille(ratio)) > 1e-9:
        raise InputError(f"damage ratio {ratio}: give at most three decimals")
    check_loss(uavs, ratio, lost)


def check_loss(uavs: int, ratio: float, lost: int) -> None:
    """Refuse damage that hits nobody."""
    if lost == 0:
        raise InputError(
            f"{uavs} UAVs with damage {ratio:g} lose nobody, so the swarm cannot split: "
            "choose a larger swarm or a higher damage ratio"
        )


def damage_count(uavs: int, ratio: float) -> int:
    """Ratio x N rounded half up, leaving at least two alive."""
    if uavs < LEAST_ALIVE:
        raise InputError(f"a swarm of {uavs} UAVs: at least {LEAST_ALIVE} are needed")
    if not 0.0 <= ratio <= 1.0:
        raise InputError(f"damage ratio {ratio}: choose from 0 to 1")
    # 1e-9: 0.15 * 50 is 7.5 on paper and 7.499999999999999 in floating point for some ratios.
    return min(math.floor(uavs * ratio + 0.5 + 1e-9), uavs - LEAST_ALIVE)


def random_damage(uavs: int, ratio: float, rng: np.random.Generator) -> np.ndarray:
    """A uniformly random set of `damage_count(uavs, ratio)` UAVs, sorted."""
    return np.sort(rng.choice(uavs, size=damage_count(uavs, ratio), replace=False))


def strike_damage(layout: np.ndarray, x_m: float, y_m: float, radius_m: float) -> np.ndarray:
    """Everyone within `radius_m` of (x, y), sorted: an area strike."""
    if not all(map(math.isfinite, (x_m, y_m, radius_m))) or radius_m < 0:
        raise InputError(f"strike {x_m},{y_m},{radius_m}: give X,Y,RADIUS in meters, the radius not negative")
    hit = np.flatnonzero(np.hypot(layout[:, 0] - x_m, layout[:, 1] - y_m) <= radius_m)
    return checked_damage(len(layout), hit)


def checked_damage(uavs: int, damaged: Iterable[int]) -> np.ndarray:
    """The sorted list of damaged UAVs, or a clear error: out of range, twice, or fewer than two left."""
    entries = list(damaged)
    for entry in entries:
        if isinstance(entry, bool) or not isinstance(entry, (int, np.integer)):
            raise InputError(f"damaged UAV {shown(entry)}: give whole numbers from 0 to {uavs - 1}")
        if not 0 <= entry < uavs:
            raise InputError(f"damaged UAV {shown(int(entry))} is out of range: the swarm has UAVs 0 to {uavs - 1}")
    unique = np.unique(np.asarray(entries, dtype=np.intp))
    if len(unique) < len(entries):
        raise InputError("a damaged UAV is listed twice: list each once")
    if uavs - len(unique) < LEAST_ALIVE:
        raise InputError(f"{len(unique)} of {uavs} UAVs damaged: at least {LEAST_ALIVE} must stay alive")
    return unique


@dataclass(frozen=True, eq=False)
class NamedLayout:
    """A layout and the map it belongs to.

    Attributes:
        name: For scenario ids.
        positions: (N, 2) m.
        width_m: Side of the map; None where the layout comes without a map.
    """

    name: str
    positions: np.ndarray
    width_m: float | None


def find_layout(source: str | Path) -> NamedLayout:
    """The layout in a CSV file, or one of the paper's by its name (paper-20 ... paper-1000)."""
    text = str(source)
    if text in PAPER_LAYOUTS:
        uavs = int(text.removeprefix("paper-"))
        with as_file(files("phygail") / "layouts" / f"paper_{uavs}.csv") as path:
            return NamedLayout(text, load_layout(path), width_for(uavs))
    path = Path(source)
    if not path.suffix and not path.is_file():
        raise InputError(f"no layout {text!r}: name a CSV file or one of {', '.join(PAPER_LAYOUTS)}")
    return NamedLayout(path.stem, load_layout(path), None)


def load_layout(path: str | Path) -> np.ndarray:
    """(N, 2) m from a CSV with the header x_m,y_m."""
    path = Path(path)
    lines = [line.strip() for line in read_text(path).splitlines()]
    if not lines or [c.strip() for c in lines[0].split(",")] != ["x_m", "y_m"]:
        found = shown(lines[0]) if lines else "missing"
        raise InputError(f"{path}: the first line is {found}; it must be the header x_m,y_m, two columns in meters")
    points = []
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        try:
            x, y = map(parse_number, line.split(","))
        except ValueError:
            raise InputError(f"{path}, line {number}: {line!r} is not two numbers x,y") from None
        points.append((x, y))
    try:
        return checked_layout(np.array(points).reshape(-1, 2))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def save_layout(path: str | Path, layout: np.ndarray) -> None:
    """Write a layout CSV; numbers survive the round trip exactly."""
    write_text(Path(path), "x_m,y_m\n" + "".join(f"{x!r},{y!r}\n" for x, y in layout.tolist()))
