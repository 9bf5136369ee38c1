"""Where an environment takes its scenarios from: drawn afresh, or chosen from a list. Only split swarms are flown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from phygail.config import InputError, Physics
from phygail.swarm.checks import positive, shown
from phygail.swarm.damage import damage_count
from phygail.swarm.formation import check_size
from phygail.swarm.scenario import Scenario, draw_scenario, load_scenarios
from phygail.swarm.state import initial_state


class Source(Protocol):
    """Gives a split scenario per episode."""

    @property
    def largest(self) -> int:
        """Size of the largest swarm it can give."""

    def draw(self, rng: np.random.Generator) -> Scenario:
        """The scenario of the next episode."""

    def named(self, name: str) -> Scenario:
        """The scenario with this id, or a clear error."""


@dataclass(frozen=True)
class Drawn:
    """A fresh layout and fresh damage for every episode.

    Attributes:
        uavs: Swarm sizes N, each equally likely.
        damage: Lowest and highest damage ratio; uniform between.
        width_m: Side of the map; the paper's for N, in proportion to the radio range, if None.
        physics: Radio and vehicle.
    """

    uavs: tuple[int, ...]
    damage: tuple[float, float]
    width_m: float | None = None
    physics: Physics | None = None

    def __post_init__(self) -> None:
        if not self.uavs:
            raise InputError("no swarm size is given: give at least one number of UAVs")
        low, high = self.damage
        if not low <= high:
            raise InputError(f"damage from {low} to {high}: give the lower ratio first")
        if self.width_m is not None:
            positive("width", self.width_m)
        for uavs in self.uavs:
            check_size(uavs)
            damage_count(uavs, high)  # refuses ratios outside 0 .. 1
            if damage_count(uavs, low) == 0:
                raise InputError(
                    f"{uavs} UAVs with damage {low:g} lose nobody, so the swarm cannot split: "
                    "choose a larger swarm or a higher damage ratio"
                )

    @property
    def largest(self) -> int:
        return max(self.uavs)

    def draw(self, rng: np.random.Generator) -> Scenario:
        uavs = self.uavs[rng.integers(len(self.uavs))]
        ratio = float(rng.uniform(*self.damage))
        return draw_scenario(uavs, ratio, rng, width_m=self.width_m, physics=self.physics)

    def named(self, name: str) -> Scenario:
        raise InputError(
            f"scenario {shown(name)}: scenarios are drawn here; give a Scenario or an env with `scenarios`"
        )


@dataclass(frozen=True, eq=False)
class Given:
    """Scenarios from a list or file, each equally likely; those that are connected from the start are passed over."""

    scenarios: tuple[Scenario, ...]

    def __post_init__(self) -> None:
        if not self.scenarios:
            raise InputError("no scenario was given whose swarm is split: there is nothing to reconnect")

    @property
    def largest(self) -> int:
        return max(scenario.uavs for scenario in self.scenarios)

    def draw(self, rng: np.random.Generator) -> Scenario:
        return self.scenarios[rng.integers(len(self.scenarios))]

    def named(self, name: str) -> Scenario:
        for scenario in self.scenarios:
            if scenario.id == name:
                return scenario
        raise InputError(f"scenario {shown(name)}: there is no split scenario with this id")


def make_source(
    uavs: int | Sequence[int] | None,
    damage: float | tuple[float, float] | None,
    width_m: float | None,
    physics: Physics | None,
    scenarios: str | Path | Iterable[Scenario] | None,
) -> Source:
    """The source behind the arguments of `recovery_v0.parallel_env`."""
    if scenarios is None:
        sizes = np.atleast_1d(np.asarray(20 if uavs is None else uavs)).tolist()
        span = np.atleast_1d(np.asarray((0.25, 0.75) if damage is None else damage)).tolist()
        if not all(isinstance(size, int) for size in sizes):
            raise InputError(f"uavs {shown(uavs)}: give a whole number of UAVs, or several")
        if len(span) not in (1, 2) or not all(isinstance(ratio, float | int) for ratio in span):
            raise InputError(f"damage {shown(damage)}: give a ratio from 0 to 1, or (lowest, highest)")
        return Drawn(tuple(sizes), (span[0], span[-1]), width_m, physics)
    for name, value in (("uavs", uavs), ("damage", damage), ("width_m", width_m), ("physics", physics)):
        if value is not None:
            raise InputError(f"{name} {shown(value)} is given together with scenarios, which bring their own: drop one")
    listed = load_scenarios(scenarios) if isinstance(scenarios, str | Path) else scenarios
    return Given(tuple(scenario for scenario in listed if not initial_state(scenario).terminated))
