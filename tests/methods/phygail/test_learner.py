import numpy as np
import pytest
import torch

from phygail.learning.networks import seeded
from phygail.learning.run import Score
from phygail.methods.phygail.graph import PAPER, perceive
from phygail.methods.phygail.graph_batch import Observation, fill_commands, observe
from phygail.methods.phygail.heads import Actor
from phygail.methods.phygail.learner import fly_all, spread, validate
from phygail.methods.phygail.network import EncoderSpec, to_tensors
from phygail.rng import generator
from phygail.sensing.views import Observer, Scope
from phygail.swarm.batch import initial_batch, step_batch
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import fly
from phygail.swarm.tree import bound_steps

CASES = [draw_scenario(20, ratio, generator(5, f"{ratio}")) for ratio in (0.3, 0.5, 0.7, 0.85)]


def to_center(graph):
    """Everybody flies to the center: against its own offset."""
    offsets = graph.features[: graph.receivers, :2].astype(float)
    return -offsets / np.maximum(np.hypot(*offsets.T)[:, None], 1e-9)


def test_worlds_flown_together_end_like_worlds_flown_alone():
    success, steps = fly_all(to_center, CASES, Observation())
    for k, case in enumerate(CASES):
        look = Observer(case).observe
        episode = fly(case, lambda state, look=look: 10.0 * to_center(perceive(look(state, Scope.SUBNET), PAPER)))
        assert (success[k], steps[k]) == (episode.terminated, episode.steps)


def test_the_policy_sees_in_a_batch_what_it_sees_in_each_world():
    """The same actions from the batched observation and from the views of the single worlds, in mid-flight."""
    with seeded(2):
        actor = Actor(EncoderSpec(layers=2, width=16))
    state = initial_batch(CASES)
    for _ in range(3):
        state = step_batch(state, fill_commands(state, to_center(observe(state, PAPER))))
    alone = [perceive(Observer(case).observe(state.world(b), Scope.SUBNET), PAPER) for b, case in enumerate(CASES)]
    with torch.no_grad():
        expected = torch.cat([actor.mean_action(to_tensors(graph)) for graph in alone])
        actions = actor.mean_action(to_tensors(observe(state, PAPER)))
    assert torch.allclose(actions, expected, atol=1e-6)


def test_a_policy_that_stays_scores_the_whole_budget():
    case = make_scenario("two", np.array([[0.0, 0.0], [130.0, 0.0]]), budget_steps=7)
    with seeded(0):
        actor = Actor(EncoderSpec(layers=1, width=8))
    torch.nn.init.zeros_(actor.mean[-1].weight)
    assert validate(actor, [case, case], Observation()) == Score(0.0, 7 / 5, 7.0)  # the bound is (130 - 120) / 2 = 5


def test_time_over_bound_is_the_ratio_of_the_sums():
    success, steps = fly_all(to_center, CASES, Observation())
    assert success.all()
    ratio = steps.sum() / sum(bound_steps(case.spots, case.physics) for case in CASES)
    assert 1.0 <= ratio < 20.0


@pytest.mark.parametrize(
    ("better", "worse"), [(Score(1.0, 3.0, 9.0), Score(0.9, 2.0, 5.0)), (Score(0.9, 2.0, 9.0), Score(0.9, 2.1, 5.0))]
)
def test_success_comes_before_time(better, worse):
    assert better.better_than(worse, "over_bound")
    assert not worse.better_than(better, "over_bound")
    assert better.better_than(None, "over_bound")
    assert not better.better_than(better, "over_bound")


def test_validation_cases_are_spread_over_the_held_out():
    assert spread([0, 1, 2, 3, 4, 5, 6], 3) == [0, 3, 6]
    assert spread([0, 1, 2], 0) == spread([0, 1, 2], 9) == [0, 1, 2]


def test_the_mean_of_the_policy_is_flown():
    """No noise: two validations agree, and the command is tanh of the mean."""
    with seeded(1):
        actor = Actor(EncoderSpec(layers=1, width=8))
    short = [make_scenario("s", CASES[0].layout, CASES[0].damaged, budget_steps=5)]
    seen = []

    def decide(graph):
        with torch.no_grad():
            action = torch.tanh(actor(to_tensors(graph)).mean).numpy()
        seen.append(action)
        return action

    fly_all(decide, short, Observation())
    assert validate(actor, short, Observation()) == validate(actor, short, Observation())
    assert len(seen) == 5
