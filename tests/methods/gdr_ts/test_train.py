"""Offline training of the GDR-TS policy."""

import json

import numpy as np
import pytest
import torch

from phygail.learning.run import run
from phygail.methods.gdr_ts import GdrTs, load_policy_weights
from phygail.methods.gdr_ts.policy import PlanPolicy, judge
from phygail.methods.gdr_ts.train import GdrTsConfig, draw_tasks, job, learn, turned
from phygail.rng import generator
from phygail.weights import bundled

SMALL = GdrTsConfig(sizes=(20,), damage_low=0.4, damage_high=0.6, tasks=4, updates=3, scenarios=2, plans=4)


def test_tasks_have_connected_warm_starts() -> None:
    for task in draw_tasks(SMALL):
        assert judge(task, task.warm[None]).subnets[0] == 1
        assert judge(task, task.positions[None]).subnets[0] > 1


def test_turning_a_task_keeps_its_distances() -> None:
    tasks = draw_tasks(SMALL)[:1]
    for k in range(8):
        task = turned(tasks, generator(k, "turn"))
        np.testing.assert_allclose(np.hypot(*task.positions.T), np.hypot(*tasks[0].positions.T))
        np.testing.assert_allclose(judge(task, task.warm[None]).reward, judge(tasks[0], tasks[0].warm[None]).reward)


def test_training_twice_with_one_seed_gives_equal_policies() -> None:
    torch.set_num_threads(1)  # sums in one order
    first, second = (list(learn(SMALL))[-1].network.state_dict() for _ in range(2))
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name])
    assert not torch.equal(first["head.2.weight"], torch.zeros(3, 64))


def test_a_short_training_leaves_loadable_weights(tmp_path) -> None:
    settings = job(SMALL)
    path = tmp_path / "short.safetensors"
    run(job(SMALL), path, "phygail train gdr-ts")
    assert len(settings.scenarios) == 8
    assert GdrTs(weights=path).weights.keys() == PlanPolicy().state_dict().keys()


def test_bundled_weights_say_how_they_were_made_and_were_learned() -> None:
    config = json.loads(bundled("gdr-ts").with_suffix(".json").read_text())
    assert config["command"].startswith("phygail train gdr-ts")
    assert config["training"]["seed"] >= 100_000
    assert all(point["success"] == 1.0 for point in config["validation"])
    assert not torch.equal(load_policy_weights(bundled("gdr-ts"))["head.2.weight"], torch.zeros(3, 64))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_offline_reward_rises() -> None:
    """GD-3: the last 50 updates earn more than the first 50."""
    rewards = [update.metrics["reward"] for update in learn(GdrTsConfig(updates=300))]
    assert np.mean(rewards[-50:]) > np.mean(rewards[:50])
