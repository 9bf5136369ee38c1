"""CR-MA (METHODS 3.7, Li et al. 2025): learned headings plus potential fields that avoid contacts and keep links.

The actor is a perceptron of 19,458 numbers, evaluated here with numpy: flying CR-MA needs no torch. Training lives in
`phygail.methods.cr_ma.train` and flies this very class with a noisy actor.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from phygail.config import InputError
from phygail.methods.base import SubnetMethod, register
from phygail.methods.steering import link_keeping, repulsion
from phygail.sensing.radio import HELLO, ID_BYTES, PLACE_BYTES
from phygail.sensing.views import SubnetView, SubnetViews
from phygail.weights import bundled, read_weights

KIND = "cr-ma"
VERSION = 1  # of observation and network; weights of another version are refused
OBSERVATION = 20  # numbers per UAV
HIDDEN = 128
ACTION = 2
HOLD_M = (
    4.0  # of flight at full speed, at a range of 120 m: one decision is held this long, 4 steps at the paper's radio
)
NEAREST_MEMBERS = 4
CLIP = 3.0  # of offsets in units of the range
_CANDIDATES = 12  # neighbors that trees are first asked for: more than NEAREST_MEMBERS, so that ties stay whole
_TIE_DECIMALS = 6  # distances equal to a micrometer (at a range of 120 m) are ties

Actor = Callable[[np.ndarray], np.ndarray]  # (n, 20) observations -> (n, 2) actions in [-1, 1]


@dataclass(frozen=True, eq=False)
class NumpyActor:
    """20 -> 128 -> 128 -> 2, ReLU, tanh at the end.

    Attributes:
        layers: (weight (out, in), bias (out,)) of the three linear layers.
    """

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        signal = observation
        for weight, bias in self.layers[:-1]:
            signal = np.maximum(0.0, signal @ weight.T + bias)
        weight, bias = self.layers[-1]
        return np.tanh(signal @ weight.T + bias)


@functools.lru_cache(maxsize=8)
def load_actor(path: Path) -> NumpyActor:
    """The actor stored by `methods.cr_ma.train`, or a clear error when the file holds something else."""
    tensors, _ = read_weights(path, KIND, VERSION)
    widths = (OBSERVATION, HIDDEN, HIDDEN, ACTION)
    layers = []
    for k, (fan_in, fan_out) in enumerate(itertools.pairwise(widths)):
        weight, bias = tensors.get(f"layers.{k}.weight"), tensors.get(f"layers.{k}.bias")
        if weight is None or bias is None or weight.shape != (fan_out, fan_in) or bias.shape != (fan_out,):
            raise InputError(f"the weights {path} hold no actor {widths}: train them again (phygail train {KIND})")
        layers.append((weight.astype(float), bias.astype(float)))
    return NumpyActor(tuple(layers))


# --- observation -----------------------------------------------------------------------------------------------------


def observe_subnet(view: SubnetView) -> np.ndarray:
    """(m, 20) observations of one subnet: the definition, pair by pair.

    Columns: (c - p)/(W/2) | v/v_max | (g_S - p)/R clipped | |S|/N | (mean last-known place of the lost - p)/(W/2) |
    (nearest last-known place of a lost UAV - p)/R clipped | offsets to the 4 nearest members / R, zero padded |
    min(1, distance of the nearest member / R), 1 if alone.
    """
    p, count, unit = view.positions, len(view.members), view.mission.physics.unit
    lost = view.roster[view.lost]
    to_lost = lost[None] - p[:, None]
    to_member = np.stack([np.delete(p, r, axis=0) - p[r] for r in range(count)])  # (m, m-1, 2)
    near = _nearest_first(to_member, np.ones(to_member.shape[:2], dtype=bool), unit)[:, :NEAREST_MEMBERS]
    near = np.pad(near, ((0, 0), (0, NEAREST_MEMBERS - near.shape[1]), (0, 0)))
    if len(lost):
        mean_lost = lost.mean(axis=0) - p
        nearest_lost = _nearest_first(to_lost, np.ones(to_lost.shape[:2], dtype=bool), unit)[:, 0]
    else:
        mean_lost = nearest_lost = np.zeros_like(p)
    return _assemble(view, p.mean(axis=0) - p, np.full(count, count), mean_lost, nearest_lost, near)


def observe_all(views: SubnetViews, roster_tree: cKDTree | None = None) -> np.ndarray:
    """(n, 20) observations of all subnets at once; equals `observe_subnet` row by row.

    Args:
        views: All subnets.
        roster_tree: Tree of the roster; built here if None.
    """
    p, roster, size = views.positions, views.roster, views.sizes[views.subnet]
    tree = cKDTree(roster) if roster_tree is None else roster_tree
    others = len(roster) - views.sizes[:, None]
    lost_sum = roster.sum(axis=0) - views.means(roster[views.members]) * views.sizes[:, None]
    mean_lost = np.where(others > 0, lost_sum / np.maximum(1, others), 0.0)[views.subnet] - p
    return _assemble(
        views,
        views.means(p)[views.subnet] - p,
        size,
        np.where((size < len(roster))[:, None], mean_lost, 0.0),
        _nearest_lost(views, tree),
        _nearest_members(views),
    )


def _assemble(
    view: SubnetView | SubnetViews,
    to_centroid: np.ndarray,
    size: np.ndarray,
    to_mean_lost: np.ndarray,
    to_nearest_lost: np.ndarray,
    to_members: np.ndarray,
) -> np.ndarray:
    """(n, 20) from offsets in m: (n, 2), (n,) members of the subnet, (n, 2), (n, 2), (n, 4, 2) zero padded."""
    mission = view.mission
    range_m, half = mission.physics.range_m, mission.width_m / 2
    nearest = np.hypot(to_members[:, 0, 0], to_members[:, 0, 1]) / range_m
    return np.column_stack(
        [
            (mission.center - view.positions) / half,
            view.velocities / mission.physics.speed_mps,
            np.clip(to_centroid / range_m, -CLIP, CLIP),
            size / len(view.roster),
            to_mean_lost / half,
            np.clip(to_nearest_lost / range_m, -CLIP, CLIP),
            to_members.reshape(len(size), -1) / range_m,
            np.where(size > 1, np.minimum(1.0, nearest), 1.0),
        ]
    )


def _nearest_first(offsets: np.ndarray, valid: np.ndarray, unit: float) -> np.ndarray:
    """Offsets ((n, k, 2) m) sorted by distance, invalid ones zeroed and last.

    Ties go by the offset itself, not by index, so that renumbering the UAVs changes nothing.
    """
    x, y = offsets[..., 0] / unit, offsets[..., 1] / unit
    distance = np.where(valid, np.hypot(x, y).round(_TIE_DECIMALS), np.inf)
    order = np.lexsort((y.round(_TIE_DECIMALS), x.round(_TIE_DECIMALS), distance), axis=-1)
    sorted_offsets = np.take_along_axis(offsets, order[..., None], axis=1)
    return np.where(np.take_along_axis(valid, order, axis=1)[..., None], sorted_offsets, 0.0)


def _nearest_members(views: SubnetViews) -> np.ndarray:
    """(n, 4, 2) m, offsets to the nearest members of the own subnet, zero padded."""
    p, n, unit = views.positions, len(views.positions), views.mission.physics.unit
    # A third coordinate puts every subnet on a level of its own, farther apart than any two members.
    floor = views.subnet[:, None] * (4.0 * (np.ptp(p, axis=0).max() + unit))
    points = np.hstack([p, floor])
    k = min(n, _CANDIDATES)
    _, found = cKDTree(points).query(points, k=np.arange(1, k + 1))
    valid = (views.subnet[found] == views.subnet[:, None]) & (found != np.arange(n)[:, None])
    near = _nearest_first(p[found] - p[:, None], valid, unit)[:, :NEAREST_MEMBERS]
    return np.pad(near, ((0, 0), (0, NEAREST_MEMBERS - near.shape[1]), (0, 0)))


def _nearest_lost(views: SubnetViews, tree: cKDTree) -> np.ndarray:
    """(n, 2) m, offset to the nearest last-known place of a lost UAV; zero where nobody is lost."""
    label, unit = np.full(len(views.roster), -1), views.mission.physics.unit
    label[views.members] = views.subnet
    offset = np.zeros_like(views.positions)
    open_rows = np.flatnonzero(views.sizes[views.subnet] < len(views.roster))
    k = _CANDIDATES
    while len(open_rows):
        k = min(k, len(views.roster))
        p = views.positions[open_rows]
        _, found = tree.query(p, k=np.arange(1, k + 1))
        lost = label[found] != views.subnet[open_rows][:, None]
        offset[open_rows] = _nearest_first(views.roster[found] - p[:, None], lost, unit)[:, 0]
        open_rows = open_rows[~lost.any(axis=1)]
        k *= 4  # deep inside a large subnet all UAVs nearby are members: look farther
    return offset


# --- method ----------------------------------------------------------------------------------------------------------


@register
class CrMa(SubnetMethod):
    """v_i = v_max a_i + rep_i + link_i; a_i in [-1, 1]^2 is held for 4 m of flight, the fields act every step."""

    name = KIND
    summary = "learned headings (MADDPG) with potential fields for contacts and links (Li et al. 2025)"
    learned = True
    training = "phygail.methods.cr_ma.train:job"
    # Sums of places and of roster spots, their number, and a bit for every member.
    talk = replace(HELLO, summed_bytes=2 * PLACE_BYTES + ID_BYTES, roster_bits=1)

    def __init__(
        self,
        rng: np.random.Generator | None = None,
        *,
        weights: str | Path | None = None,
        actor: Actor | None = None,
    ) -> None:
        """Fly with the bundled weights, a weight file of your own, or any actor function."""
        super().__init__(rng)
        self.actor: Actor = actor or load_actor(Path(weights) if weights else bundled(KIND))
        self._held: np.ndarray | None = None  # (N, 2) actions by roster index, NaN before the first decision
        self._tree: cKDTree | None = None

    def act(self, view: SubnetView) -> np.ndarray:
        due = self._due(view)
        if due.any():
            self._decide(view, due, observe_subnet(view))
        return self._command(view)

    def act_all(self, views: SubnetViews) -> np.ndarray:
        if self._tree is None:
            self._tree = cKDTree(views.roster)
        due = self._due(views)
        if due.any():
            self._decide(views, due, observe_all(views, self._tree))
        return self._command(views)

    def _due(self, view: SubnetView | SubnetViews) -> np.ndarray:
        """(n,) bool, UAVs that decide now: all once the last decision has been held, and those without one."""
        if self._held is None:
            self._held = np.full((len(view.roster), 2), np.nan)
        return np.isnan(self._held[view.members, 0]) | (view.step % view.mission.physics.steps_to_fly(HOLD_M) == 0)

    def _decide(self, view: SubnetView | SubnetViews, due: np.ndarray, observation: np.ndarray) -> None:
        assert self._held is not None
        self._held[view.members[due]] = np.clip(self.actor(observation[due]), -1.0, 1.0)

    def _command(self, view: SubnetView | SubnetViews) -> np.ndarray:
        assert self._held is not None
        physics = view.mission.physics
        fields = repulsion(view.positions, view.pairs, view.lengths, view.members, physics)
        fields = fields + link_keeping(view.positions, view.pairs, view.lengths, physics)
        return physics.speed_mps * self._held[view.members] + fields
