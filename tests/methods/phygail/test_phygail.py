import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import torch

from phygail.config import InputError
from phygail.learning.networks import seeded
from phygail.methods.controller import controller, run_episode, sensed_controller
from phygail.methods.phygail import PolicyMethod
from phygail.methods.phygail.export import export_actor
from phygail.methods.phygail.graph import PAPER, perceive
from phygail.methods.phygail.heads import Actor
from phygail.methods.sidr import Sidr
from phygail.sensing.imperfect import Sensing
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import SwarmState, initial_state, step

pytestmark = pytest.mark.xdist_group("export")  # torch loads its exporter for seconds: once


class FlownPolicy(PolicyMethod):
    name, summary = "flown", "for tests"


@pytest.fixture(scope="module")
def policy(tmp_path_factory, exported_once):
    """Untrained, but with strong gates and heads, so that every input shows in the command."""
    with seeded(0):
        actor = Actor()
        torch.nn.init.orthogonal_(actor.mean[-1].weight, 3.0)
        for layer in actor.encoder.layers:
            torch.nn.init.normal_(layer.gate_out.weight, std=3.0)
    return export_actor(actor, PAPER, tmp_path_factory.mktemp("policy") / "policy.onnx")


def in_flight(scenario, seed=0):
    rng = np.random.default_rng(seed)
    return SwarmState(
        scenario, scenario.spots + rng.normal(0, 10, scenario.spots.shape), rng.uniform(-7, 7, scenario.spots.shape), 4
    )


def command(policy, scenario, state):
    return controller(FlownPolicy(policy=policy), scenario)(state)


def test_all_subnets_at_once_are_decided_as_each_alone(policy):
    scenario = draw_scenario(200, 0.6, np.random.default_rng(0))
    views = Observer(scenario).observe(in_flight(scenario), Scope.SUBNET)
    method = FlownPolicy(policy=policy)
    for rows, view in zip(views.rows, views, strict=True):
        np.testing.assert_allclose(method.act(view), method.act_all(views)[rows], atol=1e-4)


def test_commands_stay_on_the_speed_disc_and_the_inputs_matter(policy):
    """PH-5."""
    scenario = draw_scenario(100, 0.5, np.random.default_rng(1))
    velocity = command(policy, scenario, in_flight(scenario))
    speed = np.linalg.norm(velocity, axis=1)
    assert speed.max() <= 10.0
    assert np.ptp(velocity, axis=0).min() > 0.1


def test_four_hundred_far_uavs_change_nothing(policy):
    """PH-11, PH-3: the decision of a UAV does not depend on the size of the swarm or on other subnets."""
    near = draw_scenario(50, 0.5, np.random.default_rng(2))
    far = np.random.default_rng(3).uniform(5000, 6000, (400, 2))
    large = make_scenario("large", np.vstack([near.layout, far]), near.damaged.tolist(), center=near.center.tolist())
    large = dataclasses.replace(large, width_m=near.width_m)  # the same map: W scales what the policy reads
    small_state = in_flight(near)
    velocities = np.vstack([small_state.velocities, np.zeros_like(far)])
    state = SwarmState(large, np.vstack([small_state.positions, far]), velocities, 4)
    n = len(near.alive)
    np.testing.assert_allclose(command(policy, large, state)[:n], command(policy, near, small_state), atol=1e-4)
    a, b = (perceive(Observer(s.scenario).observe(s, Scope.SUBNET)) for s in (small_state, state))
    assert np.array_equal(a.features[:n], b.features[:n])


def test_nothing_beyond_three_hops_changes_a_command(policy):
    """`phygail-taught` declares intra-subnet and uses three hops."""
    line = np.stack([np.arange(8) * 100.0, np.full(8, 400.0)], axis=1)

    def first(mover, shift):
        layout = line.copy()
        layout[mover, 1] += shift
        scenario = make_scenario("a", layout, width_m=800.0)
        return command(policy, scenario, initial_state(scenario))[0]

    still = first(0, 0.0)
    assert not np.array_equal(first(3, 30.0), still)
    for far in (4, 5, 6, 7):
        assert np.array_equal(first(far, 30.0), still)


def test_an_episode_flies_and_repeats_itself(policy):
    scenario = draw_scenario(20, 0.5, np.random.default_rng(5))
    episodes = [run_episode(scenario, FlownPolicy(policy=policy), record=True) for _ in range(2)]
    assert episodes[0].steps == episodes[1].steps
    assert np.array_equal(episodes[0].states[-1].positions, episodes[1].states[-1].positions)


def test_a_method_without_a_policy_says_so(tmp_path):
    with pytest.raises(InputError, match="no policy to fly"):
        FlownPolicy()
    with pytest.raises(InputError, match=r"cannot read the policy .*missing\.onnx"):
        FlownPolicy(policy=tmp_path / "missing.onnx")


def test_methods_do_not_import_torch():
    code = "import sys, phygail.methods.phygail; sys.exit('torch' in sys.modules or 'onnxruntime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- imperfect sensing ------------------------------------------------------------------------------------------------


def flown(method, scenario, sensing, steps=4, seed=0):
    state, fly = initial_state(scenario), sensed_controller(method, scenario, sensing, np.random.default_rng(seed))
    for _ in range(steps):
        state = step(state, fly(state))
    return state.positions


def test_perfect_sensing_flies_as_without_it(policy):
    scenario = draw_scenario(50, 0.5, np.random.default_rng(6))
    for method in (FlownPolicy(policy=policy), Sidr()):
        state, fly = initial_state(scenario), controller(method, scenario)
        for _ in range(4):
            state = step(state, fly(state))
        assert np.array_equal(flown(method, scenario, Sensing()), state.positions)


def test_noise_and_delay_change_the_flight_but_not_the_world(policy):
    scenario = draw_scenario(50, 0.5, np.random.default_rng(7))
    for sensing in (Sensing(sigma_m=5.0), Sensing(delay_steps=2), Sensing(5.0, 2)):
        for make in (lambda: FlownPolicy(policy=policy), Sidr):
            once, again = (flown(make(), scenario, sensing) for _ in range(2))
            assert np.array_equal(once, again)
            assert not np.array_equal(once, flown(make(), scenario, Sensing()))
            assert np.linalg.norm(once - scenario.spots, axis=1).max() <= 4.0 + 1e-9  # four steps of one meter


def test_twins_with_nothing_to_be_late_about_decide_as_without_delay(policy):
    """A hovering swarm looks the same now and three steps ago."""
    scenario = draw_scenario(50, 0.5, np.random.default_rng(8))
    hover = np.zeros_like(scenario.spots)
    late = sensed_controller(FlownPolicy(policy=policy), scenario, Sensing(delay_steps=3), np.random.default_rng(0))
    state = initial_state(scenario)
    for _ in range(4):
        velocity, state = late(state), step(state, hover)
    np.testing.assert_allclose(velocity, command(policy, scenario, state), atol=1e-4)


def test_sidr_under_delay_steers_by_its_own_picture():
    """UAV 0 knows itself now and its neighbor as it was: the centroid is the mean of the two."""
    layout = np.array([[0.0, 0.0], [100.0, 0.0], [600.0, 600.0]])
    scenario = make_scenario("a", layout, width_m=600.0)
    fly = sensed_controller(Sidr(rep=False), scenario, Sensing(delay_steps=1), np.random.default_rng(0))
    start = initial_state(scenario)
    fly(start)
    after = step(start, np.array([[10.0, 0.0], [0.0, 10.0], [0.0, 0.0]]))
    velocity = fly(after)
    for row, centroid in enumerate([[50.5, 0.0], [50.0, 0.5]]):
        toward = np.array([300.0, 300.0]) - centroid
        np.testing.assert_allclose(velocity[row], 10 * toward / np.linalg.norm(toward))
