"""Reconnecting a shattered swarm as a PettingZoo parallel environment.

    from phygail.envs import recovery_v0

    env = recovery_v0.parallel_env(uavs=20, damage=(0.25, 0.75))
    observations, infos = env.reset(seed=0)
    while env.agents:
        actions = {agent: env.action_space(agent).sample() for agent in env.agents}
        observations, rewards, terminations, truncations, infos = env.step(actions)

Every alive UAV is an agent, named by its place in the roster ("uav_17"). The damaged drop out before the first step and
never become agents, so the set of agents changes from episode to episode, but not within an episode. Libraries that
need the same agents in every episode (SuperSuit, stable-baselines3) take `fixed_agents=True`. The environment is a thin
wrapper over `swarm.simulator.step`: its world is that of every method and table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from phygail.config import InputError, Physics
from phygail.envs.observation import Reward, TeamReward, bounds, local_observations
from phygail.rng import generator
from phygail.sensing.views import Observer, Scope, SubnetViews
from phygail.swarm.batch import refuse_worlds
from phygail.swarm.checks import checked_budget, positive, shown
from phygail.swarm.layout import check_loss, check_size, damage_count
from phygail.swarm.scenario import Scenario, draw_scenario, load_scenarios
from phygail.swarm.simulator import SwarmState, initial_state, step
from phygail.swarm.tree import bound_steps


class Source(Protocol):
    """Gives a split scenario per episode."""

    @property
    def largest(self) -> int:
        """Size of the largest swarm it can give."""

    def draw(self, rng: np.random.Generator) -> Scenario:
        """The scenario of the next episode."""

    def named(self, name: str) -> Scenario:
        """The scenario with this id, or a clear error."""


@dataclass(frozen=True)
class DrawnCases:
    """A fresh layout and fresh damage for every episode.

    Attributes:
        uavs: Swarm sizes N, each equally likely.
        damage: Lowest and highest damage ratio; uniform between.
        width_m: Side of the map; the paper's for N, in proportion to the radio range, if None.
        physics: Radio and vehicle.
    """

    uavs: tuple[int, ...]
    damage: tuple[float, float]
    width_m: float | None = None
    physics: Physics | None = None

    def __post_init__(self) -> None:
        if not self.uavs:
            raise InputError("no swarm size is given: give at least one number of UAVs")
        low, high = self.damage
        if not low <= high:
            raise InputError(f"damage from {low} to {high}: give the lower ratio first")
        if self.width_m is not None:
            positive("width", self.width_m)
        for uavs in self.uavs:
            check_size(uavs)
            damage_count(uavs, high)  # refuses ratios outside 0 .. 1
            check_loss(uavs, low, damage_count(uavs, low))

    @property
    def largest(self) -> int:
        return max(self.uavs)

    def draw(self, rng: np.random.Generator) -> Scenario:
        uavs = self.uavs[rng.integers(len(self.uavs))]
        ratio = float(rng.uniform(*self.damage))
        return draw_scenario(uavs, ratio, rng, width_m=self.width_m, physics=self.physics)

    def named(self, name: str) -> Scenario:
        raise InputError(
            f"scenario {shown(name)}: scenarios are drawn here; give a Scenario or an env with `scenarios`"
        )


@dataclass(frozen=True, eq=False)
class ChosenCases:
    """Scenarios from a list or file, each equally likely; scenarios that are connected from the start are left out."""

    scenarios: tuple[Scenario, ...]

    def __post_init__(self) -> None:
        if not self.scenarios:
            raise InputError("no scenario was given whose swarm is split: there is nothing to reconnect")

    @property
    def largest(self) -> int:
        return max(scenario.uavs for scenario in self.scenarios)

    def draw(self, rng: np.random.Generator) -> Scenario:
        return self.scenarios[rng.integers(len(self.scenarios))]

    def named(self, name: str) -> Scenario:
        for scenario in self.scenarios:
            if scenario.id == name:
                return scenario
        raise InputError(f"scenario {shown(name)}: there is no split scenario with this id")


def make_source(
    uavs: int | Sequence[int] | None,
    damage: float | tuple[float, float] | None,
    width_m: float | None,
    physics: Physics | None,
    scenarios: str | Path | Iterable[Scenario] | None,
) -> Source:
    """The source behind the arguments of `recovery_v0.parallel_env`."""
    if scenarios is None:
        sizes = np.atleast_1d(np.asarray(20 if uavs is None else uavs)).tolist()
        span = np.atleast_1d(np.asarray((0.25, 0.75) if damage is None else damage)).tolist()
        if not all(isinstance(size, int) for size in sizes):
            raise InputError(f"uavs {shown(uavs)}: give a whole number of UAVs, or several")
        if len(span) not in (1, 2) or not all(isinstance(ratio, float | int) for ratio in span):
            raise InputError(f"damage {shown(damage)}: give a ratio from 0 to 1, or (lowest, highest)")
        return DrawnCases(tuple(sizes), (span[0], span[-1]), width_m, physics)
    for name, value in (("uavs", uavs), ("damage", damage), ("width_m", width_m), ("physics", physics)):
        if value is not None:
            raise InputError(f"{name} {shown(value)} is given together with scenarios, which bring their own: drop one")
    listed = load_scenarios(scenarios) if isinstance(scenarios, str | Path) else scenarios
    return ChosenCases(tuple(scenario for scenario in listed if not initial_state(scenario).terminated))


try:
    from gymnasium.spaces import Box
    from pettingzoo import AECEnv, ParallelEnv
    from pettingzoo.utils.conversions import parallel_to_aec_wrapper
    from pettingzoo.utils.wrappers import OrderEnforcingWrapper
except ModuleNotFoundError:
    raise InputError("the environment needs pettingzoo and gymnasium: pip install 'phygail[env]'") from None

Rows = dict[str, np.ndarray]
Infos = dict[str, dict[str, Any]]
Step = tuple[Rows, dict[str, float], dict[str, bool], dict[str, bool], Infos]


def parallel_env(
    *,
    uavs: int | Sequence[int] | None = None,
    damage: float | tuple[float, float] | None = None,
    width_m: float | None = None,
    physics: Physics | None = None,
    scenarios: str | Path | Iterable[Scenario] | None = None,
    safety: bool = False,
    reward: Reward | None = None,
    max_cycles: int | None = None,
    fixed_agents: bool = False,
    render_mode: str | None = None,
) -> RecoveryEnv:
    """The environment, with scenarios drawn afresh for every episode or chosen from given ones.

    Args:
        uavs: Swarm size before the damage, or several of which one is drawn; 20 if None.
        damage: Damage ratio, or (lowest, highest); (0.25, 0.75) if None.
        width_m: Side of the map; the paper's for the swarm size, in proportion to the radio range, if None.
        physics: Radio and vehicle of drawn scenarios.
        scenarios: Scenarios, or a scenario file, instead of drawn ones.
        safety: Pass all commands through the filter that makes new contacts impossible.
        reward: Judges (state before, state after) with one number per alive UAV or one for all; `TeamReward()` if None.
        max_cycles: T_max of every episode in steps, instead of the budget that its scenario has.
        fixed_agents: Every possible agent takes part in every episode. Agents that do not fly observe zeros, are
            paid nothing, and their actions have no effect; the last number of an observation is 1 for agents that fly.
        render_mode: "rgb_array", or None.
    """
    source = make_source(uavs, damage, width_m, physics, scenarios)
    return RecoveryEnv(
        source, safety=safety, reward=reward or TeamReward(), max_cycles=max_cycles, fixed_agents=fixed_agents,
        render_mode=render_mode,
    )  # fmt: skip


def raw_env(**options: Any) -> AECEnv:
    """The same, with agents that act one after the other (PettingZoo's AEC form); all fly when the last has acted."""
    return parallel_to_aec_wrapper(parallel_env(**options))


def env(**options: Any) -> AECEnv:
    """`raw_env` that complains about calls in a wrong order."""
    return OrderEnforcingWrapper(raw_env(**options))


class RecoveryEnv(ParallelEnv[str, np.ndarray, np.ndarray]):  # type: ignore[misc]  # PettingZoo has no types
    """See `parallel_env`.

    Attributes:
        possible_agents: One name per roster entry of the largest swarm.
        agents: The alive of the running episode, or with `fixed_agents` all; empty before the first reset and when an
            episode is over.
        np_random: Draws the scenarios.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "recovery_v0", "render_modes": ["rgb_array"], "render_fps": 10, "is_parallelizable": True,
    }  # fmt: skip

    def __init__(
        self,
        source: Source,
        *,
        safety: bool,
        reward: Reward,
        max_cycles: int | None = None,
        fixed_agents: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise InputError(f"render_mode {shown(render_mode)}: choose 'rgb_array' or None")
        self.render_mode = render_mode
        self.possible_agents = [f"uav_{k}" for k in range(source.largest)]
        self.agents: list[str] = []
        self.np_random = np.random.default_rng()
        self._source, self._safety, self._reward = source, safety, reward
        self._max_cycles = _checked_cycles(max_cycles)
        self._fixed = fixed_agents
        self._flying: list[str] = []  # the alive of this episode, in the order of the roster
        # Every agent has its own spaces: users seed them one by one.
        self._low, self._high = bounds()
        self._observation_spaces = {name: Box(self._low, self._high) for name in self.possible_agents}
        self._action_spaces = {name: Box(-1.0, 1.0, (2,)) for name in self.possible_agents}
        self.state_space = Box(-np.inf, np.inf, (5 * source.largest + 4,))
        self._state: SwarmState | None = None

    def observation_space(self, agent: str) -> Box:
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Box:
        return self._action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Rows, Infos]:
        """Begin the next episode right after the damage.

        Args:
            seed: Restarts the draws of scenarios; without one they go on.
            options: {"scenario": id or Scenario} flies that one instead of drawing.
        """
        if seed is not None:
            self.np_random = generator(seed, "recovery_v0")
        wanted = (options or {}).get("scenario")
        scenario = self._source.draw(self.np_random) if wanted is None else self._chosen(wanted)
        refuse_worlds([scenario], "the environment")
        if self._max_cycles is not None:
            scenario = replace(scenario, budget_steps=self._max_cycles)
        self._state = initial_state(scenario)
        self._observer = Observer(scenario)
        self._bound_steps = bound_steps(scenario.spots, scenario.physics)
        self._flying = [self.possible_agents[k] for k in scenario.alive]
        self.agents = list(self.possible_agents if self._fixed else self._flying)
        return self._observations(), self._infos()

    def step(self, actions: Rows) -> Step:
        """Fly one step.

        Args:
            actions: (2,) velocity over v_max per agent; longer than 1 it is projected onto the speed disc.
        """
        before, agents = self._running(), self.agents
        if not agents and not actions:
            return {}, {}, {}, {}, {}
        velocities = self._commands(actions) * before.scenario.physics.speed_mps
        self._state = after = step(before, velocities, safety=self._safety)
        rewards = self._judged(before, after)
        results = (
            self._observations(), dict.fromkeys(agents, 0.0) | dict(zip(self._flying, rewards.tolist(), strict=True)),
            dict.fromkeys(agents, after.terminated), dict.fromkeys(agents, after.truncated), self._infos(),
        )  # fmt: skip
        if after.terminated or after.truncated:
            self.agents = []
        return results

    def state(self) -> np.ndarray:
        """(5 N + 4,) float32 for centralized critics; N = len(possible_agents), the rows of all but the alive are zero.

        In this order: (N, 2) positions relative to the center in radio ranges, (N, 2) velocities over v_max, (N,) 1 for
        alive, (2,) center and (1,) width in radio ranges, t / T_max.
        """
        now = self._running()
        scenario, range_m, size = now.scenario, now.scenario.physics.range_m, len(self.possible_agents)
        positions, velocities, alive = np.zeros((size, 2)), np.zeros((size, 2)), np.zeros(size)
        positions[scenario.alive] = (now.positions - scenario.center) / range_m
        velocities[scenario.alive] = now.velocities / scenario.physics.speed_mps
        alive[scenario.alive] = 1.0
        world = [*scenario.center / range_m, scenario.width_m / range_m, now.step / scenario.budget_steps]
        return np.concatenate([positions.ravel(), velocities.ravel(), alive, world]).astype(np.float32)

    def render(self) -> np.ndarray | None:
        """(height, width, 3) uint8 picture of the swarm right now; None without a render mode."""
        if self.render_mode is None:
            return None
        from phygail.render.scene import draw_image  # here, because learning needs no matplotlib

        return draw_image(self._running())

    def _running(self) -> SwarmState:
        if self._state is None:
            raise InputError("there is no episode yet: call reset() first")
        return self._state

    def _chosen(self, wanted: str | Scenario) -> Scenario:
        """The scenario that the user names or gives."""
        scenario = self._source.named(wanted) if isinstance(wanted, str) else wanted
        if not isinstance(scenario, Scenario):
            raise InputError(f"scenario {shown(wanted)}: give an id or a Scenario")
        if scenario.uavs > len(self.possible_agents):
            most = len(self.possible_agents)
            raise InputError(
                f"scenario {scenario.id!r} has {scenario.uavs} UAVs: this environment takes at most {most}"
            )
        if initial_state(scenario).terminated:
            raise InputError(f"scenario {scenario.id!r} is connected from the start: choose one whose swarm is split")
        return scenario

    def _commands(self, actions: Rows) -> np.ndarray:
        """(n, 2) actions of the agents that fly, in the order of the roster."""
        if not self.agents:
            raise InputError("the episode is over: call reset() before the next step")
        for agent in actions.keys() - set(self.agents):
            raise InputError(f"{shown(agent)} is no agent of this episode: act for the names in env.agents")
        for agent in self.agents:
            if agent not in actions:
                raise InputError(f"{agent} has no action: give one for every name in env.agents")
            if np.shape(actions[agent]) != (2,):
                raise InputError(f"the action of {agent} has shape {np.shape(actions[agent])}: give two numbers")
        return np.array([actions[agent] for agent in self._flying], dtype=float)

    def _judged(self, before: SwarmState, after: SwarmState) -> np.ndarray:
        """(n,) reward of the agents that fly."""
        values = np.asarray(self._reward(before, after), dtype=float)
        if values.shape not in ((), (len(self._flying),)):
            raise InputError(f"the reward has shape {values.shape}: give one number, or one for each alive UAV")
        return np.broadcast_to(values, len(self._flying))

    def _observations(self) -> Rows:
        view = self._observer.observe(self._running(), Scope.SUBNET)
        assert isinstance(view, SubnetViews)
        # A link of exactly the radio range may read 1.0000001: held to the bounds that the space declares.
        rows = np.clip(local_observations(view), self._low, self._high)
        seen = dict(zip(self._flying, rows, strict=True))
        return {agent: seen[agent] if agent in seen else np.zeros_like(self._low) for agent in self.agents}

    def _infos(self) -> Infos:
        now = self._running()
        info = {
            "scenario": now.scenario.id, "steps": now.step, "subnets": now.links.count,
            "bound_steps": self._bound_steps, "success": now.terminated,
        }  # fmt: skip
        flying = set(self._flying)
        return {agent: {**info, "alive": agent in flying} for agent in self.agents}


def _checked_cycles(max_cycles: int | None) -> int | None:
    try:
        return None if max_cycles is None else checked_budget(max_cycles)
    except InputError as error:
        raise InputError(str(error).replace("budget_steps", "max_cycles")) from None
