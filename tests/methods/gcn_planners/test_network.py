"""The planners' optimizer without autograd against autograd and torch's own Adam."""

import pytest
import torch

from phygail.methods.gcn_planners.network import ConvolutionStack, StackDescent

WIDTH, STEPS, RATE = 16, 25, 2e-3


def make_case(*, embedded: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """(inputs, H, operator of the first layer): 6 alive, 9 in all if the lost are embedded; H is not symmetric."""
    draw = torch.Generator().manual_seed(3)
    operator = torch.softmax(torch.randn(6, 6, generator=draw), dim=1)
    first = (torch.rand(6, 9, generator=draw) < 0.4).float() if embedded else None
    return torch.randn(9 if embedded else 6, 2, generator=draw), operator, first


def loss_of(raw: torch.Tensor) -> torch.Tensor:
    return (raw - torch.arange(12.0).view(6, 2)).square().sum(dim=1).sqrt().logsumexp(dim=0)


@pytest.mark.parametrize("gather_last", [True, False])
@pytest.mark.parametrize("embedded", [True, False])
def test_it_is_autograd_and_adam(embedded, gather_last):
    inputs, operator, first = make_case(embedded=embedded)
    ours, theirs = (ConvolutionStack(WIDTH, torch.Generator().manual_seed(0)) for _ in range(2))
    with torch.no_grad():  # units that never fire: their second moments stay zero
        for network in (ours, theirs):
            network.convolutions[1].bias[:5] = -1e6
    descent = StackDescent(ours, inputs, operator, first, rate=RATE, gather_last=gather_last)
    adam = torch.optim.Adam(theirs.parameters(), lr=RATE)
    for step in range(STEPS):
        descent.rate = adam.param_groups[0]["lr"] = RATE * (1 - step / STEPS)
        raw = descent.forward().requires_grad_()
        x = inputs
        for k, layer in enumerate(theirs.convolutions):
            x = layer(x if k == 0 else torch.relu(x), first if k == 0 and first is not None else operator)
        torch.testing.assert_close(raw, x, rtol=1e-5, atol=1e-5)
        descent.step(torch.autograd.grad(loss_of(raw), raw)[0])
        adam.zero_grad()
        loss_of(x).backward()
        adam.step()
    for mine, their in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, their, rtol=1e-4, atol=1e-5)


def test_the_network_follows_every_step():
    inputs, operator, _ = make_case(embedded=False)
    network = ConvolutionStack(WIDTH, torch.Generator().manual_seed(0))
    descent = StackDescent(network, inputs, operator, rate=RATE, gather_last=True)
    before = network(inputs, operator).detach()
    torch.testing.assert_close(descent.forward(), before)
    descent.step(torch.ones(6, 2))
    after = network(inputs, operator).detach()
    assert not torch.equal(after, before)
    torch.testing.assert_close(descent.forward(), after)


def test_gathered_is_what_the_last_weights_act_on():
    inputs, operator, _ = make_case(embedded=False)
    network = ConvolutionStack(WIDTH, torch.Generator().manual_seed(0))
    descent = StackDescent(network, inputs, operator, rate=RATE, gather_last=True)
    last = network.convolutions[-1]
    torch.testing.assert_close(descent.forward(), (descent.gathered @ last.weight + last.bias).detach())
