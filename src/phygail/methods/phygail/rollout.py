"""The exploring policy flies in many worlds, on wider maps if asked for; what it observes, does and earns is kept."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from phygail.config import InputError
from phygail.learning.networks import noise_generator
from phygail.learning.worlds import CaseSet, ExpertCase
from phygail.methods.phygail.config import TrainConfig
from phygail.methods.phygail.experts.dataset import FrameBatch
from phygail.methods.phygail.graph import Graph
from phygail.methods.phygail.graph_batch import Observation, join, observe, pick
from phygail.methods.phygail.heads import Actor
from phygail.methods.phygail.network import MESSAGE_HIDDEN, GraphInput, to_tensors
from phygail.methods.phygail.rewards import (
    environment_reward,
    largest_gap_shaping,
    saved_steps,
    shaping_reward,
    tree_gaps_m,
)
from phygail.rng import generator
from phygail.swarm.batch import BatchState, BatchWorld, stack_cases
from phygail.swarm.scenario import Scenario, farthest_m, way_steps

MEMORY_SHARE = 0.8  # of the machine's memory that a run may need


@dataclass(frozen=True)
class EpisodeResult:
    """An episode that ended within the epoch: whether it reconnected, its moves, and the lower bound on them."""

    success: bool
    steps: int
    bound_steps: int


@dataclass(frozen=True, eq=False)
class Rollout:
    """T decisions of B worlds with up to n UAVs each.

    Arrays are padded, (T, B, n), where time matters, and flat, one row per node, where networks read them: node m is
    the m-th True entry of `alive` in C order, which is receiver m of `graph`. Damaged UAVs and padding are no nodes,
    so they cannot enter any loss.

    Attributes:
        graph: The T B observations in one table; that of world b at decision t is number t B + b.
        after: The B observations after the last step.
        judged: What the discriminator sees of the same states, in the same order.
        alive: (T, B, n) bool. alive_after: (B, n) bool.
        u: (M, 2) float32, as sampled. log_prob: (M,) float32, its log density.
        command: (M, 2) float32, executed velocity / v_max of the first step of a decision.
        environment: (T, B, n) sum of gamma^k r_env over the steps k = 0, 1, ... that a decision was held, unscaled,
            with shaping if asked for; 0 for padding.
        steps: (T, B) int, steps that the decision was held: `hold`, fewer where the episode ended.
        ended: (T, B) bool, the episode ended with this decision, by success or at T_max.
        saved: (T, B) discounted steps that a success saved (`rewards.saved_steps`).
        facts: (T B, F) float32, what the critic reads about every observation (`critic_facts`). facts_after: (B, F).
        flights: Episodes that ended.
        worlds: Where the worlds are now, for an epoch that flies on.
    """

    graph: Graph
    after: Graph
    judged: Graph
    alive: np.ndarray
    alive_after: np.ndarray
    u: np.ndarray
    log_prob: np.ndarray
    command: np.ndarray
    environment: np.ndarray
    steps: np.ndarray
    ended: np.ndarray
    saved: np.ndarray
    facts: np.ndarray
    facts_after: np.ndarray
    flights: tuple[EpisodeResult, ...]
    worlds: Mapping[str, np.ndarray]

    @property
    def graphs(self) -> int:
        """Number of observations T B: decisions of whole worlds."""
        return self.graph.count

    @property
    def nodes(self) -> int:
        """Number of nodes M."""
        return len(self.u)

    def padded(self, flat: np.ndarray) -> np.ndarray:
        """(T, B, n) float64 of a flat (M,) array, 0 for padding; `padded(x)[alive]` is x."""
        full = np.zeros(self.alive.shape)
        full[self.alive] = flat
        return full

    def batch(self, numbers: np.ndarray) -> tuple[GraphInput, np.ndarray]:
        """Some observations as tensors and their nodes ((r,) int, ascending)."""
        picked, rows = pick(self.graph, numbers)
        return to_tensors(picked), rows

    def judged_batch(self, numbers: np.ndarray) -> tuple[GraphInput, np.ndarray]:
        """As `batch`, with the graphs that the discriminator reads."""
        picked, rows = pick(self.judged, numbers)
        return to_tensors(picked), rows

    def parts(self, size: int) -> Iterator[tuple[GraphInput, np.ndarray]]:
        """All observations in order, `size` at a time."""
        for numbers in split(np.arange(self.graphs), size):
            yield self.batch(numbers)

    def facts_of(self, rows: np.ndarray) -> Tensor | None:
        """(r, F) float32, what the critic reads about some nodes besides the graph; None if nothing."""
        return torch.from_numpy(self.facts[self.graph.world[rows]]) if self.facts.shape[1] else None

    @cached_property
    def summary(self) -> dict[str, float]:
        """Success and length of the episodes that ended in this rollout; NaN if none did."""
        steps, bound = sum(f.steps for f in self.flights), sum(f.bound_steps for f in self.flights)
        ended = len(self.flights)
        return {
            "episodes": float(ended),
            "success": sum(f.success for f in self.flights) / ended if ended else float("nan"),
            "over_bound": steps / bound if bound else float("nan"),
            "steps": steps / ended if ended else float("nan"),
        }


def split(numbers: np.ndarray, size: int) -> list[np.ndarray]:
    """Consecutive pieces of `numbers`, of `size` entries but for the last."""
    return [numbers[first : first + size] for first in range(0, len(numbers), size)]


def shuffled(count: int, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """0..count-1 in a random order, in minibatches of `size`; a last one below half a batch joins the one before."""
    batches = split(rng.permutation(count), size)
    if len(batches) > 1 and len(batches[-1]) < size / 2:  # a few graphs alone would give a noisy full-size step
        batches[-2:] = [np.concatenate(batches[-2:])]
    return batches


def on_other_map(scenario: Scenario, config: TrainConfig, rng: np.random.Generator) -> Scenario:
    """The scenario with the width and center of another map.

    The budget stays that of the swarm's own map, unless the way to the moved center is longer.
    """
    if config.map_scale <= 1.0 and config.map_shift <= 0.0:
        return scenario
    width_m = np.array(scenario.width_m)
    width = float(widen_map(width_m, config.map_scale, rng))
    center = shift_center(scenario.center, width_m, config.map_shift, rng)
    way = way_steps(farthest_m(scenario.spots, center), scenario.physics)
    return replace(scenario, width_m=width, center=center, budget_steps=max(scenario.budget_steps, way))


def on_other_maps(frames: FrameBatch, config: TrainConfig, rng: np.random.Generator) -> FrameBatch:
    """Expert frames with the widths and centers of other maps, so that the map does not give experts away."""
    width_m = widen_map(frames.width_m, config.map_scale, rng)
    return replace(frames, width_m=width_m, center=shift_center(frames.center, frames.width_m, config.map_shift, rng))


def widen_map(width_m: np.ndarray, most: float, rng: np.random.Generator) -> np.ndarray:
    """Widths times a log-uniform factor from 1 to `most`: a swarm of 20 as it looks on the map of a larger one.

    W normalizes the observation, so what a policy meets at N = 500 (neighbors seemingly close, itself seemingly near
    the center) never occurs on the map of 20 UAVs. With most = 1 nothing is drawn.
    """
    return width_m if most <= 1.0 else width_m * most ** rng.random(np.shape(width_m))


def shift_center(center: np.ndarray, width_m: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Centers ((..., 2) m) moved at random, per axis by up to `share` of half the swarm's own width ((...,) m).

    On the map of 20 UAVs a swarm is one again before a UAV has been at the center for long. In a large swarm the first
    UAVs arrive hundreds of steps before the last. With a center off the middle some arrive early here, too. With share
    = 0 nothing is drawn.
    """
    if share <= 0.0:
        return center
    return center + rng.uniform(-share, share, np.shape(center)) * np.asarray(width_m)[..., None] / 2.0


def collect(
    actor: Actor,
    experts: CaseSet,
    config: TrainConfig,
    epoch: int,
    worlds: Mapping[str, np.ndarray] | None = None,
) -> Rollout:
    """`horizon` decisions in `worlds` worlds on random training scenarios; depends on the arguments only.

    Args:
        actor: The exploring policy. experts: Training scenarios. config: Settings. epoch: From 1 on.
        worlds: Where the last epoch left them (`Rollout.worlds`); None: they start anew.
    """
    source = CaseSource(experts, generator(config.seed, "scenarios", epoch), config)
    world, observation = open_worlds(source, experts, config, worlds), config.new_observation()
    observation.begin(world.state, np.arange(config.worlds))
    if worlds:
        observation.load(worlds)
    log = RolloutLog(source, config)
    for seen in exploring(actor, world, observation, noise_generator(config.seed, "exploration", epoch), config):
        log.add(seen)
    return log.finish(world.state, observation)


def check_memory(experts: CaseSet, config: TrainConfig) -> None:
    """Refuse a run whose rollout and micro-batches would not fit into the memory of this machine."""
    needed, there = rollout_bytes(experts, config), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > MEMORY_SHARE * there:
        raise InputError(
            f"{config.worlds} worlds x {config.horizon} decisions need about {needed / 2**30:.1f} GiB of "
            f"{there / 2**30:.1f}: lower worlds, horizon or micro_graphs"
        )


def rollout_bytes(experts: CaseSet, config: TrainConfig) -> float:
    """About how much an epoch keeps: every decision twice (as built and joined), activations of one micro-batch."""
    nodes = float(experts.flying.mean())
    slots = config.graph_spec.slots
    per_graph = 2 * nodes * (slots * (9 + 4 * config.encoder_spec.edge_features) + 200) + 8 * 12 * float(
        experts.flying.max(initial=1)
    )
    hidden = config.width if config.compact else 2 * MESSAGE_HIDDEN
    activations = 4 * 12 * config.layers * nodes * slots * hidden * min(config.micro_graphs, config.batch_graphs)
    return config.worlds * config.horizon * per_graph + 2 * activations


def open_worlds(
    source: CaseSource, experts: CaseSet, config: TrainConfig, worlds: Mapping[str, np.ndarray] | None = None
) -> BatchWorld:
    """`worlds` worlds on scenarios of `source`, with rows for the largest case of the set."""
    rows = int(experts.flying.max(initial=0))
    return BatchWorld(source, config.worlds, least_rows=rows, state=source.load(worlds, rows) if worlds else None)


class Seen(NamedTuple):
    """One decision in all worlds.

    Attributes:
        before: The state it was made in. graph: What was seen there.
        u: (n, 2), sampled per receiver. log_prob: (n,), its log density.
        flown: The states after every step that it was held, before any reset.
        moved: (B,) bool each, which worlds moved.
    """

    before: BatchState
    graph: Graph
    u: np.ndarray
    log_prob: np.ndarray
    flown: list[BatchState]
    moved: list[np.ndarray]


def exploring(
    actor: Actor, world: BatchWorld, observation: Observation, noise: torch.Generator, config: TrainConfig
) -> Iterator[Seen]:
    """Fly `horizon` decisions in all worlds with the exploring policy, each held for `hold` steps."""
    for _ in range(config.horizon):
        before = world.state
        graph = observation.observe(before)
        u, log_prob, action = explore(actor, graph, noise, _subnets(before), config.shared_noise)
        wanted = observation.wanted(before, action)
        steps = list(world.hold(functools.partial(observation.steer, wanted=wanted), config.hold))
        flown, moved = [state for state, _ in steps], [moving for _, moving in steps]
        observation.begin(world.state, np.flatnonzero(flown[-1].terminated | flown[-1].truncated))
        yield Seen(before, graph, u, log_prob, flown, moved)


@torch.no_grad()
def explore(
    actor: Actor, graph: Graph, noise: torch.Generator, subnets: np.ndarray | None = None, shared: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U ((n, 2)) sampled for every receiver, its log density ((n,)) and the command over v_max ((n, 2)).

    Args:
        actor: The exploring policy. graph: What the receivers see. noise: Random generator.
        subnets: (n,) int, the subnet of every receiver among those of all worlds; needed with `shared`.
        shared: Share of the variance that a subnet has in common, so that it tries a way as one block. The distribution
            of a single UAV does not change.
    """
    distribution = actor(to_tensors(graph))
    u = distribution.sample(noise)
    if shared:
        assert subnets is not None
        common = torch.randn((int(subnets.max()) + 1, u.shape[1]), generator=noise, dtype=u.dtype)
        own = (u - distribution.mean) * math.sqrt(1.0 - shared)
        together = distribution.log_std.exp() * common.index_select(0, torch.from_numpy(subnets)) * math.sqrt(shared)
        u = distribution.mean + own + together
    return u.numpy(), distribution.log_prob(u).numpy(), actor.to_command(u).numpy()


def _subnets(state: BatchState) -> np.ndarray:
    """(n,) int64, the subnet of every alive UAV, numbered over all worlds."""
    worlds, rows = state.mask.shape
    return (state.subnet + rows * np.arange(worlds)[:, None])[state.mask].astype(np.int64)


class CaseSource:
    """Random training scenarios; remembers of each its place in the set and the expert's time."""

    def __init__(self, experts: CaseSet, rng: np.random.Generator, config: TrainConfig) -> None:
        self._experts, self._rng, self._config = experts, rng, config
        self._cases: dict[str, ExpertCase] = {}

    def __call__(self) -> Scenario:
        case = self._experts.draw_case(self._rng)
        self._cases[case.scenario.id] = case
        return on_other_map(case.scenario, self._config, self._rng)

    def expert_steps(self, state: BatchState) -> np.ndarray:
        """(B,) int, T_E of the scenarios being flown."""
        return np.array([self._cases[scenario.id].expert_steps for scenario in state.scenarios])

    def bound(self, scenario: Scenario) -> int:
        """Lower bound on the steps of a scenario being flown: that of its case, however it is turned."""
        return self._experts.bound(self._cases[scenario.id].number)

    def save(self, state: BatchState) -> dict[str, np.ndarray]:
        """Where the worlds are, as arrays (B, ...)."""
        cases = [self._cases[scenario.id] for scenario in state.scenarios]
        return {
            "number": np.array([case.number for case in cases]),
            "element": np.array([case.element for case in cases]),
            "width_m": np.array([scenario.width_m for scenario in state.scenarios]),
            "center": np.stack([scenario.center for scenario in state.scenarios]),
            "budget": np.array([scenario.budget_steps for scenario in state.scenarios]),
            "positions": state.positions, "velocities": state.velocities, "steps": state.steps,
        }  # fmt: skip

    def load(self, worlds: Mapping[str, np.ndarray], rows: int) -> BatchState:
        """The worlds that `save` has written."""
        scenarios = []
        for number, element, width, center, budget in zip(
            *(worlds[name] for name in ("number", "element", "width_m", "center", "budget")), strict=True
        ):
            case = self._experts.case(int(number), int(element))
            self._cases[case.scenario.id] = case
            scenarios.append(replace(case.scenario, width_m=float(width), center=center, budget_steps=int(budget)))
        arrays = [worlds[name].copy() for name in ("positions", "velocities", "steps")]
        return BatchState(tuple(scenarios), stack_cases(scenarios, rows), *arrays)


def critic_facts(state: BatchState, expert_steps: np.ndarray, config: TrainConfig) -> np.ndarray:
    """(B, F) float32, what the critic reads besides the graph; the policy never reads it.

    t / T_max and t / (alpha T_E) with `critic_clock`, ln T_E and the gaps, largest and summed, in ranges with
    `critic_gap`.
    """
    facts = []
    if config.critic_clock:
        facts += [state.steps / state.cases.budget_steps, state.steps / (config.tolerance * expert_steps)]
    if config.critic_gap:
        total, largest = tree_gaps_m(state)
        facts += [np.log(expert_steps), largest / state.cases.link_m, total / state.cases.link_m]
    return np.stack(facts, axis=1).astype(np.float32) if facts else np.zeros((len(expert_steps), 0), np.float32)


class RolloutLog:
    """Grows decision by decision into a `Rollout`."""

    def __init__(self, source: CaseSource, config: TrainConfig) -> None:
        self._source, self._config = source, config
        self._graphs: list[Graph] = []
        self._judged: list[Graph] = []
        self._columns: dict[str, list[np.ndarray]] = {}
        self._flights: list[EpisodeResult] = []

    def add(self, seen: Seen) -> None:
        """Store one decision in all worlds."""
        config, before, last = self._config, seen.before, seen.flown[-1]
        pace = self._source.expert_steps(before)
        reward, saved = held_reward(seen, pace, config)
        executed = seen.flown[0].velocities / before.cases.speed_mps[:, None, None]
        ended = last.terminated | last.truncated
        self._graphs.append(seen.graph)
        if config.w_il and config.observation != "paper":
            self._judged.append(observe(before, config.judge_graph))
        self._keep(
            alive=before.mask, u=seen.u, log_prob=seen.log_prob, command=executed[before.mask].astype(np.float32),
            environment=reward, steps=np.sum(seen.moved, axis=0), ended=ended, saved=saved,
            facts=critic_facts(before, pace, config),
        )  # fmt: skip
        for b in np.flatnonzero(ended):
            bound = self._source.bound(last.scenarios[b])
            self._flights.append(EpisodeResult(bool(last.terminated[b]), int(last.steps[b]), bound))

    def finish(self, state: BatchState, observation: Observation) -> Rollout:
        """Everything, with the worlds as they are after the last step."""
        flat = {name: np.concatenate(self._columns[name]) for name in ("u", "log_prob", "command", "facts")}
        stacked = {name: np.stack(self._columns[name]) for name in ("alive", "environment", "steps", "ended", "saved")}
        facts = critic_facts(state, self._source.expert_steps(state), self._config)
        graph = join(self._graphs)
        return Rollout(
            graph, observation.observe(state), join(self._judged) if self._judged else graph, alive_after=state.mask,
            facts_after=facts, flights=tuple(self._flights), worlds=self._source.save(state) | observation.save(),
            **flat, **stacked,
        )  # fmt: skip

    def _keep(self, **entries: np.ndarray) -> None:
        for name, entry in entries.items():
            self._columns.setdefault(name, []).append(entry)


def held_reward(seen: Seen, expert_steps: np.ndarray, config: TrainConfig) -> tuple[np.ndarray, np.ndarray]:
    """(B, n) sum of gamma^k r_env over the steps of a decision, and (B,) the discounted steps that a success saved."""
    reward, saved = np.zeros(seen.before.mask.shape), np.zeros(len(expert_steps))
    before = seen.before
    for k, (flown, moved) in enumerate(zip(seen.flown, seen.moved, strict=True)):
        weight = np.where(moved, config.gamma**k, 0.0)
        step = environment_reward(flown, expert_steps, config)
        if config.gap_weight:
            step += np.where(flown.mask, shaping_reward(before, flown, config)[:, None], 0.0)
        reward += weight[:, None] * step
        saved += weight * saved_steps(flown, config)
        before = flown
    if config.largest_gap_weight:
        held = np.sum(seen.moved, axis=0)
        shaping = largest_gap_shaping(seen.before, before, held, expert_steps, config)
        reward += np.where(seen.before.mask, shaping[:, None], 0.0)
    return reward, saved
