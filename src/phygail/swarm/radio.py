"""Who hears whom where links are not a plain disc: heights, radio shadows, outages, fading (docs/worlds.md).

Every draw belongs to a pair of roster indices and a step. The two-state chain of outages is driven by one number u per
pair and step: u < p sets the link out, u > 1 - q sets it up, anything else leaves it. That has the right transition
probabilities, and the state follows from the last number that set it: it does not matter since when a pair is watched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, ncx2

from phygail.config import CONTACT_TOLERANCE_M, LINK_TOLERANCE_M, Physics
from phygail.swarm.links import Links, label_subnets, near_pairs
from phygail.swarm.obstacles import shapes_of
from phygail.swarm.world import LinkModel, World, draw, draw_normal

FARTHEST = 3.0  # radio ranges: fading links beyond are not drawn
LONG_AGO = 1 << 20  # added to steps: draws look back before t = 0
UNSET = 20.0  # mean sojourns to look back for the number that set a link; without one, in e^-20 of the cases, it is up
KNOTS = 1.5  # correlation times between independent values of the shadowing, interpolated in between


@dataclass(frozen=True, eq=False)
class Memory:
    """What the radio remembers of the pairs it watches.

    Attributes:
        codes: (m,) int, i N + j by roster index, sorted. out: (m,) bool, in an outage.
        bits: (m,) uint64, the last hellos, the newest lowest. up: (m,) bool, whether the link is up.
    """

    codes: np.ndarray
    out: np.ndarray
    bits: np.ndarray
    up: np.ndarray


def listen(
    world: World,
    physics: Physics,
    positions: np.ndarray,
    members: np.ndarray,
    heights: np.ndarray | None,
    step: int,
    memory: object,
) -> tuple[Links, Memory]:
    """The network of UAVs at `positions` ((n, 2) m) and `heights` ((n,) m), and what is remembered of it.

    Args:
        world: Link model, obstacles, key of the draws. physics: Radio.
        members: (n,) int, roster indices, ascending. step: t. memory: Of the step before; None at t = 0.
    """
    before = memory if isinstance(memory, Memory) else None
    model, fading = world.links, world.links.model == "rician"
    pairs, flat = near_pairs(positions, max(physics.range_m * (FARTHEST if fading else 1.0), physics.contact_m) + 1e-3)
    rise = np.zeros(len(pairs)) if heights is None else heights[pairs[:, 0]] - heights[pairs[:, 1]]
    lengths = np.hypot(flat, rise)
    contacts = pairs[lengths < physics.contact_m - CONTACT_TOLERANCE_M]
    i, j = members[pairs[:, 0]], members[pairs[:, 1]]
    codes = i * (1 << 31) + j
    bits, up = np.zeros(len(pairs), dtype=np.uint64), lengths <= physics.range_m + LINK_TOLERANCE_M
    if fading:
        bits, up = _faded(world, physics, (i, j), lengths, step, codes, before)
    out = _outages(model, world.seed, physics.step_s, (i, j), step, codes, before)
    linked = up & ~out
    if any(not obstacle.radio for obstacle in world.obstacles):
        shapes = shapes_of(world.obstacles)
        rows = np.flatnonzero(linked)
        seen = shapes.clear(positions[pairs[rows, 0]], positions[pairs[rows, 1]], 0.0, dark_only=True)
        linked[rows[~seen]] = False
    subnet, count = label_subnets(len(positions), pairs[linked])
    return Links(pairs[linked], lengths[linked], subnet, count, contacts), Memory(codes, out, bits, up)


# --- outages ---------------------------------------------------------------------------------------------------------


def outage_rates(model: LinkModel, step_s: float) -> tuple[float, float]:
    """(p, q): chance per step that a link goes out, that it comes back; independent steps where p + q would pass 1."""
    share = model.outage_share
    q = step_s / model.outage_s
    p = q * share / (1.0 - share)
    return (p, q) if p + q <= 1.0 else (share, 1.0 - share)


def _outages(
    model: LinkModel, seed: int, step_s: float, ends: tuple[np.ndarray, np.ndarray], step: int, codes: np.ndarray,
    before: Memory | None,
) -> np.ndarray:  # fmt: skip
    """(m,) bool, the pairs that are in an outage."""
    if model.outage_share == 0:
        return np.zeros(len(codes), dtype=bool)
    p, q = outage_rates(model, step_s)
    number = draw(seed, "outage", step + LONG_AGO, *ends)
    out, open_pairs = number < p, (number >= p) & (number <= 1.0 - q)
    known, at = _find(codes, before)
    if before is not None:
        kept = open_pairs & known
        out[kept] = before.out[at[kept]]
        open_pairs &= ~known
    rows = np.flatnonzero(open_pairs)
    for back in range(1, math.ceil(UNSET / (p + q)) + 1):
        if not len(rows):
            break
        number = draw(seed, "outage", step + LONG_AGO - back, ends[0][rows], ends[1][rows])
        out[rows[number < p]] = True
        rows = rows[(number >= p) & (number <= 1.0 - q)]
    return out


def _find(codes: np.ndarray, before: Memory | None) -> tuple[np.ndarray, np.ndarray]:
    """((m,) bool whether a pair was watched before, (m,) int where)."""
    if before is None or not len(before.codes):
        return np.zeros(len(codes), dtype=bool), np.zeros(len(codes), dtype=np.intp)
    at = np.minimum(np.searchsorted(before.codes, codes), len(before.codes) - 1)
    return before.codes[at] == codes, at


# --- fading ----------------------------------------------------------------------------------------------------------


def threshold(model: LinkModel) -> float:
    """theta: the power gain below which a hello at the radio range is lost, P(|h|^2 < theta) = outage.

    2 (K + 1) |h|^2 is noncentral chi-square with two degrees of freedom and noncentrality 2 K.
    """
    k = 10.0 ** (model.k_db / 10.0)
    return float(ncx2.ppf(model.outage, 2, 2 * k)) / (2 * (k + 1))


def heard_probability(model: LinkModel, ranges: float | np.ndarray) -> np.ndarray:
    """P(a hello over so many radio ranges is heard) = Q1(sqrt(2 K), sqrt(2 (K + 1) theta) d / R), without shadowing."""
    k = 10.0 ** (model.k_db / 10.0)
    return ncx2.sf(2 * (k + 1) * threshold(model) * np.square(ranges), 2, 2 * k)


def power_gains(model: LinkModel, seed: int, step: int, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """(m,) |h|^2 of this step, mean 1. The Doppler at 10 m/s and 2.4 GHz is 80 Hz: steps of 0.1 s are independent."""
    k = 10.0 ** (model.k_db / 10.0)
    spread = math.sqrt(1.0 / (2 * (k + 1)))
    real = math.sqrt(k / (k + 1)) + spread * draw_normal(seed, "fading x", step + LONG_AGO, i, j)
    return real**2 + (spread * draw_normal(seed, "fading y", step + LONG_AGO, i, j)) ** 2


def shadowing_db(model: LinkModel, seed: int, step: int, step_s: float, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """(m,) dB, slow shadowing of each pair: independent normal values every 1.5 correlation times, interpolated."""
    if model.shadow_db == 0:
        return np.zeros(len(i))
    clock = (step + LONG_AGO) * step_s / (KNOTS * model.shadow_s) + draw(seed, "shadow phase", 0, i, j)
    knot = np.floor(clock)
    share = clock - knot
    first, second = (draw_normal(seed, "shadow", knot + k, i, j) for k in (0, 1))
    return model.shadow_db * ((1 - share) * first + share * second) / np.sqrt((1 - share) ** 2 + share**2)


def _heard(
    world: World, physics: Physics, ends: tuple[np.ndarray, np.ndarray], lengths: np.ndarray, step: int
) -> np.ndarray:
    """(m,) bool, whether hello and answer of this step came through: Friis, fading, shadowing, the deafer end."""
    model, seed = world.links, world.seed
    gain_db = shadowing_db(model, seed, step, physics.step_s, *ends)
    if model.asymmetry_db:
        deaf = [model.asymmetry_db * draw_normal(seed, "deaf", 0, end) for end in ends]
        gain_db = gain_db - np.maximum(*deaf)
    gain = power_gains(model, seed, step, *ends) * 10.0 ** (gain_db / 10.0)
    return gain >= threshold(model) * (lengths / physics.range_m) ** 2


def _faded(
    world: World, physics: Physics, ends: tuple[np.ndarray, np.ndarray], lengths: np.ndarray, step: int,
    codes: np.ndarray, before: Memory | None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """((m,) uint64 last hellos, (m,) bool which links are up); at t = 0 as if everybody had hovered before."""
    least, window = world.links.heard
    mask = np.uint64((1 << window) - 1)
    bits, up = np.zeros(len(codes), dtype=np.uint64), np.zeros(len(codes), dtype=bool)
    if before is None:
        for back in range(window - 1, 0, -1):
            bits = (bits << np.uint64(1)) | _heard(world, physics, ends, lengths, step - back).astype(np.uint64)
    else:
        known, at = _find(codes, before)
        bits[known], up[known] = before.bits[at[known]], before.up[at[known]]
    bits = ((bits << np.uint64(1)) | _heard(world, physics, ends, lengths, step).astype(np.uint64)) & mask
    count = np.bitwise_count(bits)
    return bits, np.where(up, count >= max(world.links.drop, 1), count >= least)


def calibration(model: LinkModel, physics: Physics) -> str:
    """One line that says what a fading model means: without it no table with fading can be read."""
    if model.model != "rician":
        return ""
    ranges = np.linspace(0.01, 6.0, 4000)
    heard = heard_probability(model, ranges)
    least, window = model.heard

    def reach(share: np.ndarray, level: float) -> float:
        return float(ranges[np.flatnonzero(share >= level).max(initial=0)]) * physics.range_m

    linked = binom.sf(least - 1, window, heard)
    degree = float(np.sum(2 * ranges * heard) * (ranges[1] - ranges[0]))
    shown = ", ".join(f"{level:g} at {reach(heard, level):.0f} m" for level in (0.99, 0.9, 0.5, 0.1))
    return (
        f"Rician K {model.k_db:g} dB, a hello at {physics.range_m:g} m is lost with probability {model.outage:g}: "
        f"heard with probability {shown}; a link ({least} of {window}) comes up with probability 0.5 at "
        f"{reach(linked, 0.5):.0f} m; mean degree {degree:.2f} of the disc's; shadowing {model.shadow_db:g} dB"
    )
