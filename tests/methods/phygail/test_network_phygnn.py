import numpy as np
import pytest
import torch

from phygail.config import InputError
from phygail.learning.networks import seeded
from phygail.methods.phygail.graph import perceive
from phygail.methods.phygail.network import PhyGNNLayer, to_tensors
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import draw_scenario
from phygail.swarm.simulator import initial_state

WIDTH = 16


@pytest.fixture(scope="module")
def graph():
    scenario = draw_scenario(50, 0.5, np.random.default_rng(0))
    return perceive(Observer(scenario).observe(initial_state(scenario), Scope.SUBNET))


@pytest.fixture
def layer():
    with seeded(0):
        return PhyGNNLayer(WIDTH).double()


@pytest.fixture
def states(graph):
    return torch.randn(len(graph.types), WIDTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def slow_message(layer, h_i, h_j, kind):
    """The equations of the paper on one edge, with the concatenation written out."""
    joined = torch.cat([h_i, h_j - h_i, layer.edge_kind.weight[kind]])
    f = torch.relu(layer.message_out(torch.relu(layer.message_norm(layer.message_in(joined)))))
    attraction, repulsion = torch.sigmoid(layer.gate_out(torch.relu(layer.gate_in(f))))
    strength = torch.nn.functional.softplus(layer.strength_out(torch.relu(layer.strength_in(f))))
    return {
        "both": f * strength * (attraction - repulsion),
        "no-attraction": -f * strength * repulsion,
        "no-repulsion": f * strength * attraction,
    }[layer.gates]


@pytest.mark.parametrize("gates", ["both", "no-attraction", "no-repulsion"])
def test_a_layer_follows_the_equations_edge_by_edge(graph, states, gates):
    with seeded(0):
        layer = PhyGNNLayer(WIDTH, gates=gates).double()
    out = layer(states, to_tensors(graph))
    for i in range(len(graph.types)):
        m = torch.zeros(WIDTH, dtype=torch.float64)
        if i < graph.receivers:
            for column in np.flatnonzero(graph.mask[i]):
                m = m + slow_message(layer, states[i], states[graph.index[i, column]], int(graph.kind[i, column]))
        expected = states[i] + torch.relu(layer.update(torch.cat([states[i], m])))
        torch.testing.assert_close(out[i], expected, atol=1e-10, rtol=1e-10)


def test_the_last_round_keeps_the_receivers_only(graph, states, layer):
    inputs = to_tensors(graph)
    torch.testing.assert_close(layer(states, inputs, last=True), layer(states, inputs)[: graph.receivers])


def test_gates_lie_between_0_and_1_and_strengths_are_positive(graph, states, layer):
    """PH-4."""
    gates, strength = layer.forces(layer.interactions(states * 10, to_tensors(graph)))
    assert ((gates > 0) & (gates < 1)).all()
    assert (strength > 0).all()


def test_swapping_the_gates_flips_every_message(graph, states, layer):
    """PH-4."""
    inputs = to_tensors(graph)
    before = layer.messages(states, inputs)
    with torch.no_grad():
        layer.gate_out.weight.copy_(layer.gate_out.weight.flip(0))
        layer.gate_out.bias.copy_(layer.gate_out.bias.flip(0))
    torch.testing.assert_close(layer.messages(states, inputs), -before)
    assert before.abs().max() > 1e-3


def test_gradients_are_the_same_every_time(graph, states, layer):
    def gradient():
        layer.zero_grad()
        h = states.clone().requires_grad_()
        layer(h, to_tensors(graph)).square().sum().backward()
        return h.grad

    assert torch.equal(gradient(), gradient())


def test_unknown_gates_are_refused():
    with pytest.raises(InputError, match="'half'"):
        PhyGNNLayer(WIDTH, gates="half")
