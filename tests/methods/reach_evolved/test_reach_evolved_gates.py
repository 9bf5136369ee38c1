"""The gates: hand-worked values, files, and ONNX Runtime held to numpy."""

import json
import math

import numpy as np
import onnx
import pytest

from phygail.config import InputError
from phygail.learning.networks import save_weights
from phygail.methods.reach_evolved import (
    ANCHOR_INPUTS,
    EDGE_INPUTS,
    VERSION,
    GatePolicy,
    GateShape,
    evaluate_anchors,
    evaluate_edges,
    load_gates,
)
from phygail.methods.reach_evolved.export import export_gates, load_gate_weights, save_gates
from phygail.sensing.beliefs import ANCHOR_FEATURES, EDGE_FEATURES, BeliefSpec, LostEdges

SHAPE = GateShape()
BELIEF = BeliefSpec(drift=0.7, sigma_m=4.0, depth_half=0.5)


def vector(seed=0, scale=0.6):
    return np.random.default_rng(seed).normal(0, scale, SHAPE.size).astype(np.float32)


def biased(edge=(0.0, 0.0, 0.0), anchor=(0.0, 0.0)):
    """A network that gives the same logits for every input."""
    layers = [part.copy() for part in SHAPE.layers(np.zeros(SHAPE.size, dtype=np.float32))]
    layers[3][:], layers[7][:] = edge, anchor
    return tuple(layers)


def observed(edges, anchors, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(0, 1.5, (edges, EDGE_INPUTS)).astype(np.float32)
    facts = rng.normal(0, 1.5, (anchors, ANCHOR_INPUTS)).astype(np.float32)
    none = np.empty(0)
    return LostEdges(none, none, none, features, facts)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    path = tmp_path_factory.mktemp("gates") / "gates.safetensors"
    save_gates(path, vector(), SHAPE, BELIEF, seed=7, worlds=12)
    return path


@pytest.fixture(scope="module")
def policy(weights):
    return export_gates(weights, weights.with_suffix(".onnx"))


# --- numbers ---


def test_the_default_network_has_157_parameters_and_reads_what_perception_gives():
    assert SHAPE.size == (9 * 8 + 8) + (8 * 3 + 3) + (5 * 6 + 6) + (6 * 2 + 2) == 157
    assert (len(EDGE_FEATURES), len(ANCHOR_FEATURES)) == (EDGE_INPUTS, ANCHOR_INPUTS)


def test_layers_take_a_vector_apart_in_order():
    layers = GateShape(edge_width=2, anchor_width=1).layers(np.arange(39.0))
    assert [layer.shape for layer in layers] == [(9, 2), (2,), (2, 3), (3,), (5, 1), (1,), (1, 2), (2,)]
    assert np.array_equal(np.concatenate([layer.ravel() for layer in layers]), np.arange(39.0))
    assert layers[1].tolist() == [18.0, 19.0]


@pytest.mark.parametrize(
    ("logits", "strength"),
    [
        ((math.log(3), -math.log(3), math.log(2)), 1.0),  # (3/4 - 1/4) * 2
        ((-math.log(3), math.log(3), 0.0), -0.5),  # repulsion
        ((1.0, 1.0, 5.0), 0.0),  # both gates alike
        ((100.0, -100.0, 50.0), math.exp(6)),  # limits
        ((100.0, -100.0, -50.0), math.exp(-10)),
    ],
)
def test_strength_is_the_difference_of_the_gates_times_the_scale(logits, strength):
    """PH-4: swapping the gates flips the sign."""
    edges = observed(4, 1).features
    np.testing.assert_allclose(evaluate_edges(biased(logits), edges), strength, rtol=1e-5, atol=1e-7)
    swapped = (logits[1], logits[0], logits[2])
    np.testing.assert_allclose(evaluate_edges(biased(swapped), edges), -strength, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("out", "speed", "base_weight"),
    [((-0.25, math.log(3)), 0.75, 3.0), ((0.5, 9.0), 1.0, math.exp(4)), ((-2.0, -9.0), 0.0, math.exp(-8))],
)
def test_the_anchor_gate_slows_down_and_never_speeds_beyond_the_limit(out, speed, base_weight):
    found = evaluate_anchors(biased(anchor=out), observed(0, 3).anchors)
    np.testing.assert_allclose(found[0], speed, rtol=1e-6)
    np.testing.assert_allclose(found[1], base_weight, rtol=1e-5)


def test_one_hidden_unit_by_hand():
    """Edge hidden unit 0 = relu(2 x0 - 1); it feeds the attraction logit with 3."""
    layers = biased()
    layers[0][0, 0], layers[1][0], layers[2][0, 0] = 2.0, -1.0, 3.0
    edges = np.zeros((2, EDGE_INPUTS), dtype=np.float32)
    edges[:, 0] = (0.25, 1.0)  # hidden 0 and 1
    np.testing.assert_allclose(evaluate_edges(layers, edges), [0.0, 1 / (1 + math.exp(-3)) - 0.5], rtol=1e-6)


# --- files ---


def test_saved_weights_come_back(weights):
    found, shape, belief, config = load_gate_weights(weights)
    assert np.array_equal(found, vector())
    assert (shape, belief) == (SHAPE, BELIEF)
    assert (config["seed"], config["worlds"], config["version"]) == (7, 12, VERSION)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("edges", "anchors"), [(0, 1), (1, 1), (500, 40)])
def test_onnx_runtime_reproduces_numpy(tmp_path, seed, edges, anchors):
    save_gates(tmp_path / "w.safetensors", vector(seed), SHAPE, BELIEF)
    policy = load_gates(export_gates(tmp_path / "w.safetensors", tmp_path / "w.onnx"))
    seen = observed(edges, anchors, seed)
    layers = SHAPE.layers(vector(seed))
    wanted = (evaluate_edges(layers, seen.features), *evaluate_anchors(layers, seen.anchors))
    for a, b in zip(policy.gates(seen), wanted, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_other_widths_are_exported_too(tmp_path):
    shape = GateShape(edge_width=3, anchor_width=11)
    numbers = np.random.default_rng(4).normal(0, 0.5, shape.size).astype(np.float32)
    save_gates(tmp_path / "w.safetensors", numbers, shape, BELIEF)
    seen = observed(7, 2)
    found = load_gates(export_gates(tmp_path / "w.safetensors", tmp_path / "w.onnx")).gates(seen)
    np.testing.assert_allclose(found[0], evaluate_edges(shape.layers(numbers), seen.features), rtol=1e-5, atol=1e-5)


def test_the_file_says_what_it_is(policy):
    found = load_gates(policy)
    assert found.belief == BELIEF
    assert (found.card["kind"], found.card["version"], found.card["parameters"]) == ("phygail", str(VERSION), "157")
    training = json.loads(found.card["training"])
    assert (training["seed"], training["worlds"]) == (7, 12)
    assert "belief" not in training
    assert json.loads(found.card["observation"])["edges"] == list(EDGE_FEATURES)
    assert json.loads(found.card["shape"]) == {"edge_width": 8, "anchor_width": 6}


def relabeled(policy, **card):
    model = onnx.load(policy)
    for entry in list(model.metadata_props):
        if entry.key in card:
            model.metadata_props.remove(entry)
    for key, value in card.items():
        if value is not None:
            model.metadata_props.add(key=key, value=value)
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("card", "says"),
    [
        ({"kind": "phygail-actor"}, "has kind 'phygail-actor', not 'phygail'"),
        ({"version": "99"}, f"has version '99', not '{VERSION}'"),
        ({"belief": None}, "does not say how it sees the lost"),
        ({"belief": '{"mood": 3}'}, "does not say how it sees the lost"),
        ({"belief": "{"}, "does not say how it sees the lost"),
    ],
)
def test_policies_of_another_kind_or_version_are_refused(policy, card, says):
    with pytest.raises(InputError, match=says):
        GatePolicy(relabeled(policy, **card), "a.onnx")


def test_broken_and_missing_files_are_refused(tmp_path, policy):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(policy.read_bytes()[:200])
    with pytest.raises(InputError, match=r"broken\.onnx"):
        load_gates(broken)
    with pytest.raises(InputError, match=r"cannot read the policy .*missing\.onnx"):
        load_gates(tmp_path / "missing.onnx")


def test_weights_that_do_not_fit_are_refused(tmp_path, weights):
    from safetensors.torch import load_file

    tensors = load_file(weights)
    config = json.loads(weights.with_suffix(".json").read_text())
    good = {key: config[key] for key in ("kind", "version", "shape", "belief")}
    for change, says in (
        ({"shape": {"edge_width": 9, "anchor_width": 6}}, "do not fit the gates"),
        ({"belief": {"mood": 1.0}}, "do not fit the gates"),
        ({"kind": "cr-ma"}, "cr-ma"),
        ({"version": 99}, "99"),
    ):
        save_weights(tmp_path / "w.safetensors", tensors, {**good, **change})
        with pytest.raises(InputError, match=says):
            load_gate_weights(tmp_path / "w.safetensors")


def test_export_refuses_other_names_and_numbers_that_are_none(tmp_path, weights):
    with pytest.raises(InputError, match=r"ends in \.onnx"):
        export_gates(weights, tmp_path / "policy.bin")
    numbers = vector()
    numbers[0] = np.nan
    save_gates(tmp_path / "nan.safetensors", numbers, SHAPE, BELIEF)
    with pytest.raises(InputError, match="not finite"):
        export_gates(tmp_path / "nan.safetensors", tmp_path / "nan.onnx")
    assert not (tmp_path / "nan.onnx").exists()
