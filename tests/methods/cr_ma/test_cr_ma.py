"""CR-MA (METHODS 3.7): observation, fields, hold, scope; the bundled actor."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phygail.config import InputError
from phygail.methods.controller import controller, run_episode
from phygail.methods.cr_ma import CrMa, load_actor, observe_all, observe_subnet
from phygail.rng import generator
from phygail.sensing.views import Observer, Scope, SubnetViews
from phygail.swarm.layout import damage_count
from phygail.swarm.scenario import Scenario, draw_scenario, make_scenario
from phygail.swarm.simulator import SwarmState, initial_state, step
from phygail.weights import bundled


def idle(observation: np.ndarray) -> np.ndarray:
    """An actor that never wants to move."""
    return np.zeros((len(observation), 2))


def views_of(scenario: Scenario, state: SwarmState | None = None) -> SubnetViews:
    views = Observer(scenario).observe(state or initial_state(scenario), Scope.SUBNET)
    assert isinstance(views, SubnetViews)
    return views


def drawn(seed: int, uavs: int = 20, ratio: float = 0.5) -> Scenario:
    return draw_scenario(uavs, ratio, generator(200_000, "test-cr-ma", seed))


def world(positions: list[list[float]], damaged: tuple[int, ...] = (), width: float = 400.0) -> Scenario:
    return make_scenario("hand", np.array(positions), damaged, width_m=width)


def test_observation_of_a_hand_worked_pair_and_a_lost_pair() -> None:
    """Two members 60 m apart; two lost UAVs, one damaged and one far away: all twenty numbers by hand."""
    scenario = world([[100, 200], [160, 200], [400, 200], [100, 360]], damaged=(3,))
    views = views_of(scenario)
    first, second = observe_all(views)[:2]
    expected = [0.5, 0, 0, 0, 0.25, 0, 0.5]  # center 100 m ahead of half the width 200 m; rest; centroid 30 m; 2 of 4
    expected += [(250 - 100) / 200, (280 - 200) / 200]  # mean of (400, 200) and (100, 360)
    expected += [0, 160 / 120]  # nearest lost: (100, 360)
    expected += [0.5, 0, 0, 0, 0, 0, 0, 0, 0.5]
    np.testing.assert_allclose(first, expected, atol=1e-12)
    assert second[2] == 0
    assert second[11] == -0.5


def test_observation_of_a_lone_uav_has_no_members_and_distance_one() -> None:
    lone = observe_all(views_of(world([[0, 0], [400, 400]])))[0]
    assert lone[6] == 0.5
    np.testing.assert_array_equal(lone[11:19], 0)
    assert lone[19] == 1
    np.testing.assert_allclose(lone[9:11], 3)  # 400 m is more than three ranges: clipped


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), uavs=st.sampled_from([3, 5, 20, 60]), ratio=st.floats(0.05, 0.9))
def test_observation_of_all_subnets_equals_the_rule_for_each(seed: int, uavs: int, ratio: float) -> None:
    rng = generator(200_000, "views", seed)
    layout = rng.uniform(0, 320 * np.sqrt(uavs / 20), size=(uavs, 2))
    scenario = make_scenario("random", layout, rng.choice(uavs, size=damage_count(uavs, ratio), replace=False).tolist())
    alive = len(scenario.alive)
    state = SwarmState(scenario, scenario.spots + rng.normal(0, 30, (alive, 2)), rng.normal(0, 4, (alive, 2)), 8)
    views = views_of(scenario, state)
    fast, slow = observe_all(views), np.zeros((alive, 20))
    for rows, view in zip(views.rows, views, strict=True):
        slow[rows] = observe_subnet(view)
    np.testing.assert_allclose(fast, slow, atol=1e-9)


def test_nearest_lost_is_found_deep_inside_a_large_subnet() -> None:
    """All of the first dozen candidates of the middle UAV are members: the search must widen."""
    grid = np.stack(np.meshgrid(np.arange(13), np.arange(13)), axis=-1).reshape(-1, 2) * 20.0
    scenario = make_scenario("grid", np.vstack([grid, [[500.0, 120.0]]]), ())
    views = views_of(scenario)
    fast = observe_all(views)
    np.testing.assert_allclose(fast[:169], observe_subnet(next(iter(views))), atol=1e-9)
    np.testing.assert_allclose(fast[84, 9:11], [3.0, 0.0])


def test_commands_of_all_subnets_equal_the_rule_for_each_along_an_episode() -> None:
    scenario = drawn(1)
    state, observer = initial_state(scenario), Observer(scenario)
    fast, slow = CrMa(), CrMa()
    for _ in range(13):
        views = observer.observe(state, Scope.SUBNET)
        assert isinstance(views, SubnetViews)
        command = fast.act_all(views)
        for rows, view in zip(views.rows, views, strict=True):
            np.testing.assert_allclose(command[rows], slow.act(view), atol=1e-9)
        state = step(state, command)


def test_a_decision_is_held_for_four_steps() -> None:
    calls: list[int] = []
    scenario = world([[0, 0], [400, 400]])
    state = initial_state(scenario)

    def counting(observation: np.ndarray) -> np.ndarray:
        calls.append(state.step)
        return np.full((len(observation), 2), 0.1)

    command = controller(CrMa(actor=counting), scenario)
    for _ in range(10):
        state = step(state, command(state))
    assert calls == [0, 4, 8]


def test_a_method_that_joins_between_decisions_decides_at_once() -> None:
    scenario = world([[0, 0], [400, 400]])
    state = replace(initial_state(scenario), step=3)
    assert np.isfinite(CrMa(actor=idle).velocities(views_of(scenario, state))).all()


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000))
def test_other_subnets_do_not_matter(seed: int) -> None:
    """MA-1, G6: moving every UAV of the other subnets, far from this one, changes none of its commands."""
    scenario = drawn(seed, uavs=40, ratio=0.6)
    state = initial_state(scenario)
    views = views_of(scenario, state)
    mine = views.subnet == views.subnet[seed % len(views.subnet)]
    rng = generator(seed, "move")
    away = np.where(mine[:, None], 0.0, rng.uniform(5000, 8000, size=(len(mine), 2)))
    moved = views_of(scenario, replace(state, positions=state.positions + away, velocities=state.velocities + away))
    np.testing.assert_allclose(CrMa().act_all(views)[mine], CrMa().act_all(moved)[mine], atol=1e-9)


@pytest.mark.parametrize(("distance", "sign"), [(12.0, -1), (60.0, 0), (115.0, 1)])
def test_fields_part_close_pairs_and_hold_stretched_links(distance: float, sign: int) -> None:
    """MA-2: with an idle actor a pair at 12 m separates, at 60 m rests, at 115 m approaches."""
    scenario = world([[100, 100], [100 + distance, 100], [400, 400]])
    velocity = CrMa(actor=idle).velocities(views_of(scenario))
    assert np.sign(velocity[0, 0]) == sign
    np.testing.assert_allclose(velocity[0], -velocity[1], atol=1e-12)
    np.testing.assert_array_equal(velocity[2], 0)


def test_executed_speeds_are_bounded_and_not_always_full() -> None:
    """MA-5."""
    episode = run_episode(drawn(3), "cr-ma", record=True)
    speeds = np.concatenate([np.hypot(*state.velocities.T) for state in episode.states[1:]])
    assert speeds.max() <= 10 + 1e-9
    assert (speeds < 9.9).any()


def test_the_bundled_actor_reconnects_fresh_swarms() -> None:
    episodes = [run_episode(drawn(seed, ratio=0.2 + 0.07 * seed), "cr-ma") for seed in range(10)]
    assert all(episode.terminated for episode in episodes)
    assert np.mean([episode.steps for episode in episodes]) <= 50


@pytest.mark.parametrize(
    "positions", [[[0, 0], [900, 900]], [[0, 0], [200, 0], [400, 0], [800, 0]], [[0, 0], [0, 1], [500, 0]]]
)
def test_degenerate_swarms_get_finite_commands(positions: list[list[float]]) -> None:
    episode = run_episode(make_scenario("odd", np.array(positions, dtype=float)), "cr-ma")
    assert np.isfinite(episode.metrics.distance_m_per_uav)


def test_coincident_uavs_get_finite_commands() -> None:
    scenario = world([[k, 0] for k in range(15)] + [[400, 400]])
    state = replace(initial_state(scenario), positions=np.array([[50.0, 50.0]] * 15 + [[400.0, 400.0]]))
    assert np.isfinite(CrMa().velocities(views_of(scenario, state))).all()


def test_damaged_or_foreign_weights_are_refused(tmp_path) -> None:
    good, target = bundled("cr-ma"), tmp_path / "mine.safetensors"
    content, config = good.read_bytes(), json.loads(good.with_suffix(".json").read_text())
    target.with_suffix(".json").write_text(json.dumps(config))
    target.write_bytes(content[:-100])
    with pytest.raises(InputError, match="damaged"):
        CrMa(weights=target)
    target.write_bytes(content)
    assert len(load_actor(target).layers) == 3
    other = tmp_path / "other.safetensors"
    other.write_bytes(content)
    other.with_suffix(".json").write_text(json.dumps({**config, "version": 99}))
    with pytest.raises(InputError, match="version 99"):
        CrMa(weights=other)
    with pytest.raises(InputError, match="cannot read"):
        CrMa(weights=tmp_path / "none.safetensors")


def test_flying_needs_neither_torch_nor_safetensors() -> None:
    program = (
        "import sys; sys.modules['torch'] = sys.modules['safetensors'] = None\n"
        "from phygail.methods import make_method; print(make_method('cr-ma').name)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "cr-ma"
