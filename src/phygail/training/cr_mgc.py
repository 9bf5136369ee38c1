"""Meta-learning of CR-MGC's initial weights (METHODS 3.4): `phygail train cr-mgc`."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import torch
from torch import Tensor

from phygail.methods.contraction import contraction
from phygail.methods.cr_mgc import KIND, VERSION, CrMgc, plan_case
from phygail.models.plan_search import PROFILES, PlanCase, descent_loss, squashed_targets
from phygail.models.planners import ConvolutionStack
from phygail.perception.view import Observer
from phygail.swarm.scenario import D4, Scenario
from phygail.training.loop import Job
from phygail.training.maml import VALIDATION_CASES, VALIDATION_DAMAGE, MetaConfig, draw_swarms, meta_learn
from phygail.training.validate import validation_scenarios


def job(config: MetaConfig | None = None) -> Job:
    """The training as a job for `training.loop.run`; snapshots compete after a few online iterations."""
    config = config or MetaConfig()
    profile = PROFILES[config.profile]
    tasks = [make_task(scenario, normalized=profile.normalized) for scenario in draw_swarms(config, KIND)]

    def draw(rng: np.random.Generator) -> PlanCase:
        task, matrix = tasks[rng.integers(len(tasks))], D4[rng.integers(len(D4))]
        return turned(task, matrix, normalized=profile.normalized)

    def loss(network: ConvolutionStack, task: PlanCase) -> Tensor:
        return descent_loss(squashed_targets(network, task), task, smooth=profile.smooth, guard=True) / task.half_m

    return Job(
        name=KIND,
        version=VERSION,
        iterations=config.iterations,
        updates=meta_learn(config, profile.width, draw, loss, f"{KIND} {config.profile}"),
        pilot=lambda network: CrMgc(profile=config.profile, weights=network.state_dict(), iterations=config.online),
        scenarios=validation_scenarios(config.seed, config.sizes, VALIDATION_DAMAGE, VALIDATION_CASES),
        every=config.validate_every,
        by="mean_largest_move_m",
        config=asdict(config),
    )


def make_task(scenario: Scenario, *, normalized: bool) -> PlanCase:
    """A scenario as the planner sees it."""
    mission = Observer(scenario).mission
    operator = contraction(scenario.spots, mission.physics.range_m).operator
    return plan_case(scenario.spots, operator, mission, normalized=normalized)


def turned(task: PlanCase, matrix: np.ndarray, *, normalized: bool) -> PlanCase:
    """The task turned or mirrored about the map's center by an element of D4."""
    turn = torch.tensor(matrix.T, dtype=torch.float32)
    shift = 0.0 if normalized else task.half_m  # raw metres count from the map's corner
    return replace(task, inputs=(task.inputs - shift) @ turn + shift, positions=task.positions @ turn)
