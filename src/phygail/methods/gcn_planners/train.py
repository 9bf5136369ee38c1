"""Meta-learning of CR-MGC's initial weights (METHODS 3.4): `phygail train cr-mgc`. DEMD uses it, too.

The same training gives the initial weights of DEMD's guarded profile (METHODS 3.5, CPU note): `phygail train demd`.

For a pair of tasks (support, query), theta' = theta - rate * g_support(theta); the query's gradient at theta' moves
theta. One theta serves every swarm size: the weights of a planner do not depend on the number of UAVs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from phygail.learning.run import TRAINING_SEED, Job, Update, validation_scenarios
from phygail.methods.gcn_planners import CR_MGC, DEMD, VERSION, CrMgc, Demd, demd_case, plan_case
from phygail.methods.gcn_planners.network import ConvolutionStack
from phygail.methods.gcn_planners.search import (
    DEMD_PROFILES,
    PROFILES,
    DemdCase,
    PlanCase,
    center_offset,
    descent_loss,
    gap,
    raw_targets,
    smooth_displacement,
    squashed_targets,
)
from phygail.methods.planning import canonical_order, contraction
from phygail.rng import generator
from phygail.sensing.views import GlobalView, Observer, Scope
from phygail.swarm.scenario import D4, Scenario, draw_scenario
from phygail.swarm.simulator import initial_state

LEAST_ALIVE = 3
VALIDATION_DAMAGE = (0.25, 0.5, 0.75, 0.9)
VALIDATION_CASES = 3  # per size and damage ratio

Task = TypeVar("Task")


@dataclass(frozen=True)
class MetaConfig:
    """Settings of the meta-learning.

    Attributes:
        seed: Of tasks, pairs and first weights.
        profile: Of CR-MGC, whose network: "fast" (256 units, normalized input) or "faithful" (500 units, raw meters).
        iterations: Meta-iterations.
        pairs: Task pairs (support, query) per iteration.
        tasks: Scenarios drawn once; each use turns or mirrors one at random (D4).
        sizes: Swarm sizes N of the tasks.
        damage: Range of the damage ratio, drawn uniformly.
        inner_rate: Of the one gradient step on the support task.
        rates: Adam's rates of theta, in equal shares of the run.
        rate_scale: Factor on these rates; networks that read raw meters saturate unless it is small.
        norm: Gradients are clipped to this norm.
        validate_every: Iterations between validations.
        online: Online iterations that a validation grants.
    """

    seed: int = TRAINING_SEED
    profile: Literal["fast", "faithful"] = "fast"
    iterations: int = 3000
    pairs: int = 4
    tasks: int = 1000
    sizes: tuple[int, ...] = (20, 50, 100, 200)
    damage: tuple[float, float] = (0.1, 0.95)
    inner_rate: float = 1e-4
    rates: tuple[float, ...] = (1e-3, 3e-4, 1e-4)
    rate_scale: float = 1.0
    norm: float = 1.0
    validate_every: int = 300
    online: int = 30


SETTINGS = MetaConfig()


def draw_swarms(config: MetaConfig, purpose: str) -> Iterator[Scenario]:
    """Fresh split swarms with at least three alive, from seeds that no report uses."""
    for number in range(config.tasks):
        rng = generator(config.seed, "train", purpose, "task", number)
        uavs = int(rng.choice(config.sizes))
        yield draw_scenario(uavs, min(rng.uniform(*config.damage), 1.0 - LEAST_ALIVE / uavs), rng)


def meta_learn(
    config: MetaConfig,
    width: int,
    draw: Callable[[np.random.Generator], Task],
    loss: Callable[[ConvolutionStack, Task], Tensor],
    purpose: str,
) -> Iterator[Update]:
    """Learn theta; yields after every meta-iteration.

    Args:
        config: The settings.
        width: Units of a hidden layer.
        draw: A task at random.
        loss: What a network costs on a task.
        purpose: Name of the random stream.
    """
    rng = generator(config.seed, "train", purpose)
    network = ConvolutionStack(width, torch.Generator().manual_seed(int(rng.integers(2**31))))
    optimizer = torch.optim.Adam(network.parameters(), lr=config.rates[0])
    for iteration in range(config.iterations):
        rate = config.rates[iteration * len(config.rates) // config.iterations]
        optimizer.param_groups[0]["lr"] = config.rate_scale * rate
        pairs = [(draw(rng), draw(rng)) for _ in range(config.pairs)]
        yield Update(iteration + 1, {"loss": meta_step(network, optimizer, pairs, loss, config)}, network)


def meta_step(
    network: ConvolutionStack,
    optimizer: torch.optim.Optimizer,
    pairs: list[tuple[Task, Task]],
    loss: Callable[[ConvolutionStack, Task], Tensor],
    config: MetaConfig,
) -> float:
    """One meta-iteration: the mean of the query gradients, clipped, moves theta; returns the mean query loss."""
    parameters = list(network.parameters())
    theta = [parameter.detach().clone() for parameter in parameters]
    total = [torch.zeros_like(parameter) for parameter in parameters]
    losses = []
    for support, query in pairs:
        _, inner = clipped_gradient(network, loss(network, support), config.norm)
        with torch.no_grad():
            for parameter, slope in zip(parameters, inner, strict=True):
                parameter.sub_(slope, alpha=config.inner_rate)
        value, outer = clipped_gradient(network, loss(network, query), config.norm)
        losses.append(value)
        with torch.no_grad():
            for parameter, start, slope, added in zip(parameters, theta, outer, total, strict=True):
                parameter.copy_(start)
                added.add_(slope, alpha=1 / len(pairs))
    for parameter, slope in zip(parameters, total, strict=True):
        parameter.grad = slope
    nn.utils.clip_grad_norm_(parameters, config.norm)
    optimizer.step()
    return float(np.mean(losses))


def clipped_gradient(network: nn.Module, loss: Tensor, norm: float) -> tuple[float, list[Tensor]]:
    """(loss, its gradient with the norm clipped)."""
    slopes = torch.autograd.grad(loss, list(network.parameters()))
    size = torch.sqrt(sum((slope.square().sum() for slope in slopes), torch.zeros(())))
    scale = min(1.0, norm / max(size.item(), 1e-12))
    return loss.item(), [slope * scale for slope in slopes]


def cr_mgc_job(config: MetaConfig = SETTINGS) -> Job:
    """The training as a job for `learning.run.run`; snapshots compete after a few online iterations."""
    profile = PROFILES[config.profile]
    tasks = [plan_task(scenario, normalized=profile.normalized) for scenario in draw_swarms(config, CR_MGC)]

    def draw(rng: np.random.Generator) -> PlanCase:
        task, matrix = tasks[rng.integers(len(tasks))], D4[rng.integers(len(D4))]
        return turned_plan(task, matrix, normalized=profile.normalized)

    def loss(network: ConvolutionStack, task: PlanCase) -> Tensor:
        return descent_loss(squashed_targets(network, task), task, smooth=profile.smooth, guard=True) / task.half_m

    return Job(
        name=CR_MGC,
        version=VERSION,
        iterations=config.iterations,
        updates=meta_learn(config, profile.width, draw, loss, f"{CR_MGC} {config.profile}"),
        flown_by=lambda network: CrMgc(profile=config.profile, weights=network.state_dict(), iterations=config.online),
        scenarios=validation_scenarios(config.seed, config.sizes, VALIDATION_DAMAGE, VALIDATION_CASES),
        every=config.validate_every,
        by="mean_largest_move_m",
        config=asdict(config),
    )


def plan_task(scenario: Scenario, *, normalized: bool) -> PlanCase:
    """A scenario as the planner sees it."""
    mission = Observer(scenario).mission
    operator = contraction(scenario.spots, mission.physics.range_m).operator
    return plan_case(scenario.spots, operator, mission, normalized=normalized)


def turned_plan(task: PlanCase, matrix: np.ndarray, *, normalized: bool) -> PlanCase:
    """The task turned or mirrored about the map's center by an element of D4."""
    turn = torch.tensor(matrix.T, dtype=torch.float32)
    shift = 0.0 if normalized else task.half_m  # raw meters count from the map's corner
    return replace(task, inputs=(task.inputs - shift) @ turn + shift, positions=task.positions @ turn)


def demd_job(config: MetaConfig = SETTINGS) -> Job:
    """The training as a job for `learning.run.run`; snapshots compete after a few online iterations."""
    tasks = [hop_task(scenario) for scenario in draw_swarms(config, DEMD)]

    def draw(rng: np.random.Generator) -> DemdCase:
        return turned_hops(tasks[rng.integers(len(tasks))], D4[rng.integers(len(D4))])

    return Job(
        name=DEMD,
        version=VERSION,
        iterations=config.iterations,
        updates=meta_learn(config, DEMD_PROFILES["guarded"].width, draw, pretraining_loss, DEMD),
        flown_by=lambda network: Demd(profile="guarded", weights=network.state_dict(), iterations=config.online),
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


def hop_task(scenario: Scenario) -> DemdCase:
    """A scenario as the planner sees it."""
    view = Observer(scenario).observe(initial_state(scenario), Scope.GLOBAL)
    assert isinstance(view, GlobalView)
    return demd_case(view, canonical_order(view.positions), centered=True)


def turned_hops(task: DemdCase, matrix: np.ndarray) -> DemdCase:
    """The task turned or mirrored about the map's center by an element of D4."""
    turn = torch.tensor(matrix.T, dtype=torch.float32)
    return replace(task, roster=task.roster @ turn, positions=task.positions @ turn, box_center=task.box_center @ turn)
