"""Optional warm start: behavior cloning of the actor's mean on the expert frames (METHODS 4.6, must be disclosed)."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from phygail.experts.augment import ELEMENTS
from phygail.experts.dataset import ExpertSet
from phygail.models.inputs import to_tensors
from phygail.rng import generator
from phygail.training.buffer import shuffled
from phygail.training.learner import Learner
from phygail.training.maps import on_other_maps
from phygail.training.profiles import TrainConfig


def clone_experts(learner: Learner, experts: ExpertSet, config: TrainConfig) -> list[float]:
    """Fit tanh(mean) to the experts' commands over v_max; gives the mean squared error of every pass.

    The spread of u is not touched: exploration starts as configured.
    """
    rng = generator(config.seed, "clone")
    parameters = [*learner.actor.encoder.parameters(), *learner.actor.mean.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=config.clone_rate, weight_decay=config.weight_decay)
    errors = []
    for _ in range(config.clone_passes):
        total, nodes = 0.0, 0
        for numbers in shuffled(experts.frame_count, config.clone_graphs, rng):
            frames = experts.frames(numbers, rng.integers(len(ELEMENTS), size=len(numbers)))
            frames = on_other_maps(frames, config, rng)
            action = learner.actor.mean_action(to_tensors(frames.graph(config.graph_spec)))
            error = (action - torch.from_numpy(frames.commands)).square().sum(dim=1)
            optimizer.zero_grad()
            error.mean().backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
            nn.utils.clip_grad_norm_(parameters, config.gradient_norm)
            optimizer.step()
            total, nodes = total + float(error.detach().sum()), nodes + len(error)
        errors.append(total / max(1, nodes))
    return [float(np.float32(error)) for error in errors]
