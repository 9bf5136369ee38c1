"""Imperfect sensing for every method: noise, bias, delay, and the estimate each UAV has of its subnet (METHODS 4.8).

Decisions, where METHODS leaves room:
- Radio is physical: links, subnets and which damaged UAVs are in range stay true. Positions are measured, so lengths,
  offsets and the choice of the nearest follow the noisy ones. Dynamics and success use the truth.
- One draw per UAV and step: a UAV localizes itself and tells the others. All roster spots get a fresh draw too: noise
  on the damaged alone would tell who is damaged. The center gets one draw per subnet; a global method gets one.
- A bias is an error of what is *stored*, the same in every step: averaging readings does not remove it. The roster is
  one list that all carry, so each of its entries is off by one vector for everybody. The center is off by a vector of
  its own in every UAV's copy; a subnet uses the copy of its lowest-numbered member (no mean over members, which would
  take the error out of large subnets), a global method that of the lowest-numbered alive. Positions of the alive are
  measured, not stored: they have no bias.
- With a delay of k steps a UAV knows its own state now and all others as they were k steps ago (at the start: at
  t = 0), with the noise of that time. A global method plans at t = 0 and feeds back each UAV's own position, so a delay
  does not touch it. In a local view the offsets lead from the receiver now to the neighbor then. In a subnet each
  member has its own estimate of the others: `own_estimate` gives it to rules that know nothing of delays.
- Dead reckoning is up to the method (`Method.dead_reckons`). A UAV knows exactly how it flew, so readings of earlier
  steps, carried along, count as much as the present one, and the error of their mean shrinks. News carries its time,
  so an estimate may put the others where they are by now if they flew on.

Every UAV has an estimate of its own, in which it decides for the whole subnet and flies its own part. Here an estimate
is a subnet of a `SubnetViews`: what decides for all subnets at once decides for all estimates at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from phygail.config import InputError
from phygail.sensing.views import GlobalView, LocalView, News, Observer, Scope, SubnetView, SubnetViews, View
from phygail.swarm.checks import LARGEST_COORDINATE_M
from phygail.swarm.links import group_means, link_lengths
from phygail.swarm.scenario import Scenario
from phygail.swarm.simulator import SwarmState

MOST_ROWS = 20_000  # of estimates that decide together: so many stay in the cache


@dataclass(frozen=True)
class Sensing:
    """How imperfect the sensing is; the default is perfect.

    Attributes:
        sigma_m: Standard deviation of every observed coordinate, fresh every step.
        delay_steps: Age of everything known about neighbors.
        bias_m: Standard deviation of every coordinate of the stored roster and center, drawn once per episode.
    """

    sigma_m: float = 0.0
    delay_steps: int = 0
    bias_m: float = 0.0

    def __post_init__(self) -> None:
        for name in ("sigma_m", "bias_m"):
            if not 0 <= getattr(self, name) <= LARGEST_COORDINATE_M:
                raise InputError(f"{name} {getattr(self, name)} must be from 0 to {LARGEST_COORDINATE_M:g} meters")
        if self.delay_steps < 0:
            raise InputError(f"delay_steps {self.delay_steps} must be 0 or more")

    @property
    def perfect(self) -> bool:
        """Neither noise nor bias nor delay."""
        return self.sigma_m == 0 and self.bias_m == 0 and self.delay_steps == 0


@dataclass(frozen=True)
class _Senses:
    """What localization reads in one step: a pure function of the step, so that looking twice shows the same.

    Attributes:
        positions: (n, 2) m. roster: (N, 2) m. centers: (count, 2) m, one per subnet.
    """

    positions: np.ndarray
    roster: np.ndarray
    centers: np.ndarray


class _Reckoning:
    """The mean of everything that was read so far, carried along with the flight; each UAV does this for itself."""

    def __init__(self) -> None:
        self._count = 0
        self._means: list[np.ndarray] = []  # own position, roster and center, as each UAV has read them

    def read(self, senses: _Senses, state: SwarmState, step_s: float) -> _Senses:
        """Account for the readings of one more step; a subnet takes the mean of its members' centers."""
        links = state.links
        read = [senses.positions, senses.roster, senses.centers[links.subnet]]
        if self._count:
            self._means[0] = self._means[0] + step_s * state.velocities
        self._count += 1
        self._means = [m + (new - m) / self._count for m, new in zip(self._means or read, read, strict=True)]
        positions, roster, center = self._means
        return _Senses(positions, roster, group_means(links.subnet, center, links.count))


class _Bias:
    """The errors of the stored roster and center, the same in every step of an episode.

    Args:
        uavs: N. alive: (n,) int, their roster indices. bias_m: Standard deviation. rng: Of the errors.
    """

    def __init__(self, uavs: int, alive: np.ndarray, bias_m: float, rng: np.random.Generator) -> None:
        self._roster = bias_m * rng.standard_normal((uavs, 2))
        self._center = (bias_m * rng.standard_normal((uavs, 2)))[alive]  # each UAV has a copy of its own

    def spoil(self, senses: _Senses, subnet: np.ndarray) -> _Senses:
        """The senses with the errors added; a subnet ((n,) labels) uses the copy of its lowest-numbered member."""
        speakers = np.unique(subnet, return_index=True)[1]
        return replace(senses, roster=senses.roster + self._roster, centers=senses.centers + self._center[speakers])


class SensedObserver(Observer):
    """An observer with imperfect sensing. It must see every step of an episode in order, to know the past.

    Args:
        scenario: The case. sensing: How imperfect. rng: Of the noise.
        reckoned: Whether positions are means of all readings so far instead of the latest ones.
    """

    def __init__(
        self, scenario: Scenario, sensing: Sensing, rng: np.random.Generator, *, reckoned: bool = False
    ) -> None:
        super().__init__(scenario)
        self.sensing = sensing
        self._key = int(rng.integers(2**63))
        self._past: deque[tuple[SwarmState, _Senses]] = deque(maxlen=sensing.delay_steps + 1)
        self._bias: _Bias | None = None
        if sensing.bias_m:  # the key and two numbers: a step uses one number, so no step draws the same
            draw = np.random.default_rng([self._key, 0, 1])
            self._bias = _Bias(scenario.uavs, scenario.alive, sensing.bias_m, draw)
        self._reckoning = _Reckoning() if reckoned and sensing.sigma_m else None  # exact readings need no mean

    def observe(self, state: SwarmState, scope: Scope) -> View:
        if self.sensing.perfect:
            return super().observe(state, scope)
        self._remember(state)
        now = self._past[-1][1]
        if scope is Scope.GLOBAL:
            return self._global(state, now)
        seen, then = self._past[0]
        if scope is Scope.SUBNET:
            return self._subnets(state, now, seen, then.positions)
        return self._local(state, now, then.positions, seen.velocities)

    def _remember(self, state: SwarmState) -> None:
        latest = self._past[-1][0].step if self._past else -1
        if state.step < latest:
            raise ValueError(f"step {state.step} was observed after step {latest}: use a new observer")
        if state.step > latest:
            senses = self._sense(state)
            if self._reckoning is not None:
                if self._past and state.step > latest + 1:
                    raise ValueError(f"step {state.step} was observed after step {latest}: reckoning needs every step")
                senses = self._reckoning.read(senses, state, self.mission.physics.step_s)
            if self._bias is not None:  # after reckoning: the mean of readings that are all off by b is off by b
                senses = self._bias.spoil(senses, state.links.subnet)
            self._past.append((state, senses))

    def _sense(self, state: SwarmState) -> _Senses:
        draw = np.random.default_rng([self._key, state.step])
        places = [state.positions, self._scenario.layout, np.tile(self.mission.center, (state.links.count, 1))]
        return _Senses(*[exact + self.sensing.sigma_m * draw.standard_normal(exact.shape) for exact in places])

    def _global(self, state: SwarmState, now: _Senses) -> GlobalView:
        links = state.links
        measured = replace(links, lengths=link_lengths(now.positions, links.pairs))
        return GlobalView(
            replace(self.mission, center=now.centers[0]), state.step, now.roster, self._members,
            now.positions, state.velocities, measured,
        )  # fmt: skip

    def _subnets(self, state: SwarmState, now: _Senses, seen: SwarmState, seen_positions: np.ndarray) -> SubnetViews:
        plain = super().observe(state, Scope.SUBNET)
        assert isinstance(plain, SubnetViews)
        delay_steps = self.sensing.delay_steps
        return replace(
            plain, mission=replace(self.mission, center=now.centers[0]), roster=now.roster, positions=now.positions,
            lengths=link_lengths(now.positions, plain.pairs), own_centers=now.centers,
            news=News(seen_positions, seen.velocities, delay_steps) if delay_steps else None,
            age_s=(state.step - seen.step) * self.mission.physics.step_s,
        )  # fmt: skip

    def _local(
        self, state: SwarmState, now: _Senses, seen_positions: np.ndarray, seen_velocities: np.ndarray
    ) -> LocalView:
        receiver, sender = np.concatenate([state.links.pairs, state.links.pairs[:, ::-1]]).T

        def damaged() -> tuple[np.ndarray, np.ndarray]:
            near = self._damaged_near(state.positions)
            return near[:, 0], now.roster[near[:, 1]] - now.positions[near[:, 0]]

        # Row r of a local view belongs to UAV r, its idea of the center included.
        mission = replace(self.mission, center=now.centers[state.links.subnet])
        return LocalView(
            mission, state.step, now.positions, state.velocities,
            lambda: (receiver, seen_positions[sender] - now.positions[receiver], seen_velocities[sender]), damaged,
        )  # fmt: skip


def own_estimate(view: SubnetView, row: int, *, reckoned: bool = False) -> SubnetView:
    """What member `row` knows: itself now, the others delayed; `reckoned`: as if they had flown on since."""
    assert view.news is not None
    positions, velocities = view.news.positions.copy(), view.news.velocities.copy()
    if reckoned:
        positions += view.age_s * velocities
    positions[row], velocities[row] = view.positions[row], view.velocities[row]
    return replace(
        view, positions=positions, velocities=velocities, lengths=link_lengths(positions, view.pairs), news=None
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimates(SubnetViews):
    """The estimates of some UAVs, their owners: row r shows one member of the subnet of owner `subnet[r]`.

    Attributes:
        source: What is sensed.
        by_now: (n, 2) m, where the other members think each UAV is.
        owners: (count,) int, rows of `source`. shown: (R,) int, row of `source` that each row shows.
        own: (count,) int, the row of each estimate that shows its owner.
        Others as in `SubnetViews`, one subnet per estimate.
    """

    source: SubnetViews
    by_now: np.ndarray
    owners: np.ndarray
    shown: np.ndarray
    own: np.ndarray

    @cached_property
    def damaged_in_range(self) -> np.ndarray:
        """An owner knows what any member of its subnet hears: the rows are those of the owners."""
        row, spot = self.source.damaged_in_range.T
        heard = np.zeros((self.source.count, len(self.roster)), dtype=bool)
        heard[self.source.subnet[row], spot] = True
        estimate, spot = np.nonzero(heard[self.source.subnet[self.owners]])
        return np.stack([self.own[estimate], spot], axis=1)


def own_estimates(views: SubnetViews, *, reckoned: bool, most_rows: int = MOST_ROWS) -> Iterator[Estimates]:
    """The estimates of all UAVs in portions of about so many rows; `reckoned`: others as if they had flown on since."""
    assert views.news is not None
    by_now = views.news.positions + (views.age_s * views.news.velocities if reckoned else 0.0)
    order = np.concatenate(views.rows)  # owners of one subnet together: they share much
    portion = (np.cumsum(views.sizes[views.subnet[order]]) - 1) // most_rows
    for owners in np.split(order, np.flatnonzero(np.diff(portion)) + 1):
        yield _estimates_of(views, views.news, np.sort(owners), by_now)


def decide_delayed(views: SubnetViews, decide: Callable[[Estimates], np.ndarray], *, reckoned: bool) -> np.ndarray:
    """(n, 2) m/s: every UAV flies its own part of what `decide` ((R, 2) m/s for all rows) says in its own estimate."""
    commands = np.empty_like(views.positions)
    for estimates in own_estimates(views, reckoned=reckoned):
        commands[estimates.owners] = decide(estimates)[estimates.own]
    return commands


def _estimates_of(views: SubnetViews, news: News, owners: np.ndarray, by_now: np.ndarray) -> Estimates:
    """The estimates of these owners ((c,) rows)."""
    home = views.subnet[owners]
    estimate, shown = _repeat(np.concatenate(views.rows), views.sizes, home)
    positions, velocities = by_now[shown], news.velocities[shown]
    own = shown == owners[estimate]
    positions[own], velocities[own] = views.positions[shown[own]], views.velocities[shown[own]]
    subnet_of_link = views.subnet[views.pairs[:, 0]]
    by_subnet = np.argsort(subnet_of_link, kind="stable")
    drawn_in, link = _repeat(by_subnet, np.bincount(subnet_of_link, minlength=views.count), home)
    begins = np.cumsum(views.sizes[home]) - views.sizes[home]
    pairs = begins[drawn_in][:, None] + views.places[views.pairs[link]]
    return Estimates(
        mission=views.mission, step=views.step, roster=views.roster, members=views.members[shown],
        positions=positions, velocities=velocities, pairs=pairs, lengths=link_lengths(positions, pairs),
        age_s=views.age_s, subnet=estimate, count=len(owners), own_centers=views.centers[home], asked=own,
        source=views, by_now=by_now, owners=owners, shown=shown, own=np.flatnonzero(own),
        _rows=views._rows[shown], _damaged_near=views._damaged_near,
    )  # fmt: skip


def _repeat(sorted_items: np.ndarray, sizes: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The items of each of these groups, one group after the other: ((R,) number in `groups`, (R,) item).

    Args:
        sorted_items: (k,) items ordered by group. sizes: (count,) items of each group. groups: (c,) with repetitions.
    """
    many = sizes[groups]
    number = np.repeat(np.arange(len(groups)), many)
    within = np.arange(len(number)) - np.repeat(np.cumsum(many) - many, many)
    return number, sorted_items[(np.cumsum(sizes) - sizes)[groups][number] + within]
