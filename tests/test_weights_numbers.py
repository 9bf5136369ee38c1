"""Policies that cannot fly are refused when they are loaded: NaN weights, damage, quietly (AUDIT R5, R7)."""

from __future__ import annotations

import contextlib
import struct

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from phygail.config import InputError
from phygail.experiments.grid import Grid
from phygail.methods.base import make_method
from phygail.methods.controller import run_episode
from phygail.methods.phygail import Policy
from phygail.methods.reach_evolved import GatePolicy
from phygail.weights import bad_tensor, bundled

BUNDLED = [("reach-evolved", GatePolicy), ("reach-cloned", GatePolicy), ("phygail-taught", Policy)]


def content(name: str) -> bytes:
    return bundled(name).with_suffix(".onnx").read_bytes()


def model_of(tensor: onnx.TensorProto, *, constant: bool = False) -> bytes:
    """y = x + tensor; the tensor as an initializer or as a node."""
    nodes = [helper.make_node("Constant", [], ["w"], value=tensor)] if constant else []
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    nodes.append(helper.make_node("Add", ["x", "w"], ["y"]))
    graph = helper.make_graph(nodes, "g", [x], [y], [] if constant else [tensor])
    return helper.make_model(graph).SerializeToString()


@pytest.mark.parametrize(("name", "kind"), BUNDLED)
def test_bundled_policies_hold_finite_numbers_only(name, kind):
    assert bad_tensor(content(name)) is None
    kind(content(name))


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("kind", "form"), [("FLOAT", "f"), ("DOUBLE", "d"), ("FLOAT16", "e"), ("BFLOAT16", "")], ids=lambda value: value
)
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("value", [float("nan"), 1.0])
def test_a_nan_is_found_in_every_form_that_a_file_may_store_it_in(kind, form, raw, value, constant):
    wanted = getattr(TensorProto, kind)
    if raw and not form:
        data = b"".join(struct.pack("<f", v)[2:] for v in (0.5, value))
    else:
        data = struct.pack(f"<2{form}", 0.5, value) if raw else [0.5, value]
    tensor = helper.make_tensor("w", wanted, [2], data, raw=raw)
    assert bad_tensor(model_of(tensor, constant=constant)) == ("w" if np.isnan(value) else None)


def test_a_nan_in_a_branch_or_a_function_is_found():
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["z"], value_floats=[0.0, float("nan")])], "then", [],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])],
    )  # fmt: skip
    branch = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    c, y = helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("y", 1, [2])
    assert bad_tensor(helper.make_model(helper.make_graph([branch], "g", [c], [y])).SerializeToString()) is not None
    node = helper.make_node("Constant", [], ["z"], value_float=float("nan"))
    function = helper.make_function("own", "f", [], ["z"], [node], [helper.make_opsetid("", 18)])
    model = helper.make_model(helper.make_graph([], "g", [c], [y]), functions=[function])
    assert bad_tensor(model.SerializeToString()) is not None


def test_minus_infinity_as_a_mask_is_no_fault():
    tensor = numpy_helper.from_array(np.array([-np.inf, 0.0], np.float32), "w")
    assert bad_tensor(model_of(tensor)) is None


@pytest.mark.parametrize(("name", "kind"), BUNDLED)
def test_a_policy_of_nan_weights_is_refused_with_the_tensor_named(name, kind):
    model = onnx.load_from_string(content(name))
    weights = next(w for w in model.graph.initializer if len(w.dims) == 2)
    values = numpy_helper.to_array(weights).copy()
    values[0, 0] = np.nan
    weights.CopyFrom(numpy_helper.from_array(values, weights.name))
    with pytest.raises(InputError, match=rf"x\.onnx holds weights that are no numbers \({weights.name}\)"):
        kind(model.SerializeToString(), "x.onnx")


def test_a_policy_that_answers_with_nan_is_refused_in_flight(tmp_path):
    """Weights of 3e38 are numbers; what they answer is not, and the speed disc would hide it (AUDIT R7)."""
    model = onnx.load_from_string(content("phygail-taught"))
    for weights in model.graph.initializer:
        if len(weights.dims) == 2:
            values = numpy_helper.to_array(weights)
            sign = np.where(np.arange(values.size).reshape(values.shape) % 2, 1, -1)
            weights.CopyFrom(numpy_helper.from_array((3e38 * sign).astype(np.float32), weights.name))
    file = tmp_path / "huge.onnx"
    file.write_bytes(model.SerializeToString())
    method = make_method("phygail-taught", policy=file)
    with pytest.raises(InputError, match=r"huge\.onnx answers with numbers that are not finite"):
        run_episode(Grid((20,), (0.5,), 1).scenario(0), method)


@pytest.mark.parametrize(("name", "kind"), [BUNDLED[0], BUNDLED[2]])
def test_damage_anywhere_is_an_input_error_and_prints_nothing(name, kind, capfd):
    whole, rng = content(name), np.random.default_rng(0)
    texts = whole.find(b"phygail")  # the card, whose letters ONNX Runtime reads as UTF-8
    places = [*rng.integers(len(whole), size=24), *range(texts, texts + 8), *range(len(whole) - 400, len(whole), 20)]
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 0x80
        with contextlib.suppress(InputError):  # any other exception fails
            kind(bytes(damaged), "x.onnx")
    for damaged in (b"", b"junk", whole[:-1], whole[: len(whole) // 2], whole + b"\x08"):
        with pytest.raises(InputError, match=r"x\.onnx"):
            kind(damaged, "x.onnx")
    assert capfd.readouterr() == ("", "")
