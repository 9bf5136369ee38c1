"""Optional warm start: behavior cloning of the actor's mean on the expert frames (METHODS 4.6, must be disclosed)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from phygail.experts.augment import ELEMENTS
from phygail.experts.dataset import ExpertSet
from phygail.models.actor import Actor
from phygail.models.inputs import to_tensors
from phygail.perception.graph import Graph
from phygail.rng import generator
from phygail.training.buffer import shuffled
from phygail.training.learner import Learner
from phygail.training.maps import on_other_maps
from phygail.training.profiles import TrainConfig


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
