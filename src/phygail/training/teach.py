"""Optional warm start, second part: cloning on the policy's own flights (DAgger); must be disclosed like the first.

Frames of experts show only what experts meet: a clone that drifts off meets something else and has no answer. Here the
policy flies, and for every state it comes to a teacher says what it would do there. The teacher is SIDR: it wins most
scenarios of the paper's pool, always reconnects, and needs no memory, so it can answer for any state.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from phygail.experts.dataset import ExpertSet
from phygail.methods import METHODS
from phygail.methods.base import controller
from phygail.perception.batch import join
from phygail.perception.graph import Graph
from phygail.rng import generator
from phygail.swarm.batch import BatchState
from phygail.swarm.dynamics import project_speed
from phygail.training.buffer import shuffled
from phygail.training.clone import Cloner
from phygail.training.collector import CaseSource, exploring, noise_generator, open_worlds
from phygail.training.learner import Learner
from phygail.training.profiles import TrainConfig

TEACHER = "sidr"


def teach(learner: Learner, experts: ExpertSet, config: TrainConfig) -> Iterator[float]:
    """Imitate the teacher where the policy comes to; yields the mean squared error of every round.

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
    flight = exploring(learner.actor, world, noise_generator(config.seed, "taught", number), config)
    return [(seen.graph, teachers_actions(seen.before)) for seen in flight]


def teachers_actions(state: BatchState) -> np.ndarray:
    """(receivers, 2) float32, the teacher's velocities over v_max in all worlds, within the unit disc."""
    actions = []
    for b, scenario in enumerate(state.scenarios):
        speed = scenario.physics.speed_mps
        wanted = controller(METHODS.get(TEACHER)(), scenario)(state.world(b))
        actions.append(project_speed(wanted, np.array(speed)) / speed)
    return np.concatenate(actions).astype(np.float32)
