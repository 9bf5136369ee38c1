"""Fly every method of a pool on a scenario; the fastest success is the expert (METHODS 4.5, paper III-D)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phygail.experts.recipe import Recipe
from phygail.methods.base import run_episode
from phygail.swarm.episode import Episode
from phygail.swarm.scenario import Scenario


@dataclass(frozen=True)
class Outcome:
    """How one method did.

    Attributes:
        success: The network became one.
        moves: Executed moves; the whole budget for a failure.
        contacts: Contact events per UAV.
        error: What the method raised, in one line; empty if it flew to the end.
    """

    success: bool
    moves: int
    contacts: float
    error: str = ""


@dataclass(frozen=True, eq=False)
class Demonstration:
    """A scenario, how every method did on it, and the flight of the winner. The damaged never move: they have no rows.

    Attributes:
        scenario: The case. ratio: Damage ratio asked for. case: Number within the ratio.
        outcomes: In the order of the pool.
        winner: Place of the expert in the pool; None if nobody reconnected the swarm.
        positions: (T_E + 1, n, 2) m, of the alive at t = 0..T_E; empty without a winner.
        velocities: (T_E, n, 2) m/s, executed at t = 0..T_E-1.
    """

    scenario: Scenario
    ratio: float
    case: int
    outcomes: tuple[Outcome, ...]
    winner: int | None
    positions: np.ndarray
    velocities: np.ndarray


def demonstrate(recipe: Recipe, number: int) -> Demonstration:
    """Draw scenario `number` and fly all methods of the recipe on it."""
    ratio, case = recipe.cell(number)
    scenario = recipe.scenario(number)
    flights = [fly_recorded(scenario, name) for name in recipe.methods]
    outcomes = tuple(outcome for outcome, _ in flights)
    winner = choose_expert(outcomes)
    best = None if winner is None else flights[winner][1]
    positions, velocities = trajectory(best) if best else (np.empty((0, len(scenario.alive), 2)),) * 2
    return Demonstration(scenario, ratio, case, outcomes, winner, positions, velocities)


def fly_recorded(scenario: Scenario, name: str) -> tuple[Outcome, Episode | None]:
    """Fly one method. What it raises is a failure."""
    try:
        episode = run_episode(scenario, name, record=True)
    except Exception as error:  # one method's failure must not cost the work of the others
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Outcome(False, scenario.budget_steps, 0.0, text), None
    contacts = episode.metrics.contact_events_per_uav
    return Outcome(episode.terminated, episode.scored_steps, contacts), episode


def choose_expert(outcomes: Sequence[Outcome]) -> int | None:
    """The success with the fewest moves; ties go to fewer contacts, then to the first in the pool."""
    solved = [place for place, outcome in enumerate(outcomes) if outcome.success]
    return min(solved, key=lambda place: (outcomes[place].moves, outcomes[place].contacts, place), default=None)


def trajectory(episode: Episode) -> tuple[np.ndarray, np.ndarray]:
    """(T + 1, n, 2) m and (T, n, 2) m/s: a state carries the velocity of the step before, so entry t of the second
    array is what was executed at t.
    """
    positions = np.stack([state.positions for state in episode.states])
    return positions, np.stack([state.velocities for state in episode.states])[1:]
