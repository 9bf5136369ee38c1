"""Worlds to learn in: at most 20 UAVs fly, cut out of larger swarms. A pool of them needs no demonstrations.

whole: swarms of 20, any damage. survivors: the last of 50 to 200 UAVs, on their map. patch: a neighborhood of a swarm
of 200 or 500, alone on the map, its center up to 1 km away; brings dense rosters with few losses at any distance.

A pool is drawn by its seed, the same one every time. T_E of a world that no expert has flown is a multiple of the lower
bound (METHODS 8.1): the reward measures time against it, nobody follows it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from phygail.rng import generator
from phygail.swarm.layout import draw_layout, width_for
from phygail.swarm.links import find_links
from phygail.swarm.scenario import D4, Scenario, draw_scenario, make_scenario, transform
from phygail.swarm.tree import bound_steps

FLYING = 20  # at most
LAYOUTS = 24  # per swarm size, drawn once per seed: damage makes the variety
PATCH_SIZES = (200, 500)
PATCH_ROSTER = (24, 80)  # UAVs of a patch before the damage

PACE = 1.8  # T_E over the lower bound: about what `reach` needs at N = 100 and damage .45 to .95
HEAD_START = 8  # steps added: a world one step from whole is not lost by the second
PATIENCE = 60  # the budget of a world is at most some T_E and so many steps: a swarm that has lost its way begins anew


@dataclass(frozen=True)
class Mix:
    """How often each kind of world is drawn, and out of how many UAVs survivors are left."""

    whole: float = 0.2
    survivors: float = 0.5
    patch: float = 0.3
    sizes: tuple[int, ...] = (50, 100, 200)


MIXES: Mapping[str, Mix] = MappingProxyType(
    {"near": Mix(), "far": Mix(whole=0.1, survivors=0.7, patch=0.2, sizes=(50, 100, 200, 400))}
)

VALIDATION_SEED = 870_000
VALIDATION = ((100, 4), (200, 2))  # (UAVs, cases per damage ratio)
DAMAGE = (0.45, 0.65, 0.75, 0.85, 0.95)


def draw_worlds(count: int, seed: int, *key: int | str, mix: str = "near") -> list[Scenario]:
    """Scenarios that are split, each of a random kind of `MIXES[mix]`; equal keys give equal worlds."""
    rng, drawn = generator(seed, "worlds", *key), MIXES[mix]
    names, shares = ["whole", "survivors", "patch"], [drawn.whole, drawn.survivors, drawn.patch]
    worlds: list[Scenario] = []
    while len(worlds) < count:
        kind = str(rng.choice(names, p=shares))
        scenario = _draw(kind, drawn.sizes if kind == "survivors" else PATCH_SIZES, seed, rng)
        if find_links(scenario.spots, scenario.physics.range_m).count > 1:
            worlds.append(scenario)
    return worlds


def _draw(kind: str, sizes: Sequence[int], seed: int, rng: np.random.Generator) -> Scenario:
    if kind == "whole":
        return _damaged(_layout(20, int(rng.integers(LAYOUTS)), seed), int(rng.integers(2, FLYING)), 20, rng)
    size = int(rng.choice(sizes))
    layout = _layout(size, int(rng.integers(LAYOUTS)), seed)
    if kind == "patch":
        roster = int(rng.integers(PATCH_ROSTER[0], PATCH_ROSTER[1] + 1))
        middle = layout[rng.integers(size)]
        layout = layout[np.argsort(np.hypot(*(layout - middle).T), kind="stable")[:roster]]
    return _damaged(layout, int(rng.integers(4, FLYING + 1)), size, rng)


def _damaged(layout: np.ndarray, flying: int, size: int, rng: np.random.Generator) -> Scenario:
    damaged = np.sort(rng.permutation(len(layout))[flying:])
    width = width_for(size)
    return make_scenario("world", layout, damaged, width_m=width)


@functools.lru_cache(maxsize=256)
def _layout(size: int, number: int, seed: int) -> np.ndarray:
    return draw_layout(size, generator(seed, "layout", size, number))


@dataclass(frozen=True)
class ExpertCase:
    """A scenario to train on and T_E, the moves its expert needed; its number in the set and how it was turned."""

    scenario: Scenario
    expert_steps: int
    number: int = 0
    element: int | None = None


class CaseSet(Protocol):
    """What a rollout draws its scenarios from: an expert database or a pool."""

    @property
    def flying(self) -> np.ndarray:
        """(S,) int, the alive of every scenario."""

    def draw_case(self, rng: np.random.Generator) -> ExpertCase:
        """A random scenario, turned at random."""

    def case(self, k: int, element: int | None = None) -> ExpertCase:
        """Scenario k, turned by D4[element] if given."""

    def bound(self, k: int) -> int:
        """Lower bound on the steps of scenario k."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Scenarios with their bounds.

    Attributes:
        scenarios: To fly. bounds: (S,) int, lower bounds in steps. about: What drew them.
        validation: Larger swarms, zero-shot, of `held_out`.
    """

    scenarios: tuple[Scenario, ...]
    bounds: np.ndarray
    about: dict[str, Any]
    validation: tuple[Scenario, ...] = ()

    @property
    def training(self) -> Pool:
        """Itself: what is held out is not in it."""
        return self

    @property
    def held_out(self) -> Pool:
        """What to validate on."""
        return _measured(self.validation, self.about)

    def __len__(self) -> int:
        return len(self.scenarios)

    @cached_property
    def flying(self) -> np.ndarray:
        """(S,) int, the alive of every scenario."""
        return np.array([len(scenario.alive) for scenario in self.scenarios])

    @property
    def expert_steps(self) -> np.ndarray:
        """(S,) int, T_E."""
        return np.ceil(PACE * self.bounds + HEAD_START).astype(int)

    def draw_case(self, rng: np.random.Generator) -> ExpertCase:
        """A random scenario in a random one of its eight positions."""
        return self.case(int(rng.integers(len(self))), int(rng.integers(len(D4))))

    def case(self, k: int, element: int | None = None) -> ExpertCase:
        """Scenario k, turned by D4[element] if given."""
        scenario = self.scenarios[k] if element is None else transform(self.scenarios[k], element)
        return ExpertCase(scenario, int(self.expert_steps[k]), k, element)

    def bound(self, k: int) -> int:
        """Lower bound on the steps of scenario k."""
        return int(self.bounds[k])


def draw_pool(count: int, seed: int, patience: float = 3.0, mix: str = "near") -> Pool:
    """`count` worlds of `MIXES[mix]` with budgets of at most `patience` T_E and 60 steps; to validate on, larger
    swarms.
    """
    worlds = [replace(world, id=f"world-{k}") for k, world in enumerate(draw_worlds(count, seed, "pool", mix=mix))]
    pool = _measured(worlds, {"pool": count, "seed": seed, "mix": mix})
    budgets = np.minimum([world.budget_steps for world in worlds], patience * pool.expert_steps + PATIENCE)
    short = tuple(replace(world, budget_steps=int(steps)) for world, steps in zip(worlds, budgets, strict=True))
    cases = [case for uavs, each in VALIDATION for case in zero_shot(uavs, each, VALIDATION_SEED)]
    return replace(pool, scenarios=short, validation=tuple(cases))


def zero_shot(uavs: int, cases: int, seed: int, damage: Sequence[float] = DAMAGE) -> list[Scenario]:
    """`cases` random swarms per damage ratio, the ratios one after the other."""
    keys = [(ratio, case) for ratio in damage for case in range(cases)]
    rngs = [generator(seed, "zero-shot", uavs, round(1000 * ratio), case) for ratio, case in keys]
    return [
        draw_scenario(uavs, ratio, rng, name=f"{uavs}-{ratio:g}-{case}")
        for (ratio, case), rng in zip(keys, rngs, strict=True)
    ]


def _measured(scenarios: Sequence[Scenario], about: dict[str, Any]) -> Pool:
    bounds = [bound_steps(scenario.spots, scenario.physics) for scenario in scenarios]
    return Pool(tuple(scenarios), np.array(bounds), about)
