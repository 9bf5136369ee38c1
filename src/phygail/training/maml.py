"""First-order model-agnostic meta-learning of the planners' initial weights (METHODS 3.4).

For a pair of tasks (support, query), theta' = theta - rate * g_support(theta); the query's gradient at theta' moves
theta. One theta serves every swarm size: the weights of a planner do not depend on the number of UAVs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from phygail.models.planners import ConvolutionStack
from phygail.rng import generator
from phygail.swarm.scenario import Scenario, draw_scenario
from phygail.training.loop import Update
from phygail.training.validate import TRAINING_SEED

LEAST_ALIVE = 3
VALIDATION_DAMAGE = (0.25, 0.5, 0.75, 0.9)
VALIDATION_CASES = 3  # per size and damage ratio

Task = TypeVar("Task")


@dataclass(frozen=True)
class MetaConfig:
    """Settings of the meta-learning.

    Attributes:
        seed: Of tasks, pairs and first weights.
        profile: Of CR-MGC, whose network: "fast" (256 units, normalized input) or "faithful" (500 units, raw metres).
        iterations: Meta-iterations.
        pairs: Task pairs (support, query) per iteration.
        tasks: Scenarios drawn once; each use turns or mirrors one at random (D4).
        sizes: Swarm sizes N of the tasks.
        damage: Range of the damage ratio, drawn uniformly.
        inner_rate: Of the one gradient step on the support task.
        rates: Adam's rates of theta, in equal shares of the run.
        rate_scale: Factor on these rates; networks that read raw metres saturate unless it is small.
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
