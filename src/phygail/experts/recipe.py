"""What decides the content of an expert database: scenarios and methods, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from phygail import __version__
from phygail.config import InputError
from phygail.rng import generator
from phygail.swarm.damage import damage_count
from phygail.swarm.formation import check_size
from phygail.swarm.scenario import Scenario, draw_scenario

DAMAGE = tuple(k / 20 for k in range(1, 19))  # 0.05 to 0.90: 20 UAVs keep at least two
CASES = 110  # per ratio: 1,980 scenarios
SEED = 400_000  # reporting uses 0..1000, other trainings 100,000 on: no scenario is drawn twice
HELD_OUT_EVERY = 10  # cases 0, 10, 20, ... of every ratio are for validation: at least 10 %
PERMILLE = 1000
MOST_CASES = 100_000
MOST_RANGE_SCALE = 10.0  # beyond it the range is that of a contact
LARGEST_SEED = 2**63 - 1  # it stands in a column of 64-bit numbers


@dataclass(frozen=True)
class Recipe:
    """Scenarios and methods of a database. Scenario number i is case i mod `cases` of ratio i div `cases`.

    Attributes:
        pool: Name of the pool the methods come from.
        methods: Who flies; the order decides ties.
        left_out, missing: Members of the pool that the user left out, and that cannot fly here.
        uavs: Swarm size N.
        damage: Damage ratios, at most three decimals.
        cases: Scenarios per ratio.
        seed: Of the scenarios.
        range_scale: Radio ranges are shorter by a log-uniform factor from 1 to this. 20 UAVs with a fifth of the range
            are spread, in ranges, like survivors of a swarm of 500. With 1 nothing is drawn.
    """

    pool: str
    methods: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    uavs: int = 20
    damage: tuple[float, ...] = DAMAGE
    cases: int = CASES
    seed: int = SEED
    range_scale: float = 1.0

    def __post_init__(self) -> None:
        check_size(self.uavs)
        if not self.damage or len(set(self.damage)) < len(self.damage):
            raise InputError(f"damage ratios {', '.join(map(str, self.damage))}: give at least one, each once")
        for ratio in self.damage:
            lost = damage_count(self.uavs, ratio)
            if lost == 0 or abs(ratio * PERMILLE - round(ratio * PERMILLE)) > 1e-9:
                raise InputError(
                    f"damage ratio {ratio}: give at most three decimals, enough to lose one of {self.uavs} UAVs"
                )
        if not 1 <= self.cases <= MOST_CASES:
            raise InputError(f"{self.cases} cases per damage ratio: choose from 1 to {MOST_CASES:,}")
        if not 0 <= self.seed <= LARGEST_SEED:
            raise InputError(f"seed {self.seed}: choose from 0 to {LARGEST_SEED:,}")
        if not 1.0 <= self.range_scale <= MOST_RANGE_SCALE:
            raise InputError(f"range scale {self.range_scale}: choose from 1 to {MOST_RANGE_SCALE:g}")

    def __len__(self) -> int:
        return len(self.damage) * self.cases

    def cell(self, number: int) -> tuple[float, int]:
        """(damage ratio, case) of scenario `number`."""
        ratio, case = divmod(number, self.cases)
        return self.damage[ratio], case

    def scenario(self, number: int) -> Scenario:
        """Draw scenario `number`; it depends on (seed, N, ratio, case) and on nothing else."""
        ratio, case = self.cell(number)
        rng = generator(self.seed, "expert", self.uavs, round(ratio * PERMILLE), case)
        name = f"expert-n{self.uavs:04d}-d{ratio:.3f}-c{case:03d}-s{self.seed}"
        drawn = draw_scenario(self.uavs, ratio, rng, name=name, seed=self.seed)
        if self.range_scale <= 1.0:
            return drawn
        shorter = drawn.physics.range_m / self.range_scale ** rng.random()
        return replace(drawn, physics=replace(drawn.physics, range_m=shorter))

    def config(self) -> dict[str, Any]:
        """As JSON holds it, with the version of the package: a database is resumed and reused only if this is equal."""
        values = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return {"version": __version__, **values}


def held_out(case: int) -> bool:
    """Whether a case is kept for validation: by its number alone, so that it is held out of every pool's database."""
    return case % HELD_OUT_EVERY == 0
