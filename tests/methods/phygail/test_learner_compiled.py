"""Compact encoders in C: torch is the oracle of every number and of every gradient."""

import copy
import itertools

import numpy as np
import pytest
import torch

from phygail.config import InputError
from phygail.learning.networks import C_SWITCH, c_library, seeded
from phygail.methods.phygail.config import PROFILES
from phygail.methods.phygail.learner import SOURCE, make_learner, speed_up
from phygail.methods.phygail.network import EncoderSpec, GraphEncoder, GraphInput

GATES = ("both", "no-attraction", "no-repulsion")
SHAPES = [(spec, gates, edges) for spec, gates, edges in itertools.product([(16, 1), (32, 2), (64, 3)], GATES, (0, 8))]


@pytest.fixture(autouse=True)
def _compiler():
    if c_library(SOURCE, "-DW=32") is None:
        pytest.skip("no C compiler")


def drawn_graph(spec, receivers, nodes, edges, seed=0):
    rng = torch.Generator().manual_seed(seed)

    def numbers(most, count):
        return torch.randint(most, (count,), generator=rng)

    types = torch.cat([torch.zeros(receivers, dtype=torch.long), 1 + numbers(spec.types - 1, nodes - receivers)])
    place, world = torch.zeros(receivers, 1, dtype=torch.long), torch.zeros(receivers, dtype=torch.long)
    edge = torch.randn(edges, spec.edge_features, generator=rng) if spec.edge_features else None
    features = torch.randn(nodes, spec.features, generator=rng)
    receiver = numbers(receivers, edges).sort().values
    return GraphInput(features, types, receiver, numbers(nodes, edges), place, world, 1, edge)


def drawn_encoder(width=32, layers=2, gates="both", edges=0):
    spec = EncoderSpec("phygnn", layers, width, 9, 4, gates, compact=True, edge_features=edges)
    with seeded(1):
        encoder = GraphEncoder(spec)
        for parameter in encoder.parameters():
            if not parameter.any():  # scales of the edges begin at 0, where a fault in them would not show
                torch.nn.init.normal_(parameter, std=0.3)
    return encoder


def answers(encoder, graph, weight):
    """The embeddings and all gradients of their weighted sum."""
    encoder.zero_grad()
    out = encoder(graph)
    (out * weight).sum().backward()
    return [out.detach(), *(torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in encoder.parameters())]


@pytest.mark.parametrize(("receivers", "nodes", "edges"), [(37, 61, 211), (1, 2, 1), (5, 5, 0)])
@pytest.mark.parametrize(("shape", "gates", "edge_features"), SHAPES)
def test_embeddings_and_gradients_are_those_of_torch(shape, gates, edge_features, receivers, nodes, edges):
    """Tiles that are full and not, one receiver, and nobody in range."""
    encoder = drawn_encoder(*shape, gates, edge_features)
    graph = drawn_graph(encoder.spec, receivers, nodes, edges)
    weight = torch.randn(receivers, shape[0], generator=torch.Generator().manual_seed(2))
    wanted = answers(encoder, graph, weight)
    assert speed_up(encoder)
    for found, right in zip(answers(encoder, graph, weight), wanted, strict=True):
        torch.testing.assert_close(found, right, rtol=1e-4, atol=1e-4 * float(right.abs().max()) + 1e-6)
    with torch.no_grad():
        torch.testing.assert_close(encoder(graph), wanted[0], rtol=1e-4, atol=1e-5)


def test_two_looks_before_one_step_back():
    """The discriminator sees experts and policy, then learns from both: their rooms must not be shared."""
    encoder = drawn_encoder()
    first, second = (drawn_graph(encoder.spec, 20, 30, 90, seed) for seed in (1, 2))

    def learned():
        encoder.zero_grad()
        (encoder(first).sum() - 2 * encoder(second).sum()).backward()
        return [p.grad.clone() for p in encoder.parameters() if p.grad is not None]

    wanted = learned()
    speed_up(encoder)
    for _ in range(2):  # the second time in rooms that were used before
        for found, right in zip(learned(), wanted, strict=False):
            torch.testing.assert_close(found, right, rtol=1e-4, atol=1e-4 * float(right.abs().max()) + 1e-6)


def test_the_same_bits_every_time():
    encoder = drawn_encoder()
    speed_up(encoder)
    graph, weight = drawn_graph(encoder.spec, 37, 61, 211), torch.ones(37, 32)
    first, second = (answers(encoder, graph, weight) for _ in range(2))
    assert all(map(torch.equal, first, second))


def test_a_learner_computes_in_c_and_a_copy_of_its_actor_in_torch():
    """Copies are exported and flown in other precisions."""
    actor = make_learner(PROFILES.get("compact")).actor
    assert actor.encoder.kernel is not None
    assert copy.deepcopy(actor).encoder.kernel is None


@pytest.mark.parametrize(
    "setting", [{"layer": "gcn"}, {"compact": False}, {"width": 24}, {"types": 9}, {"features": 65}]
)
def test_other_networks_stay_in_torch(setting):
    encoder = GraphEncoder(EncoderSpec(**{"layers": 1, "width": 32, "compact": True, **setting}))
    assert not speed_up(encoder)
    assert encoder.kernel is None


def test_other_precisions_are_refused():
    encoder = drawn_encoder()
    speed_up(encoder)
    graph = drawn_graph(encoder.spec, 3, 4, 5)
    with pytest.raises(InputError, match="reads contiguous float32"):
        encoder(GraphInput(graph.features.double(), *list(vars(graph).values())[1:]))


@pytest.mark.parametrize(("missing", "value"), [("CC", "false"), ("CC", "nobody"), ("CC", "gcc '"), (C_SWITCH, "0")])
def test_without_a_compiler_torch_computes(missing, value, monkeypatch, tmp_path, caplog):
    """A compiler that fails, is missing or misspelled is named once; with PHYGAIL_COMPILED=0 nobody asks for one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(missing, value)
    encoder = drawn_encoder()
    assert c_library.__wrapped__(SOURCE, "-DW=32") is None
    c_library.cache_clear()
    try:
        assert not speed_up(encoder)
        assert encoder.kernel is None
        assert ("compact.c does not compile here" in caplog.text) == (missing == "CC")
    finally:
        c_library.cache_clear()


def test_denormal_numbers_survive():
    """A library linked with -ffast-math sets the processor to round them to 0; trees of other methods crash on that."""
    speed_up(drawn_encoder())
    smallest = np.array([5e-324])
    assert (smallest * 1.0)[0] == 5e-324
    assert (np.array([4e-308]) / 4.0)[0] > 0.0
