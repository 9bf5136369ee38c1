"""Scenarios: layout + damaged set + map, drawn from a seed, saved, loaded, turned and mirrored."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from phygail.config import BUDGET_WIDTHS, InputError, Physics
from phygail.files import read_json, write_text
from phygail.swarm.checks import (
    LARGEST_BUDGET_STEPS,
    checked_budget,
    checked_center,
    checked_layout,
    checked_physics,
    checked_seed,
    positive,
    shown,
)
from phygail.swarm.layout import check_size, checked_damage, damage_count, draw_layout, random_damage, width_for
from phygail.swarm.links import find_links
from phygail.swarm.obstacles import TURNS, check_obstacles, longest_way_m
from phygail.swarm.world import PLAIN, World, battery_events, checked_world, turn_steps, turned, wait_steps
from phygail.swarm.world_files import WORLD_KEYS, charges, world_from_json, world_to_json

SPLIT_REDRAWS = 20_000  # layouts and damage sets drawn before a setting counts as one that cannot split
DAMAGE_PER_LAYOUT = 20  # damage sets tried on one layout before the next layout

# The dihedral group of the square: the eight ways to turn and mirror a map onto itself.
D4: tuple[np.ndarray, ...] = tuple(
    np.array(m, dtype=float)
    for m in (
        [[1, 0], [0, 1]], [[0, -1], [1, 0]], [[-1, 0], [0, -1]], [[0, 1], [-1, 0]],
        [[1, 0], [0, -1]], [[-1, 0], [0, 1]], [[0, 1], [1, 0]], [[0, -1], [-1, 0]],
    )
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Scenario:
    """One case: the layout, the damaged, and the map.

    Attributes:
        id: Unique name.
        layout: (N, 2) m, world coordinates, positions before the damage: the roster that every UAV carries.
        damaged: (k,) int, sorted indices of the damaged.
        width_m: Side of the square map; the longer side of the bounding box where no map was given.
        center: (2,) m, the reference point shared before the damage.
        physics: Radio and vehicle.
        budget_steps: T_max; an episode that has not reconnected by then is truncated.
        seed: Seed that drew the case and that seeds the methods; None where a file names none, which counts as 0.
        world: What it has beyond the paper's assumptions.
    """

    id: str
    layout: np.ndarray
    damaged: np.ndarray
    width_m: float
    center: np.ndarray
    physics: Physics = field(default_factory=Physics)
    budget_steps: int = 0
    seed: int | None = None
    world: World = PLAIN

    def __post_init__(self) -> None:
        for array in (self.layout, self.damaged, self.center):
            array.setflags(write=False)

    @property
    def uavs(self) -> int:
        """Swarm size N before the damage."""
        return len(self.layout)

    @cached_property
    def alive(self) -> np.ndarray:
        """(n,) int, sorted indices of the alive."""
        alive = np.setdiff1d(np.arange(self.uavs), self.damaged)
        alive.setflags(write=False)
        return alive

    @cached_property
    def spots(self) -> np.ndarray:
        """(n, 2) m, where the alive are at t = 0."""
        spots = self.layout[self.alive]
        spots.setflags(write=False)
        return spots


def budget_for(width_m: float, physics: Physics, farthest_m: float = 0.0) -> int:
    """T_max: the steps in which a UAV at full speed flies 0.8 W, and at least as many as to the center.

    With the paper's 1 m per step and a center in the middle of the map this is its floor(0.8 W), for every map wider
    than 22 m: nobody is farther from the middle than W/sqrt(2), and floor(0.8 W) >= ceil(0.7072 W).

    Args:
        width_m: Side W of the map.
        physics: Vehicle; its stride counts.
        farthest_m: How far from the center the farthest alive UAV is.
    """
    across = math.floor(BUDGET_WIDTHS * width_m / physics.stride_m + 1e-9)
    steps = max(1, across, way_steps(farthest_m, physics))
    if steps > LARGEST_BUDGET_STEPS:
        raise InputError(
            f"at {physics.stride_m:g} m per step the budget would be {steps:,} steps, more than "
            f"{LARGEST_BUDGET_STEPS:,}: choose a higher speed, a longer step or a smaller map, or give budget_steps"
        )
    return steps


def way_steps(distance_m: float, physics: Physics) -> int:
    """Steps at full speed over a distance; 1e-9 of a step is rounding."""
    return math.ceil(distance_m / physics.stride_m - 1e-9)


def farthest_m(spots: np.ndarray, center: np.ndarray) -> float:
    """How far from the center the farthest of `spots` ((n, 2) m) is."""
    return float(np.hypot(*(spots - center).T).max())


def make_scenario(
    name: str,
    layout: np.ndarray,
    damaged: Iterable[int] = (),
    *,
    width_m: float | None = None,
    center: Sequence[float] | np.ndarray | None = None,
    physics: Physics | None = None,
    budget_steps: int | None = None,
    seed: int | None = None,
    world: World = PLAIN,
) -> Scenario:
    """A checked scenario with defaults filled in (docs/formats.md).

    Without a width the center is the middle of the bounding box and the width its longer side.
    """
    layout = checked_layout(layout)
    low, high = layout.min(axis=0), layout.max(axis=0)
    if width_m is None:
        width = max(float((high - low).max()), 1.0)
        middle = (low + high) / 2
    else:
        width = positive("width", width_m)
        outside = np.flatnonzero(_outside(layout, width))
        if len(outside):
            x, y = layout[outside[0]]
            raise InputError(
                f"position {outside[0]} ({x:g}, {y:g}) is outside the map of width {width:g} m: "
                "move it, widen the map or leave the width out"
            )
        middle = np.array([width / 2, width / 2])
    reference = middle if center is None else checked_center(center)
    radio, lost = physics or Physics(), checked_damage(len(layout), damaged)
    if budget_steps is None:
        spots = np.delete(layout, lost, axis=0)
        steps = budget_for(width, radio, farthest_m(spots, reference))
        steps = budget_in(world, steps, spots, reference, radio)
    else:
        steps = checked_budget(budget_steps)
    return _placed(Scenario(name, layout, lost, width, reference, radio, steps, seed), world)


def budget_in(world: World, plain_steps: int, spots: np.ndarray, center: np.ndarray, physics: Physics) -> int:
    """The budget of a world: that of the plain one, and what this world takes more.

    The way around obstacles, against the wind, the step of the last loss, turning around with inertia, the error of
    the center, and holding the network. So the conditions of the argument in docs/worlds.md are met by default.

    Args:
        world: Any. plain_steps: The budget of the plain world.
        spots: (n, 2) m, the alive at t = 0. center: (2,) m. physics: Radio and vehicle.
    """
    if world.plain or pace(world, physics) <= 0:  # that much wind is refused elsewhere
        return plain_steps
    steps = plain_steps
    if world.obstacles and world.knowledge.map:
        way_m = longest_way_m(world.obstacles, spots, center, physics.contact_m)
        steps = max(steps, way_steps(way_m, physics))
    steps = math.ceil(steps / pace(world, physics) - 1e-9)
    steps += lead_steps(world, physics) + way_steps(world.knowledge.center_error_m, physics)
    steps += world.last_event + wait_steps(world.links, world.hold_steps, physics.step_s)
    if steps > LARGEST_BUDGET_STEPS:
        raise InputError(f"this world needs {steps:,} steps, more than {LARGEST_BUDGET_STEPS:,}: give budget_steps")
    return steps


def pace(world: World, physics: Physics) -> float:
    """Share of the speed that a UAV has over ground against the wind."""
    return 1.0 - math.hypot(*world.vehicle.wind_mps) / physics.speed_mps


def lead_steps(world: World, physics: Physics) -> int:
    """Steps that a UAV loses on its way to the center: when it turns around, and at the turns around obstacles."""
    turns = TURNS * len(world.obstacles) if world.knowledge.map else 0
    return turn_steps(world.vehicle, physics) + turns


def in_world(scenario: Scenario, world: World) -> Scenario:
    """A scenario of the plain world moved to another world, with the budget that it needs there."""
    steps = budget_in(world, scenario.budget_steps, scenario.spots, scenario.center, scenario.physics)
    return _placed(replace(scenario, budget_steps=steps), world)


def _placed(scenario: Scenario, world: World) -> Scenario:
    if world.plain:
        return scenario
    checked = checked_world(
        world, layout=scenario.layout, damaged=scenario.damaged, speed_mps=scenario.physics.speed_mps,
        step_s=scenario.physics.step_s, budget_steps=scenario.budget_steps,
    )  # fmt: skip
    if checked.obstacles:
        check_obstacles(checked.obstacles, scenario.spots, scenario.alive, scenario.center)
    return replace(scenario, world=checked)


def _outside(layout: np.ndarray, width_m: float) -> np.ndarray:
    """(N,) bool, UAVs outside the map [0, width]^2."""
    return np.logical_or(layout < 0, layout > width_m).sum(axis=1) > 0


def draw_scenario(
    uavs: int,
    ratio: float,
    rng: np.random.Generator,
    *,
    name: str = "drawn",
    seed: int | None = None,
    layout: np.ndarray | None = None,
    width_m: float | None = None,
    physics: Physics | None = None,
) -> Scenario:
    """A random scenario whose alive are split (METHODS 2.2): layout and damage are redrawn until they are.

    Args:
        uavs: Swarm size N; that of `layout` if one is given.
        ratio: Share of the swarm that is damaged.
        rng: Source of randomness.
        name: Id of the scenario.
        seed: Recorded in the scenario.
        layout: Fixed layout; only the damage is drawn then.
        width_m: Side of the map; the paper's (METHODS 2.2), in proportion to the radio range, if None.
        physics: Radio and vehicle.
    """
    radio = physics or Physics()
    if layout is None:
        check_size(uavs)
    else:
        layout = checked_layout(layout)
        uavs = len(layout)
    width = (width_for(uavs, radio.range_m) if layout is None else None) if width_m is None else width_m
    # A drawn layout that loses nobody, and UAVs that are all in range of each other, are one network in every draw.
    if layout is None:
        hopeless = uavs == 2 or damage_count(uavs, ratio) == 0
    else:
        hopeless = uavs == 2 or len(find_links(layout, radio.range_m).pairs) == uavs * (uavs - 1) // 2
    budget = 0 if hopeless else min(SPLIT_REDRAWS, max(200, 20_000_000 // uavs**2))
    ground = layout
    for attempt in range(budget):
        if layout is None and attempt % DAMAGE_PER_LAYOUT == 0:
            ground = draw_layout(uavs, rng, width, radio)
        assert ground is not None
        damaged = random_damage(uavs, ratio, rng)
        if not find_links(np.delete(ground, damaged, axis=0), radio.range_m).connected:
            return make_scenario(name, ground, damaged.tolist(), width_m=width, physics=radio, seed=seed)
    raise InputError(
        f"damage {ratio:g} does not split a swarm of {uavs} UAVs on this map: "
        "choose another damage ratio, a larger swarm, a wider map or a shorter radio range"
    )


def transform(scenario: Scenario, element: int) -> Scenario:
    """The scenario turned or mirrored about its center by D4[element]."""
    layout = (scenario.layout - scenario.center) @ D4[element].T + scenario.center
    old = scenario.world
    world = old if old.plain else turned(old, D4[element], scenario.center)
    return replace(scenario, id=f"{scenario.id}-g{element}", layout=layout, world=world)


# --- files -----------------------------------------------------------------------------------------------------------

_OPTIONAL_KEYS = ("width", "center", "range_m", "speed_mps", "step_s", "contact_m", "budget_steps", "seed")


def scenario_to_json(scenario: Scenario) -> dict[str, Any]:
    """The entry of a scenario file; numbers survive the round trip exactly.

    A layout that was given without a map, or turned out of it, is written without a width: readers take the longer side
    of its bounding box again. A seed of 0 is left out: methods draw the same without it.
    """
    return {
        "id": scenario.id,
        **({} if _outside(scenario.layout, scenario.width_m).any() else {"width": scenario.width_m}),
        "center": scenario.center.tolist(),
        "positions": scenario.layout.tolist(),
        "damaged": scenario.damaged.tolist(),
        "range_m": scenario.physics.range_m,
        "speed_mps": scenario.physics.speed_mps,
        "step_s": scenario.physics.step_s,
        "contact_m": scenario.physics.contact_m,
        "budget_steps": scenario.budget_steps,
        **({"seed": scenario.seed} if scenario.seed else {}),
        **world_to_json(scenario.world),
    }


def scenario_from_json(entry: Any, where: str) -> Scenario:
    """Check one entry of a scenario file; errors name it."""
    if not isinstance(entry, dict):
        raise InputError(f"{where}: must be an object with id, positions and damaged")
    name = entry.get("id")
    if not isinstance(name, str) or not name or not name.isprintable():  # it becomes a cell of a CSV file
        raise InputError(f"{where}: 'id' {shown(name)} must be a text of printable characters, at least one")
    where = f"{where} ({shown(name)})"
    unknown = sorted(set(entry) - {"id", "positions", "damaged", *_OPTIONAL_KEYS, *WORLD_KEYS})
    if unknown:
        known = f"id, positions, damaged, {', '.join(_OPTIONAL_KEYS)} and those of worlds (docs/formats.md)"
        raise InputError(f"{where}: unknown key {shown(unknown[0])}; known are {known}")
    try:
        for key in ("positions", "damaged"):
            if not isinstance(entry.get(key), list):
                raise InputError(f"{key!r} must be a list")
        scenario = make_scenario(
            name,
            entry["positions"],
            entry["damaged"],
            width_m=entry.get("width"),
            center=entry.get("center"),
            physics=checked_physics(entry),
            budget_steps=entry.get("budget_steps"),
            seed=checked_seed(entry["seed"]) if "seed" in entry else None,
            world=world_from_json(entry, name),
        )
        return _with_batteries(scenario, entry["battery_s"]) if "battery_s" in entry else scenario
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _with_batteries(scenario: Scenario, charge_s: Any) -> Scenario:
    """The scenario with an event for every battery ((N,) s, `battery_s` of a file) that is empty before its end."""
    world, charge = scenario.world, charges(charge_s, scenario.uavs)
    taken = {uav for event in world.events for uav in event.uavs}
    flying = [uav for uav in scenario.alive.tolist() if uav not in taken]
    empty = battery_events(charge, flying, scenario.physics.step_s, scenario.budget_steps)
    events = tuple(sorted((*world.events, *empty), key=lambda event: event.step))
    return replace(scenario, world=replace(world, events=events))


def load_scenarios(path: str | Path) -> list[Scenario]:
    """The scenarios of a JSON file (docs/formats.md)."""
    path = Path(path)
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("scenarios"), list):
        raise InputError(f'{path}: must be an object {{"scenarios": [...]}}')
    if not content["scenarios"]:
        raise InputError(f"{path}: holds no scenario")
    scenarios = [scenario_from_json(e, f"{path}, scenario {i}") for i, e in enumerate(content["scenarios"])]
    seen: set[str] = set()
    for scenario in scenarios:
        if scenario.id in seen:
            raise InputError(f"{path}: the id {shown(scenario.id)} occurs twice; ids must be unique")
        seen.add(scenario.id)
    return scenarios


def save_scenarios(path: str | Path, scenarios: Iterable[Scenario]) -> None:
    """Write a scenario file, whole or not at all."""
    entries = [json.dumps(scenario_to_json(s)) for s in scenarios]
    write_text(Path(path), '{"scenarios": [\n' + ",\n".join(entries) + "\n]}\n")
