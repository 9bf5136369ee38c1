"""Actor and critic of CR-MA."""

import numpy as np
import torch

from phygail.methods.cr_ma import NumpyActor
from phygail.methods.cr_ma.train import Actor, Critic


def batch(agents: int = 6) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(0)
    return (
        torch.randn(3, agents, 20, generator=source),
        torch.rand(3, agents, 2, generator=source) * 2 - 1,
        torch.arange(agents)[None] < torch.tensor([[2], [4], [agents]]),
    )


def test_the_actor_has_the_widths_and_the_quiet_start_of_the_method() -> None:
    actor = Actor()
    assert sum(p.numel() for p in actor.parameters()) == 20 * 128 + 128 + 128 * 128 + 128 + 128 * 2 + 2
    assert actor(batch()[0]).abs().max() < 0.1


def test_numpy_and_torch_actors_agree() -> None:
    actor = Actor()
    with torch.no_grad():
        actor.layers[-1].weight.mul_(100)
    layers = tuple(
        (m.weight.detach().numpy().astype(float), m.bias.detach().numpy().astype(float)) for m in actor.layers
    )
    observation = batch()[0]
    np.testing.assert_allclose(NumpyActor(layers)(observation.numpy()), actor(observation).detach().numpy(), atol=1e-6)


def test_critic_follows_a_renumbering_of_the_uavs() -> None:
    """MA-4."""
    critic, (observation, action, alive) = Critic(), batch()
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    turned = critic(observation[:, order], action[:, order], alive[:, order])
    torch.testing.assert_close(turned, critic(observation, action, alive)[:, order])


def test_critic_ignores_padding() -> None:
    """MA-4: rows of padding change nothing, and a shorter padding gives the same values."""
    critic, (observation, action, alive) = Critic(), batch()
    values = critic(observation, action, alive)
    dirty = torch.where(alive[..., None], observation, torch.tensor(1e3))
    torch.testing.assert_close(critic(dirty, action, alive), values)
    torch.testing.assert_close(critic(observation[:1, :2], action[:1, :2], alive[:1, :2]), values[:1, :2])
    assert (values[~alive] == 0).all()


def test_every_uav_matters_to_the_value_of_every_other() -> None:
    critic, (observation, action, alive) = Critic(), batch()
    observation.requires_grad_()
    critic(observation, action, alive)[2, 0].backward()
    assert observation.grad is not None
    assert (observation.grad[2].abs().sum(dim=-1) > 0).all()
    assert (observation.grad[:2] == 0).all()
