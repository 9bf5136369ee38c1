import numpy as np
import pytest
import torch

from phygail.config import InputError
from phygail.learning.networks import parameter_count, seeded
from phygail.methods.phygail.graph import perceive
from phygail.methods.phygail.graph_batch import join
from phygail.methods.phygail.network import EncoderSpec, GATLayer, GCNLayer, GraphEncoder, SAGELayer, to_tensors
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import initial_state

pytestmark = pytest.mark.xdist_group("layers")  # torch_geometric is imported once
WIDTH = 128
KINDS = ("phygnn", "gcn", "gat", "sage")


def graph_of(scenario):
    return perceive(Observer(scenario).observe(initial_state(scenario), Scope.SUBNET))


@pytest.fixture(scope="module")
def graph():
    return graph_of(draw_scenario(50, 0.5, np.random.default_rng(0)))


@pytest.fixture(scope="module")
def states(graph):
    return torch.randn(len(graph.types), WIDTH, generator=torch.Generator().manual_seed(1))


def edge_index(graph):
    return torch.from_numpy(np.stack([graph.edges.sender, graph.edges.receiver]))


def test_gcn_equals_torch_geometric(geometric, graph, states):
    with seeded(0):
        ours, oracle = GCNLayer(WIDTH), geometric.GCNConv(WIDTH, WIDTH)
    oracle.load_state_dict({"lin.weight": ours.linear.weight, "bias": ours.bias})
    expected = torch.relu(oracle(states, edge_index(graph)))
    torch.testing.assert_close(ours(states, to_tensors(graph)), expected, atol=1e-5, rtol=1e-5)


def test_gat_equals_torch_geometric(geometric, graph, states):
    with seeded(0):
        ours, oracle = GATLayer(WIDTH), geometric.GATConv(WIDTH, 32, heads=4)
    oracle.load_state_dict(
        {
            "lin.weight": ours.linear.weight,
            "bias": ours.bias,
            "att_src": ours.source[None],
            "att_dst": ours.target[None],
        }
    )
    expected = torch.relu(oracle(states, edge_index(graph)))
    torch.testing.assert_close(ours(states, to_tensors(graph)), expected, atol=1e-5, rtol=1e-5)


def test_sage_equals_torch_geometric(geometric, graph, states):
    with seeded(0):
        ours, oracle = SAGELayer(WIDTH), geometric.SAGEConv(WIDTH, WIDTH)
    oracle.load_state_dict(
        {"lin_l.weight": ours.neighbors.weight, "lin_l.bias": ours.neighbors.bias, "lin_r.weight": ours.own.weight}
    )
    expected = torch.relu(oracle(states, edge_index(graph)))
    torch.testing.assert_close(ours(states, to_tensors(graph)), expected, atol=1e-5, rtol=1e-5)


def test_the_paper_encoder_has_689193_parameters():
    """PH-1."""
    assert parameter_count(GraphEncoder()) == 689_193


@pytest.mark.parametrize("kind", KINDS)
def test_many_graphs_in_one_table_give_what_each_gives_alone(kind):
    graphs = [graph_of(draw_scenario(*size, np.random.default_rng(7))) for size in [(20, 0.3), (50, 0.5), (20, 0.8)]]
    with seeded(1):
        encoder = GraphEncoder(EncoderSpec(layer=kind))
    together = encoder(to_tensors(join(graphs)))
    apart = torch.cat([encoder(to_tensors(g)) for g in graphs])
    torch.testing.assert_close(together, apart, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_beyond_three_hops_matters(kind):
    """A chain of UAVs, neighbors 100 m apart: UAV 0 hears of UAV 3, not of UAV 4."""
    with seeded(2):
        encoder = GraphEncoder(EncoderSpec(layer=kind)).double()
    line = np.stack([np.arange(8) * 100.0, np.full(8, 400.0)], axis=1)

    def embedding(mover, shift):
        layout = line.copy()
        layout[mover, 1] += shift
        inputs = to_tensors(graph_of(make_scenario("a", layout, width_m=800.0)))
        object.__setattr__(inputs, "features", inputs.features.double())
        return encoder(inputs)[0]

    still = embedding(3, 0.0)
    assert not torch.equal(embedding(3, 5.0), still)  # 1e-11 with fresh weights: both gates start near one half
    for far in (4, 5, 7):
        assert torch.equal(embedding(far, 5.0), still)


def test_an_unknown_layer_is_refused():
    with pytest.raises(InputError, match="'gin'"):
        GraphEncoder(EncoderSpec(layer="gin"))
