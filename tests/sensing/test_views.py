"""Scopes are types that hold nothing more (METHODS 2.4)."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phygail.config import Physics
from phygail.sensing.views import GlobalView, LocalView, News, Observer, Scope, SubnetView, SubnetViews
from phygail.swarm.scenario import Scenario, draw_scenario, make_scenario
from phygail.swarm.simulator import SwarmState, initial_state, step


def moved(scenario: Scenario, seed: int, steps: int = 5) -> SwarmState:
    """Some steps of random flight, so that positions, velocities and the roster differ."""
    rng = np.random.default_rng(seed)
    state = initial_state(scenario)
    for _ in range(steps):
        state = step(state, rng.normal(0, 10, state.positions.shape))
    return state


def drawn(seed: int, uavs: int = 40, ratio: float = 0.5) -> SwarmState:
    return moved(draw_scenario(uavs, ratio, np.random.default_rng(seed)), seed)


def observe(state: SwarmState, scope: Scope):
    return Observer(state.scenario).observe(state, scope)


def public(cls: type) -> set[str]:
    own = {n: v for c in cls.__mro__[:-1] for n, v in vars(c).items()}
    names = {f.name for f in fields(cls)} | {n for n, v in own.items() if hasattr(v, "__get__")}
    return {n for n in names if not n.startswith("_")}


# --- what each scope holds ---


def test_the_global_view_holds_everything():
    state = drawn(0)
    view = observe(state, Scope.GLOBAL)
    assert isinstance(view, GlobalView)
    assert np.array_equal(view.positions, state.positions)
    assert np.array_equal(view.velocities, state.velocities)
    assert np.array_equal(view.roster, state.scenario.layout)
    assert np.array_equal(view.members, state.scenario.alive)
    assert np.array_equal(view.damaged, state.scenario.damaged)
    assert view.links is state.links
    assert view.step == 5


def test_the_mission_is_what_was_shared_before_the_damage():
    state = initial_state(make_scenario("a", [[0, 0], [300, 0]], width_m=400, physics=Physics(step_s=0.2)))
    for scope in Scope:
        mission = observe(state, scope).mission
        assert mission.center.tolist() == [200.0, 200.0]
        assert (mission.width_m, mission.budget_steps, mission.physics.step_s) == (400.0, 160, 0.2)
    beyond = {"map", "coast_m", "lead_steps", "pace", "arrive", "losses", "silence"}  # of worlds beyond the plain one
    assert {f.name for f in fields(mission)} == {"center", "width_m", "physics", "budget_steps"} | beyond


def test_a_subnet_view_has_these_fields_and_no_others():
    known = {"mission", "step", "roster", "members", "positions", "velocities", "pairs", "lengths", "age_s", "news"}
    assert public(SubnetView) == known | {"lost", "damaged_in_range", "damaged_spots", "alone"}


def test_a_local_view_has_these_fields_and_no_others():
    sensed = {"receiver", "neighbor_offsets", "neighbor_velocities", "damaged_receiver", "damaged_offsets"}
    assert public(LocalView) == {"mission", "step", "positions", "velocities"} | sensed


def brute_force(state: SwarmState) -> list[dict]:
    """What each subnet knows, by plain loops over all pairs."""
    n, reach = len(state.positions), state.scenario.physics.range_m + 1e-6
    distance = np.linalg.norm(state.positions[:, None] - state.positions[None], axis=2)
    label = list(range(n))
    for _ in range(n):  # neighbors take the lowest label until nothing changes
        label = [min(label[j] for j in range(n) if distance[i, j] <= reach) for i in range(n)]
    known = []
    for first in sorted(set(label)):
        rows = [r for r in range(n) if label[r] == first]
        pairs = [
            (a, b) for a in range(len(rows)) for b in range(a + 1, len(rows)) if distance[rows[a], rows[b]] <= reach
        ]
        wrecks = [
            (a, int(k)) for a, r in enumerate(rows) for k in state.scenario.damaged
            if np.linalg.norm(state.scenario.layout[k] - state.positions[r]) <= reach
        ]  # fmt: skip
        members = state.scenario.alive[rows]
        lost = [k not in members for k in range(state.scenario.uavs)]
        known.append({"rows": rows, "members": members, "pairs": pairs, "damaged": wrecks, "lost": lost})
    return known


@given(st.integers(0, 10_000), st.sampled_from([0.3, 0.5, 0.7, 0.9]))
@settings(max_examples=25, deadline=None)
def test_iterating_the_subnet_views_equals_brute_force(seed, ratio):
    state = drawn(seed, 30, ratio)
    views = observe(state, Scope.SUBNET)
    assert isinstance(views, SubnetViews)
    expected = brute_force(state)
    assert views.count == len(expected) == len(list(views))
    for rows, view, known in zip(views.rows, views, expected, strict=True):
        assert rows.tolist() == known["rows"]
        assert np.array_equal(view.members, known["members"])
        assert np.array_equal(view.positions, state.positions[known["rows"]])
        assert np.array_equal(view.velocities, state.velocities[known["rows"]])
        assert [tuple(p) for p in view.pairs.tolist()] == known["pairs"]
        ends = view.positions[view.pairs]
        assert view.lengths == pytest.approx(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1))
        assert [tuple(p) for p in view.damaged_in_range.tolist()] == known["damaged"]
        assert view.lost.tolist() == known["lost"]
        assert np.array_equal(view.roster, state.scenario.layout)
        assert view.step == state.step
    flat = sorted((known["rows"][a], k) for known in expected for a, k in known["damaged"])
    assert [tuple(p) for p in views.damaged_in_range.tolist()] == flat
    assert views.sizes.tolist() == [len(known["rows"]) for known in expected]
    means = [state.positions[known["rows"]].mean(axis=0) for known in expected]
    np.testing.assert_allclose(views.means(state.positions), means, rtol=1e-13)


def test_a_subnet_alone_is_the_same_subnet():
    for view in observe(drawn(3), Scope.SUBNET):
        (again,) = view.alone()
        for name in public(SubnetView) - {"alone", "mission"}:
            assert np.array_equal(getattr(again, name), getattr(view, name)), name


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_each_row_of_the_local_view_equals_what_that_uav_senses(seed):
    state = drawn(seed, 30)
    view = observe(state, Scope.LOCAL)
    spots = state.scenario.layout[state.scenario.damaged]
    for row, here in enumerate(state.positions):
        near = [j for j in range(len(state.positions)) if j != row and np.linalg.norm(state.positions[j] - here) <= 120]
        mine = view.receiver == row
        got = sorted(np.hstack([view.neighbor_offsets[mine], view.neighbor_velocities[mine]]).tolist())
        expected = sorted([*(state.positions[j] - here), *state.velocities[j]] for j in near)
        np.testing.assert_allclose(np.reshape(got, (-1, 4)), np.reshape(expected, (-1, 4)))
        wrecks = sorted((s - here).tolist() for s in spots if np.linalg.norm(s - here) <= 120)
        assert sorted(view.damaged_offsets[view.damaged_receiver == row].tolist()) == wrecks


# --- what it does not hold ---


def without(state: SwarmState, gone: np.ndarray) -> SwarmState:
    """The same moment, with the alive `gone` (roster indices) damaged instead: lost to the other subnets either way."""
    old = state.scenario
    scenario = replace(old, damaged=np.sort(np.concatenate([old.damaged, gone])))
    keep = ~np.isin(old.alive, gone)
    return SwarmState(scenario, state.positions[keep].copy(), state.velocities[keep].copy(), state.step)


def equal_views(a: SubnetView, b: SubnetView) -> bool:
    names = public(SubnetView) - {"alone", "mission"}
    return all(np.array_equal(getattr(a, n), getattr(b, n)) for n in names)


def far_from(state: SwarmState, rows: np.ndarray) -> np.ndarray:
    """Rows whose spots before the damage and present positions are out of range of all `rows`."""
    far = []
    for r in range(len(state.positions)):
        ends = np.stack([state.positions[r], state.scenario.spots[r]])
        if np.linalg.norm(ends[:, None] - state.positions[rows], axis=2).min() > 125:
            far.append(r)
    return np.array(far, dtype=int)


@pytest.mark.parametrize("seed", range(6))
def test_moving_or_removing_the_alive_of_other_subnets_leaves_a_subnet_view_as_it_is(seed):
    """G6 at its root: to the bit, order of links included."""
    rng = np.random.default_rng(seed)
    state = drawn(seed, 60, 0.6)
    views = observe(state, Scope.SUBNET)
    checked = 0
    for rows, view in zip(views.rows, views, strict=True):
        far = far_from(state, rows)
        if not len(far) or len(far) + len(rows) < len(state.positions) / 4:
            continue
        elsewhere = state.positions.copy()
        elsewhere[far] += np.array([1e4, 0.0]) + rng.normal(0, 300, (len(far), 2))
        speeds = state.velocities.copy()
        speeds[far] = rng.normal(0, 5, (len(far), 2))
        others = [SwarmState(state.scenario, elsewhere, speeds, state.step)]
        if len(state.positions) - len(far) >= 2:
            others.append(without(state, state.scenario.alive[far]))
        for other in others:
            again = [v for v in observe(other, Scope.SUBNET) if v.members[0] == view.members[0]]
            assert equal_views(view, again[0])
            checked += 1
    assert checked


def test_a_subnet_cannot_tell_the_damaged_from_the_alive_out_of_range():
    layout = [[0.0, 0.0], [100.0, 0.0], [400.0, 0.0], [700.0, 0.0]]
    for damaged in ([], [2], [3]):
        view = next(iter(observe(initial_state(make_scenario("a", layout, damaged)), Scope.SUBNET)))
        assert view.members.tolist() == [0, 1]
        assert view.lost.tolist() == [False, False, True, True]
        assert view.damaged_in_range.tolist() == []


def test_the_damaged_in_range_are_recognized_inclusive_of_the_range():
    layout = [[0.0, 0.0], [500.0, 0.0], [120.0, 0.0], [0.0, 120.1]]
    first = next(iter(observe(initial_state(make_scenario("a", layout, [2, 3])), Scope.SUBNET)))
    assert first.damaged_in_range.tolist() == [[0, 2]]


def test_views_without_any_damaged():
    state = initial_state(make_scenario("a", [[0.0, 0.0], [500.0, 0.0]]))
    assert observe(state, Scope.SUBNET).damaged_in_range.shape == (0, 2)
    assert observe(state, Scope.LOCAL).damaged_offsets.shape == (0, 2)
    assert observe(state, Scope.LOCAL).neighbor_offsets.shape == (0, 2)
    assert observe(state, Scope.GLOBAL).damaged.tolist() == []


def test_views_cannot_change_the_world():
    state = drawn(1)
    views = observe(state, Scope.SUBNET)
    for array in (views.positions, views.velocities, views.roster, views.members, views.pairs, views.mission.center):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize("scope", Scope)
def test_what_a_view_shows_of_the_world_cannot_be_made_writable(scope):
    view = observe(drawn(1), scope)
    named = ("positions", "velocities", "roster", "members")
    for array in [getattr(view, name) for name in named if hasattr(view, name)] + [view.mission.center]:
        with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
            array.setflags(write=True)


def test_what_members_know_of_each_other_is_of_now_unless_said_otherwise():
    views = observe(drawn(2), Scope.SUBNET)
    assert views.age_s == 0.0
    assert {view.age_s for view in views} == {0.0}
    assert views.news is None
    assert {view.news for view in views} == {None}
    delayed = replace(views, age_s=0.3)
    assert {view.age_s for view in delayed} == {0.3}
    assert {view.alone().age_s for view in delayed} == {0.3}
    with pytest.raises(TypeError, match="positional"):  # of eleven arrays nobody knows the order
        SubnetView(views.mission)


def test_news_reaches_every_subnet_with_the_rows_of_its_members():
    views = observe(drawn(4), Scope.SUBNET)
    delayed = replace(views, news=News(views.positions - 1.0, views.velocities / 2, 3))
    for rows, view in zip(delayed.rows, delayed, strict=True):
        for one in (view, view.alone()):
            assert np.array_equal(one.news.positions, views.positions[rows] - 1.0)
            assert np.array_equal(one.news.velocities, views.velocities[rows] / 2)
            assert one.news.delay_steps == 3


def test_a_subnet_alone_is_counted_once():
    for view in observe(drawn(3), Scope.SUBNET):
        views = view.alone()
        assert views.count == 1
        assert views.centers.tolist() == [view.mission.center.tolist()]


def test_rows_of_interleaved_subnets_keep_their_order():
    """Two lines of 30 whose UAVs alternate: large enough that an unstable sort would mix them."""
    layout = np.array([[100.0 * (k // 2), 1000.0 * (k % 2)] for k in range(60)])
    views = observe(initial_state(make_scenario("a", layout)), Scope.SUBNET)
    assert [rows.tolist() for rows in views.rows] == [list(range(0, 60, 2)), list(range(1, 60, 2))]
    for view in views:
        assert view.pairs.tolist() == [[k, k + 1] for k in range(29)]
