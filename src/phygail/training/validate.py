"""One validation loop for all trainings: fly fresh methods on fixed scenarios that no training task comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from phygail.methods.base import Method, run_episode
from phygail.methods.plan import PlanMethod, largest_move_m
from phygail.rng import generator
from phygail.swarm.scenario import Scenario, draw_scenario

TRAINING_SEED = 100_000  # seeds 0..1000 are reserved for reporting; trainings draw from this one on


@dataclass(frozen=True)
class Validation:
    """How a method does on the validation scenarios.

    Attributes:
        success: Share of scenarios it reconnects by itself: an episode saved by a fallback (`flag`) is none.
        mean_steps: A failure counts as the whole budget.
        mean_largest_move_m: Mean over scenarios of the largest displacement, of the plan if it plans, else as flown.
    """

    success: float
    mean_steps: float
    mean_largest_move_m: float

    def better_than(self, other: Validation | None, by: str = "mean_steps") -> bool:
        """Success first, then `by` ("mean_steps" or "mean_largest_move_m"), smaller is better."""
        if other is None:
            return True
        return (-self.success, getattr(self, by)) < (-other.success, getattr(other, by))

    def entry(self, iteration: int) -> dict[str, float]:
        """One point of a validation curve, for logs and configs."""
        return {"iteration": iteration, **{key: round(value, 4) for key, value in asdict(self).items()}}


def validation_scenarios(
    seed: int, sizes: Sequence[int], ratios: Sequence[float], cases: int, purpose: str = "validate"
) -> list[Scenario]:
    """`cases` scenarios per size and damage ratio, from streams that training tasks never use."""
    return [
        draw_scenario(n, ratio, generator(seed, purpose, n, round(ratio * 1e4), case), name=f"{n}-{ratio}-{case}")
        for n in sizes
        for ratio in ratios
        for case in range(cases)
    ]


def validate(make: Callable[[], Method], scenarios: Sequence[Scenario]) -> Validation:
    """Fly a fresh method, made by `make`, on every scenario."""
    success, steps, moves = [], [], []
    for scenario in scenarios:
        method = make()
        episode = run_episode(scenario, method, record=True)
        success.append(episode.terminated and not method.flag)
        steps.append(episode.scored_steps)
        planned = method.targets if isinstance(method, PlanMethod) else None
        moves.append(largest_move_m(scenario.spots, episode.states[-1].positions if planned is None else planned))
    return Validation(float(np.mean(success)), float(np.mean(steps)), float(np.mean(moves)))
