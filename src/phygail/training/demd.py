"""Pre-training of the starting point of DEMD's guarded profile (METHODS 3.5, CPU note): `phygail train demd`."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import torch
from torch import Tensor

from phygail.methods.cr_mgc import canonical_order
from phygail.methods.demd import KIND, VERSION, Demd, demd_case
from phygail.models.demd import DEMD_PROFILES, DemdCase, center_offset, raw_targets
from phygail.models.plan_loss import gap, smooth_displacement
from phygail.models.planners import ConvolutionStack
from phygail.perception.view import GlobalView, Observer, Scope
from phygail.swarm.scenario import D4, Scenario
from phygail.swarm.state import initial_state
from phygail.training.loop import Job
from phygail.training.maml import VALIDATION_CASES, VALIDATION_DAMAGE, MetaConfig, draw_swarms, meta_learn
from phygail.training.validate import validation_scenarios


def job(config: MetaConfig | None = None) -> Job:
    """The training as a job for `training.loop.run`; snapshots compete after a few online iterations."""
    config = config or MetaConfig()
    tasks = [make_task(scenario) for scenario in draw_swarms(config, KIND)]

    def draw(rng: np.random.Generator) -> DemdCase:
        return turned(tasks[rng.integers(len(tasks))], D4[rng.integers(len(D4))])

    return Job(
        name=KIND,
        version=VERSION,
        iterations=config.iterations,
        updates=meta_learn(config, DEMD_PROFILES["guarded"].width, draw, pretraining_loss, KIND),
        pilot=lambda network: Demd(profile="guarded", weights=network.state_dict(), iterations=config.online),
        scenarios=validation_scenarios(config.seed, config.sizes, VALIDATION_DAMAGE, VALIDATION_CASES),
        every=config.validate_every,
        by="mean_largest_move_m",
        config=asdict(config),
    )


def pretraining_loss(network: ConvolutionStack, task: DemdCase) -> Tensor:
    """(L1 + L2 + gap) / (W/2), L1 smooth: the two losses at their initial weights, and the guard."""
    targets, _ = raw_targets(network, task)
    loss = smooth_displacement(targets, task.positions) + center_offset(targets, task) + gap(targets, task.range_m)
    return loss / (task.width_m / 2)


def make_task(scenario: Scenario) -> DemdCase:
    """A scenario as the planner sees it."""
    view = Observer(scenario).observe(initial_state(scenario), Scope.GLOBAL)
    assert isinstance(view, GlobalView)
    return demd_case(view, canonical_order(view.positions), centered=True)


def turned(task: DemdCase, matrix: np.ndarray) -> DemdCase:
    """The task turned or mirrored about the map's center by an element of D4."""
    turn = torch.tensor(matrix.T, dtype=torch.float32)
    return replace(task, roster=task.roster @ turn, positions=task.positions @ turn, box_center=task.box_center @ turn)
