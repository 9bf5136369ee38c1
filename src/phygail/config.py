"""Constants of the world and the one error that users see.

Every number has its unit and meaning beside it. Values are those of the paper (METHODS 2.1) unless a comment
says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

LINK_TOLERANCE_M = 1e-6  # a link is d <= range + this: a rigidly moved 120 m link must not break by rounding
CONTACT_M = 10.0  # two alive UAVs closer than this are in contact
CONTACT_TOLERANCE_M = 1e-6  # a contact is d < CONTACT_M - this
SEPARATION_M = 10.0  # smallest distance between two UAVs of a fresh layout: no contacts at t = 0
BUDGET_STEPS_PER_M = 0.8  # T_max = floor(0.8 W) steps
SPEED_TOLERANCE_MPS = 1e-9  # a speed within this of the limit is the limit


class InputError(ValueError):
    """Bad input from a user: one line that names the value, the bound and the remedy. The command line exits 2."""


class EndedFromOutside(SystemExit):
    """The process was asked to end (SIGTERM). No method can raise it: a SystemExit of a method is its fault."""


@dataclass(frozen=True)
class Physics:
    """Radio and vehicle, the same for every UAV of a swarm."""

    range_m: float = 120.0  # D_comm: two alive UAVs at most this far apart have a link
    speed_mps: float = 10.0  # v_max: limit of the Euclidean norm of the velocity
    step_s: float = 0.1  # duration of one control step
    contact_m: float = CONTACT_M  # d_col: two alive UAVs closer than this are in contact

    @property
    def stride_m(self) -> float:
        """The farthest a UAV can fly in one step."""
        return self.speed_mps * self.step_s
