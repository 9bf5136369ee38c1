import json

import numpy as np
import pytest

from phygail.learning.log import draw_curves, read_log
from phygail.learning.run import override
from phygail.methods.phygail.config import PROFILES
from phygail.methods.phygail.experts.database import concatenate, pack, write_archive
from phygail.methods.phygail.experts.dataset import ExpertSet
from phygail.methods.phygail.experts.recipe import Demonstration, fly_recorded, trajectory
from phygail.methods.phygail.learner import make_learner, validate
from phygail.methods.phygail.mappo import update_policy
from phygail.methods.phygail.rollout import collect
from phygail.methods.phygail.train import start_run, train
from phygail.rng import generator
from phygail.swarm.scenario import make_scenario


def two_apart(case, low_m, high_m):
    """Two UAVs at equal distances from the center in opposite random directions, 40 steps to meet."""
    rng = generator(3, "two apart", case)
    angle, half = rng.uniform(0, 2 * np.pi), rng.uniform(low_m, high_m) / 2
    arm = half * np.array([np.cos(angle), np.sin(angle)])
    scenario = make_scenario(f"pair-{case}", 160.0 + np.array([arm, -arm]), width_m=320.0, budget_steps=40)
    outcome, episode = fly_recorded(scenario, "center-fly")
    return Demonstration(scenario, 0.5, case, (outcome,), 0, *trajectory(episode))


def database(folder, low_m, high_m):
    archive = concatenate([pack(two_apart(case, low_m, high_m)) for case in range(100)])
    path = folder / f"pairs-{low_m:.0f}.h5"
    write_archive(path, archive, {"seed": 3, "pool": "pairs", "damage": [0.5], "methods": ["center-fly"]}, {})
    return path


@pytest.fixture(scope="module")
def near(tmp_path_factory):
    """1 to 6 m out of range: noise alone meets now and then."""
    return database(tmp_path_factory.mktemp("experts"), 121.0, 126.0)


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """6 to 30 m out of range: noise alone hardly ever meets."""
    return database(tmp_path_factory.mktemp("experts"), 126.0, 150.0)


LEARN = override(
    PROFILES.get("smoke"),
    ["epochs=40", "worlds=16", "horizon=40", "width=16", "layers=1", "batch_graphs=160", "micro_graphs=160",
     "ppo_epochs=4", "rate=0.001", "validate_every=10", "validation_cases=0", "initial_log_std=-0.5",
     "entropy_first=0.005", "entropy_last=0.001"],
)  # fmt: skip


def test_advantages_of_flying_to_the_center_teach_flying_to_the_center(near):
    """The most trivial task: PPO alone, the advantage is how straight a command points to the center."""
    config = override(LEARN, ["w_il=0", "horizon=10", "rate=0.003", "batch_graphs=40"])
    learner, experts = make_learner(config), ExpertSet.open(near)
    straight = []
    for epoch in range(1, 10):
        rollout = collect(learner.actor, experts, config, epoch)
        inward = -rollout.graph.features[: rollout.nodes, :2]
        gain = rollout.padded((rollout.command * inward / np.hypot(*inward.T)[:, None]).sum(axis=1))
        straight.append(gain[rollout.alive].mean())
        update_policy(learner, rollout, gain, np.zeros_like(gain), config, epoch)
    assert abs(straight[0]) < 0.1
    assert straight[-1] > 0.25


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_uavs_learn_to_approach_from_the_environments_reward_alone(near, tmp_path):
    """Nothing but the sparse terminal reward: a fresh policy stays where it is, a trained one always meets."""
    run = start_run(tmp_path, near, override(LEARN, ["w_il=0"]))
    before = validate(run.learner.actor, run.validation, run.config.new_observation())
    after = train(run, tensorboard=False)
    assert before.success <= 0.3
    assert after.success == 1.0
    assert after.over_bound < 2.0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_imitation_teaches_what_the_sparse_reward_does_not(far, tmp_path):
    """With GAIL the far pairs meet; before, neither the mean nor the noise of the policy does."""
    run = start_run(tmp_path, far, override(LEARN, ["epochs=80"]))
    after = train(run, tensorboard=False)
    log = read_log(tmp_path)
    assert np.mean([entry["flown"]["success"] for entry in log[:5]]) < 0.1
    assert np.mean([entry["flown"]["success"] for entry in log[-5:]]) > 0.9
    assert after.success >= 0.7


def test_a_warm_start_flies_like_its_experts(far, tmp_path):
    config = override(LEARN, ["clone_passes=20", "clone_rate=0.003"])
    run = start_run(tmp_path, far, config)
    score = validate(run.learner.actor, run.validation, config.new_observation())
    assert score.success == 1.0
    assert score.over_bound < 1.2  # center-fly is at the bound here


def test_the_smoke_profile_runs_from_end_to_end(near, tmp_path):
    """Log, TensorBoard, curves, policies; under a minute."""
    train(start_run(tmp_path, near, PROFILES.get("smoke")))
    assert len(read_log(tmp_path)) == PROFILES.get("smoke").epochs
    for name in ("config.json", "state.safetensors", "best.safetensors", "latest.json", "curves.png", "log.jsonl"):
        assert (tmp_path / name).stat().st_size > 0
    assert (tmp_path / "policies" / "epoch-00004.safetensors").exists()
    assert list((tmp_path / "tensorboard").glob("events*"))


def test_curves_are_drawn_from_any_part_of_a_log(tmp_path):
    """Also where no episode ended and nothing was judged or validated yet."""
    entry = {"epoch": 1, "flown": {"success": None}, "ppo": {"value": 0.1}, "discriminator": {}}
    (tmp_path / "log.jsonl").write_text(json.dumps(entry) + "\n")
    assert draw_curves(tmp_path).read_bytes().startswith(b"\x89PNG")
