"""Demonstrations as flat arrays: what the journal and the HDF5 file hold and the data set reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Any, get_type_hints

import numpy as np

from phygail.config import Physics
from phygail.experts.demonstrate import Demonstration
from phygail.experts.recipe import held_out
from phygail.swarm.scenario import Scenario

NOBODY = -1  # winner of a scenario that no method solved; such scenarios are journaled but not kept

# Arrays with the dtype they have on disk, on every machine.
Reals = Annotated[np.ndarray, "<f8"]
Wholes = Annotated[np.ndarray, "<i8"]
Flags = Annotated[np.ndarray, "|b1"]
Texts = Annotated[np.ndarray, "|S64"]


@dataclass(frozen=True, eq=False)
class Archive:
    """S demonstrations by M methods. Arrays with a row per scenario first, then flat ones, scenario after scenario.

    Only the alive have rows in the trajectories; the damaged stay where the layout has them.

    Attributes:
        id: (S,) bytes. ratio: (S,) damage ratio asked for. case: (S,) int. held_out: (S,) bool, for validation.
        seed: (S,) int. uavs: (S,) int, N. lost: (S,) int, damaged UAVs.
        width_m: (S,) m. center: (S, 2) m. range_m, speed_mps, step_s: (S,). budget_steps: (S,) int.
        winner: (S,) int, column of the expert. expert_steps: (S,) int, T_E.
        success: (S, M) bool. moves: (S, M) int. contacts: (S, M) events per UAV. raised: (S, M) bool, an error.
        layout: (sum N, 2) m. damaged: (sum lost,) int, indices within the layout of their scenario.
        positions: (sum (T_E + 1) n, 2) m, t = 0..T_E, all alive of t = 0 first.
        velocities: (sum T_E n, 2) m/s, executed at t = 0..T_E-1.
    """

    id: Texts
    ratio: Reals
    case: Wholes
    held_out: Flags
    seed: Wholes
    uavs: Wholes
    lost: Wholes
    width_m: Reals
    center: Reals
    range_m: Reals
    speed_mps: Reals
    step_s: Reals
    budget_steps: Wholes
    winner: Wholes
    expert_steps: Wholes
    success: Flags
    moves: Wholes
    contacts: Reals
    raised: Flags
    layout: Reals
    damaged: Wholes
    positions: Reals
    velocities: Reals

    def __post_init__(self) -> None:
        for name in names():
            getattr(self, name).setflags(write=False)

    def __len__(self) -> int:
        return len(self.id)

    @property
    def alive(self) -> np.ndarray:
        """(S,) int, number of alive n."""
        return self.uavs - self.lost

    @cached_property
    def starts(self) -> dict[str, np.ndarray]:
        """(S + 1,) int per flat array: scenario s owns the rows starts[s]:starts[s + 1]."""
        rows = {
            "layout": self.uavs,
            "damaged": self.lost,
            "positions": (self.expert_steps + 1) * self.alive,
            "velocities": self.expert_steps * self.alive,
        }
        return {name: np.concatenate([[0], np.cumsum(count)]) for name, count in rows.items()}

    @cached_property
    def spots(self) -> np.ndarray:
        """(sum lost, 2) m, where the damaged are, in the rows of `damaged`."""
        return self.layout[self.damaged + np.repeat(self.starts["layout"][:-1], self.lost)]

    def rows(self, name: str, s: int) -> np.ndarray:
        """The rows of scenario s in the flat array `name`."""
        first, last = self.starts[name][s : s + 2]
        return getattr(self, name)[first:last]

    def scenario(self, s: int) -> Scenario:
        """Scenario s as it was flown."""
        physics = Physics(float(self.range_m[s]), float(self.speed_mps[s]), float(self.step_s[s]))
        return Scenario(
            self.id[s].decode(), self.rows("layout", s).copy(), self.rows("damaged", s).astype(np.intp),
            float(self.width_m[s]), self.center[s].copy(), physics, int(self.budget_steps[s]), int(self.seed[s]),
        )  # fmt: skip

    def trajectory(self, s: int) -> tuple[np.ndarray, np.ndarray]:
        """(T_E + 1, n, 2) m and (T_E, n, 2) m/s of the expert on scenario s."""
        n = int(self.alive[s])
        return self.rows("positions", s).reshape(-1, n, 2), self.rows("velocities", s).reshape(-1, n, 2)


@cache
def names() -> Mapping[str, str]:
    """Every array of an archive and its dtype."""
    hints = get_type_hints(Archive, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


def make_archive(arrays: dict[str, Any]) -> Archive:
    """An archive of anything that converts to its arrays."""
    return Archive(**{name: np.array(arrays[name], dtype=dtype) for name, dtype in names().items()})


def pack(demo: Demonstration) -> Archive:
    """One demonstration as an archive of length one."""
    case, outcomes = demo.scenario, demo.outcomes
    return make_archive(
        {
            "id": [case.id.encode()],
            "ratio": [demo.ratio],
            "case": [demo.case],
            "held_out": [held_out(demo.case)],
            "seed": [case.seed or 0],
            "uavs": [case.uavs],
            "lost": [len(case.damaged)],
            "width_m": [case.width_m],
            "center": [case.center],
            "range_m": [case.physics.range_m],
            "speed_mps": [case.physics.speed_mps],
            "step_s": [case.physics.step_s],
            "budget_steps": [case.budget_steps],
            "winner": [NOBODY if demo.winner is None else demo.winner],
            "expert_steps": [len(demo.velocities)],
            "success": [[o.success for o in outcomes]],
            "moves": [[o.moves for o in outcomes]],
            "contacts": [[o.contacts for o in outcomes]],
            "raised": [[bool(o.error) for o in outcomes]],
            "layout": case.layout,
            "damaged": case.damaged,
            "positions": demo.positions.reshape(-1, 2),
            "velocities": demo.velocities.reshape(-1, 2),
        }
    )


def concatenate(parts: Sequence[Archive]) -> Archive:
    """One archive of several, in their order."""
    return Archive(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names()})
