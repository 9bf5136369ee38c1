"""`reach-evolved` with hand-made gates: links, late phase, symmetries, scope (PH-3, PH-5, PH-11)."""

import itertools
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from phygail.methods.controller import controller, run_episode
from phygail.methods.reach_evolved import GateShape, ReachEvolved
from phygail.methods.reach_evolved.export import export_gates, save_gates
from phygail.methods.sidr import AGGREGATED, Sidr, aggregating
from phygail.sensing.beliefs import BeliefSpec
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import D4, draw_scenario, make_scenario, transform
from phygail.swarm.simulator import SwarmState, initial_state, step

SHAPE, BELIEF = GateShape(), BeliefSpec(drift=0.8)


def write_policy(folder, edge=(2.0, -2.0, 0.0), anchor=(0.0, -3.0), noise=0.0):
    """Gates that give these logits, plus noise that depends on every input."""
    layers = [part.copy() for part in SHAPE.layers(np.random.default_rng(1).normal(0, noise, SHAPE.size))]
    layers[3] += edge
    layers[7] += anchor
    vector = np.concatenate([layer.ravel() for layer in layers]).astype(np.float32)
    save_gates(folder / "gates.safetensors", vector, SHAPE, BELIEF)
    return export_gates(folder / "gates.safetensors", folder / "gates.onnx")


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """Attracts, with a strength that every feature changes."""
    return write_policy(tmp_path_factory.mktemp("lively"), noise=0.3)


@pytest.fixture(scope="module")
def blind(tmp_path_factory):
    """Feels nothing and flies to the center at full speed."""
    return write_policy(tmp_path_factory.mktemp("blind"), edge=(0.0, 0.0, 0.0))


@pytest.fixture(scope="module")
def lazy(tmp_path_factory):
    """Feels nothing and hovers."""
    return write_policy(tmp_path_factory.mktemp("lazy"), edge=(0.0, 0.0, 0.0), anchor=(-2.0, 0.0))


def fly(policy, scenario, steps):
    state, command = initial_state(scenario), controller(ReachEvolved(policy=policy), scenario)
    commands = []
    for _ in range(steps):
        commands.append(command(state))
        state = step(state, commands[-1])
    return np.array(commands)


# --- rule ---


def test_without_gates_it_is_sidr_without_repulsion(blind):
    scenario = draw_scenario(60, 0.6, np.random.default_rng(0))
    ours, sidr = (
        run_episode(scenario, ReachEvolved(policy=blind), record=True),
        run_episode(scenario, Sidr(rep=False), record=True),
    )
    assert ours.steps == sidr.steps
    np.testing.assert_allclose(ours.states[-1].positions, sidr.states[-1].positions, atol=1e-4)


def test_a_lone_uav_leaves_for_the_ghost_that_pulls_it(tmp_path):
    """Strength (sigmoid(20) - sigmoid(-20)) e^0 = 1 at a ghost to the north, the center far in the east: 45 degrees."""
    policy = write_policy(tmp_path, edge=(20.0, -20.0, 0.0), anchor=(0.0, 0.0))
    layout = [[0.0, 0.0], [0.0, 200.0], [5000.0, 3000.0]]
    scenario = make_scenario("pull", layout, [1], center=[5000.0, 0.0], budget_steps=9000)
    command = fly(policy, scenario, 1)[0, 0]
    np.testing.assert_allclose(command, 10 * np.array([1.0, 1.0]) / np.sqrt(2), atol=1e-3)


def late(state):
    """Whether a subnet of this state aggregates."""
    return aggregating(Observer(state.scenario).observe(state, Scope.SUBNET)).any()


@pytest.mark.parametrize(("uavs", "ratio"), [(60, 0.75), (100, 0.75), (50, 0.9)])
def test_no_subnet_splits_before_the_late_phase(policy, uavs, ratio):
    scenario = draw_scenario(uavs, ratio, np.random.default_rng(uavs))
    states = run_episode(scenario, ReachEvolved(policy=policy), record=True).states
    assert len(states) > 2
    for now, then in itertools.pairwise(states):
        if not late(now):
            together = np.unique(np.stack([now.links.subnet, then.links.subnet], axis=1), axis=0)
            assert len(together) == now.links.count


def test_who_needs_the_late_phase_is_flagged_and_arrives(lazy):
    scenario = make_scenario("late", [[0.0, 0.0], [300.0, 0.0]], width_m=300.0, budget_steps=400)
    method = ReachEvolved(policy=lazy)
    episode = run_episode(scenario, method)
    assert episode.terminated
    assert method.flag == AGGREGATED
    assert episode.steps > 0.55 * 300


def test_who_does_not_need_it_is_not_flagged(blind):
    method = ReachEvolved(policy=blind)
    assert run_episode(make_scenario("soon", [[0.0, 0.0], [130.0, 0.0]], width_m=300.0), method).terminated
    assert method.flag == ""


def test_nobody_exceeds_the_speed_limit_and_the_same_flight_repeats(policy):
    """PH-5."""
    scenario = draw_scenario(60, 0.6, np.random.default_rng(3))
    first, second = fly(policy, scenario, 12), fly(policy, scenario, 12)
    assert np.array_equal(first, second)
    assert np.hypot(first[..., 0], first[..., 1]).max() <= 10.0 + 1e-9
    assert np.ptp(first, axis=1).min() > 0.1  # and not all fly alike


# --- symmetry ---


def test_moving_everything_changes_nothing(policy):
    """PH-3."""
    scenario = draw_scenario(40, 0.6, np.random.default_rng(4))
    shift = np.array([1000.0, -250.0])
    other = replace(scenario, layout=scenario.layout + shift, center=scenario.center + shift)
    np.testing.assert_allclose(fly(policy, other, 3), fly(policy, scenario, 3), atol=1e-3)


@pytest.mark.parametrize("element", range(1, 8))
def test_turning_and_mirroring_everything_turns_the_commands(policy, element):
    scenario = draw_scenario(40, 0.6, np.random.default_rng(5))
    turned = fly(policy, transform(scenario, element), 3)
    np.testing.assert_allclose(turned, fly(policy, scenario, 3) @ D4[element].T, atol=1e-3)


# --- scope ---


def test_other_subnets_have_no_influence(policy):
    """PH-3: a far survivor wanders about, or is damaged."""
    layout = np.array([[0.0, 0.0], [80.0, 0.0], [230.0, 0.0], [600.0, 0.0]])
    scenario = make_scenario("scope", layout, [2], center=[300.0, 0.0], budget_steps=900)
    alone = make_scenario("alone", layout, [2, 3], center=[300.0, 0.0], budget_steps=900)
    calm, wild = (controller(ReachEvolved(policy=policy), scenario) for _ in range(2))
    lonely = controller(ReachEvolved(policy=policy), alone)
    for t in range(15):
        near = layout[:2] + np.array([t, 0.0])
        still = np.vstack([near, [600.0, 0.0]])
        moved = np.vstack([near, [600.0 + 50 * np.sin(t), 30.0 * t]])
        a = calm(SwarmState(scenario, still, np.zeros((3, 2)), t))[:2]
        b = wild(SwarmState(scenario, moved, np.zeros((3, 2)), t))[:2]
        c = lonely(SwarmState(alone, near, np.zeros((2, 2)), t))
        np.testing.assert_allclose(a, b, atol=1e-5)
        np.testing.assert_allclose(a, c, atol=1e-5)


def test_four_hundred_far_uavs_of_the_roster_change_nothing_alive_or_not(policy):
    """PH-11: with the same roster, what 400 far UAVs do and whether they live does not reach a subnet."""
    near = draw_scenario(40, 0.5, np.random.default_rng(2))
    far = np.random.default_rng(3).uniform(5000, 6000, (400, 2))
    layout, center = np.vstack([near.layout, far]), near.center.tolist()
    everybody = make_scenario("alive", layout, near.damaged.tolist(), center=center)
    nobody = make_scenario("gone", layout, [*near.damaged.tolist(), *range(40, 440)], center=center)
    n = len(near.alive)
    np.testing.assert_allclose(fly(policy, everybody, 3)[:, :n], fly(policy, nobody, 3), atol=1e-4)


def test_a_larger_roster_reaches_a_subnet_only_through_its_estimates(tmp_path):
    """PH-11: gates that read neither share nor survival decide the same in a swarm of 40 and of 440."""
    layers = [p.copy() for p in SHAPE.layers(np.random.default_rng(1).normal(0, 0.3, SHAPE.size))]
    layers[0][[1, 8]] = 0.0
    layers[4][[0, 4]] = 0.0
    layers[3] += (2.0, -2.0, 0.0)
    save_gates(
        tmp_path / "g.safetensors", np.concatenate([p.ravel() for p in layers]).astype(np.float32), SHAPE, BELIEF
    )
    policy = export_gates(tmp_path / "g.safetensors", tmp_path / "g.onnx")
    near = draw_scenario(40, 0.5, np.random.default_rng(2))
    far = np.random.default_rng(3).uniform(5000, 6000, (400, 2))
    layout = np.vstack([near.layout, far])
    large = make_scenario("large", layout, near.damaged.tolist(), center=near.center.tolist())
    n = len(near.alive)
    np.testing.assert_allclose(fly(policy, large, 3)[:, :n], fly(policy, near, 3), atol=1e-4)


def test_it_can_be_imported_in_a_light_install():
    """Neither the learning packages nor the compiler are needed to know the method."""
    heavy = "{'torch', 'numba', 'onnx', 'onnxruntime', 'safetensors'}"
    code = f"import sys, phygail.methods; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
