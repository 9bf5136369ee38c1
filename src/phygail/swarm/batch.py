"""Many worlds at once, for training: the arithmetic of `swarm.simulator` on padded arrays.

Arrays of pairs have the worlds on their last axis, so that every operation runs along contiguous memory, including the
minima that label the subnets.

Only the alive have rows, so the cost follows their number and not the size of the swarm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TypeVar

import numpy as np

from phygail.config import CONTACT_TOLERANCE_M, LINK_TOLERANCE_M, InputError
from phygail.swarm.safety import filter_near, kept_m, neighbor_radius_m
from phygail.swarm.scenario import Scenario
from phygail.swarm.simulator import SwarmState, project_speed

MOST_CONNECTED_DRAWS = 1000  # draws in a row with a connected swarm before a source of scenarios counts as hopeless


@dataclass(frozen=True, eq=False)
class Cases:
    """What stays the same while B worlds fly; worlds on the last axis. n is at least the largest number of alive.

    Attributes:
        mask: (n, B) bool, True for the rows of alive UAVs; the others are padding.
        pairs: (n, n, B) bool, pairs of different alive UAVs.
        center: (2, B) m. width_m: (B,) m.
        speed_mps: (B,) v_max. step_s: (B,). budget_steps: (B,) int.
        link_m: (B,) m, radio range with its tolerance. contact_m: (B,) m, contact distance.
        near_m, kept_m: (B,) m, neighbor radius of the safety filter and the distance that it keeps.
    """

    mask: np.ndarray
    pairs: np.ndarray
    center: np.ndarray
    width_m: np.ndarray
    speed_mps: np.ndarray
    step_s: np.ndarray
    budget_steps: np.ndarray
    link_m: np.ndarray
    contact_m: np.ndarray
    near_m: np.ndarray
    kept_m: np.ndarray


def stack_cases(scenarios: Sequence[Scenario], least_rows: int = 0) -> Cases:
    """The constants of `scenarios`, with at least `least_rows` rows per world."""
    alive = np.array([len(s.spots) for s in scenarios])
    rows = np.arange(max(least_rows, alive.max()))
    mask = rows[:, None] < alive
    pairs = mask[:, None] & mask[None]
    pairs[rows, rows] = False
    physics = [s.physics for s in scenarios]
    return Cases(
        mask,
        pairs,
        center=np.stack([s.center for s in scenarios], axis=1),
        width_m=np.array([s.width_m for s in scenarios]),
        speed_mps=np.array([p.speed_mps for p in physics]),
        step_s=np.array([p.step_s for p in physics]),
        budget_steps=np.array([s.budget_steps for s in scenarios]),
        link_m=np.array([p.range_m + LINK_TOLERANCE_M for p in physics]),
        contact_m=np.array([p.contact_m for p in physics]),
        near_m=np.array([neighbor_radius_m(p) for p in physics]),
        kept_m=np.array([kept_m(p) for p in physics]),
    )


@dataclass(frozen=True, eq=False)
class BatchLinks:
    """The radio networks of B worlds at one instant; worlds on the last axis.

    Attributes:
        squared: (n, n, B) m^2, squared distances; meaningless for padding.
        linked: (n, n, B) bool, symmetric, False on the diagonal and for padding.
        subnet: (n, B) int, labels 0..count-1 in the order of their lowest rows; -1 for padding.
        count: (B,) int, number of subnets.
    """

    squared: np.ndarray
    linked: np.ndarray
    subnet: np.ndarray
    count: np.ndarray


def find_batch_links(positions: np.ndarray, cases: Cases) -> BatchLinks:
    """Links and subnets of UAVs at `positions` ((B, n, 2) m); equal to `links.find_links` in each world."""
    x, y = np.ascontiguousarray(positions.transpose(2, 1, 0))
    squared, across = x[:, None] - x[None], y[:, None] - y[None]
    squared *= squared
    across *= across
    squared += across
    linked = squared <= cases.link_m**2
    linked &= cases.pairs
    lowest = lowest_rows(linked)
    first = (lowest == np.arange(len(x))[:, None]) & cases.mask  # the lowest row of a subnet stands for it
    rank = np.cumsum(first, axis=0)
    subnet = np.where(cases.mask, np.take_along_axis(rank, lowest, axis=0), 0) - 1
    return BatchLinks(squared, linked, subnet, rank[-1])


def lowest_rows(linked: np.ndarray) -> np.ndarray:
    """(n, B) int, the lowest row that each row is connected with by the links (n, n, B) bool.

    Every row takes the lowest label among its neighbors, then the label of that row (pointer jumping), until nothing
    changes: a few rounds, as labels travel in leaps.
    """
    n, _, worlds = linked.shape
    small = np.uint8 if n <= 256 else np.uint32
    # 0 for neighbors; all ones (0 - 1 wraps) for the rest, which win every "or" and lose every minimum.
    blocked = np.subtract(linked, 1, dtype=small)
    own = np.arange(n)
    blocked[own, own] = 0
    label = np.repeat(own.astype(small)[:, None], worlds, axis=1)
    offered = np.empty_like(blocked)
    while True:
        lowest = np.bitwise_or(blocked, label[:, None], out=offered).min(axis=0).astype(np.intp)
        lowest = np.take_along_axis(lowest, lowest, axis=0)
        if np.array_equal(lowest, label):
            return lowest
        label = lowest.astype(small)


@dataclass(frozen=True, eq=False)
class BatchState:
    """B swarms in flight; immutable. Padding has position and velocity 0.

    Attributes:
        scenarios: The B cases. cases: Their constants, stacked.
        positions: (B, n, 2) m, world coordinates; row r of world b is UAV scenarios[b].alive[r].
        velocities: (B, n, 2) m/s, executed in the step before.
        steps: (B,) int, executed moves.
    """

    scenarios: tuple[Scenario, ...]
    cases: Cases
    positions: np.ndarray
    velocities: np.ndarray
    steps: np.ndarray

    def __post_init__(self) -> None:
        for array in (self.positions, self.velocities, self.steps):
            array.setflags(write=False)

    @property
    def rows(self) -> int:
        """Rows per world, n."""
        return self.positions.shape[1]

    @property
    def mask(self) -> np.ndarray:
        """(B, n) bool, the rows of alive UAVs."""
        return self.cases.mask.T

    @cached_property
    def links(self) -> BatchLinks:
        """The radio networks at this instant; computed once."""
        return find_batch_links(self.positions, self.cases)

    @property
    def adjacency(self) -> np.ndarray:
        """(B, n, n) bool, links."""
        return self.links.linked.transpose(2, 0, 1)

    @cached_property
    def distances(self) -> np.ndarray:
        """(B, n, n) m; meaningless for padding."""
        return np.sqrt(self.links.squared).transpose(2, 0, 1)

    @property
    def subnet(self) -> np.ndarray:
        """(B, n) int, labels in the order of their lowest rows; -1 for padding."""
        return self.links.subnet.T

    @property
    def count(self) -> np.ndarray:
        """(B,) int, number of subnets."""
        return self.links.count

    @cached_property
    def contacts(self) -> np.ndarray:
        """(B,) int, pairs in contact."""
        close = self.links.squared < (self.cases.contact_m - CONTACT_TOLERANCE_M) ** 2
        return (close & self.cases.pairs).sum(axis=(0, 1)) // 2

    @property
    def terminated(self) -> np.ndarray:
        """(B,) bool, the network is one: success."""
        return self.count == 1

    @property
    def truncated(self) -> np.ndarray:
        """(B,) bool, the budget is used up and the network is still split."""
        return (self.steps >= self.cases.budget_steps) & ~self.terminated

    def world(self, b: int) -> SwarmState:
        """World b by itself."""
        alive = len(self.scenarios[b].spots)
        return SwarmState(self.scenarios[b], self.positions[b, :alive], self.velocities[b, :alive], int(self.steps[b]))


def refuse_worlds(scenarios: Iterable[Scenario], what: str) -> None:
    """Refuse scenarios of other worlds where only the plain one is flown."""
    for scenario in scenarios:
        if not scenario.world.plain:
            raise InputError(
                f"{what} flies the plain world: the scenario {scenario.id} has {scenario.world.label()}; "
                "take the keys of the world out of it"
            )


def initial_batch(scenarios: Sequence[Scenario], least_rows: int = 0) -> BatchState:
    """The swarms right after the damage, at rest, with at least `least_rows` rows per world."""
    refuse_worlds(scenarios, "a batch, as training uses it,")
    cases = stack_cases(scenarios, least_rows)
    positions = np.zeros((len(scenarios), len(cases.mask), 2))
    for b, scenario in enumerate(scenarios):
        positions[b, : len(scenario.spots)] = scenario.spots
    return BatchState(
        tuple(scenarios), cases, positions, np.zeros_like(positions), np.zeros(len(scenarios), dtype=np.intp)
    )


def step_batch(
    state: BatchState, velocities: np.ndarray, *, safety: bool = False, moving: np.ndarray | None = None
) -> BatchState:
    """All worlds one step later; equal to `simulator.step` in each, bit for bit.

    Args:
        state: Now.
        velocities: (B, n, 2) m/s, commands; those of padding are ignored.
        safety: Pass the commands through the buffered Voronoi filter.
        moving: (B,) bool, the other worlds stay as they are; None: all move.
    """
    if np.shape(velocities) != state.positions.shape:
        raise InputError(f"velocities have shape {np.shape(velocities)}, the worlds need {state.positions.shape}")
    cases = state.cases
    executed = project_speed(velocities, cases.speed_mps[:, None, None])
    executed[~state.mask] = 0.0
    if safety:
        executed = _filter(state, executed)
    positions, steps = state.positions + executed * cases.step_s[:, None, None], state.steps + 1
    if moving is not None and not moving.all():
        positions[~moving], executed[~moving] = state.positions[~moving], state.velocities[~moving]
        steps = np.where(moving, steps, state.steps)
    return BatchState(state.scenarios, cases, positions, executed, steps)


def _filter(state: BatchState, velocities: np.ndarray) -> np.ndarray:
    """`safety.filter_velocities` in all worlds at once: their rows one below the other, pairs within worlds only."""
    cases, n = state.cases, state.rows
    near = (state.links.squared <= cases.near_m**2) & cases.pairs
    world, i, j = np.nonzero(np.triu(near.transpose(2, 0, 1)))
    pairs = np.stack([world * n + i, world * n + j], axis=1)
    positions = state.positions.reshape(-1, 2)
    offsets = positions[pairs[:, 0]] - positions[pairs[:, 1]]
    distances = np.hypot(offsets[:, 0], offsets[:, 1])
    speed, step_s = np.repeat(cases.speed_mps, n), np.repeat(cases.step_s, n)
    safe = filter_near(positions, velocities.reshape(-1, 2), pairs, distances, cases.kept_m[world], speed, step_s)
    return safe.reshape(velocities.shape)


def replace_worlds(state: BatchState, where: np.ndarray, fresh: BatchState, least_rows: int = 0) -> BatchState:
    """The batch with its worlds `where` ((k,) int) replaced by the k worlds of `fresh`.

    The number of rows follows the largest world that is left. While that number stays the same, constants and links of
    the worlds that fly on are kept and not computed again.
    """
    scenarios = list(state.scenarios)
    for b, scenario in zip(where, fresh.scenarios, strict=True):
        scenarios[b] = scenario
    rows = max(least_rows, *(len(s.spots) for s in scenarios))
    same = rows == state.rows == fresh.rows
    positions, velocities = _resized(state.positions, rows), _resized(state.velocities, rows)
    positions[where], velocities[where] = _resized(fresh.positions, rows), _resized(fresh.velocities, rows)
    steps = state.steps.copy()
    steps[where] = fresh.steps
    cases = _spliced(state.cases, where, fresh.cases) if same else stack_cases(scenarios, rows)
    batch = BatchState(tuple(scenarios), cases, positions, velocities, steps)
    if same and "links" in vars(state):
        vars(batch)["links"] = _spliced(state.links, where, fresh.links)  # fills the cached property
    return batch


def _resized(array: np.ndarray, rows: int) -> np.ndarray:
    """A copy of (B, n, 2) with padding added or cut so that there are `rows` rows."""
    resized = np.zeros((len(array), rows, 2))
    kept = min(rows, array.shape[1])
    resized[:, :kept] = array[:, :kept]
    return resized


_Stacked = TypeVar("_Stacked", Cases, BatchLinks)


def _spliced(old: _Stacked, where: np.ndarray, new: _Stacked) -> _Stacked:
    """A copy of `old` whose worlds `where` are those of `new`."""
    arrays = []
    for field in fields(old):
        array = getattr(old, field.name).copy()
        array[..., where] = getattr(new, field.name)
        arrays.append(array)
    return type(old)(*arrays)


@dataclass(frozen=True, eq=False)
class BatchStep:
    """The result of one step of a `BatchWorld`.

    Attributes:
        flown: Right after the step, before any reset: final positions, steps and scenarios of the episodes that ended.
        state: What to act on next: worlds whose episode ended hold the next scenario.
        terminated: (B,) bool. truncated: (B,) bool, of `flown`.
    """

    flown: BatchState
    state: BatchState
    terminated: np.ndarray
    truncated: np.ndarray


class BatchWorld:
    """B worlds that never stop: whenever an episode ends, the next scenario takes its place.

    Scenarios that are connected from the start have no step to learn from and are passed over.

    Attributes:
        state: Now.
    """

    def __init__(
        self,
        source: Callable[[], Scenario] | Iterable[Scenario],
        worlds: int,
        *,
        safety: bool = False,
        least_rows: int = 0,
        state: BatchState | None = None,
    ) -> None:
        """Fill the worlds.

        Args:
            source: Gives the next scenario: a function, or anything to iterate over.
            worlds: B.
            safety: Filter every command (METHODS 8.3).
            least_rows: Rows per world at least; the size of the largest swarm keeps all shapes constant.
            state: Go on from here instead.
        """
        self._draw = source if callable(source) else iter(source).__next__
        self._safety = safety
        self._least_rows = least_rows
        self.state = state if state is not None else self._fresh(worlds, least_rows)

    def step(self, velocities: np.ndarray) -> BatchStep:
        """Fly one step ((B, n, 2) m/s) and reset the worlds whose episode ended."""
        flown = step_batch(self.state, velocities, safety=self._safety)
        return BatchStep(flown, self.renew(flown), flown.terminated, flown.truncated)

    def hold(
        self, steer: Callable[[BatchState], np.ndarray], steps: int
    ) -> Iterator[tuple[BatchState, np.ndarray]]:  # fmt: skip
        """Fly `steps` steps: (flown, moved) after each, `moved` (B,) bool the worlds that it moved.

        A world whose episode ends waits for the others; the next scenario takes its place after the last step.

        Args:
            steer: The commands ((B, n, 2) m/s) in a state; constant for an action that is held.
            steps: How many.
        """
        moving = np.ones(len(self.state.steps), dtype=bool)
        flown = self.state
        for _ in range(steps):
            flown = step_batch(flown, steer(flown), safety=self._safety, moving=moving)
            yield flown, moving
            moving = moving & ~(flown.terminated | flown.truncated)
        self.renew(flown)

    def renew(self, flown: BatchState) -> BatchState:
        """Go on from `flown`, with the next scenario where an episode has ended; gives the state to act on."""
        ended = np.flatnonzero(flown.terminated | flown.truncated)
        self.state = flown
        if len(ended):
            self.state = replace_worlds(flown, ended, self._fresh(len(ended), flown.rows), self._least_rows)
        return self.state

    def _fresh(self, worlds: int, least_rows: int) -> BatchState:
        """The initial state of that many split scenarios."""
        scenarios = [self._next() for _ in range(worlds)]
        for _ in range(MOST_CONNECTED_DRAWS):
            batch = initial_batch(scenarios, least_rows)
            if not batch.terminated.any():
                return batch
            for b in np.flatnonzero(batch.terminated):
                scenarios[b] = self._next()
        raise InputError(
            f"{MOST_CONNECTED_DRAWS} scenarios in a row are connected: give scenarios whose swarm is split"
        )

    def _next(self) -> Scenario:
        try:
            return self._draw()
        except StopIteration:
            raise InputError("there are no scenarios left: give a source that does not end") from None
