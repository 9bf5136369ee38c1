import json

import numpy as np
import onnx
import pytest
import torch

from phygail.config import InputError
from phygail.learning.networks import load_weights, save_weights, seeded
from phygail.methods.phygail import GRID, KIND, VERSION, Policy, export, load_policy
from phygail.methods.phygail.export import export_actor, export_weights
from phygail.methods.phygail.graph import GRAPHS, PAPER, perceive
from phygail.methods.phygail.heads import Actor
from phygail.methods.phygail.learner import actor_config
from phygail.methods.phygail.network import EncoderSpec, to_tensors
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import initial_state
from phygail.weights import bundled

pytestmark = pytest.mark.xdist_group("export")  # torch loads its exporter for seconds: once


def lively_actor(seed=0, spec=EncoderSpec()):  # noqa: B008 (frozen)
    """Fresh weights, but with gates and heads far from zero so that every part of the network shows in the output."""
    with seeded(seed):
        actor = Actor(spec)
        torch.nn.init.orthogonal_(actor.mean[-1].weight, 1.0)
        for layer in actor.encoder.layers:
            torch.nn.init.normal_(layer.gate_out.weight, std=1.0)
    return actor


def graph_of(scenario, spec=PAPER):
    return perceive(Observer(scenario).observe(initial_state(scenario), Scope.SUBNET), spec)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Torch exports it; others are made of graphs that it exported before (`exported_once`)."""
    actor, folder = lively_actor(), tmp_path_factory.mktemp("policy")
    save_weights(folder / "actor.safetensors", actor.state_dict(), actor_config(actor, PAPER, seed=7, note="test"))
    return actor, export_weights(folder / "actor.safetensors", folder / "actor.onnx")


def worst(actor, path, graph):
    with torch.inference_mode():
        expected = actor.mean_action(to_tensors(graph)).numpy()
    assert expected.shape == (graph.receivers, 2)
    return np.abs(load_policy(path).actions(graph) - expected).max()


@pytest.mark.parametrize(("uavs", "damage"), [(20, 0.25), (20, 0.9), (50, 0.5), (200, 0.5), (500, 0.25)])
def test_onnx_runtime_reproduces_torch_at_every_size(exported, uavs, damage):
    assert worst(*exported, graph_of(draw_scenario(uavs, damage, np.random.default_rng(1)))) < 1e-5


def test_a_lone_uav_and_uavs_without_neighbors_are_decided_too(exported):
    far = make_scenario("a", np.array([[0.0, 0.0], [900.0, 0.0], [0.0, 900.0]]), width_m=1000.0)
    views = Observer(far).observe(initial_state(far), Scope.SUBNET)
    assert worst(*exported, perceive(views)) < 1e-5
    assert worst(*exported, perceive(next(iter(views)))) < 1e-5


def test_without_a_center_a_lone_uav_has_no_edge_at_all(tmp_path, exported_once):
    actor, spec = lively_actor(1, EncoderSpec(layers=1)), GRAPHS["no-center"]
    path = export_actor(actor, spec, tmp_path / "blind.onnx")
    far = make_scenario("a", np.array([[0.0, 0.0], [900.0, 0.0]]), width_m=1000.0)
    graph = graph_of(far, spec)
    assert len(graph.edges.receiver) == 0
    assert len(graph.types) == 2
    assert worst(actor, path, graph) < 1e-5
    assert load_policy(path).graph_spec == spec


def test_a_compact_network_flies_in_double_precision_on_a_grid_of_commands(tmp_path, exported_once):
    with seeded(3):
        actor = Actor(EncoderSpec(layers=1, width=6, compact=True), command="disc")
        torch.nn.init.orthogonal_(actor.mean[-1].weight, 1.0)
    policy = load_policy(export_actor(actor, PAPER, tmp_path / "compact.onnx"))
    assert policy.dtype is np.float64
    assert worst(actor, tmp_path / "compact.onnx", graph_of(draw_scenario(50, 0.5, np.random.default_rng(4)))) < 1e-5
    assert next(actor.parameters()).dtype is torch.float32  # the caller's actor stays as it was


def test_the_policy_of_the_package_is_its_weights_in_double_precision():
    tensors, config = load_weights(bundled("phygail"), KIND, VERSION)
    actor = Actor(EncoderSpec(**config["encoder"]), command=config["training"]["command"]).double()
    actor.load_state_dict(tensors)
    policy = load_policy(bundled("phygail").with_suffix(".onnx"))
    scenario = draw_scenario(200, 0.5, np.random.default_rng(1))
    view = Observer(scenario).observe(initial_state(scenario), Scope.SUBNET)
    graph = perceive(view, policy.graph_spec, policy.dtype)
    with torch.inference_mode():
        exact = actor.mean_action(to_tensors(graph)).numpy()
    assert np.abs(exact).max() > 0.5
    assert (GRID * policy.actions(graph) == np.round(GRID * exact)).all()


def test_the_papers_network_goes_on_flying_in_single_precision(exported):
    assert load_policy(exported[1]).dtype is np.float32
    assert load_policy(bundled("phygail-taught").with_suffix(".onnx")).dtype is np.float32


def test_the_file_says_what_it_is(exported):
    card = load_policy(exported[1]).card
    assert card["kind"] == "phygail-actor"
    assert int(card["parameters"]) == 722_733
    assert json.loads(card["training"])["seed"] == 7
    assert [feature["name"] for feature in json.loads(card["observation"])] == ["x", "y", "vx", "vy", "degree"]
    assert load_policy(exported[1]).graph_spec == PAPER


def test_the_file_is_valid_small_and_carries_no_trace_of_this_machine(exported):
    model = onnx.load(exported[1])
    onnx.checker.check_model(model)
    assert [entry.version for entry in model.opset_import if entry.domain == ""] == [export.OPSET]
    assert exported[1].stat().st_size < 3.2e6
    assert b"site-packages" not in exported[1].read_bytes()


def test_a_file_that_is_no_policy_is_refused(tmp_path, exported):
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"bad\.onnx is not an ONNX model"):
        load_policy(bad)
    model = onnx.load(exported[1])
    del model.metadata_props[:]
    with pytest.raises(InputError, match="kind None, not 'phygail-actor'"):
        Policy(model.SerializeToString())


def test_an_export_that_differs_from_torch_leaves_no_file(tmp_path, monkeypatch, exported):
    other = onnx.load(exported[1])
    del other.metadata_props[:]
    monkeypatch.setattr(export, "_to_onnx", lambda *_: other)
    with pytest.raises(InputError, match="differs from torch"):
        export_actor(lively_actor(3), PAPER, tmp_path / "mine.onnx")
    assert not (tmp_path / "mine.onnx").exists()


def test_weights_that_do_not_fit_are_refused(tmp_path):
    actor = Actor(EncoderSpec(layers=1))
    config = actor_config(actor, PAPER)
    config["encoder"]["layers"] = 2
    save_weights(tmp_path / "a.safetensors", actor.state_dict(), config)
    with pytest.raises(InputError, match="do not fit"):
        export_weights(tmp_path / "a.safetensors", tmp_path / "a.onnx")
    with pytest.raises(InputError, match=r"ends in \.onnx"):
        export_actor(actor, PAPER, tmp_path / "a.bin")
