"""The validation loop, on flights whose outcome is known."""

import numpy as np

from phygail.learning.run import Score, validate, validation_scenarios
from phygail.methods.base import make_method
from phygail.methods.planning import PlanMethod
from phygail.swarm.scenario import make_scenario


class Halfway(PlanMethod):
    """Both fly to the middle; says so in its flag if asked to."""

    name = "halfway"

    def __init__(self, flag: str = "") -> None:
        super().__init__()
        self.flag = flag

    def plan(self, view):
        return np.broadcast_to(view.positions.mean(axis=0), view.positions.shape).copy()


PAIR = make_scenario("pair", [[0.0, 0.0], [200.0, 0.0]])


def test_steps_and_displacement_by_hand():
    """200 m apart, closing 2 m a step: 40 steps to 120 m; the plan moves each 100 m, the flight 40 m."""
    assert validate(Halfway, [PAIR]) == Score(1.0, None, 40.0, 100.0)
    assert validate(lambda: make_method("center-fly"), [PAIR]) == Score(1.0, None, 40.0, 40.0)


def test_a_fallback_is_no_success():
    assert validate(lambda: Halfway("fallback:x"), [PAIR]).success == 0.0


def test_success_counts_before_speed():
    assert Score(1.0, None, 50.0, 9.0).better_than(Score(0.9, None, 10.0, 1.0))
    assert Score(1.0, None, 50.0, 1.0).better_than(Score(1.0, None, 10.0, 2.0), "mean_largest_move_m")
    assert not Score(1.0, None, 50.0, 1.0).better_than(Score(1.0, None, 10.0, 2.0))
    assert Score(0.0, None, 1.0, 1.0).better_than(None)


def test_without_success_the_other_measure_decides():
    """An evolution compares mean policies with its clone."""
    assert Score(None, None, 50.0, over_clone=0.9).better_than(Score(None, None, 40.0, over_clone=1.0), "over_clone")
    assert Score(None, None, 50.0, over_clone=0.9).entry() == {"mean_steps": 50.0, "over_clone": 0.9}


def test_scenarios_are_fixed_by_the_seed():
    one, two = (validation_scenarios(100_000, (20,), (0.5,), 2) for _ in range(2))
    assert [len(one), one[0].uavs] == [2, 20]
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.layout, b.layout)
    assert not np.array_equal(one[0].layout, one[1].layout)
