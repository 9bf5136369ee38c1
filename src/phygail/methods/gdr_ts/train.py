"""Offline training of the GDR-TS policy (METHODS 3.6): `phygail train gdr-ts`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from phygail.learning.run import TRAINING_SEED, Job, Update, validation_scenarios
from phygail.methods.gdr_ts import KIND, VERSION, GdrTs, make_task
from phygail.methods.gdr_ts.policy import PlanPolicy, PlanTask, descend, sample_plans
from phygail.rng import generator
from phygail.swarm.scenario import D4, draw_scenario

VALIDATION_DAMAGE = (0.25, 0.5, 0.75, 0.9)
VALIDATION_CASES = 2  # per size and damage ratio: 24 in all


@dataclass(frozen=True)
class GdrTsConfig:
    """Settings of the offline training; where they differ from METHODS 3.6, docs/methods/gdr-ts.md says why."""

    seed: int = TRAINING_SEED  # of the network, tasks and noise
    sizes: tuple[int, ...] = (20, 50, 100)  # N of the training swarms
    damage_low: float = 0.1  # damage ratio, uniform between the two
    damage_high: float = 0.9
    tasks: int = 400  # drawn once; each use turns or mirrors one at random (D4)
    updates: int = 600
    scenarios: int = 8  # per update
    plans: int = 32  # per scenario
    rate_first: float = 1e-3  # Adam, falling linearly
    rate_last: float = 1e-4
    std_rate: float = 5e-3  # Adam, of the log-std
    evaluate_every: int = 100  # updates
    online: int = 30  # online updates that a validation grants


SETTINGS = GdrTsConfig()


def draw_tasks(config: GdrTsConfig) -> list[PlanTask]:
    """Fresh split swarms with their warm starts."""
    return [_draw_task(config, generator(config.seed, "train", KIND, "task", k)) for k in range(config.tasks)]


def _draw_task(config: GdrTsConfig, rng: np.random.Generator) -> PlanTask:
    uavs = int(rng.choice(config.sizes))
    scenario = draw_scenario(uavs, rng.uniform(config.damage_low, config.damage_high), rng)
    return make_task(scenario.spots - scenario.center, scenario.width_m / 2, scenario.physics)[0]


def turned(tasks: list[PlanTask], rng: np.random.Generator) -> PlanTask:
    """A task at random, turned or mirrored at random about the center."""
    task, matrix = tasks[rng.integers(len(tasks))], D4[rng.integers(len(D4))].T
    return replace(task, positions=task.positions @ matrix, warm=task.warm @ matrix)


def learn(config: GdrTsConfig) -> Iterator[Update]:
    """Policy gradient on tasks at random; yields after every update."""
    policy, tasks = PlanPolicy(config.seed), draw_tasks(config)
    rng = generator(config.seed, "train", KIND)
    noise = torch.Generator().manual_seed(int(rng.integers(2**31)))
    body = [parameter for name, parameter in policy.named_parameters() if name != "log_std"]
    groups: list[dict[str, Any]] = [{"params": body}, {"params": [policy.log_std], "lr": config.std_rate}]
    optimizer = torch.optim.Adam(groups)
    for update in range(1, config.updates + 1):
        share = update / config.updates
        optimizer.param_groups[0]["lr"] = (1 - share) * config.rate_first + share * config.rate_last
        drawn = [sample_plans(policy, turned(tasks, rng), config.plans, noise) for _ in range(config.scenarios)]
        descend(policy, optimizer, torch.stack([item.loss for item in drawn]).mean())
        reward = float(np.mean([item.judgment.reward[: config.plans].mean() for item in drawn]))
        yield Update(update, {"reward": reward}, policy)


def job(config: GdrTsConfig = SETTINGS) -> Job:
    """The training as a job for `learning.run.run`; snapshots compete with plans after online learning."""
    return Job(
        name=KIND,
        version=VERSION,
        iterations=config.updates,
        updates=learn(config),
        # The same draws in every scenario, as when the bundled weights were chosen.
        flown_by=lambda network: GdrTs(np.random.default_rng(0), weights=network.state_dict(), updates=config.online),
        scenarios=validation_scenarios(TRAINING_SEED, config.sizes, VALIDATION_DAMAGE, VALIDATION_CASES, KIND),
        every=config.evaluate_every,
        by="mean_largest_move_m",
        config={**asdict(config), "validation_seed": TRAINING_SEED},
    )
