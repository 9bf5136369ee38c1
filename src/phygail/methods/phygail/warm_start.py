"""Optional warm start, to be disclosed: behavior cloning of expert frames, then DAgger (METHODS 4.6).

Expert frames show only states of experts: a clone that drifts off gets into other states and has no answer. Here the
policy flies, and a teacher says for each of its states what it would do there. The teacher is SIDR: it wins most
scenarios of the paper's pool, always reconnects, and needs no memory, so it can answer for any state.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from phygail.learning.networks import noise_generator
from phygail.methods.base import METHODS
from phygail.methods.controller import controller
from phygail.methods.phygail.config import TrainConfig
from phygail.methods.phygail.experts.dataset import ELEMENTS, ExpertSet
from phygail.methods.phygail.graph import Graph
from phygail.methods.phygail.graph_batch import join
from phygail.methods.phygail.heads import Actor
from phygail.methods.phygail.learner import Learner
from phygail.methods.phygail.network import to_tensors
from phygail.methods.phygail.rollout import CaseSource, exploring, on_other_maps, open_worlds, shuffled
from phygail.rng import generator
from phygail.swarm.batch import BatchState
from phygail.swarm.simulator import project_speed

TEACHER = "sidr"


class Cloner:
    """Fits tanh(mean) to wanted commands over v_max. The spread of u is not touched: exploration starts as set."""

    def __init__(self, actor: Actor, config: TrainConfig) -> None:
        self._actor, self._config = actor, config
        self._parameters = [*actor.encoder.parameters(), *actor.mean.parameters()]
        self._optimizer = torch.optim.AdamW(self._parameters, lr=config.clone_rate, weight_decay=config.weight_decay)
        self._total, self._nodes = 0.0, 0

    def learn(self, graph: Graph, wanted: np.ndarray) -> None:
        """One optimizer step on some observations and the (receivers, 2) commands wanted there."""
        error = (self._actor.mean_action(to_tensors(graph)) - torch.from_numpy(wanted)).square().sum(dim=1)
        self._optimizer.zero_grad()
        error.mean().backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
        nn.utils.clip_grad_norm_(self._parameters, self._config.gradient_norm)
        self._optimizer.step()
        self._total, self._nodes = self._total + float(error.detach().sum()), self._nodes + len(error)

    def lap(self) -> float:
        """Mean squared error since the last lap."""
        error = float(np.float32(self._total / max(1, self._nodes)))
        self._total, self._nodes = 0.0, 0
        return error


def clone_experts(learner: Learner, experts: ExpertSet, config: TrainConfig) -> Iterator[float]:
    """Imitate the expert frames; yields the mean squared error of every pass."""
    rng = generator(config.seed, "clone")
    cloner = Cloner(learner.actor, config)
    for _ in range(config.clone_passes):
        for numbers in shuffled(experts.frame_count, config.clone_graphs, rng):
            frames = experts.frames(numbers, rng.integers(len(ELEMENTS), size=len(numbers)))
            frames = on_other_maps(frames, config, rng)
            cloner.learn(frames.graph(config.graph_spec), frames.commands)
        yield cloner.lap()


def teach(learner: Learner, experts: ExpertSet, config: TrainConfig) -> Iterator[float]:
    """Imitate the teacher in the states of the policy; yields the mean squared error of every round.

    A round flies `worlds` x `horizon` steps and learns from them once.
    """
    cloner = Cloner(learner.actor, config)
    steps = max(1, config.clone_graphs // config.worlds)  # of all worlds, per optimizer step
    for number in range(config.teach_rounds):
        lessons = fly_and_ask(learner, experts, config, number)
        for part in shuffled(len(lessons), steps, generator(config.seed, "lessons", number)):
            cloner.learn(join([lessons[k][0] for k in part]), np.concatenate([lessons[k][1] for k in part]))
        yield cloner.lap()


def fly_and_ask(
    learner: Learner, experts: ExpertSet, config: TrainConfig, number: int
) -> list[tuple[Graph, np.ndarray]]:
    """What the exploring policy saw in every step, and what the teacher would have done ((receivers, 2) float32)."""
    world = open_worlds(CaseSource(experts, generator(config.seed, "taught", number), config), experts, config)
    observation, noise = config.new_observation(), noise_generator(config.seed, "taught", number)
    observation.begin(world.state, np.arange(config.worlds))
    flight = exploring(learner.actor, world, observation, noise, config)
    return [(seen.graph, teachers_actions(seen.before)) for seen in flight]


def teachers_actions(state: BatchState) -> np.ndarray:
    """(receivers, 2) float32, the teacher's velocities over v_max in all worlds, within the unit disc."""
    actions = []
    for b, scenario in enumerate(state.scenarios):
        speed = scenario.physics.speed_mps
        wanted = controller(METHODS.get(TEACHER)(), scenario)(state.world(b))
        actions.append(project_speed(wanted, np.array(speed)) / speed)
    return np.concatenate(actions).astype(np.float32)
