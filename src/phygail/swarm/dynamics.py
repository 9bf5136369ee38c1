"""The one simulator step. Training, methods, evaluation and every front end call it."""

from __future__ import annotations

import numpy as np

from phygail.config import InputError
from phygail.swarm.safety import filter_velocities
from phygail.swarm.state import SwarmState

# Scaling to exactly v_max can land one rounding above it; this keeps the norm at or below the limit.
_JUST_BELOW = 1.0 - 2.0**-50


def project_speed(velocities: np.ndarray, speed_mps: float | np.ndarray) -> np.ndarray:
    """Replace non-finite velocities by zero and scale those above the limit onto the speed disc (METHODS 2.3).

    Args:
        velocities: (..., 2) m/s, commands.
        speed_mps: v_max, one or broadcastable to (..., 1).
    """
    # In single precision a norm of 10 may be 10.0000004: judged, scaled and stored in double.
    velocities = np.asarray(velocities, dtype=np.float64)
    finite = np.isfinite(velocities).all(axis=-1, keepdims=True)
    # Components are first brought to at most 1e100, where squares do not overflow; the direction survives.
    wanted = np.where(finite, velocities, 0.0)
    size = np.abs(wanted).max(axis=-1, keepdims=True)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        wanted = np.where(size > 1e100, wanted / size * speed_mps * 2, wanted)
    norm = np.hypot(wanted[..., 0], wanted[..., 1])[..., None]
    over = norm > speed_mps
    return np.where(over, wanted * (speed_mps * _JUST_BELOW / np.where(over, norm, 1.0)), wanted)


def step(state: SwarmState, velocities: np.ndarray, *, safety: bool = False) -> SwarmState:
    """The state one step later (METHODS 2.3, steps 2-4).

    Args:
        state: Now.
        velocities: (n, 2) m/s, one command per alive UAV. Whatever a method asks for is projected onto the speed disc.
        safety: Pass the commands through the buffered Voronoi filter, which makes new contacts impossible.
    """
    if np.shape(velocities) != state.positions.shape:
        raise InputError(f"velocities have shape {np.shape(velocities)}, the swarm needs {state.positions.shape}")
    physics = state.scenario.physics
    executed = project_speed(velocities, physics.speed_mps)
    if safety:
        executed = filter_velocities(state.positions, executed, physics)
    return SwarmState(state.scenario, state.positions + executed * physics.step_s, executed, state.step + 1)
