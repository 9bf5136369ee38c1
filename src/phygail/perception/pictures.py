"""Late news, all UAVs at once: the picture that each has of its subnet, and what each believes (METHODS 4.8, 8.4).

A UAV knows itself now and the others as they were, put where they would be by now if the rule reckons. So every UAV
has a picture of its own, in which it decides for the whole subnet and flies its own part. Here a picture is a subnet of
a `SubnetViews`: whatever decides for all subnets at once decides for all pictures at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from phygail.perception.lost import NEVER, SURE, Beliefs, BeliefSpec
from phygail.perception.noise import SensedViews
from phygail.perception.view import SubnetViews
from phygail.swarm.links import link_lengths

MOST_ROWS = 20_000  # of pictures that are decided together: they stay in the cache


@dataclass(frozen=True, eq=False)
class Pictures(SubnetViews):
    """The pictures of some UAVs, the pilots: row r shows one member of the subnet of pilot `subnet[r]`.

    Attributes:
        source: What is sensed.
        by_now: (n, 2) m, where the others of each UAV think it is.
        pilots: (count,) int, rows of `source`. shown: (R,) int, row of `source` that each row shows.
        Others as in `SubnetViews`, one subnet per picture.
    """

    source: SensedViews
    by_now: np.ndarray
    pilots: np.ndarray
    shown: np.ndarray

    @cached_property
    def own(self) -> np.ndarray:
        """(count,) int, the row of each picture that shows its pilot."""
        return np.flatnonzero(self.shown == self.pilots[self.subnet])

    @property
    def asked(self) -> np.ndarray:
        asked = np.zeros(len(self.shown), dtype=bool)
        asked[self.own] = True
        return asked

    @cached_property
    def centers(self) -> np.ndarray:
        return self.source.centers[self.source.subnet[self.pilots]]

    @cached_property
    def damaged_in_range(self) -> np.ndarray:
        """What anybody of the subnet hears, its pilot knows: the rows are those of the pilots."""
        row, wreck = self.source.damaged_in_range.T
        heard = np.zeros((self.source.count, len(self.roster)), dtype=bool)
        heard[self.source.subnet[row], wreck] = True
        picture, wreck = np.nonzero(heard[self.source.subnet[self.pilots]])
        return np.stack([self.own[picture], wreck], axis=1)


def split_pictures(views: SensedViews, *, reckoned: bool, most_rows: int = MOST_ROWS) -> Iterator[Pictures]:
    """The pictures of all UAVs in portions of about so many rows; `reckoned`: others as if they had flown on since."""
    by_now = views.seen_positions + (views.age_s * views.seen_velocities if reckoned else 0.0)
    order = np.concatenate(views.rows)  # pilots of one subnet together: they share much
    portion = (np.cumsum(views.sizes[views.subnet[order]]) - 1) // most_rows
    for pilots in np.split(order, np.flatnonzero(np.diff(portion)) + 1):
        yield _draw(views, np.sort(pilots), by_now)


def decide_late(views: SensedViews, decide: Callable[[Pictures], np.ndarray], *, reckoned: bool) -> np.ndarray:
    """(n, 2) m/s: every UAV flies its own part of what `decide` ((R, 2) m/s for all rows) says in its own picture."""
    commands = np.empty_like(views.positions)
    for pictures in split_pictures(views, reckoned=reckoned):
        commands[pictures.pilots] = decide(pictures)[pictures.own]
    return commands


def _draw(views: SensedViews, pilots: np.ndarray, by_now: np.ndarray) -> Pictures:
    """The pictures of these pilots ((c,) rows)."""
    home = views.subnet[pilots]
    picture, shown = _repeat(np.concatenate(views.rows), views.sizes, home)
    positions, velocities = by_now[shown], views.seen_velocities[shown]
    own = shown == pilots[picture]
    positions[own], velocities[own] = views.positions[shown[own]], views.velocities[shown[own]]
    owner = views.subnet[views.pairs[:, 0]]
    by_owner = np.argsort(owner, kind="stable")
    drawn_in, link = _repeat(by_owner, np.bincount(owner, minlength=views.count), home)
    begins = np.cumsum(views.sizes[home]) - views.sizes[home]
    pairs = begins[drawn_in][:, None] + views.places[views.pairs[link]]
    return Pictures(
        views.mission, views.step, views.roster, views.members[shown], positions, velocities, pairs,
        link_lengths(positions, pairs), picture, len(pilots), views._find_damaged,
        source=views, by_now=by_now, pilots=pilots, shown=shown, age_s=views.age_s,
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


class LateBeliefs(Beliefs):
    """What every UAV of one episode believes for itself; what the others of its subnet have found out reaches it late.

    Args:
        spec: How a UAV thinks about lost teammates. delay_steps: How late.
    """

    def __init__(self, spec: BeliefSpec, delay_steps: int) -> None:
        super().__init__(spec)
        self._known = np.empty((0, 0), dtype=np.float32)  # (n, N) depths, by rows of the views
        self._told: deque[np.ndarray] = deque(maxlen=delay_steps)

    def listen_to_others(self, views: SensedViews) -> None:
        """Before the pictures of a step: the deepest belief that anybody of the subnet had so many steps ago."""
        if not len(self._known):
            self._known = np.full((len(views.members), len(views.roster)), NEVER)
        if self._told:
            starts = np.cumsum(views.sizes) - views.sizes
            heard = np.maximum.reduceat(self._told[0][np.concatenate(views.rows)], starts, axis=0)
            np.maximum(self._known, heard[views.subnet], out=self._known)

    def tell_others(self) -> None:
        """After the pictures of a step."""
        self._told.append(self._known.copy())

    def _recall(self, views: SubnetViews) -> np.ndarray:
        assert isinstance(views, Pictures)
        return self._known[views.pilots]

    def _remember(self, views: SubnetViews, depths: np.ndarray) -> None:
        assert isinstance(views, Pictures)
        depths[views.subnet, views.members] = NEVER
        self._known[views.pilots] = depths

    def _nearest(self, views: SubnetViews, depths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        assert isinstance(views, Pictures)
        home = views.source.subnet[views.pilots]
        each = [self._near_in(views, depths, np.flatnonzero(home == label)) for label in np.unique(home)]
        return tuple(np.concatenate(parts) for parts in zip(*each, strict=True))  # type: ignore[return-value]  # four

    def _near_in(
        self, views: Pictures, depths: np.ndarray, pictures: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The same for the pictures ((c,) int) of one subnet, which differ in nothing but the place of their pilots.

        So the two members nearest to a ghost are searched once; in each picture one of them or its pilot is nearest.
        """
        horizon = self._horizon_m(views)
        starts = np.searchsorted(views.subnet, pictures)
        rows = views.shown[starts[0] : starts[0] + views.sizes[pictures[0]]]
        believed = depths[pictures] < SURE
        believed[:, views.source.members[rows]] = False
        spot = np.flatnonzero(believed.any(axis=0))
        ghosts = self._places(views, np.full(len(spot), pictures[0]), spot)
        known = cKDTree(views.by_now[rows]).query(ghosts, k=[1, 2], distance_upper_bound=horizon)
        pilot = (views.own[pictures] - starts)[:, None]  # place in the subnet
        second = pilot == known[1][:, 0]  # (c, g): the nearest is the pilot, whose place is another in its picture
        distance, place = (np.where(second, both[:, 1], both[:, 0]) for both in known)
        offset = views.positions[views.own[pictures]][:, None] - ghosts
        from_pilot = np.sqrt((offset * offset).sum(axis=2))
        place = np.where(from_pilot < distance, pilot, place)
        distance = np.minimum(from_pilot, distance)
        picture, ghost = np.nonzero(believed[:, spot] & (distance < horizon))
        near = picture, ghost
        return pictures[picture], spot[ghost], starts[picture] + place[near], distance[near]
