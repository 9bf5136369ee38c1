"""Worlds to learn in without demonstrations: at most 20 UAVs fly, cut out of larger swarms, each with a pace.

A pool is drawn by its seed, the same one every time. T_E of a world that no expert has flown is a multiple of the lower
bound (METHODS 8.1): the reward measures time against it, nobody follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from phygail.methods.phygail.experts.dataset import ExpertCase
from phygail.methods.reach_evolved.lessons import draw_worlds
from phygail.rng import generator
from phygail.swarm.scenario import D4, Scenario, draw_scenario, transform
from phygail.swarm.tree import bound_steps

PACE = 1.8  # T_E over the lower bound: about what `reach` needs at N = 100 and damage .45 to .95
HEAD_START = 8  # steps added: a world one step from whole is not lost by the second
PATIENCE = (3, 60)  # the budget of a world is at most so many T_E and steps: who has lost its way begins anew
VALIDATION_SEED = 870_000
VALIDATION = ((100, 4), (200, 2))  # (UAVs, cases per damage ratio)
DAMAGE = (0.45, 0.65, 0.75, 0.85, 0.95)


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
        held_out: To validate on: larger swarms, zero-shot.
    """

    scenarios: tuple[Scenario, ...]
    bounds: np.ndarray
    about: dict[str, Any]
    held_out: Pool | None = None

    @property
    def training(self) -> Pool:
        """Itself: what is held out is not in it."""
        return self

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


def draw_pool(count: int, seed: int) -> Pool:
    """`count` worlds of at most 20 flying, and larger swarms to validate on."""
    worlds = [replace(world, id=f"world-{k}") for k, world in enumerate(draw_worlds(count, seed, "pool"))]
    pool = _measured(worlds, {"pool": count, "seed": seed})
    budgets = np.minimum([world.budget_steps for world in worlds], PATIENCE[0] * pool.expert_steps + PATIENCE[1])
    short = tuple(replace(world, budget_steps=int(steps)) for world, steps in zip(worlds, budgets, strict=True))
    cases = [case for uavs, each in VALIDATION for case in zero_shot(uavs, each, VALIDATION_SEED)]
    return replace(pool, scenarios=short, held_out=_measured(cases, {"seed": VALIDATION_SEED}))


def zero_shot(uavs: int, cases: int, seed: int, damage: Sequence[float] = DAMAGE) -> list[Scenario]:
    """`cases` random swarms per damage ratio, the ratios one after the other."""
    return [
        draw_scenario(uavs, ratio, generator(seed, "zero-shot", uavs, round(1000 * ratio), case), name=f"{uavs}-{ratio:g}-{case}")
        for ratio in damage
        for case in range(cases)
    ]  # fmt: skip


def _measured(scenarios: Sequence[Scenario], about: dict[str, Any]) -> Pool:
    bounds = [bound_steps(scenario.spots, scenario.physics) for scenario in scenarios]
    return Pool(tuple(scenarios), np.array(bounds), about)
