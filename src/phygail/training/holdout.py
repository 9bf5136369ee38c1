"""Deterministic validation on held-out scenarios, all worlds at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch

from phygail.models.actor import Actor
from phygail.models.inputs import to_tensors
from phygail.perception.graph import Graph, GraphSpec
from phygail.swarm.batch import BatchState, initial_batch, step_batch
from phygail.swarm.batch_cases import stack_cases
from phygail.swarm.bounds import bound_steps
from phygail.swarm.scenario import Scenario
from phygail.training.observe import fill_commands, observe

Decide = Callable[[Graph], np.ndarray]  # actions (receivers, 2) in [-1, 1]


@dataclass(frozen=True)
class Score:
    """How a policy does on the held-out scenarios.

    Attributes:
        success: Share of scenarios it reconnects.
        over_bound: Steps over lower bounds, both summed over all scenarios; a failure counts as the whole budget.
        mean_steps: The same steps, their mean.
    """

    success: float
    over_bound: float
    mean_steps: float

    def better_than(self, other: Score | None) -> bool:
        """Success first, then time over bound."""
        return other is None or (-self.success, self.over_bound) < (-other.success, other.over_bound)

    def entry(self) -> dict[str, float]:
        """For logs."""
        return asdict(self)


def spread(scenarios: Sequence[Scenario], count: int) -> list[Scenario]:
    """`count` of the scenarios, evenly spaced (they are ordered by damage); all of them for 0 or too many."""
    if not 0 < count < len(scenarios):
        return list(scenarios)
    return [scenarios[k] for k in np.linspace(0, len(scenarios) - 1, count).round().astype(int)]


def validate(actor: Actor, scenarios: Sequence[Scenario], spec: GraphSpec) -> Score:
    """Fly the mean of the policy on every scenario."""

    @torch.no_grad()
    def decide(graph: Graph) -> np.ndarray:
        return actor.mean_action(to_tensors(graph)).numpy()

    success, steps = fly_all(decide, scenarios, spec)
    bounds = sum(bound_steps(scenario.spots, scenario.physics) for scenario in scenarios)
    return Score(float(success.mean()), float(steps.sum()) / max(1, bounds), float(steps.mean()))


def fly_all(decide: Decide, scenarios: Sequence[Scenario], spec: GraphSpec) -> tuple[np.ndarray, np.ndarray]:
    """(S,) bool success and (S,) int moves of every scenario."""
    state, place = initial_batch(scenarios), np.arange(len(scenarios))
    success, steps = np.zeros(len(place), dtype=bool), np.zeros(len(place), dtype=int)
    while True:
        ended = state.terminated | state.truncated
        success[place[ended]], steps[place[ended]] = state.terminated[ended], state.steps[ended]
        if ended.all():
            return success, steps
        if ended.any():
            state, place = _keep(state, ~ended), place[~ended]
        state = step_batch(state, fill_commands(state, decide(observe(state, spec))))


def _keep(state: BatchState, wanted: np.ndarray) -> BatchState:
    """The batch without the other worlds."""
    scenarios = tuple(state.scenarios[b] for b in np.flatnonzero(wanted))
    cases = stack_cases(scenarios)
    rows = len(cases.mask)
    positions, velocities = state.positions[wanted, :rows].copy(), state.velocities[wanted, :rows].copy()
    return BatchState(scenarios, cases, positions, velocities, state.steps[wanted])
