import copy

import numpy as np
import pytest
import torch

from phygail.learning.run import override
from phygail.methods.phygail.config import PROFILES, TrainConfig
from phygail.methods.phygail.experts.database import concatenate, pack
from phygail.methods.phygail.experts.dataset import ExpertSet
from phygail.methods.phygail.experts.recipe import Recipe, demonstrate
from phygail.methods.phygail.learner import make_learner
from phygail.methods.phygail.mappo import (
    clipped_gain,
    entropy_weight,
    estimate_advantages,
    evaluate_values,
    probability_ratio,
    update_policy,
)
from phygail.methods.phygail.rollout import collect

CONFIG = override(PROFILES.get("smoke"), ["worlds=3", "horizon=12", "batch_graphs=18", "ppo_epochs=1"])


@pytest.fixture(scope="module")
def experts():
    recipe = Recipe("toy", ("sidr",), damage=(0.4, 0.8), cases=2)
    demos = [demonstrate(recipe, number) for number in range(len(recipe))]
    archive = concatenate([pack(demo) for demo in demos if demo.winner is not None])
    return ExpertSet(archive, {}, np.arange(len(archive)))


@pytest.fixture(scope="module")
def rollout(experts):
    return collect(make_learner(CONFIG).actor, experts, CONFIG, epoch=1)


@pytest.fixture(scope="module")
def estimates(rollout):
    """Advantages and targets of rewards that look like rewards."""
    rewards = np.where(rollout.alive, np.random.default_rng(0).normal(size=rollout.alive.shape), 0.0)
    values, after = evaluate_values(make_learner(CONFIG).critic, rollout, CONFIG)
    return estimate_advantages(rewards, values, after, rollout.ended, 0.99, 0.95)


def weights_after(config, rollout, advantages, targets, epoch=1):
    learner = make_learner(config)
    update_policy(learner, rollout, advantages, targets, config, epoch)
    return {
        f"{name}.{key}": value.clone()
        for name, network in learner.networks.items()
        for key, value in network.state_dict().items()
    }


def test_the_ratio_is_one_before_the_first_update(rollout):
    """PH-6, with batches of another size than those the samples were drawn in."""
    actor = make_learner(CONFIG).actor
    for size in (36, 7):
        for graph, rows in rollout.parts(size):
            with torch.no_grad():
                ratio = probability_ratio(
                    actor(graph), torch.from_numpy(rollout.u[rows]), torch.from_numpy(rollout.log_prob[rows])
                )
            assert (ratio - 1).abs().max() < 1e-5


def test_the_ratio_of_the_papers_network_is_one_too(experts):
    """PH-6 at full width, where rounding is largest."""
    config = TrainConfig(worlds=2, horizon=3)
    actor = make_learner(config).actor
    data = collect(actor, experts, config, epoch=1)
    graph, rows = data.batch(np.arange(data.graphs))
    with torch.no_grad():
        ratio = probability_ratio(actor(graph), torch.from_numpy(data.u[rows]), torch.from_numpy(data.log_prob[rows]))
    assert (ratio - 1).abs().max() < 1e-5


def test_the_gain_is_clipped_on_the_side_that_would_overshoot():
    ratio, advantage = torch.tensor([1.5, 1.5, 0.5, 0.5, 1.1]), torch.tensor([1.0, -1.0, 1.0, -1.0, 2.0])
    assert clipped_gain(ratio, advantage, 0.2).tolist() == pytest.approx([1.2, -1.5, 0.5, -0.8, 2.2])


def test_the_entropy_weight_reaches_its_floor_at_45_percent():
    weights = [entropy_weight(epoch, TrainConfig()) for epoch in (1, 226, 451, 1000)]
    assert weights == pytest.approx([0.05, 0.0275, 0.005, 0.005])


def test_padding_never_enters_the_loss(rollout, estimates):
    """Whatever stands in the padded rows of advantages and targets, the weights after the update are the same."""
    advantages, targets = estimates
    poisoned = [np.where(rollout.alive, array, np.nan) for array in estimates]
    clean, dirty = weights_after(CONFIG, rollout, advantages, targets), weights_after(CONFIG, rollout, *poisoned)
    assert all(torch.equal(clean[key], dirty[key]) for key in clean)
    assert not rollout.alive.all()


def test_gradients_of_small_parts_add_up_to_those_of_the_whole(rollout, estimates):
    """micro_graphs changes rounding only; AdamW's first step is the sign of the gradient, so its gain is kept small."""
    gentle = override(CONFIG, ["batch_graphs=36", "micro_graphs=36", "rate=1e-6"])
    whole = weights_after(gentle, rollout, *estimates)
    parts = weights_after(override(gentle, ["micro_graphs=5"]), rollout, *estimates)
    for key, value in whole.items():
        assert torch.allclose(value, parts[key], atol=5e-7), key


def test_the_values_of_padding_are_zero_and_those_of_nodes_the_critics(rollout):
    critic = make_learner(CONFIG).critic
    values, after = evaluate_values(critic, rollout, CONFIG)
    graph, _ = rollout.batch(np.arange(rollout.graphs))
    with torch.no_grad():
        np.testing.assert_allclose(values[rollout.alive], critic(graph).numpy(), atol=1e-5)
    assert (values[~rollout.alive] == 0).all()
    assert (after[~rollout.alive_after] == 0).all()


def test_while_the_critic_learns_alone_the_actor_stays(rollout, estimates):
    config = override(CONFIG, ["critic_only_epochs=1"])
    before = {f"actor.{key}": value.clone() for key, value in make_learner(config).actor.state_dict().items()}
    waiting, moving = (weights_after(config, rollout, *estimates, epoch=epoch) for epoch in (1, 2))
    assert all(torch.equal(waiting[key], value) for key, value in before.items())
    assert any(not torch.equal(moving[key], value) for key, value in before.items())


@pytest.mark.parametrize(
    "settings",
    [["critic_clock=true"], ["centralized_critic=false"], ["layer=gat"], ["gates=no-repulsion"], ["graph=no-center"],
     ["graph=no-center-recentered"], ["graph=no-damaged"], ["w_il=0"], ["r_time=0", "step_penalty=0"],
     ["expert_time=false"], ["gap_weight=0.1"]],
    ids=" ".join,
)  # fmt: skip
def test_every_ablation_learns_a_step(settings, experts):
    """METHODS 4.7: finite measures, and weights that move."""
    config = override(CONFIG, [*settings, "horizon=3", "batch_graphs=9"])
    learner = make_learner(config)
    start = copy.deepcopy(learner.actor.state_dict())
    data = collect(learner.actor, experts, config, epoch=1)
    values, after = evaluate_values(learner.critic, data, config)
    estimates = estimate_advantages(data.environment, values, after, data.ended, config.gamma, config.gae_lambda)
    measures = update_policy(learner, data, *estimates, config, epoch=1)
    assert np.isfinite(list(measures.values())).all()
    assert any(not torch.equal(value, start[key]) for key, value in learner.actor.state_dict().items())
