"""The buffered Voronoi filter (METHODS 8.3)."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phygail.config import CONTACT_M, CONTACT_TOLERANCE_M, Physics
from phygail.swarm import safety
from phygail.swarm.safety import IN_HAND, HalfPlanes, filter_velocities, kept_m, neighbor_radius_m, project_onto_cells

pytestmark = pytest.mark.xdist_group("cones")  # cvxpy is imported once
WORLD = Physics()
SEEDS = st.integers(0, 2**32 - 1)


def distances(positions):
    return np.hypot(*(positions[:, None] - positions[None]).transpose(2, 0, 1))


def disc(rng, n, speed):
    """n velocities of any direction, a third of them at full speed, some zero."""
    angle = rng.uniform(0, 2 * np.pi, n)
    size = speed * np.minimum(1.0, rng.uniform(0, 1.5, n)) * (rng.random(n) > 0.1)
    return size[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1) * (1 - 1e-15)


def dense_swarm(rng, n, kind):
    """Positions with many near pairs: at random, in a pile, on a 10 m lattice, on a line, coincident, far from 0."""
    if kind == "random":
        return rng.uniform(0, 12.0 * np.sqrt(n), (n, 2))
    if kind == "pile":
        return rng.normal(0, 4.0, (n, 2))
    if kind == "lattice":
        side = int(np.ceil(np.sqrt(n)))
        return 10.0 * np.array(list(itertools.product(range(side), repeat=2)))[:n].astype(float)
    if kind == "line":
        angle = rng.uniform(0, np.pi)
        return rng.uniform(0, 9.0 * n, n)[:, None] * np.array([np.cos(angle), np.sin(angle)])
    if kind == "coincident":
        return rng.uniform(0, 30, (1 + n // 3, 2))[rng.integers(0, 1 + n // 3, n)]
    return rng.uniform(0, 12.0 * np.sqrt(n), (n, 2)) + 1e6


KINDS = ["random", "pile", "lattice", "line", "coincident", "far"]


def commands(rng, positions, t, speed):
    """Adversarial: everybody to the middle, to the next in the row, at random, or all in one direction."""
    if t % 4 == 0:
        away = positions.mean(axis=0) - positions
    elif t % 4 == 1:
        away = np.roll(positions, -1, axis=0) - positions
    elif t % 4 == 2:
        return disc(rng, len(positions), speed)
    else:
        away = np.ones_like(positions) * [1.0, 0.3]
    return away / np.maximum(np.hypot(*away.T), 1e-9)[:, None] * speed * (1 - 1e-15)


def test_two_head_on_stop_just_short_of_contact():
    """11 m apart, each asks for 1 m: each may fly (11 - 10.001)/2 = 0.4995 m, that is 4.995 m/s."""
    positions = np.array([[0.0, 0.0], [11.0, 0.0]])
    safe = filter_velocities(positions, np.array([[10.0, 0.0], [-10.0, 0.0]]), WORLD)
    np.testing.assert_allclose(safe, [[4.995, 0.0], [-4.995, 0.0]], atol=1e-12)


def test_the_part_along_the_border_survives():
    """At 10 m nothing toward the other is left; (6, 8) m/s becomes (0, 8)."""
    positions = np.array([[0.0, 0.0], [10.0, 0.0]])
    safe = filter_velocities(positions, np.array([[6.0, 8.0], [0.0, 0.0]]), WORLD)
    np.testing.assert_allclose(safe, [[0.0, 8.0], [0.0, 0.0]], atol=1e-12)


def test_a_uav_in_a_corner_of_two_neighbors_stops():
    """Neighbors at 10 m east and north: (7, 7) points into both, the corner of the cell is 0."""
    positions = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    velocities = np.array([[7.0, 7.0], [0.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(filter_velocities(positions, velocities, WORLD)[0], 0.0, atol=1e-12)


def test_neighbor_radius_follows_speed_and_step():
    assert neighbor_radius_m(WORLD) == pytest.approx(12.001)
    assert neighbor_radius_m(Physics(speed_mps=20.0, step_s=0.5)) == pytest.approx(30.001)


def test_the_contact_distance_is_that_of_the_vehicle():
    """Head on at 11 m: d_col = 4 m leaves each (11 - 4.0004)/2 = 3.4998 m, that is 6.9996 m/s in half a second."""
    physics = Physics(contact_m=4.0, step_s=0.5)
    assert kept_m(physics) == pytest.approx(4.0004)
    assert neighbor_radius_m(physics) == pytest.approx(14.0004)
    positions, velocities = np.array([[0.0, 0.0], [11.0, 0.0]]), np.array([[10.0, 0.0], [-10.0, 0.0]])
    safe = filter_velocities(positions, velocities, physics)
    np.testing.assert_allclose(safe, [[6.9996, 0.0], [-6.9996, 0.0]], atol=1e-12)
    wide = filter_velocities(positions, velocities, Physics(contact_m=11.0))
    np.testing.assert_allclose(wide, 0.0, atol=1e-12)


@given(seed=SEEDS, n=st.integers(2, 40), kind=st.sampled_from(KINDS), factor=st.sampled_from([0.5, 2.0, 16.0]))
@settings(max_examples=40, deadline=None)
def test_all_lengths_times_a_factor_give_the_commands_times_it(seed, n, kind, factor):
    """Powers of two: equal to the last bit."""
    rng = np.random.default_rng(seed)
    positions, velocities = dense_swarm(rng, n, kind), disc(rng, n, 10.0)
    scaled = Physics(speed_mps=10.0 * factor, contact_m=10.0 * factor)
    safe = filter_velocities(positions, velocities, WORLD)
    assert np.array_equal(filter_velocities(factor * positions, factor * velocities, scaled), factor * safe)


def test_nothing_changes_when_nobody_is_near():
    rng = np.random.default_rng(0)
    positions = 12.01 * np.array(list(itertools.product(range(6), repeat=2)), dtype=float)
    velocities = disc(rng, len(positions), 10.0)
    np.testing.assert_array_equal(filter_velocities(positions, velocities, WORLD), velocities)


def test_allowed_commands_pass_bit_for_bit():
    positions = np.array([[0.0, 0.0], [10.0, 0.0], [50.0, 50.0]])
    velocities = np.array([[-1.0 / 3, 0.1], [2.0 / 3, 0.0], [7.0, 7.0]])
    np.testing.assert_array_equal(filter_velocities(positions, velocities, WORLD), velocities)


@pytest.mark.parametrize("n", [0, 1])
def test_a_swarm_too_small_for_pairs_passes(n):
    assert filter_velocities(np.zeros((n, 2)), np.ones((n, 2)), WORLD).shape == (n, 2)


@given(
    seed=SEEDS,
    n=st.integers(2, 40),
    kind=st.sampled_from(KINDS),
    physics=st.sampled_from(
        [WORLD, Physics(speed_mps=25.0, step_s=0.4), Physics(speed_mps=0.3, step_s=0.05), Physics(contact_m=3.0)]
    ),
)
@settings(max_examples=20, deadline=None)
def test_no_step_creates_a_contact_or_brings_a_pair_closer_than_allowed(seed, n, kind, physics):
    rng = np.random.default_rng(seed)
    positions = dense_swarm(rng, n, kind)
    off = ~np.eye(n, dtype=bool)
    for t in range(50):
        wanted = commands(rng, positions, t, physics.speed_mps)
        safe = filter_velocities(positions, wanted, physics)
        assert np.isfinite(safe).all()
        assert (np.hypot(*safe.T) <= np.hypot(*wanted.T)).all(), "nobody is faster than its command"
        before = distances(positions)
        positions = positions + safe * physics.step_s
        after = distances(positions)
        assert (after >= np.minimum(before, physics.contact_m) - 1e-9)[off].all()
        limit = physics.contact_m - CONTACT_TOLERANCE_M
        assert not ((before >= limit) & (after < limit))[off].any(), "a new contact"


def test_rounding_never_adds_up_to_a_contact():
    """Two UAVs pressed against each other at 10.001 m and dragged around for 1000 steps."""
    positions = np.array([[0.0, 0.0], [10.5, 0.3]]) + 1e5
    for t in range(1000):
        toward = positions[1] - positions[0]
        toward /= np.hypot(*toward)
        side = np.array([np.cos(t * 0.01), np.sin(t * 0.01)])
        wanted = np.stack([7 * toward + 7 * side, -7 * toward + 7 * side]) / 1.5
        positions = positions + filter_velocities(positions, wanted, WORLD) * WORLD.step_s
    gap = np.hypot(*(positions[1] - positions[0]))
    assert CONTACT_M * (1 + 0.9 * IN_HAND) < gap < CONTACT_M * (1 + 1.01 * IN_HAND)


def random_cells(rng, k):
    """k cells of 1 to 12 half-planes, some through 0, some normals repeated or opposite."""
    count = rng.integers(1, 13, k)
    owner = np.repeat(np.arange(k), count)
    angle = rng.uniform(0, 2 * np.pi, len(owner))
    snapped = rng.random(len(owner)) < 0.3
    angle[snapped] = np.round(angle[snapped] / (np.pi / 4)) * (np.pi / 4)
    limit = np.where(rng.random(len(owner)) < 0.3, 0.0, rng.uniform(0, 8.0, len(owner)))
    shuffle = rng.permutation(len(owner))
    return HalfPlanes(owner[shuffle], np.stack([np.cos(angle), np.sin(angle)], axis=1)[shuffle], limit[shuffle])


def brute_projection(point, normal, limit):
    """The nearest among all feet and corners that are allowed, and the point itself."""
    spots = [point] + [point - (n @ point - b) * n for n, b in zip(normal, limit, strict=True)]
    for (n, b), (m, c) in itertools.combinations(zip(normal, limit, strict=True), 2):
        if abs(n[0] * m[1] - n[1] * m[0]) > 1e-10:
            spots.append(np.linalg.solve(np.stack([n, m]), [b, c]))
    spots = np.array(spots)
    allowed = (spots @ normal.T - limit <= 1e-10).all(axis=1)
    gap = np.where(allowed, np.hypot(*(spots - point).T), np.inf)
    return spots[gap.argmin()]


@given(seed=SEEDS)
@example(seed=0)
@settings(max_examples=25, deadline=None)
def test_projection_equals_brute_force_over_all_active_sets(seed):
    rng = np.random.default_rng(seed)
    planes, points = random_cells(rng, 20), disc(rng, 20, 10.0)
    nearest = project_onto_cells(points, planes, np.full(len(points), 1e-11))
    for i, point in enumerate(points):
        own = planes.owner == i
        np.testing.assert_allclose(
            nearest[i], brute_projection(point, planes.normal[own], planes.limit[own]), atol=1e-7
        )


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # it is asked for more digits than it promises
def test_projection_equals_a_cone_solver_with_the_speed_disc(cp):
    """The disc is stated to the solver and never changes the answer. An interior-point solver needs an interior."""
    rng = np.random.default_rng(5)
    planes, points = random_cells(rng, 12), disc(rng, 12, 10.0)
    planes = replace(planes, limit=planes.limit + 0.5)
    nearest = project_onto_cells(points, planes, np.full(len(points), 1e-11))
    for i, point in enumerate(points):
        own = planes.owner == i
        v = cp.Variable(2)
        rules = [planes.normal[own] @ v <= planes.limit[own], cp.norm(v) <= 10.0]
        precise = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
        cp.Problem(cp.Minimize(cp.sum_squares(v - point)), rules).solve(solver=cp.CLARABEL, **precise)
        np.testing.assert_allclose(nearest[i], v.value, atol=1e-6)


@given(seed=SEEDS, n=st.integers(2, 30), kind=st.sampled_from(KINDS))
@settings(max_examples=30, deadline=None)
def test_filter_equals_brute_force_on_swarms(seed, n, kind):
    """Half-planes written out from METHODS 8.3, for each UAV by itself."""
    rng = np.random.default_rng(seed)
    positions, velocities = dense_swarm(rng, n, kind), disc(rng, n, 10.0)
    safe = filter_velocities(positions, velocities, WORLD)
    d = distances(positions)
    for i in range(n):
        near = np.flatnonzero((d[i] > 0) & (d[i] <= 12.001))
        normal = (positions[near] - positions[i]) / d[i, near, None]
        limit = (d[i, near] / 2 - np.minimum(CONTACT_M * (1 + IN_HAND) / 2, d[i, near] / 2)) / WORLD.step_s
        along = normal @ safe[i] - limit
        assert (along <= 1e-10).all()
        best = brute_projection(velocities[i], normal, limit)
        # Distances, not points, are compared: thin wedges of a pile make the point itself ill-conditioned.
        assert np.hypot(*(safe[i] - velocities[i])) <= np.hypot(*(best - velocities[i])) + 1e-6


@given(seed=SEEDS, n=st.integers(2, 30), kind=st.sampled_from(KINDS))
@settings(max_examples=30, deadline=None)
def test_permuting_the_uavs_permutes_the_result(seed, n, kind):
    rng = np.random.default_rng(seed)
    positions, velocities = dense_swarm(rng, n, kind), disc(rng, n, 10.0)
    order = rng.permutation(n)
    straight = filter_velocities(positions, velocities, WORLD)
    permuted = filter_velocities(positions[order], velocities[order], WORLD)
    np.testing.assert_allclose(permuted, straight[order], atol=1e-9)


@given(seed=SEEDS, n=st.integers(2, 40))
@settings(max_examples=30, deadline=None)
def test_the_result_of_a_uav_depends_on_its_near_neighbors_only(seed, n):
    rng = np.random.default_rng(seed)
    positions, velocities = dense_swarm(rng, n, "random"), disc(rng, n, 10.0)
    whole = filter_velocities(positions, velocities, WORLD)
    near = distances(positions)[0] <= neighbor_radius_m(WORLD)
    velocities[1:] = disc(rng, n - 1, 10.0)  # nor on anybody else's command
    alone = filter_velocities(positions[near], velocities[near], WORLD)
    np.testing.assert_array_equal(alone[0], whole[0])


def test_a_pile_of_hundreds_is_filtered_without_a_stuck_uav():
    """500 UAVs within a few meters: most stay, whoever wants out gets out at full speed."""
    rng = np.random.default_rng(1)
    positions = rng.normal(0, 3.0, (500, 2))
    outermost = np.argmax(np.hypot(*positions.T))
    velocities = positions / np.hypot(*positions.T)[:, None] * 9.99
    safe = filter_velocities(positions, velocities, WORLD)
    np.testing.assert_allclose(safe[outermost], velocities[outermost])
    assert np.isfinite(safe).all()


def test_a_projection_spoiled_by_rounding_makes_nobody_faster(monkeypatch):
    """Whatever comes out of an ill-conditioned corner is scaled to the speed of the command, not a rounding above."""
    angle = np.linspace(0.1, 1.4, 700)
    positions = np.repeat(1000.0 * np.arange(700), 2)[:, None] * [1.0, 0.0]
    positions[1::2, 0] += 10.0
    velocities = np.zeros((1400, 2))
    velocities[::2] = 9.7 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    monkeypatch.setattr(safety, "project_onto_cells", lambda points, planes, slack: points * 1.3)
    safe = np.hypot(*filter_velocities(positions, velocities, WORLD)[::2].T)
    assert (safe <= np.hypot(*velocities[::2].T)).all()
    np.testing.assert_allclose(safe, 9.7, rtol=1e-14)


def test_a_point_left_outside_its_cell_is_shrunk_into_it():
    """Three cells: (4, 3) must obey x <= 2 and y <= 2, so it is halved; (1, 1) is inside; (0, 8) may have y 2."""
    owner = np.array([0, 0, 1, 2])
    planes = HalfPlanes(owner, np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), np.full(4, 2.0))
    points = np.array([[4.0, 3.0], [1.0, 1.0], [0.0, 8.0]])
    shrunk = safety._shrink_into_cells(points, planes, np.array([0, 2, 3]), np.full(3, 1e-11))
    np.testing.assert_allclose(shrunk, [[2.0, 1.5], [1.0, 1.0], [0.0, 2.0]])


def test_the_slack_for_rounding_grows_with_the_speed():
    """At 1,000 m/s a violation of 5e-10 m/s is rounding, at 10 m/s it is not."""
    positions = np.array([[0.0, 0.0], [10.001, 0.0]])
    along = np.array([[5e-10, 1.0], [0.0, 0.0]])
    fast, slow = (filter_velocities(positions, along, Physics(speed_mps=v, step_s=1 / v)) for v in (1000.0, 10.0))
    assert fast[0, 0] == 5e-10
    assert slow[0, 0] < 1e-11
