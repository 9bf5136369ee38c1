import numpy as np
import pytest

from phygail.methods.reach_evolved import GateShape
from phygail.methods.reach_evolved.train import BELIEFS, Genome
from phygail.sensing.beliefs import BeliefSpec


def test_a_policy_survives_joining_and_splitting():
    genome = Genome()
    gates = np.random.default_rng(0).normal(size=genome.shape.size).astype(np.float32)
    spec = BeliefSpec(drift=0.6, sigma_m=5.0, sigma_rate=0.02, depth_half=-0.5, depth_scale=0.8)
    vector = genome.join(gates, spec)
    assert vector.shape == (genome.size,) == (157 + BELIEFS,)
    found, beliefs = genome.split(vector)
    assert found.dtype == np.float32
    assert np.array_equal(found, gates)
    np.testing.assert_allclose(beliefs.vector(), spec.vector())


def test_what_is_not_evolved_comes_from_the_base():
    base = BeliefSpec(horizon_m=333.0, margin_m=2.0)
    genome = Genome(GateShape(edge_width=2), base)
    _, beliefs = genome.split(np.zeros(genome.size))
    assert (beliefs.horizon_m, beliefs.margin_m) == (333.0, 2.0)
    assert (beliefs.drift, beliefs.sigma_m, beliefs.depth_half, beliefs.depth_scale) == (0.0, 1.0, 0.0, 1.0)


@pytest.mark.parametrize(("gene", "drift"), [(-3.0, 0.0), (0.5, 0.5), (9.0, 1.2)])
def test_numbers_without_meaning_are_brought_back(gene, drift):
    genome = Genome()
    vector = np.zeros(genome.size)
    vector[-BELIEFS:] = (gene, 1e6, -1e6, 0.0, 1e6)
    _, beliefs = genome.split(vector)
    assert beliefs.drift == drift
    assert beliefs.sigma_m == pytest.approx(np.exp(5))
    assert beliefs.sigma_rate == pytest.approx(np.exp(-7))
    assert beliefs.depth_scale == pytest.approx(np.exp(5))
