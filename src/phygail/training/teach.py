"""Optional warm start, second part: cloning on the policy's own flights (DAgger); must be disclosed like the first.

Frames of experts show only what experts meet: a clone that drifts off meets something else and has no answer. Here the
policy flies, and for every state it comes to a teacher says what it would do there. The teacher is SIDR: it wins most
scenarios of the paper's pool, always reconnects, and needs no memory, so it can answer for any state.
"""

from __future__ import annotations

import logging

import numpy as np
import torch
from torch import nn

from phygail.experts.dataset import ExpertSet
from phygail.methods import METHODS
from phygail.methods.base import controller
from phygail.models.inputs import to_tensors
from phygail.perception.batch import join
from phygail.perception.graph import Graph
from phygail.rng import generator
from phygail.swarm.batch import BatchState, BatchWorld
from phygail.swarm.dynamics import project_speed
from phygail.training.buffer import shuffled
from phygail.training.collector import CaseSource, explore, noise_generator
from phygail.training.learner import Learner
from phygail.training.observe import fill_commands, observe
from phygail.training.profiles import TrainConfig

TEACHER = "sidr"

log = logging.getLogger("phygail")


def teach(learner: Learner, experts: ExpertSet, config: TrainConfig) -> list[float]:
    """Fit tanh(mean) to what the teacher would do where the policy comes to; gives the mean squared error per round.

    Every round flies `worlds` x `horizon` steps and learns from them once; the spread of u is not touched.
    """
    parameters = [*learner.actor.encoder.parameters(), *learner.actor.mean.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=config.clone_rate, weight_decay=config.weight_decay)
    steps = max(1, config.clone_graphs // config.worlds)  # of all worlds, per optimizer step
    errors = []
    for number in range(config.teach_rounds):
        lessons = fly_and_ask(learner, experts, config, number)
        total, nodes = 0.0, 0
        for part in shuffled(len(lessons), steps, generator(config.seed, "lessons", number)):
            graph, wanted = join([lessons[k][0] for k in part]), np.concatenate([lessons[k][1] for k in part])
            error = (learner.actor.mean_action(to_tensors(graph)) - torch.from_numpy(wanted)).square().sum(dim=1)
            optimizer.zero_grad()
            error.mean().backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
            nn.utils.clip_grad_norm_(parameters, config.gradient_norm)
            optimizer.step()
            total, nodes = total + float(error.detach().sum()), nodes + len(error)
        errors.append(float(np.float32(total / max(1, nodes))))
        log.info("taught round %d/%d  mean squared error %.3f", number + 1, config.teach_rounds, errors[-1])
    return errors


def fly_and_ask(
    learner: Learner, experts: ExpertSet, config: TrainConfig, number: int
) -> list[tuple[Graph, np.ndarray]]:
    """What the exploring policy saw in every step, and what the teacher would have done ((receivers, 2) float32)."""
    source = CaseSource(experts, generator(config.seed, "taught", number), config)
    noise = noise_generator(config.seed, "taught", number)
    world = BatchWorld(source, config.worlds, least_rows=int(experts.archive.alive[experts.members].max(initial=0)))
    lessons = []
    for _ in range(config.horizon):
        before = world.state
        graph = observe(before, config.graph_spec)
        lessons.append((graph, teachers_actions(before)))
        u, _ = explore(learner.actor, graph, noise)
        world.step(fill_commands(before, np.tanh(u)))
    return lessons


def teachers_actions(state: BatchState) -> np.ndarray:
    """(receivers, 2) float32, the teacher's velocities over v_max in all worlds, within the unit disc."""
    actions = []
    for b, scenario in enumerate(state.scenarios):
        speed = scenario.physics.speed_mps
        wanted = controller(METHODS.get(TEACHER)(), scenario)(state.world(b))
        actions.append(project_speed(wanted, np.array(speed)) / speed)
    return np.concatenate(actions).astype(np.float32)
