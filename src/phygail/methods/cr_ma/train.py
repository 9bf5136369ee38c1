"""MADDPG training of CR-MA (METHODS 3.7): `phygail train cr-ma`.

Rollouts fly the deployed method itself (`methods.cr_ma.CrMa`) with a noisy actor through the one simulator, so training
and evaluation cannot differ in observation, hold time or fields.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor, nn

from phygail.learning.run import TRAINING_SEED, Job, Update, validation_scenarios
from phygail.methods.controller import controller
from phygail.methods.cr_ma import ACTION, HOLD_M, KIND, OBSERVATION, VERSION, CrMa
from phygail.rng import generator
from phygail.swarm.scenario import Scenario, draw_scenario
from phygail.swarm.simulator import SwarmState, initial_state, step
from phygail.swarm.tree import gap_m

LAST_LAYER_BOUND = 3e-3  # small first actions: the fields alone move the swarm at the beginning


class Actor(nn.Module):
    """20 -> 128 -> 128 -> 2, ReLU, tanh; shared by all UAVs."""

    def __init__(self, inputs: int = 20, hidden: int = 128, outputs: int = 2) -> None:
        super().__init__()
        widths = (inputs, hidden, hidden, outputs)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        for parameter in self.layers[-1].parameters():
            nn.init.uniform_(parameter, -LAST_LAYER_BOUND, LAST_LAYER_BOUND)

    def forward(self, observation: Tensor) -> Tensor:
        """(..., 2) actions in [-1, 1] from (..., 20) observations."""
        signal = observation
        for layer in list(self.layers)[:-1]:
            signal = torch.relu(layer(signal))
        return torch.tanh(self.layers[-1](signal))


class Critic(nn.Module):
    """Q_i = MLP([phi_i, mean_j phi_j, max_j phi_j]) with phi = MLP(obs, action): any number of alive UAVs.

    phi is 22 -> 128 -> 128, the value head 384 -> 128 -> 1. Padded UAVs enter neither the mean nor the maximum.
    """

    def __init__(self, inputs: int = 22, hidden: int = 128) -> None:
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.joint = nn.Linear(3 * hidden, hidden)
        self.value = nn.Linear(hidden, 1)

    def forward(self, observation: Tensor, action: Tensor, alive: Tensor) -> Tensor:
        """(b, k) values from (b, k, 20) observations, (b, k, 2) actions and (b, k) bool; zero for padding."""
        worlds, agents = alive.shape
        rows = alive.reshape(-1).nonzero().squeeze(1)  # half of a typical batch is padding: compute on the alive only
        packed = torch.cat([observation, action], dim=-1).flatten(0, 1).index_select(0, rows)
        phi = self.phi(packed)
        padded = phi.new_zeros(worlds * agents, phi.shape[1]).index_copy(0, rows, phi).view(worlds, agents, -1)
        mean = padded.sum(dim=1) / alive.sum(dim=1, keepdim=True).clamp(min=1)
        peak = padded.amax(dim=1)  # phi >= 0 (ReLU), so the zeros of the padding are no false maximum
        # The layer that joins them, split into the own and the shared part: the shared one is computed once per world.
        own, shared = self.joint.weight[:, : phi.shape[1]], self.joint.weight[:, phi.shape[1] :]
        common = nn.functional.linear(torch.cat([mean, peak], dim=1), shared, self.joint.bias)
        hidden = torch.relu(nn.functional.linear(phi, own) + common.index_select(0, rows // agents))
        value = self.value(hidden).squeeze(1)
        return value.new_zeros(worlds * agents).index_copy(0, rows, value).view(worlds, agents)


@dataclass(frozen=True)
class CrMaConfig:
    """Numbers of METHODS 3.7."""

    seed: int = TRAINING_SEED  # of networks, scenarios and noise
    uavs: int = 20  # N of the training swarms
    damage_low: float = 0.1  # damage ratio, uniform between the two
    damage_high: float = 0.9
    episodes: int = 500
    gamma: float = 0.97  # per decision
    tau: float = 0.01  # of the target networks, per update
    replay: int = 30_000  # joint transitions
    batch: int = 64
    warmup: int = 500  # transitions before the first update
    update_every: int = 2  # decisions
    critic_rate: float = 1e-3
    actor_rate: float = 1e-4
    gradient_norm: float = 1.0
    action_l2: float = 1e-3
    noise_first: float = 0.4  # exploration, standard deviation of the action
    noise_last: float = 0.05
    noise_episodes: int = 400  # over which it falls linearly
    critics: int = 1  # 2: twin critics, the smaller value is the target (option)
    smoothing: float = 0.0  # standard deviation of the noise on target actions (option)
    evaluate_every: int = 50  # episodes


SETTINGS = CrMaConfig()

# Snapshots are compared on 40 fixed swarms of the training size and on 12 larger ones: snapshots that are alike at
# N = 20 differ there (success 0.75 to 1.00). No training uses these swarms.
VALIDATION_CASES = 40
TRANSFER_UAVS = 100
TRANSFER_DAMAGE = (0.25, 0.5, 0.75, 0.9)
TRANSFER_CASES = 3  # per damage ratio

# Reward per control step and UAV (METHODS 3.7), before the division by 10.
TIME_COST = 0.05
SUBNET_REWARD = 1.0  # per subnet that vanished, shared
GAP_REWARD = 0.25  # per meter of gap closed at a range of 120 m, shared
CONTACT_COST = 0.2  # per other alive UAV closer than 10 m
EFFORT_COST = 0.01  # at full speed
SUCCESS_REWARD = 10.0
REWARD_SCALE = 0.1


def reward(before: SwarmState, after: SwarmState, gap_closed_m: float) -> np.ndarray:
    """(n,) reward of one control step that closed this much of the gap."""
    physics = after.scenario.physics
    shared = SUBNET_REWARD * (before.links.count - after.links.count) + GAP_REWARD * gap_closed_m / physics.unit
    shared += SUCCESS_REWARD * after.terminated - TIME_COST
    touching = np.bincount(after.links.contacts.ravel(), minlength=len(after.positions))
    speed = np.hypot(*after.velocities.T) / physics.speed_mps
    return REWARD_SCALE * (shared - CONTACT_COST * touching - EFFORT_COST * speed)


class Explorer:
    """The actor with Gaussian noise, remembering its last decision."""

    def __init__(self, actor: nn.Module, noise: float, rng: np.random.Generator) -> None:
        self.actor, self.noise, self.rng = actor, noise, rng
        self.observation = self.action = np.empty((0, 0))

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            action = self.actor(torch.from_numpy(observation.astype(np.float32))).numpy().astype(float)
        self.observation = observation
        self.action = np.clip(action + self.noise * self.rng.standard_normal(action.shape), -1.0, 1.0)
        return self.action


@dataclass(frozen=True)
class Transition:
    """One held decision of the whole swarm: (n, 20), (n, 2), (n,), (n, 20), terminal."""

    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    following: np.ndarray
    terminal: bool


def rollout(scenario: Scenario, explorer: Explorer) -> Iterator[Transition]:
    """Fly one episode; success and the end of the budget are both terminal (METHODS 3.7)."""
    command = controller(CrMa(actor=explorer), scenario)
    state = initial_state(scenario)
    decision: tuple[np.ndarray, np.ndarray] | None = None
    earned, range_m = np.zeros(len(state.positions)), scenario.physics.range_m
    gap, hold_steps = gap_m(state.positions, range_m), scenario.physics.steps_to_fly(HOLD_M)
    while not (state.terminated or state.truncated):
        velocities = command(state)
        if state.step % hold_steps == 0:
            if decision is not None:
                yield Transition(*decision, earned, explorer.observation, False)
            decision, earned = (explorer.observation, explorer.action), np.zeros(len(state.positions))
        before, state = state, step(state, velocities)
        gap_before, gap = gap, gap_m(state.positions, range_m)
        earned = earned + reward(before, state, gap_before - gap)
    if decision is not None:
        yield Transition(*decision, earned, np.zeros_like(decision[0]), True)


class Replay:
    """The last `capacity` joint transitions, padded to `agents` rows with a mask; the oldest are overwritten."""

    def __init__(self, capacity: int, agents: int) -> None:
        self.observation = np.zeros((capacity, agents, OBSERVATION), dtype=np.float32)
        self.following = np.zeros_like(self.observation)
        self.action = np.zeros((capacity, agents, ACTION), dtype=np.float32)
        self.reward = np.zeros((capacity, agents), dtype=np.float32)
        self.alive = np.zeros((capacity, agents), dtype=bool)
        self.terminal = np.zeros((capacity, 1), dtype=np.float32)
        self.stored = 0

    def __len__(self) -> int:
        return min(self.stored, len(self.terminal))

    def add(self, item: Transition) -> None:
        """Store one transition."""
        slot, n = self.stored % len(self.terminal), len(item.reward)
        for array, value in (
            (self.observation, item.observation), (self.following, item.following),
            (self.action, item.action), (self.reward, item.reward), (self.alive, True),
        ):  # fmt: skip
            array[slot] = 0
            array[slot, :n] = value
        self.terminal[slot] = item.terminal
        self.stored += 1

    def sample(self, size: int, rng: np.random.Generator) -> list[Tensor]:
        """(b, k, 20) observation, (b, k, 2) action, (b, k) reward, (b, k, 20) next, (b, k) alive, (b, 1) terminal."""
        rows = rng.integers(len(self), size=size)
        arrays = (self.observation, self.action, self.reward, self.following, self.alive, self.terminal)
        return [torch.from_numpy(array[rows]) for array in arrays]


class Maddpg:
    """Shared actor, centralized critic(s), their targets and optimizers."""

    def __init__(self, config: CrMaConfig) -> None:
        self.config = config
        with torch.random.fork_rng(devices=[]):  # module initialization draws from torch's global stream
            torch.manual_seed(config.seed)
            self.actor = Actor()
            self.critics = nn.ModuleList(Critic() for _ in range(config.critics))
        self.target_actor = copy.deepcopy(self.actor).requires_grad_(False)
        self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=config.actor_rate)
        self.critic_optimizer = torch.optim.Adam(self.critics.parameters(), lr=config.critic_rate)
        self.noise = torch.Generator().manual_seed(config.seed)

    def update(self, batch: list[Tensor]) -> None:
        """One critic and one actor step, then the targets follow."""
        observation, action, earned, following, alive, terminal = batch
        goal = earned + self.config.gamma * (1 - terminal) * self._target_value(following, alive)
        errors = [((critic(observation, action, alive) - goal) * alive).pow(2).sum() for critic in self.critics]
        self._descend(self.critic_optimizer, sum(errors, torch.zeros(())) / alive.sum())
        # The actor is shared, so all actions of the joint step are the current policy's.
        choice = self.actor(observation)
        gain = self.critics[0](observation, choice, alive).sum() / alive.sum()
        size = (choice.pow(2) * alive[..., None]).sum() / alive.sum()
        self._descend(self.actor_optimizer, self.config.action_l2 * size - gain)
        with torch.no_grad():
            for old, new in itertools.chain(
                zip(self.target_actor.parameters(), self.actor.parameters(), strict=True),
                zip(self.target_critics.parameters(), self.critics.parameters(), strict=True),
            ):
                old.lerp_(new, self.config.tau)

    @torch.no_grad()
    def _target_value(self, following: Tensor, alive: Tensor) -> Tensor:
        choice = self.target_actor(following)
        if self.config.smoothing:
            noise = self.config.smoothing * torch.randn(choice.shape, generator=self.noise)
            choice = (choice + noise.clamp(-2 * self.config.smoothing, 2 * self.config.smoothing)).clamp(-1, 1)
        return torch.stack([critic(following, choice, alive) for critic in self.target_critics]).amin(dim=0)

    def _descend(self, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
        nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], self.config.gradient_norm)
        optimizer.step()


def noise_at(episode: int, config: CrMaConfig) -> float:
    """Exploration noise, falling linearly."""
    share = min(1.0, episode / config.noise_episodes)
    return config.noise_first + share * (config.noise_last - config.noise_first)


def learn(config: CrMaConfig) -> Iterator[Update]:
    """Train; yields after every episode."""
    learner, replay = Maddpg(config), Replay(config.replay, config.uavs)
    rng = generator(config.seed, "train", KIND, "noise")
    decisions = 0
    for episode in range(config.episodes):
        draw = generator(config.seed, "train", KIND, "scenario", episode)
        scenario = draw_scenario(config.uavs, draw.uniform(config.damage_low, config.damage_high), draw)
        earned = 0.0
        for item in rollout(scenario, Explorer(learner.actor, noise_at(episode, config), rng)):
            replay.add(item)
            decisions += 1
            earned += float(item.reward.mean())
            if len(replay) >= config.warmup and decisions % config.update_every == 0:
                learner.update(replay.sample(config.batch, rng))
        yield Update(episode + 1, {"reward": earned}, learner.actor)


def job(config: CrMaConfig = SETTINGS) -> Job:
    """The training as a job for `learning.run.run`."""
    rng = generator(TRAINING_SEED, "validate", KIND)
    ratios = rng.uniform(config.damage_low, config.damage_high, size=VALIDATION_CASES)
    small = [validation_scenarios(TRAINING_SEED, (config.uavs,), (ratio,), 1, KIND)[0] for ratio in ratios]
    large = validation_scenarios(TRAINING_SEED, (TRANSFER_UAVS,), TRANSFER_DAMAGE, TRANSFER_CASES, KIND)
    return Job(
        name=KIND,
        version=VERSION,
        iterations=config.episodes,
        updates=learn(config),
        flown_by=lambda network: CrMa(actor=Explorer(network, 0.0, rng)),
        scenarios=[*small, *large],
        every=config.evaluate_every,
        config={**asdict(config), "validation_seed": TRAINING_SEED},
    )
