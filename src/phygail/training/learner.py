"""The three networks, their optimizers, and where the run stands: all that a resumed run needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn

from phygail.config import InputError
from phygail.models.actor import Actor
from phygail.models.critic import Critic
from phygail.models.discriminator import Discriminator
from phygail.models.initial import seeded
from phygail.training.holdout import Score
from phygail.training.profiles import TrainConfig

CLOCK_INPUTS = 2  # t / T_max and t / (alpha T_E)


@dataclass(eq=False)
class Learner:
    """What learns.

    Attributes:
        actor, critic, discriminator: Networks, each with its own encoder.
        optimizers: AdamW per network, by its name.
        epoch: Finished epochs.
        best: Validation of the best policy so far. best_epoch: Its epoch.
    """

    actor: Actor
    critic: Critic
    discriminator: Discriminator
    optimizers: dict[str, torch.optim.AdamW]
    epoch: int = 0
    best: Score | None = None
    best_epoch: int = 0

    @property
    def networks(self) -> dict[str, nn.Module]:
        """The networks by name."""
        return {"actor": self.actor, "critic": self.critic, "discriminator": self.discriminator}

    def descend(self, name: str, limit: float) -> float:
        """One optimizer step of a network with the gradients it has, clipped to the norm `limit`; gives their norm."""
        norm = float(nn.utils.clip_grad_norm_(self.networks[name].parameters(), limit))
        if not math.isfinite(norm):
            raise InputError(f"the gradient of the {name} is {norm}: start a new run with a lower rate")
        self.optimizers[name].step()
        self.optimizers[name].zero_grad()
        return norm


def make_learner(config: TrainConfig) -> Learner:
    """Fresh networks and optimizers; equal configs give equal weights."""
    spec = config.encoder_spec
    with seeded(config.seed):
        actor = Actor(spec)
        critic = Critic(
            spec, centralized=config.centralized_critic, extra=CLOCK_INPUTS if config.critic_clock else 0
        )  # fmt: skip
        discriminator = Discriminator(spec)
    last = actor.log_std[-1]
    assert isinstance(last, nn.Linear)
    nn.init.constant_(last.bias, config.initial_log_std)
    networks: dict[str, nn.Module] = {"actor": actor, "critic": critic, "discriminator": discriminator}
    optimizers = {
        name: torch.optim.AdamW(network.parameters(), lr=config.rate, weight_decay=config.weight_decay)
        for name, network in networks.items()
    }
    return Learner(actor, critic, discriminator, optimizers)
