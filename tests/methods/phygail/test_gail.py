import math

import numpy as np
import pytest
import torch

from phygail.learning.networks import noise_generator
from phygail.learning.run import override
from phygail.methods.phygail.config import PROFILES, TrainConfig
from phygail.methods.phygail.experts.database import concatenate, pack
from phygail.methods.phygail.experts.dataset import ExpertSet
from phygail.methods.phygail.experts.recipe import Recipe, demonstrate
from phygail.methods.phygail.gail import imitation_rewards, noisy, paired_batches, soft_label_loss, update_discriminator
from phygail.methods.phygail.learner import make_learner
from phygail.methods.phygail.network import to_tensors
from phygail.methods.phygail.rollout import collect
from phygail.rng import generator

CONFIG = override(PROFILES.get("smoke"), ["worlds=2", "horizon=16", "batch_graphs=8", "micro_graphs=8", "rate=0.001"])


@pytest.fixture(scope="module")
def experts():
    recipe = Recipe("toy", ("sidr",), damage=(0.5,), cases=4)
    demos = [demonstrate(recipe, number) for number in range(len(recipe))]
    archive = concatenate([pack(demo) for demo in demos if demo.winner is not None])
    return ExpertSet(archive, {}, np.arange(len(archive))).training


@pytest.fixture(scope="module")
def rollout(experts):
    return collect(make_learner(CONFIG).actor, experts, CONFIG, epoch=1)


def logit(probability):
    return torch.tensor([math.log(probability / (1 - probability))])


def test_the_loss_has_its_optimum_at_the_soft_targets():
    """All four terms: moving D away from 0.9 or 0.1 to either side costs."""
    best = soft_label_loss(logit(0.9), logit(0.1), TrainConfig())
    for expert, policy in ((0.95, 0.1), (0.85, 0.1), (0.9, 0.15), (0.9, 0.05)):
        assert soft_label_loss(logit(expert), logit(policy), TrainConfig()) > best


def test_the_loss_of_an_undecided_discriminator_is_ln_2():
    assert float(soft_label_loss(logit(0.5), logit(0.5), TrainConfig())) == pytest.approx(math.log(2))


TOY = override(CONFIG, ["width=8", "layers=1", "rate=0.003"])


def toy_verdicts(expert, policy, steps=120):
    """D of two classes of commands in the same surroundings after training: mean over experts, mean over the policy."""
    learner, noise = make_learner(TOY), noise_generator(0, "toy")
    graph = to_tensors(toy_frames().graph())
    for _ in range(steps):
        logits = [
            learner.discriminator.logit_expert_is_high(graph, noisy(draw(graph.receivers, noise), CONFIG, noise))
            for draw in (expert, policy)
        ]
        soft_label_loss(*logits, CONFIG).backward()
        learner.descend("discriminator", CONFIG.gradient_norm)
    with torch.no_grad():
        return [float(learner.discriminator(graph, draw(graph.receivers, noise)).mean()) for draw in (expert, policy)]


def toy_frames():
    recipe = Recipe("toy", ("sidr",), damage=(0.5,), cases=2)
    archive = pack(demonstrate(recipe, 1))
    return ExpertSet(archive, {}, np.arange(1)).frames(np.zeros(2, dtype=int))


def test_two_identical_distributions_end_undecided():
    """PH-8."""

    def anything(n, noise):
        return torch.rand((n, 2), generator=noise) - 0.5

    expert, policy = toy_verdicts(anything, anything)
    assert expert == pytest.approx(0.5, abs=0.05)
    assert policy == pytest.approx(0.5, abs=0.05)


def test_separable_commands_end_at_the_soft_targets():
    """PH-8: experts fly east, the policy flies west."""

    def heading(x):
        return lambda n, noise: torch.tensor([x, 0.0]).expand(n, 2)

    expert, policy = toy_verdicts(heading(0.8), heading(-0.8))
    assert expert == pytest.approx(0.9, abs=0.03)
    assert policy == pytest.approx(0.1, abs=0.03)


def test_no_expert_frame_at_the_start_carries_a_velocity(experts):
    """PH-8: the feature is what was executed before, never the action to be judged."""
    frames = experts.frames(np.flatnonzero(experts._frames[1] == 0))
    assert len(frames) == len(experts)
    assert (frames.graph().features[:, 2:4] == 0).all()
    assert (frames.commands != 0).any()


def test_policy_and_expert_meet_with_about_as_many_nodes(rollout, experts):
    (ours, mine), (theirs, expert) = paired_batches(rollout, np.arange(16), experts, CONFIG, generator(0, "x"))
    assert len(mine) == ours.receivers
    assert len(expert) == theirs.receivers
    assert abs(len(mine) - len(expert)) <= 0.2 * len(mine)


def test_one_update_is_one_pass_of_four_steps_and_repeats_exactly(rollout, experts):
    """32 observations in batches of 8."""
    results = []
    for _ in range(2):
        learner = make_learner(CONFIG)
        measures = update_discriminator(learner, rollout, experts, CONFIG, epoch=1)
        results.append((measures, learner.discriminator.state_dict()))
        steps = {float(moments["step"]) for moments in learner.optimizers["discriminator"].state.values()}
        assert steps == {4.0}
    assert results[0][0] == results[1][0]
    assert all(torch.equal(a, b) for a, b in zip(results[0][1].values(), results[1][1].values(), strict=True))


def test_the_reward_is_that_of_the_executed_command_without_noise(rollout):
    """-log(1 - D), node by node, in the order of the rollout."""
    discriminator = make_learner(CONFIG).discriminator
    rewards = imitation_rewards(discriminator, rollout, CONFIG)
    graph, rows = rollout.batch(np.arange(rollout.graphs))
    with torch.no_grad():
        d = discriminator(graph, torch.from_numpy(rollout.command[rows])).numpy()
    np.testing.assert_array_equal(rows, np.arange(rollout.nodes))
    np.testing.assert_allclose(rewards, -np.log(1 - d), rtol=1e-4)


def test_without_gail_nothing_is_judged(rollout, experts):
    config = override(CONFIG, ["w_il=0"])
    learner = make_learner(config)
    assert update_discriminator(learner, rollout, experts, config, epoch=1) == {}
    assert not imitation_rewards(learner.discriminator, rollout, config).any()


@pytest.mark.slow
def test_a_trained_discriminator_uses_the_actions(rollout, experts):
    """PH-8: with the action rows of expert batches shuffled its loss rises."""
    learner = make_learner(CONFIG)
    for epoch in range(1, 41):
        update_discriminator(learner, rollout, experts, CONFIG, epoch)
    rng = np.random.default_rng(0)
    (ours, mine), (theirs, expert) = paired_batches(rollout, np.arange(rollout.graphs), experts, CONFIG, rng)
    judge = learner.discriminator.logit_expert_is_high
    with torch.no_grad():
        policy = judge(ours, mine)
        true, shuffled = (
            float(soft_label_loss(judge(theirs, actions), policy, CONFIG))
            for actions in (expert, expert[torch.from_numpy(rng.permutation(len(expert)))])
        )
    assert shuffled > true + 0.01
