import numpy as np
import pytest

from phygail.config import Physics
from phygail.methods.phygail.config import TrainConfig
from phygail.methods.phygail.rewards import gaps_m, shaping_reward
from phygail.rng import generator
from phygail.swarm.batch import initial_batch, step_batch
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.tree import gap_m

pytestmark = pytest.mark.usefixtures("uncompiled")
CONFIG = TrainConfig(gap_weight=0.2)


def test_gaps_equal_those_of_the_worlds_one_by_one():
    cases = [draw_scenario(20, ratio, generator(1, str(ratio))) for ratio in (0.1, 0.4, 0.6, 0.9)]
    expected = [gap_m(case.spots, 120.0) for case in cases]
    np.testing.assert_allclose(gaps_m(initial_batch(cases, 25)), expected)


def test_a_gap_is_worth_the_same_in_other_units():
    """30 m of gap at 120 m are 75 m at 300 m; 2 m of them are closed, or 5."""
    values = []
    for factor in (1.0, 2.5):
        physics = Physics(range_m=120.0 * factor, speed_mps=10.0 * factor)
        case = make_scenario("two", factor * np.array([[0.0, 0.0], [150.0, 0.0]]), physics=physics, budget_steps=40)
        before = initial_batch([case])
        after = step_batch(before, factor * np.array([[[10.0, 0.0], [-10.0, 0.0]]]))
        values.append(float(shaping_reward(before, after, CONFIG)[0]))
    assert values == pytest.approx([0.2 * (30 - CONFIG.gamma * 28)] * 2)


@pytest.mark.parametrize("velocity", [[8.0, 3.0], [-9.0, 1.0]], ids=["approach until success", "retreat until T_max"])
def test_shaping_adds_up_to_the_first_potential_whatever_is_flown(velocity):
    """Sum of gamma^t F_t = -Phi(s_0) = w gap(P_0) = 0.2 x 30 m."""
    case = make_scenario("two", np.array([[0.0, 0.0], [150.0, 0.0]]), budget_steps=40)
    state, total, discount = initial_batch([case]), 0.0, 1.0
    while not (state.terminated | state.truncated).any():
        before, state = state, step_batch(state, np.array([[velocity, [-velocity[0], 0.0]]]))
        total += discount * float(shaping_reward(before, state, CONFIG)[0])
        discount *= CONFIG.gamma
    assert total == pytest.approx(6.0)
