"""The graph layers against torch_geometric."""

import math

import pytest
import torch

from phygail.methods.gcn_planners.network import GraphConvolution
from phygail.methods.gdr_ts.policy import GraphAttention

pytestmark = pytest.mark.xdist_group("layers")  # torch_geometric is imported once


def random_graph(n: int, seed: int) -> torch.Tensor:
    made = torch.rand(n, n, generator=torch.Generator().manual_seed(seed)) < 0.3
    made = made | made.T
    return made.fill_diagonal_(False)


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 16), (16, 16), (16, 2)])
def test_convolution_equals_gcnconv_with_given_edge_weights(geometric, inputs, outputs):
    generator = torch.Generator().manual_seed(1)
    layer = GraphConvolution(inputs, outputs, generator)
    x = torch.randn(9, inputs, generator=generator)
    operator = torch.rand(9, 9, generator=generator)
    oracle = geometric.GCNConv(inputs, outputs, normalize=False, add_self_loops=False)
    oracle.load_state_dict({"bias": layer.bias.data, "lin.weight": layer.weight.data.T})
    target, source = torch.meshgrid(torch.arange(9), torch.arange(9), indexing="ij")
    edges = torch.stack([source.reshape(-1), target.reshape(-1)])
    torch.testing.assert_close(layer(x, operator), oracle(x, edges, operator.reshape(-1)), atol=1e-5, rtol=1e-5)


def test_convolution_with_the_symmetric_normalization_equals_densegcnconv(geometric):
    layer = GraphConvolution(3, 8, torch.Generator().manual_seed(2))
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(3))
    adjacency = random_graph(7, 4).float()
    looped = adjacency + torch.eye(7)
    scale = looped.sum(1).rsqrt()
    oracle = geometric.DenseGCNConv(3, 8)
    oracle.load_state_dict({"bias": layer.bias.data, "lin.weight": layer.weight.data.T})
    expected = oracle(x, adjacency)[0]
    torch.testing.assert_close(layer(x, scale[:, None] * looped * scale), expected, atol=1e-5, rtol=1e-5)


def test_convolution_starts_uniform_within_one_over_root_fan_out():
    layer = GraphConvolution(4, 400, torch.Generator().manual_seed(0))
    for values in (layer.weight, layer.bias):
        assert values.abs().max() <= 1 / math.sqrt(400)
        assert values.abs().max() > 0.95 / math.sqrt(400)
        assert values.std().item() == pytest.approx(1 / math.sqrt(3 * 400), rel=0.1)


def test_attention_equals_gatconv(geometric):
    layer = GraphAttention(7, 4, 16, torch.Generator().manual_seed(5))
    torch.nn.init.normal_(layer.bias, generator=torch.Generator().manual_seed(6))
    x = torch.randn(11, 7, generator=torch.Generator().manual_seed(7))
    adjacency = random_graph(11, 8)
    oracle = geometric.GATConv(7, 16, heads=4)
    oracle.load_state_dict(
        {
            "lin.weight": layer.weight.data.T,
            "att_src": layer.source.data[None],
            "att_dst": layer.target.data[None],
            "bias": layer.bias.data,
        }
    )
    expected = oracle(x, adjacency.T.nonzero().T)  # GATConv adds the self-loops
    torch.testing.assert_close(layer(x, adjacency | torch.eye(11, dtype=torch.bool)), expected, atol=1e-5, rtol=1e-5)


def test_attention_of_a_lonely_node_is_its_own_value():
    layer = GraphAttention(3, 2, 4, torch.Generator().manual_seed(9))
    x = torch.randn(5, 3)
    torch.testing.assert_close(layer(x, torch.eye(5, dtype=torch.bool)), x @ layer.weight)


@pytest.mark.parametrize("layer", [GraphConvolution(3, 8), GraphAttention(3, 2, 4)])
def test_permuting_the_nodes_permutes_the_output(layer):
    x = torch.randn(6, 3)
    order = torch.randperm(6)
    graph = random_graph(6, 10) | torch.eye(6, dtype=torch.bool)
    graph = graph.float() if isinstance(layer, GraphConvolution) else graph
    torch.testing.assert_close(layer(x[order], graph[order][:, order]), layer(x, graph)[order], atol=1e-6, rtol=1e-5)


def test_equal_generators_give_equal_weights():
    one, two = (GraphConvolution(3, 5, torch.Generator().manual_seed(4)).weight for _ in range(2))
    assert torch.equal(one, two)
