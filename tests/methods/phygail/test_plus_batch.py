"""The observation `plus` of many worlds against that of each one in flight, and a run that learns with it."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from phygail.config import InputError
from phygail.learning.run import override
from phygail.learning.worlds import zero_shot
from phygail.methods.phygail import PLUS_KIND, PhygailPlus
from phygail.methods.phygail.config import PROFILES
from phygail.methods.phygail.experts.dataset import ExpertSet
from phygail.methods.phygail.export import export_weights
from phygail.methods.phygail.gail import imitation_rewards, update_discriminator
from phygail.methods.phygail.learner import STATE, fly_all, make_learner, save_policy
from phygail.methods.phygail.network import to_tensors
from phygail.methods.phygail.plus import GRAPHS, belief_spec, link_weights, observe_plus, turned_back
from phygail.methods.phygail.plus_batch import PlusObservation
from phygail.methods.phygail.rollout import collect
from phygail.methods.phygail.train import Run, resume_run, start_run, train
from phygail.methods.steering import MARGIN, keep_links
from phygail.sensing.beliefs import Beliefs
from phygail.sensing.views import Observer, Scope
from phygail.swarm.batch import initial_batch, step_batch
from phygail.swarm.scenario import draw_scenario
from phygail.swarm.simulator import initial_state, project_speed, step
from phygail.weights import parse_safetensors, weights_kind

pytestmark = [
    pytest.mark.xdist_group("export"),
    pytest.mark.usefixtures("uncompiled", "no_learning_curves", "exported_once"),
]
SPEC = GRAPHS["plus"]
SMALL = ["worlds=4", "horizon=4", "width=8", "layers=1", "pool=12", "epochs=2", "validate_every=9", "ppo_epochs=1"]
CONFIG = override(PROFILES.get("plus"), [*SMALL, "batch_graphs=8", "micro_graphs=8", "validation_cases=1"])


@pytest.mark.parametrize(("learned_weight", "name"), [(False, "plus-sharp"), (True, "plus-own-far")])
def test_many_worlds_see_and_keep_links_as_each_one_in_flight(learned_weight, name):
    """Twenty-five steps of random commands, decided anew in every one."""
    spec = GRAPHS[name]
    cases = [draw_scenario(60, ratio, np.random.default_rng(5), name=f"{ratio}") for ratio in (0.5, 0.7, 0.9)]
    state, rng = initial_batch(cases), np.random.default_rng(0)
    many = PlusObservation(spec)
    many.begin(state, np.arange(3))
    beliefs = [Beliefs(belief_spec(spec)) for _ in cases]
    flown = 0
    for _ in range(25):
        graph = many.observe(state)
        action = rng.normal(0.3, 0.6, (graph.receivers, 2 + learned_weight))
        velocities = many.steer(state, many.wanted(state, action))
        first = 0
        for b, case in enumerate(cases):
            rows = slice(first, first + len(case.alive))
            first = rows.stop
            if beliefs[b] is None or state.terminated[b]:
                beliefs[b] = None  # its flight has ended
                continue
            views = Observer(case).observe(state.world(b), Scope.SUBNET)
            seen, axes = observe_plus(views, beliefs[b], spec)
            np.testing.assert_array_equal(seen.mask, graph.mask[rows])
            np.testing.assert_allclose(seen.features[: seen.receivers], graph.features[rows], atol=1e-5)
            np.testing.assert_allclose(seen.edge, graph.edge[rows], atol=1e-5)
            np.testing.assert_array_equal(
                seen.types[seen.index[seen.mask]], graph.types[graph.index[rows][graph.mask[rows]]]
            )
            wanted = project_speed(10.0 * turned_back(action[rows, :2], axes), 10.0)
            kept = keep_links(views, wanted, link_weights(views, wanted, action[rows]), margin=MARGIN)
            np.testing.assert_allclose(velocities[b, : len(case.alive)], kept, atol=1e-3)
            flown += 1
        state = step_batch(state, velocities)
    assert flown > 50


def test_beliefs_know_every_step_of_a_held_command():
    """Observed after every fourth step only, but steered in all: the same graph."""
    case = draw_scenario(60, 0.8, np.random.default_rng(2))
    graphs = []
    for every in (1, 4):
        state, many = initial_batch([case]), PlusObservation(SPEC)
        many.begin(state, np.arange(1))
        for t in range(8):
            if t % every == 0:
                many.observe(state)
            wanted = np.zeros((1, state.rows, 3))
            wanted[..., 0] = 10.0
            state = step_batch(state, many.steer(state, wanted))
        graphs.append(many.observe(state))
    np.testing.assert_array_equal(graphs[0].edge, graphs[1].edge)


def test_worlds_that_end_are_dropped_and_others_remember():
    cases = [draw_scenario(40, 0.7, np.random.default_rng(seed)) for seed in (1, 2)]
    state, many = initial_batch(cases), PlusObservation(SPEC)
    many.begin(state, np.arange(2))
    many.observe(state)
    memory = many.save()
    copy = PlusObservation(SPEC)
    copy.begin(state, np.arange(2))
    copy.load(memory)
    np.testing.assert_array_equal(copy.observe(state).edge, many.observe(state).edge)
    second = initial_batch(cases[1:])
    many.keep(np.array([False, True]))
    alone = PlusObservation(SPEC)
    alone.begin(second, np.arange(1))
    np.testing.assert_array_equal(many.observe(second).edge, alone.observe(second).edge)


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """An untrained policy with a weight for links, its weights and its ONNX file."""
    config = override(CONFIG, ["link_weight=true"])
    learner, folder = make_learner(config), tmp_path_factory.mktemp("plus")
    with torch.no_grad():
        learner.actor.mean[-1].weight.mul_(30.0)
        learner.actor.mean[-1].bias[0] = 1.0
    save_policy(folder / "actor.safetensors", learner, config)
    return learner.actor, export_weights(folder / "actor.safetensors", folder / "actor.onnx")


def test_the_exported_policy_flies_as_the_learner_flew_it(policy):
    """Forty steps of the method and of the batch, aggregation aside."""
    actor, path = policy
    case = zero_shot(50, 1, 3, (0.7,))[0]
    method, observer, state = PhygailPlus(policy=path), Observer(case), initial_state(case)
    batch, many = initial_batch([case]), PlusObservation(method.policy.graph_spec)
    many.begin(batch, np.arange(1))
    for _ in range(40):
        if state.terminated:
            break
        state = step(state, method.velocities(observer.observe(state, Scope.SUBNET)))
        with torch.no_grad():
            action = actor.mean_action(to_tensors(many.observe(batch))).numpy()
        batch = step_batch(batch, many.steer(batch, many.wanted(batch, action)))
        np.testing.assert_allclose(batch.positions[0], state.positions, atol=0.02)
    assert state.step > 5


def test_each_subnet_alone_decides_as_all_at_once(policy):
    case = draw_scenario(50, 0.7, np.random.default_rng(8))
    views = Observer(case).observe(initial_state(case), Scope.SUBNET)
    together = PhygailPlus(policy=policy[1]).act_all(views)
    for rows, view in zip(views.rows, views, strict=True):
        np.testing.assert_allclose(PhygailPlus(policy=policy[1]).act(view), together[rows], atol=1e-4)


def test_a_policy_of_the_paper_is_refused_and_a_missing_one_named(policy):
    from phygail.methods.phygail import load_policy
    from phygail.weights import bundled

    with pytest.raises(InputError, match="phygail-plus-actor"):
        load_policy(policy[1])
    with pytest.raises(InputError, match="phygail-actor"):
        PhygailPlus(policy=bundled("phygail").with_suffix(".onnx"))


def briefly(run: Run) -> Run:
    """Validated on the first steps of flights alone."""
    return replace(run, validation=tuple(replace(case, budget_steps=5) for case in run.validation))


def test_a_run_on_a_pool_resumes_bit_for_bit(tmp_path):
    config = override(CONFIG, ["worlds=2", "horizon=3", "batch_graphs=4"])
    train(briefly(start_run(tmp_path / "whole", None, config)), tensorboard=False)
    train(briefly(start_run(tmp_path / "part", None, config)), until=1, tensorboard=False)
    train(briefly(resume_run(tmp_path / "part")), tensorboard=False)
    states = [parse_safetensors((tmp_path / name / STATE).read_bytes()) for name in ("whole", "part")]
    assert states[0].keys() == states[1].keys()
    for name in states[0]:
        np.testing.assert_array_equal(states[0][name], states[1][name])
    assert weights_kind(tmp_path / "whole" / "latest.safetensors") == PLUS_KIND


def test_a_pool_needs_no_database_and_a_database_no_pool(tmp_path):
    with pytest.raises(InputError, match="pool=0"):
        start_run(tmp_path / "a", tmp_path / "experts.h5", CONFIG)
    with pytest.raises(InputError, match="no expert database"):
        start_run(tmp_path / "b", None, override(CONFIG, ["pool=0"]))


def test_flying_all_gives_success_and_moves(policy):
    actor, _ = policy

    @torch.no_grad()
    def decide(graph):
        return actor.mean_action(to_tensors(graph)).numpy()

    cases = zero_shot(30, 2, 5, (0.4,))
    success, steps = fly_all(decide, cases, PlusObservation(SPEC))
    for ended, moves, case in zip(success, steps, cases, strict=True):
        assert moves <= case.budget_steps
        assert ended or moves == case.budget_steps


def test_where_there_are_demonstrations_the_discriminator_judges_what_they_show(database):
    """GAIL with `plus` on worlds of an expert database: the judge reads the paper's graph of the same states."""
    settings = ["pool=0", "w_il=0.1", "absorbing=true", "worlds=4", "horizon=3"]
    config, experts = override(CONFIG, settings), ExpertSet.open(database).training
    learner = make_learner(config)
    rollout = collect(learner.actor, experts, config, 1)
    assert (rollout.graph.features.shape[1], rollout.judged.features.shape[1]) == (14, 5)
    assert (rollout.judged.receivers, rollout.judged.count) == (rollout.graph.receivers, rollout.graphs)
    judged = update_discriminator(learner, rollout, experts, config, 1)
    assert 0 < judged["d_policy"] < 1
    assert (imitation_rewards(learner.discriminator, rollout, config) > 0).all()


def test_settings_that_need_demonstrations_are_refused_without():
    with pytest.raises(InputError, match="nobody has flown the worlds of a pool"):
        override(CONFIG, ["w_il=0.1"])
    with pytest.raises(InputError, match="only the paper's has a warm start"):
        override(CONFIG, ["pool=0", "clone_passes=2"])


@pytest.fixture(scope="module")
def yardstick():
    path = Path(__file__).parents[3] / "benchmarks" / "zero_shot.py"
    spec = importlib.util.spec_from_file_location("zero_shot", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_yardstick_flies_weights_and_their_export_alike(yardstick, policy):
    cells = [zero_shot(20, 2, 1, (0.5,))]
    opened = [yardstick.open_policy(policy[1].with_suffix(end)) for end in (".safetensors", ".onnx")]
    weights, exported = (yardstick.fly_policy(each, cells) for each in opened)
    np.testing.assert_array_equal(weights[0], exported[0])
    assert np.abs(weights[1] - exported[1]).max() <= 2  # one computes in single precision


def test_the_yardstick_flies_a_rule_once_and_reads_its_rows_then(yardstick, tmp_path, monkeypatch):
    cases, file = zero_shot(20, 2, 1, (0.5,)), tmp_path / "rows.csv"
    first = yardstick.fly_rule("sidr", [cases], 1, file)
    monkeypatch.setattr(yardstick, "run_episode", None)
    again = yardstick.fly_rule("sidr", [cases], 1, file)
    np.testing.assert_array_equal(first, again)
    assert first[0].all()
    assert file.read_text().splitlines()[0] == "seed,uavs,case,method,success,steps"
    assert f"{'sidr':>34}" in yardstick.show("sidr", *first, 2, 0.0)


def test_the_untrained_network_is_flown_once_too(yardstick, tmp_path, monkeypatch):
    cells, file = [zero_shot(20, 2, 1, (0.5,))], tmp_path / "rows.csv"
    first = yardstick.fly_rule(yardstick.UNTRAINED, cells, 1, file)
    monkeypatch.setattr(yardstick, "open_untrained", None)
    np.testing.assert_array_equal(first, yardstick.fly_rule(yardstick.UNTRAINED, cells, 1, file))
