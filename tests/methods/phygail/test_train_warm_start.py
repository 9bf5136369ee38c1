"""Cloning on the policy's own flights: the teacher's answers are SIDR's, and they are learned."""

import numpy as np
import pytest

pytest.importorskip("torch")

from phygail.learning.networks import one_thread
from phygail.learning.run import override
from phygail.methods.phygail.config import PROFILES
from phygail.methods.phygail.experts.dataset import ExpertSet
from phygail.methods.phygail.learner import make_learner
from phygail.methods.phygail.train import fly_and_ask, teach, teachers_actions
from phygail.rng import generator
from phygail.swarm.batch import initial_batch
from phygail.swarm.scenario import draw_scenario
from phygail.swarm.simulator import project_speed

TINY = override(
    PROFILES.get("smoke"),
    ["worlds=2", "horizon=24", "width=16", "layers=1", "teach_rounds=5", "clone_rate=0.01", "clone_graphs=8"],
)


@pytest.fixture(scope="module")
def experts(database):
    return ExpertSet.open(database).training


def test_the_answers_are_those_of_sidr_in_every_world():
    """At rest and far apart every subnet's answer is the direction from its centroid to the center."""
    cases = [draw_scenario(20, 0.5, generator(700_000, k)) for k in range(3)]
    state = initial_batch(cases)
    answers, at = teachers_actions(state), 0
    assert answers.dtype == np.float32
    for b, case in enumerate(cases):
        alive = len(case.spots)
        mine, at = answers[at : at + alive], at + alive
        for label in range(state.count[b]):
            members = state.subnet[b, :alive] == label
            toward = case.center - case.spots[members].mean(axis=0)
            if members.sum() == 1:  # nobody near: no repulsion
                assert mine[members][0] == pytest.approx(toward / np.hypot(*toward), abs=1e-6)
    assert at == len(answers)
    assert np.all(np.hypot(*answers.T) <= 1.0 + 1e-6)
    assert np.all(np.hypot(*project_speed(10.0 * answers, 10.0).T) <= 10.0)


def test_teaching_lowers_the_error_and_equal_seeds_teach_alike(experts):
    first, again = make_learner(TINY), make_learner(TINY)
    with one_thread():
        errors, repeated = list(teach(first, experts, TINY)), list(teach(again, experts, TINY))
    assert len(errors) == 5
    assert min(errors[-3:]) < errors[0]
    assert repeated == errors
    fresh = make_learner(TINY)
    assert all(
        (a == b).all() for a, b in zip(first.actor.log_std.parameters(), fresh.actor.log_std.parameters(), strict=True)
    )


def test_every_step_of_a_flight_is_a_lesson(experts):
    lessons = fly_and_ask(make_learner(TINY), experts, TINY, 0)
    assert len(lessons) == TINY.horizon
    assert all(len(answers) == 2 * 10 for _, answers in lessons)  # two worlds of 20 UAVs that lost half
