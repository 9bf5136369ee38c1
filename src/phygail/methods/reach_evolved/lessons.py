"""Lessons: behavior cloning of `reach` in worlds with at most 20 UAVs flying, where evolution starts.

Reach flies worlds with at most 20 UAVs; at every step the gates see what the policy would see (lost teammates at their
roster spots, as reach believes) and learn the velocities that reach commanded. Only this file needs torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from phygail.learning.networks import one_thread
from phygail.learning.worlds import draw_worlds
from phygail.methods.base import make_method
from phygail.methods.reach_evolved import GateShape
from phygail.methods.steering import go
from phygail.rng import generator
from phygail.sensing.beliefs import Beliefs, BeliefSpec
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import Scenario
from phygail.swarm.simulator import initial_state, step

LONGEST_FLIGHT = 150  # steps; afterwards reach has stopped flying toward lost teammates

# The beliefs of reach: lost teammates stay at their spots, and one look rules them out.
REACH_BELIEF = BeliefSpec(drift=0.0, sigma_m=1.0, sigma_rate=0.001, depth_half=0.0, depth_scale=0.05)


@dataclass(frozen=True, eq=False)
class Lesson:
    """One step of one world: what the gates see and what reach commanded (over v_max)."""

    receiver: np.ndarray
    direction: np.ndarray
    weight: np.ndarray
    features: np.ndarray
    anchors: np.ndarray
    subnet: np.ndarray
    base: np.ndarray
    command: np.ndarray


def watch_reach(scenario: Scenario, belief: BeliefSpec = REACH_BELIEF) -> Iterator[Lesson]:
    """The lessons of one flight."""
    observer, beliefs, teacher = Observer(scenario), Beliefs(belief), make_method("reach")
    state = initial_state(scenario)
    speed = scenario.physics.speed_mps
    while not (state.terminated or state.truncated) and state.step < LONGEST_FLIGHT:
        views = observer.observe(state, Scope.SUBNET)
        command = teacher.velocities(views)
        edges = beliefs.observe(views)  # type: ignore[arg-type]  # the scope asked for
        base = go(views.means(state.positions), scenario.center, scenario.physics)  # type: ignore[union-attr]
        yield Lesson(
            edges.receiver, edges.direction, edges.weight, edges.features, edges.anchors,
            views.subnet, base / speed, command / speed,  # type: ignore[union-attr]
        )  # fmt: skip
        state = step(state, command)


def clone_reach(
    shape: GateShape, seed: int, *, worlds: int = 150, passes: int = 12, rate: float = 5e-3, batch: int = 64
) -> tuple[np.ndarray, list[float]]:
    """(gate vector, mean squared error of every pass) of a policy that imitates reach.

    Args:
        shape: Of the gates. seed: Of worlds, initial weights and batches.
        worlds: Flights to watch. passes: Over all lessons. rate: Of Adam, falling to zero. batch: Lessons per update.
    """
    lessons = [lesson for world in draw_worlds(worlds, seed, "clone") for lesson in watch_reach(world)]
    rng = generator(seed, "clone")
    layers = [torch.tensor(part, requires_grad=True) for part in _initial(shape, rng)]
    optimizer = torch.optim.Adam(layers, lr=rate)
    errors = []
    with one_thread():
        for turn in range(passes):
            total, count = 0.0, 0
            order = rng.permutation(len(lessons))
            for group in optimizer.param_groups:
                group["lr"] = rate * (1.0 - turn / passes)
            for start in range(0, len(order), batch):
                error = _errors(layers, [lessons[k] for k in order[start : start + batch]])
                optimizer.zero_grad()
                error.mean().backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
                torch.nn.utils.clip_grad_norm_(layers, 1.0)
                optimizer.step()
                total, count = total + float(error.detach().sum()), count + len(error)
            errors.append(total / max(count, 1))
    return np.concatenate([layer.detach().numpy().ravel() for layer in layers]), errors


def _initial(shape: GateShape, rng: np.random.Generator) -> list[np.ndarray]:
    """Small random weights; gates that attract with a strength of one, an anchor that flies at full speed."""
    parts = [rng.normal(0.0, 0.4, part.shape).astype(np.float32) for part in shape.layers(np.zeros(shape.size))]
    parts[3][:] = (2.0, -2.0, 0.0)
    parts[6][:] *= 0.1
    parts[7][:] = (0.0, -3.0)
    return parts


def _errors(layers: Sequence[Tensor], lessons: Sequence[Lesson]) -> Tensor:
    """(n,) squared error of the commanded velocity of every UAV, over v_max squared, before links are kept."""
    rows = np.cumsum([0, *(len(lesson.subnet) for lesson in lessons)])
    labels = np.cumsum([0, *(len(lesson.anchors) for lesson in lessons)])

    def join(name: str) -> Tensor:
        return torch.from_numpy(np.concatenate([getattr(lesson, name) for lesson in lessons]).astype(np.float32))

    receiver = torch.from_numpy(
        np.concatenate([lesson.receiver + row for lesson, row in zip(lessons, rows, strict=False)])
    )
    subnet = torch.from_numpy(
        np.concatenate([lesson.subnet + label for lesson, label in zip(lessons, labels, strict=False)])
    )
    ew1, eb1, ew2, eb2, aw1, ab1, aw2, ab2 = layers
    edge = torch.relu(join("features") @ ew1 + eb1) @ ew2 + eb2
    anchor = torch.relu(join("anchors") @ aw1 + ab1) @ aw2 + ab2
    strength = (edge[:, 0].sigmoid() - edge[:, 1].sigmoid()) * edge[:, 2].clamp(-10.0, 6.0).exp() * join("weight")
    pull = torch.zeros(int(rows[-1]), 2).index_add(0, receiver, strength[:, None] * join("direction"))
    base = join("base") * (1.0 + anchor[:, :1]).clamp(0.0, 1.0)
    wanted = base[subnet] + pull
    size = wanted.norm(dim=1, keepdim=True)
    return (wanted / size.clamp(min=1.0) - join("command")).square().sum(dim=1)
