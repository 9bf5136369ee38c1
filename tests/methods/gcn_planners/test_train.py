"""Meta-learning of the planners: its step by hand, its tasks, its run, and MG-5."""

import json

import numpy as np
import pytest
import torch

from phygail.learning.networks import load_state, load_weights
from phygail.learning.run import run
from phygail.methods.gcn_planners import CR_MGC, VERSION, train
from phygail.methods.gcn_planners.network import ConvolutionStack
from phygail.methods.gcn_planners.search import PROFILES, search_cr_mgc, squashed_targets
from phygail.methods.gcn_planners.train import MetaConfig, draw_swarms, meta_step
from phygail.rng import generator
from phygail.swarm.scenario import D4, draw_scenario, transform
from phygail.weights import bundled


@pytest.fixture(autouse=True)
def few_validation_scenarios(monkeypatch):
    monkeypatch.setattr(train, "VALIDATION_CASES", 1)


TINY = MetaConfig(iterations=2, pairs=1, tasks=3, sizes=(20,), validate_every=1, online=2)


def test_meta_step_moves_theta_by_the_query_gradient_at_the_adapted_weights():
    network = ConvolutionStack(4, torch.Generator().manual_seed(0))
    before = [parameter.detach().clone() for parameter in network.parameters()]
    config = MetaConfig(inner_rate=0.1, norm=1e9)

    def loss(net: ConvolutionStack, task: float) -> torch.Tensor:
        return sum((0.5 * (parameter - task).square().sum() for parameter in net.parameters()), torch.zeros(()))

    value = meta_step(network, torch.optim.SGD(network.parameters(), lr=1.0), [(0.0, 1.0)], loss, config)
    assert value > 0
    # g_support = theta, theta' = 0.9 theta, g_query = 0.9 theta - 1, theta <- theta - g_query = 0.1 theta + 1.
    for parameter, start in zip(network.parameters(), before, strict=True):
        torch.testing.assert_close(parameter.detach(), 0.1 * start + 1.0)


@pytest.mark.parametrize("which", range(8))
@pytest.mark.parametrize("normalized", [True, False])
def test_a_turned_task_is_the_task_of_the_turned_scenario(which, normalized):
    scenario = draw_scenario(20, 0.5, generator(1, "turn"))
    turned = train.turned_plan(train.plan_task(scenario, normalized=normalized), D4[which], normalized=normalized)
    expected = train.plan_task(transform(scenario, which), normalized=normalized)
    torch.testing.assert_close(turned.inputs, expected.inputs, atol=1e-3, rtol=1e-5)
    torch.testing.assert_close(turned.positions, expected.positions, atol=1e-3, rtol=1e-5)
    torch.testing.assert_close(turned.operator, expected.operator)


def test_a_turned_demd_task_keeps_its_geometry():
    task = train.hop_task(draw_scenario(20, 0.5, generator(1, "turn")))
    turned = train.turned_hops(task, D4[1])
    torch.testing.assert_close(torch.pdist(turned.roster), torch.pdist(task.roster), atol=1e-3, rtol=1e-5)
    box = (turned.positions.amin(dim=0) + turned.positions.amax(dim=0)) / 2
    torch.testing.assert_close(turned.box_center, box, atol=1e-3, rtol=1e-5)


def test_training_swarms_are_split_and_have_three_alive():
    for scenario in draw_swarms(MetaConfig(tasks=12, sizes=(20, 50)), "test"):
        assert len(scenario.alive) >= 3


@pytest.mark.parametrize("job", [train.cr_mgc_job, train.demd_job])
def test_a_training_leaves_weights_config_and_log_and_is_the_same_twice(job, tmp_path):
    paths = [tmp_path / name / "w.safetensors" for name in ("one", "two")]
    for path in paths:
        run(job(TINY), path, "phygail train x")
    (one, config), (two, _) = (load_weights(path, job(TINY).name, job(TINY).version) for path in paths)
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert config["training"]["seed"] == 100_000
    assert config["command"] == "phygail train x"
    assert [point["iteration"] for point in config["validation"]] == [1, 2]
    lines = [json.loads(line) for line in paths[0].with_suffix(".jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == [1, 2]
    assert all(np.isfinite(line["loss"]) for line in lines)


def test_kept_weights_are_those_of_the_best_validation(tmp_path):
    best = run(train.cr_mgc_job(TINY), tmp_path / "w.safetensors")
    _, config = load_weights(tmp_path / "w.safetensors", CR_MGC, VERSION)
    ranked = min(config["validation"], key=lambda point: (-point["success"], point["mean_largest_move_m"]))
    assert config["iteration"] == ranked["iteration"]
    assert best.mean_largest_move_m == pytest.approx(ranked["mean_largest_move_m"], abs=1e-4)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_meta_learned_weights_reach_the_final_cost_of_random_ones_in_half_the_iterations():
    """MG-5, median over 10 held-out tasks."""
    shares = []
    for k in range(10):
        ratio = (0.25, 0.5, 0.75, 0.9)[k % 4]
        task = train.plan_task(draw_scenario(100, ratio, generator(200_100 + k, "mg5")), normalized=True)
        plain = search_cr_mgc(ConvolutionStack(256, torch.Generator().manual_seed(k)), task, PROFILES["fast"])
        network = ConvolutionStack(256)
        load_state(network, bundled("cr-mgc"), CR_MGC, VERSION)
        start = squashed_targets(network, task)
        assert torch.isfinite(start).all()
        meta = np.array(search_cr_mgc(network, task, PROFILES["fast"]).costs_m)
        reached = np.flatnonzero(meta <= plain.cost_m)
        shares.append((reached[0] if len(reached) else np.inf) / len(plain.costs_m))
    assert np.median(shares) <= 0.5
