"""Fly the exploring policy in many worlds and keep what it saw, did and got."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from phygail.experts.dataset import ExpertSet
from phygail.models.actor import Actor
from phygail.models.inputs import to_tensors
from phygail.perception.batch import join
from phygail.perception.graph import Graph
from phygail.rng import generator
from phygail.swarm.batch import BatchState, BatchStep, BatchWorld
from phygail.swarm.bounds import bound_steps
from phygail.swarm.scenario import Scenario
from phygail.training.buffer import Flight, Rollout
from phygail.training.maps import on_other_map
from phygail.training.observe import fill_commands, observe
from phygail.training.profiles import TrainConfig
from phygail.training.rewards import environment_reward, saved_steps
from phygail.training.shaping import shaping_reward


def noise_generator(seed: int, *keys: int | str) -> torch.Generator:
    """A torch generator that depends on (seed, keys) only: a resumed run needs no saved random state."""
    return torch.Generator().manual_seed(int(generator(seed, *keys).integers(2**63 - 1)))


def collect(actor: Actor, experts: ExpertSet, config: TrainConfig, epoch: int) -> Rollout:
    """Fly `horizon` steps in `worlds` worlds on random training scenarios; depends on actor, config and epoch only."""
    source = CaseSource(experts, generator(config.seed, "scenarios", epoch), config)
    world = open_worlds(source, experts, config)
    log = RolloutLog(source, config)
    for seen in exploring(actor, world, noise_generator(config.seed, "exploration", epoch), config):
        log.add(seen.graph, seen.u, seen.log_prob, seen.before, seen.step)
    return log.finish(observe(world.state, config.graph_spec), world.state)


def open_worlds(source: CaseSource, experts: ExpertSet, config: TrainConfig) -> BatchWorld:
    """`worlds` worlds on scenarios of `source`, with rows for the largest case of the set."""
    return BatchWorld(source, config.worlds, least_rows=int(experts.archive.alive[experts.members].max(initial=0)))


class Seen(NamedTuple):
    """One step of all worlds: before it, what was seen, u and its log density per receiver, and the step itself."""

    before: BatchState
    graph: Graph
    u: np.ndarray
    log_prob: np.ndarray
    step: BatchStep


def exploring(actor: Actor, world: BatchWorld, noise: torch.Generator, config: TrainConfig) -> Iterator[Seen]:
    """Fly `horizon` steps of all worlds with the exploring policy."""
    for _ in range(config.horizon):
        before = world.state
        graph = observe(before, config.graph_spec)
        u, log_prob = explore(actor, graph, noise)
        yield Seen(before, graph, u, log_prob, world.step(fill_commands(before, np.tanh(u))))


@torch.no_grad()
def explore(actor: Actor, graph: Graph, noise: torch.Generator) -> tuple[np.ndarray, np.ndarray]:
    """U ((n, 2)) sampled for every receiver and its log density ((n,))."""
    belief = actor(to_tensors(graph))
    u = belief.sample(noise)
    return u.numpy(), belief.log_prob(u).numpy()


class CaseSource:
    """Random training scenarios; remembers the expert's time of each."""

    def __init__(self, experts: ExpertSet, rng: np.random.Generator, config: TrainConfig) -> None:
        self._experts, self._rng, self._config = experts, rng, config
        self._steps: dict[str, int] = {}

    def __call__(self) -> Scenario:
        case = self._experts.draw_case(self._rng)
        self._steps[case.scenario.id] = case.expert_steps
        return on_other_map(case.scenario, self._config, self._rng)

    def expert_steps(self, state: BatchState) -> np.ndarray:
        """(B,) int, T_E of the scenarios being flown."""
        return np.array([self._steps[scenario.id] for scenario in state.scenarios])


class RolloutLog:
    """Grows step by step into a `Rollout`."""

    def __init__(self, source: CaseSource, config: TrainConfig) -> None:
        self._source, self._config = source, config
        self._graphs: list[Graph] = []
        self._columns: dict[str, list[np.ndarray]] = {}
        self._flights: list[Flight] = []

    def add(self, graph: Graph, u: np.ndarray, log_prob: np.ndarray, before: BatchState, step: BatchStep) -> None:
        """Store one step of all worlds."""
        config, flown, ended = self._config, step.flown, step.terminated | step.truncated
        reward = environment_reward(flown, self._source.expert_steps(flown), config)
        if config.gap_weight:
            reward += np.where(flown.mask, shaping_reward(before, flown, config)[:, None], 0.0)
        executed = flown.velocities / flown.cases.speed_mps[:, None, None]
        self._graphs.append(graph)
        self._keep(
            alive=before.mask, u=u, log_prob=log_prob, command=executed[flown.mask].astype(np.float32),
            environment=reward, ended=ended, saved=saved_steps(flown, config), clock=self._clock(before),
        )  # fmt: skip
        for b in np.flatnonzero(ended):
            scenario = flown.scenarios[b]
            bound = bound_steps(scenario.spots, scenario.physics)
            self._flights.append(Flight(bool(step.terminated[b]), int(flown.steps[b]), bound))

    def finish(self, after: Graph, state: BatchState) -> Rollout:
        """Everything, with the worlds as they are after the last step."""
        flat = {name: np.concatenate(self._columns[name]) for name in ("u", "log_prob", "command", "clock")}
        stacked = {name: np.stack(self._columns[name]) for name in ("alive", "environment", "ended", "saved")}
        return Rollout(
            join(self._graphs), after, alive_after=state.mask, clock_after=self._clock(state),
            flights=tuple(self._flights), **flat, **stacked,
        )  # fmt: skip

    def _keep(self, **entries: np.ndarray) -> None:
        for name, entry in entries.items():
            self._columns.setdefault(name, []).append(entry)

    def _clock(self, state: BatchState) -> np.ndarray:
        """(B, 2) float32, t / T_max and t / (alpha T_E)."""
        pace = self._config.tolerance * self._source.expert_steps(state)
        return np.stack([state.steps / state.cases.budget_steps, state.steps / pace], axis=1).astype(np.float32)
