"""The compiled episode held to the method it stands for. All compiled code is tested here, by one worker."""

import numpy as np
import pytest

from phygail.methods.controller import run_episode
from phygail.methods.reach_evolved import GateShape, ReachEvolved
from phygail.methods.reach_evolved.compiled import fly_policy, trace_policy
from phygail.methods.reach_evolved.export import export_gates, save_gates
from phygail.sensing.beliefs import BeliefSpec
from phygail.swarm.compiled import World
from phygail.swarm.links import find_links
from phygail.swarm.scenario import draw_scenario, make_scenario

pytestmark = pytest.mark.xdist_group("numba")  # compiled once (about ten seconds), not by every worker

SHAPE = GateShape()
BELIEFS = {
    "drifting": BeliefSpec(drift=0.8),
    "as reach": BeliefSpec(drift=0.0, sigma_m=1.0, sigma_rate=0.001, depth_half=0.0, depth_scale=0.05),
}
CASES = [
    (20, 0.5, 0),
    (20, 0.8, 1),
    (50, 0.7, 2),
]


def world(scenario):
    return World.of(scenario)


def lively(seed=1):
    """Gates that attract, with a strength that every feature changes."""
    layers = [part.copy() for part in SHAPE.layers(np.random.default_rng(seed).normal(0, 0.3, SHAPE.size))]
    layers[3] += (2.0, -2.0, 0.0)
    layers[7] += (0.0, -3.0)
    return np.concatenate([layer.ravel() for layer in layers]).astype(np.float32)


@pytest.mark.parametrize(("uavs", "ratio", "seed"), CASES)
@pytest.mark.parametrize("belief", BELIEFS.values(), ids=BELIEFS.keys())
def test_the_compiled_episode_flies_as_the_method_does(tmp_path, belief, uavs, ratio, seed):
    save_gates(tmp_path / "gates.safetensors", lively(), SHAPE, belief)
    policy = export_gates(tmp_path / "gates.safetensors", tmp_path / "gates.onnx")
    scenario = draw_scenario(uavs, ratio, np.random.default_rng(seed))
    episode = run_episode(scenario, ReachEvolved(policy=policy), record=True)
    states = np.array([state.positions for state in episode.states])
    trace = trace_policy(world(scenario), lively(), SHAPE, belief)
    assert len(trace) - 1 == episode.steps == fly_policy(world(scenario), lively(), SHAPE, belief)
    np.testing.assert_allclose(trace[:31], states[:31], atol=1e-3)


def test_a_flight_ends_when_the_network_is_one():
    scenario = draw_scenario(20, 0.5, np.random.default_rng(0))
    trace = trace_policy(world(scenario), lively(), SHAPE, BELIEFS["drifting"])
    counts = [find_links(positions, 120.0).count for positions in trace]
    assert counts[-1] == 1
    assert min(counts[:-1]) > 1
    assert np.hypot(*(np.diff(trace, axis=0).reshape(-1, 2).T)).max() <= 1.0 + 1e-9
    np.testing.assert_array_equal(trace[0], scenario.spots)


def test_two_singletons_meet_after_the_steps_one_can_count():
    """300 m apart, no gates: both fly to the middle, 2 m closer per step, until 120 m remain."""
    zero = np.zeros(SHAPE.size)
    pair = make_scenario("pair", [[0.0, 0.0], [300.0, 0.0]], center=[150.0, 0.0], budget_steps=500)
    assert fly_policy(World.of(pair), zero, SHAPE, BELIEFS["drifting"]) == 90


def test_the_budget_ends_a_flight_and_the_late_phase_moves_even_the_lazy():
    still = np.zeros(SHAPE.size)
    still[-2] = -2.0  # the bias of the speed toward the center, which becomes zero
    pair = make_scenario("pair", [[0.0, 0.0], [300.0, 0.0]], center=[150.0, 0.0], budget_steps=150)
    # The aggregation begins at 58, 90 m from R/2 with 92 steps left; t_wait would be 165.
    assert fly_policy(World.of(pair), still, SHAPE, BELIEFS["drifting"]) == 148
    short = make_scenario("pair", [[0.0, 0.0], [300.0, 0.0]], center=[150.0, 0.0], budget_steps=80)
    assert fly_policy(World.of(short), still, SHAPE, BELIEFS["drifting"]) == 80


def test_a_world_is_not_changed_by_a_flight():
    scenario = draw_scenario(20, 0.5, np.random.default_rng(0))
    ground = world(scenario)
    first = fly_policy(ground, lively(), SHAPE, BELIEFS["drifting"])
    np.testing.assert_array_equal(ground.spots, scenario.spots)
    np.testing.assert_array_equal(ground.roster, scenario.layout)
    assert fly_policy(ground, lively(), SHAPE, BELIEFS["drifting"]) == first
