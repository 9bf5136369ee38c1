"""The experiment grid as data: swarm sizes x damage ratios x cases, each scenario drawn from its own coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Protocol, runtime_checkable

from phygail.config import InputError, Physics
from phygail.files import parse_number
from phygail.rng import generator
from phygail.swarm.checks import checked_cases, checked_seed
from phygail.swarm.layout import (
    NamedLayout,
    check_damage,
    check_radio,
    check_size,
    find_layout,
    permille,
    width_for,
)
from phygail.swarm.recipe import canonical, parse_world, with_world
from phygail.swarm.scenario import Scenario, budget_for, draw_scenario

MOST_VALUES = 10_000  # of one list or range: more is a typing error
MOST_DIGITS = 9  # before the decimal point
MOST_SCENARIOS = 1_000_000  # of a grid: years of computing, and their ids fill the memory
# Ids of drawn scenarios (fresh layouts, strikes, the paper's layouts); the group is the damage ratio.
DRAWN_ID = r"^(?:n|strike-n|paper-)\d{2,}-d(\d\.\d{3})-c\d{3,}-s\d+$"


@runtime_checkable
class Cases(Protocol):
    """Numbered scenarios that a worker can make on its own."""

    def ids(self) -> list[str]:
        """The id of every scenario, by number."""

    def sizes(self) -> list[int]:
        """The swarm size of every scenario, by number."""

    def scenario(self, index: int) -> Scenario:
        """Scenario number `index`."""


@dataclass(frozen=True)
class Grid:
    """Every combination of swarm size and damage ratio, `cases` times, numbered in that order.

    A scenario depends only on (seed, N, damage, case) and the radio: neither on the rest of the grid nor on the order.
    Its map is the paper's for N, in proportion to the radio range.

    Attributes:
        uavs: Swarm sizes N.
        damage: Damage ratios, at most three decimals.
        cases: Scenarios per cell.
        seed: Non-negative.
        physics: Radio and vehicle.
        world: What every scenario has beyond the plain world, drawn for each (`swarm.recipe`); empty: nothing.
    """

    uavs: tuple[int, ...]
    damage: tuple[float, ...]
    cases: int
    seed: int = 0
    physics: Physics = field(default_factory=Physics)
    world: str = ""

    def __post_init__(self) -> None:
        if not self.uavs or not self.damage:
            raise InputError("the grid is empty: give at least one swarm size and one damage ratio")
        checked_cases(self.cases)
        if len(self) > MOST_SCENARIOS:
            raise InputError(f"the grid has {len(self):,} scenarios: at most {MOST_SCENARIOS:,} are possible")
        checked_seed(self.seed)
        check_radio(self.physics)
        if self.world:
            object.__setattr__(self, "world", canonical(parse_world(self.world)))
        _check_distinct("swarm size", self.uavs)
        _check_distinct("damage ratio", self.damage)
        for uavs in self.uavs:
            check_size(uavs)
            budget_for(width_for(uavs, self.physics.range_m), self.physics)  # refuses what is too wide or too slow
            for ratio in self.damage:
                check_damage(uavs, ratio)

    def __len__(self) -> int:
        return len(self.uavs) * len(self.damage) * self.cases

    def cell(self, index: int) -> tuple[int, float, int]:
        """(N, damage ratio, case) of scenario number `index`."""
        rest, case = divmod(index, self.cases)
        size, ratio = divmod(rest, len(self.damage))
        return self.uavs[size], self.damage[ratio], case

    def ids(self) -> list[str]:
        return [drawn_id(*self.cell(i), self.seed) for i in range(len(self))]

    def sizes(self) -> list[int]:
        return [self.cell(i)[0] for i in range(len(self))]

    def scenario(self, index: int) -> Scenario:
        """Draw scenario number `index`; raises an error if its cell does not split."""
        uavs, ratio, case = self.cell(index)
        rng = generator(self.seed, "scenario", uavs, permille(ratio), case)
        name = drawn_id(uavs, ratio, case, self.seed)
        drawn = draw_scenario(uavs, ratio, rng, name=name, seed=self.seed, physics=self.physics)
        return with_world(drawn, parse_world(self.world)) if self.world else drawn

    def scenarios(self) -> list[Scenario]:
        """All scenarios of the grid."""
        return [self.scenario(i) for i in range(len(self))]


@dataclass(frozen=True, eq=False)
class CaseList:
    """Scenarios that were given, not drawn."""

    given: tuple[Scenario, ...]

    def __post_init__(self) -> None:
        if not self.given:
            raise InputError("no scenario was given: give at least one")
        seen: set[str] = set()
        for scenario in self.given:
            # A line break would tear a row of the CSV, a lone surrogate cannot be written at all.
            if not scenario.id.isprintable() or not scenario.id.strip():
                raise InputError(f"the scenario id {scenario.id!r} cannot be printed: use letters, digits and signs")
            if scenario.id in seen:
                raise InputError(f"the scenario id {scenario.id!r} occurs twice: ids must be unique")
            seen.add(scenario.id)

    def ids(self) -> list[str]:
        return [s.id for s in self.given]

    def sizes(self) -> list[int]:
        return [s.uavs for s in self.given]

    def scenario(self, index: int) -> Scenario:
        # A copy through the constructor: arrays that traveled between processes are write-protected again.
        return replace(self.given[index])


def damaged_layouts(
    layouts: Iterable[str], damage: Iterable[float], cases: int, seed: int, physics: Physics | None = None
) -> list[Scenario]:
    """Random damage that splits fixed layouts: `cases` scenarios per layout (file or name) and damage ratio.

    As in `Grid`, a scenario depends on its own coordinates only; ids are like paper-100-d0.250-c003-s0.
    """
    checked_cases(cases)
    grounds, damage = [find_layout(layout) for layout in layouts], tuple(damage)
    _check_distinct("layout name", [ground.name for ground in grounds])
    _check_distinct("damage ratio", damage)
    return [
        damaged_layout(ground, ratio, case, seed, physics)
        for ground in grounds
        for ratio in damage
        for case in range(cases)
    ]


def damaged_layout(ground: NamedLayout, ratio: float, case: int, seed: int, physics: Physics | None = None) -> Scenario:
    """Case number `case` of random damage that splits a fixed layout."""
    check_damage(len(ground.positions), ratio)
    return draw_scenario(
        len(ground.positions),
        ratio,
        generator(seed, "damage", ground.name, permille(ratio), case),
        name=f"{ground.name}-d{ratio:.3f}-c{case:03d}-s{seed}",
        seed=seed,
        layout=ground.positions,
        width_m=ground.width_m,
        physics=physics,
    )


def as_cases(source: Cases | Iterable[Scenario]) -> Cases:
    """Cases that can be drawn by number, unchanged; scenarios as a list."""
    return source if isinstance(source, Cases) else CaseList(tuple(source))


def drawn_id(uavs: int, ratio: float, case: int, seed: int) -> str:
    """E.g. n0100-d0.250-c003-s0."""
    return f"n{uavs:04d}-d{ratio:.3f}-c{case:03d}-s{seed}"


def _check_distinct(what: str, values: Sequence[object]) -> None:
    """Refuse repeated values: they are part of the ids of scenarios, which are unique."""
    if len(set(values)) < len(values):
        raise InputError(f"a {what} is listed twice in {', '.join(map(str, values))}: list each once")


# --- lists and ranges of the command line ----------------------------------------------------------------------------


def parse_numbers(text: str, flag: str) -> tuple[float, ...]:
    """`0.25,0.5` or `0.05:0.95:0.1` (b included) or a mix, exact in decimals.

    Args:
        text: What the user wrote.
        flag: Name of the flag, for errors.
    """
    return tuple(float(value) for value in _decimals(text, flag))


def parse_whole(text: str, flag: str) -> tuple[int, ...]:
    """As `parse_numbers`, for whole numbers such as `100,200` or `20:100:20`."""
    values = _decimals(text, flag)
    for value in values:
        if value != value.to_integral_value():
            raise InputError(f"{flag} {text}: {value} is not a whole number; give e.g. 100,200 or 20:100:20")
    return tuple(int(value) for value in values)


def _decimals(text: str, flag: str) -> list[Decimal]:
    values: list[Decimal] = []
    for part in text.split(","):
        bounds = [_decimal(number, text, flag) for number in part.split(":")]
        if len(bounds) == 1:
            values += bounds
        elif len(bounds) == 3:
            values += _range(*bounds, text=text, flag=flag)
        else:
            raise InputError(f"{flag} {text}: {part!r} is no range; write first:last:step, e.g. 0.05:0.95:0.1")
        if len(values) > MOST_VALUES:
            raise InputError(f"{flag} {text}: more than {MOST_VALUES:,} values; choose a larger step")
    return values


def _decimal(number: str, text: str, flag: str) -> Decimal:
    try:
        parse_number(number)  # stricter than Decimal, which takes 1_0 and digits of other scripts
        value = Decimal(number.strip())
    except (InvalidOperation, ValueError):
        raise InputError(f"{flag} {text!r}: {number!r} is not a number; give e.g. 1,2 or first:last:step") from None
    # By exponent: arithmetic on 1e999999999 would overflow.
    if not value.is_finite() or not (value == 0 or -MOST_DIGITS <= value.adjusted() < MOST_DIGITS):
        raise InputError(f"{flag} {text!r}: {number!r} is out of range; give numbers below a billion")
    return value


def _range(first: Decimal, last: Decimal, step: Decimal, *, text: str, flag: str) -> list[Decimal]:
    if step <= 0 or last < first:
        raise InputError(f"{flag} {text}: a range first:last:step needs first <= last and a step above 0")
    if (last - first) / step > MOST_VALUES:
        raise InputError(f"{flag} {text}: more than {MOST_VALUES:,} values; choose a larger step")
    return [first + k * step for k in range(int((last - first) // step) + 1)]
