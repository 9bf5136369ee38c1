"""Maps other than the swarm's own, so that 20 UAVs meet what 500 meet (domain randomization, off in the paper)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phygail.experts.frames import FrameBatch
from phygail.swarm.scenario import Scenario, farthest_m, way_steps
from phygail.training.profiles import TrainConfig


def on_other_map(scenario: Scenario, config: TrainConfig, rng: np.random.Generator) -> Scenario:
    """The scenario with the width and center of another map.

    The budget stays that of the swarm's own map, unless the way to the moved center is longer.
    """
    width_m = np.array(scenario.width_m)
    width = float(wider(width_m, config.map_scale, rng))
    center = elsewhere(scenario.center, width_m, config.map_shift, rng)
    way = way_steps(farthest_m(scenario.spots, center), scenario.physics)
    return replace(scenario, width_m=width, center=center, budget_steps=max(scenario.budget_steps, way))


def on_other_maps(frames: FrameBatch, config: TrainConfig, rng: np.random.Generator) -> FrameBatch:
    """Expert frames with the widths and centers of other maps: or the discriminator would know experts by the map."""
    width_m = wider(frames.width_m, config.map_scale, rng)
    return replace(frames, width_m=width_m, center=elsewhere(frames.center, frames.width_m, config.map_shift, rng))


def wider(width_m: np.ndarray, most: float, rng: np.random.Generator) -> np.ndarray:
    """Widths times a log-uniform factor from 1 to `most`: a swarm of 20 as it looks on the map of a larger one.

    W normalizes the observation, so what a policy meets at N = 500 (neighbors seemingly close, itself seemingly near
    the center) never occurs on the map of 20 UAVs. With most = 1 nothing is drawn.
    """
    return width_m if most <= 1.0 else width_m * most ** rng.random(np.shape(width_m))


def elsewhere(center: np.ndarray, width_m: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Centers ((..., 2) m) moved at random, per axis by up to `share` of half the swarm's own width ((...,) m).

    On the map of 20 UAVs a swarm is one again before anybody is at the center for long; in a large swarm the first
    arrive hundreds of steps before the last. With a center off the middle some arrive early. With share = 0 nothing is
    drawn.
    """
    if share <= 0.0:
        return center
    return center + rng.uniform(-share, share, np.shape(center)) * np.asarray(width_m)[..., None] / 2.0
