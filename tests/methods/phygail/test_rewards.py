import math

import numpy as np
import pytest

from phygail.config import InputError, Physics
from phygail.methods.phygail.config import TrainConfig
from phygail.methods.phygail.rewards import (
    environment_reward,
    gain_of_waiting,
    imitation_reward,
    pace_steps,
    safety_reward,
    saved_steps,
    speed_bonus,
)
from phygail.swarm.batch import initial_batch, step_batch
from phygail.swarm.scenario import make_scenario

PAPER = TrainConfig()
BUDGET = 256  # T_max of the 20-UAV map


def logit(probability):
    return math.log(probability / (1 - probability))


def flown(layout, velocities, budget_steps=100):
    """The state after one step from `layout`."""
    state = initial_batch([make_scenario("s", np.array(layout, dtype=float), budget_steps=budget_steps)])
    return step_batch(state, np.array([velocities], dtype=float))


def test_the_speed_bonus_is_e_at_the_start_one_at_the_tolerated_time_and_nominal_at_the_experts():
    """PH-7."""
    at = speed_bonus(np.array([0.0, 24.0, 20.0]), pace_steps(np.full(3, 20.0), np.full(3, BUDGET), PAPER), PAPER)
    np.testing.assert_allclose(at, [math.e, 1.0, 1.1814], atol=1e-4)


def test_the_cap_of_the_bonus_binds_only_with_a_faster_decay():
    start = np.zeros(1), np.full(1, 24.0)
    assert speed_bonus(*start, TrainConfig(decay=2.0)) == 3.0
    assert speed_bonus(*start, PAPER) < 3.0


def test_without_expert_time_the_bonus_measures_against_the_budget():
    """METHODS 4.7: T_max in place of alpha T_E. exp(0.5) = 1.649 at half the budget, 1 at its end."""
    config = TrainConfig(expert_time=False)
    pace = pace_steps(np.full(3, 20.0), np.full(3, BUDGET), config)
    np.testing.assert_allclose(speed_bonus(np.array([0, 128, 256]), pace, config), [math.e, 1.6487213, 1.0], atol=1e-7)


def test_a_step_costs_its_share_of_the_budget_and_every_meter_below_the_safe_distance():
    """Two UAVs 12 m apart, the third out of range: 5 / 100 per step, 0.01 x 3 m for the two."""
    state = flown([[0, 0], [12, 0], [300, 0]], np.zeros((3, 2)))
    np.testing.assert_allclose(environment_reward(state, np.array([10]), PAPER), [[-0.08, -0.08, -0.05]])


def test_safety_counts_every_close_neighbor():
    """Three in a row, 10 m between them: the middle one is 5 m too close to two."""
    state = flown([[0, 0], [10, 0], [20, 0], [500, 0]], np.zeros((4, 2)))
    np.testing.assert_allclose(safety_reward(state, PAPER), [[-0.05, -0.1, -0.05, 0.0]])


def test_the_safe_distance_is_that_of_the_vehicle():
    """1.5 contact distances: vehicles 2.5 times as wide earn the same 2.5 times as far apart, whatever the radio."""
    wide = Physics(range_m=300.0, contact_m=25.0)
    layout = np.array([[0.0, 0.0], [10.0, 0.0], [20.0, 0.0], [500.0, 0.0]])
    cases = [make_scenario("a", layout), make_scenario("b", 2.5 * layout, physics=wide)]
    expected = [-0.05, -0.1, -0.05, 0.0]
    np.testing.assert_allclose(safety_reward(initial_batch(cases), PAPER), [expected, expected], rtol=1e-12)
    farther = initial_batch([make_scenario("c", layout, physics=Physics(range_m=300.0))])
    np.testing.assert_array_equal(safety_reward(farther, PAPER), safety_reward(initial_batch(cases[:1]), PAPER))


def test_success_pays_the_base_and_the_bonus_for_its_time():
    """121 m apart, closing 2 m: connected at t = 1 = T_E, eta = 1.1814."""
    state = flown([[0, 0], [121, 0]], [[10, 0], [-10, 0]])
    expected = 20 + 20 * math.exp(1 - 1 / 1.2) - 5 / 100
    np.testing.assert_allclose(environment_reward(state, np.array([1]), PAPER), [[expected, expected]])


def test_the_end_of_the_budget_costs_five_per_subnet():
    state = flown([[0, 0], [200, 0], [400, 0]], np.zeros((3, 2)), budget_steps=1)
    np.testing.assert_allclose(environment_reward(state, np.array([1]), PAPER), np.full((1, 3), -15.0 - 5.0))


def test_padding_earns_nothing():
    cases = [make_scenario(str(k), np.arange(n)[:, None] * [200.0, 0.0]) for k, n in enumerate((2, 4))]
    state = step_batch(initial_batch(cases), np.zeros((2, 4, 2)))
    reward = environment_reward(state, np.array([5, 5]), PAPER)
    assert (reward[0, 2:] == 0).all()
    assert (reward[state.mask] < 0).all()


def test_the_imitation_reward_lies_between_its_targets():
    """PH-12."""
    np.testing.assert_allclose(
        imitation_reward(np.array([logit(0.1), 0.0, logit(0.9)])), [0.10536, 0.69315, 2.30259], atol=1e-5
    )


def test_the_imitation_reward_is_clipped_at_epsilon_and_finite():
    low, high = imitation_reward(np.array([-1e30, 1e30], dtype=np.float32))
    assert low == pytest.approx(1e-8, rel=1e-6)
    assert high == pytest.approx(-math.log(1e-8))


def test_success_saves_the_discounted_rest_of_the_budget():
    """gamma = 0.5, two steps saved: 0.5 + 0.25."""
    config = TrainConfig(gamma=0.5)
    moving = [[10, 0], [-10, 0]]
    assert saved_steps(flown([[0, 0], [121, 0]], moving, budget_steps=3), config) == pytest.approx(0.75)
    assert saved_steps(flown([[0, 0], [200, 0]], moving, budget_steps=3), config) == 0.0


# --- early success and a reward that is never negative (STYLE 7) ---


def returns(config, probability, expert_steps, credit=0.0):
    """(T_max,) discounted return of flying at D = `probability` and finishing with move t = 1..T_max."""
    t = np.arange(1, BUDGET + 1)
    step = config.w_il * imitation_reward(logit(probability)) - config.step_penalty / BUDGET
    bonus = speed_bonus(t, pace_steps(np.full(BUDGET, expert_steps), np.full(BUDGET, BUDGET), config), config)
    saved = np.array([sum(config.gamma**k for k in range(1, BUDGET - moves + 1)) for moves in t])
    success = config.r_base + config.r_time * bonus + config.w_il * credit * saved
    return (step * np.cumsum(config.gamma ** (t - 1)) + config.gamma ** (t - 1) * success) / config.reward_scale


def test_a_step_of_waiting_is_worth_what_the_docstring_says():
    assert 20 * gain_of_waiting(PAPER, 0.5, BUDGET) == pytest.approx(0.0693 - 0.0195 - 0.2, abs=1e-4)
    assert 20 * gain_of_waiting(PAPER, 0.9, BUDGET) == pytest.approx(0.0107, abs=1e-4)
    assert gain_of_waiting(PAPER, 0.888, BUDGET) < 0 < gain_of_waiting(PAPER, 0.8895, BUDGET)
    assert gain_of_waiting(PAPER, 0.9, BUDGET, bonus=0.054) < 0


@pytest.mark.parametrize("expert_steps", [1, 20, 200])
@pytest.mark.parametrize("probability", [0.1, 0.5, 0.88])
def test_finishing_one_step_earlier_always_returns_more_with_the_papers_rewards(probability, expert_steps):
    assert (np.diff(returns(PAPER, probability, expert_steps)) < 0).all()


def test_the_papers_rewards_pay_for_waiting_only_where_the_discriminator_is_fooled_and_the_bonus_gone():
    rising = np.flatnonzero(np.diff(returns(PAPER, 0.9, 10)) > 0)
    assert rising.min() + 1 > 4.7 * 10 - 1
    assert (np.diff(returns(PAPER, 0.9, 200)) < 0).all()


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9, 0.99])
def test_with_the_absorbing_credit_waiting_that_is_judged_like_the_average_never_pays(probability):
    credit = imitation_reward(logit(probability))
    assert (np.diff(returns(PAPER, probability, 10, credit)) < 0).all()


def test_with_the_credit_waiting_pays_only_far_above_the_average():
    """The limit: r_GAIL of waiting above the mean by (0.2 + 0.0195) / 0.1 = 2.195."""
    mean = imitation_reward(logit(0.5))
    assert imitation_reward(logit(0.9)) - mean < 2.195 < imitation_reward(logit(0.99)) - mean
    assert (np.diff(returns(PAPER, 0.9, 10, mean)) < 0).all()
    assert (np.diff(returns(PAPER, 0.99, 10, mean)) > 0).any()


def test_the_credit_makes_success_neutral_to_imitation():
    """Without all other rewards the return does not depend on when the flight ends."""
    config = TrainConfig(absorbing=True, r_base=0.0, r_time=0.0, step_penalty=0.0)
    value = returns(config, 0.7, 10, imitation_reward(logit(0.7)))
    np.testing.assert_allclose(value, value[0], rtol=1e-9)


def test_constants_with_which_waiting_pays_at_an_undecided_discriminator_are_refused():
    with pytest.raises(InputError, match="absorbing=true"):
        TrainConfig(gamma=0.999)
    assert TrainConfig(gamma=0.999, absorbing=True).absorbing
