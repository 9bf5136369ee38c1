"""Weights of `reach-evolved` on disk (safetensors + JSON), and as one ONNX file that says what it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from phygail import __version__
from phygail.config import InputError
from phygail.learning.networks import OPSET, check_parity, load_weights, onnx_path, save_weights, write_policy
from phygail.methods.reach_evolved import (
    ANCHOR_INPUTS,
    BASE_WEIGHT_LIMITS,
    EDGE_INPUTS,
    INPUTS,
    KIND,
    OUTPUTS,
    STRENGTH_LIMITS,
    VERSION,
    GatePolicy,
    GateShape,
    edge_parts,
    evaluate_anchors,
)
from phygail.sensing.beliefs import ANCHOR_FEATURES, EDGE_FEATURES, BeliefSpec, LostEdges

# Ranges of the features (`sensing.beliefs`), in their order: parity is checked within them.
_EDGE_RANGES = ((0, 1), (0, 5), (-3, 3), (0, 3), (0, 1), (-1, 1), (0, 2.5), (0, 2.5), (-6, 0.5))
_ANCHOR_RANGES = ((0, 5), (0, 3), (0, 1), (0, 2.5), (-6, 0.5))
_NAMES = ("edge1", "edge1.bias", "edge2", "edge2.bias", "anchor1", "anchor1.bias", "anchor2", "anchor2.bias")


def save_gates(path: str | Path, vector: np.ndarray, shape: GateShape, belief: BeliefSpec, **facts: Any) -> None:
    """Write NAME.safetensors and NAME.json; `facts` say how the policy was made."""
    tensors = {name: torch.from_numpy(part.copy()) for name, part in zip(_NAMES, shape.layers(vector), strict=True)}
    config = {"kind": KIND, "version": VERSION, "shape": asdict(shape), "belief": asdict(belief), **facts}
    save_weights(path, tensors, config)


def load_gate_weights(path: str | Path) -> tuple[np.ndarray, GateShape, BeliefSpec, dict[str, Any]]:
    """(vector, shape, belief, config) of saved weights."""
    tensors, config = load_weights(path, KIND, VERSION)
    try:
        shape, belief = GateShape(**config["shape"]), BeliefSpec(**config["belief"])
        vector = np.concatenate([tensors[name].numpy().ravel() for name in _NAMES]).astype(np.float32)
        if len(vector) != shape.size:
            raise ValueError(f"{len(vector)} numbers instead of {shape.size}")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the weights {path} do not fit the gates of this version: {error}") from None
    return vector, shape, belief, config


def export_gates(weights: str | Path, out: str | Path) -> Path:
    """Write saved weights as an ONNX file; it appears only if ONNX Runtime reproduces numpy."""
    vector, shape, belief, config = load_gate_weights(weights)
    path = onnx_path(out)
    layers = shape.layers(vector)
    model = helper.make_model(
        _graph(layers), opset_imports=[helper.make_opsetid("", OPSET)], producer_name="phygail",
        producer_version=__version__, ir_version=8,
    )  # fmt: skip
    onnx.checker.check_model(model)
    return write_policy(model, _card(shape, belief, config), path, partial(_check, layers=layers))


def _card(shape: GateShape, belief: BeliefSpec, config: Mapping[str, Any]) -> dict[str, str]:
    training = {key: value for key, value in config.items() if key not in ("kind", "version", "shape", "belief")}
    return {
        "kind": KIND, "version": str(VERSION), "package": __version__, "belief": json.dumps(asdict(belief)),
        "shape": json.dumps(asdict(shape)), "parameters": str(shape.size),
        "observation": json.dumps({"edges": EDGE_FEATURES, "anchors": ANCHOR_FEATURES}),
        "training": json.dumps(training, default=str),
    }  # fmt: skip


def _graph(layers: tuple[np.ndarray, ...]) -> onnx.GraphProto:
    """Both networks with their output functions, as in `methods.reach_evolved.evaluate_edges` and
    `evaluate_anchors`.
    """
    constants: dict[str, Any] = {**dict(zip(_NAMES, layers, strict=True)), "one": np.ones(1, dtype=np.float32)}
    limits = {"strength": STRENGTH_LIMITS, "ease": BASE_WEIGHT_LIMITS, "speed": (0.0, 1.0)}
    for name, (low, high) in limits.items():
        constants[f"{name}.low"], constants[f"{name}.high"] = np.float32(low), np.float32(high)
    nodes = [
        *_layers("edges", "edge", "edge.out"),
        helper.make_node("Split", ["edge.out"], ["attract", "repel", "log"], axis=1, num_outputs=3),
        helper.make_node("Sigmoid", ["attract"], ["att"]),
        helper.make_node("Sigmoid", ["repel"], ["rep"]),
        helper.make_node("Sub", ["att", "rep"], ["signed"]),
        helper.make_node("Clip", ["log", "strength.low", "strength.high"], ["log.clipped"]),
        helper.make_node("Exp", ["log.clipped"], ["size"]),
        helper.make_node("Mul", ["signed", "size"], ["strength"]),
        *_layers("anchors", "anchor", "anchor.out"),
        helper.make_node("Split", ["anchor.out"], ["slower", "log.ease"], axis=1, num_outputs=2),
        helper.make_node("Add", ["slower", "one"], ["speed.raw"]),
        helper.make_node("Clip", ["speed.raw", "speed.low", "speed.high"], ["speed"]),
        helper.make_node("Clip", ["log.ease", "ease.low", "ease.high"], ["ease.clipped"]),
        helper.make_node("Exp", ["ease.clipped"], ["ease"]),
    ]
    widths = dict(zip(INPUTS, (EDGE_INPUTS, ANCHOR_INPUTS), strict=True))
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [name[0], wide]) for name, wide in widths.items()]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 1]) for name in OUTPUTS]
    tensors = [numpy_helper.from_array(np.asarray(value, dtype=np.float32), name) for name, value in constants.items()]
    return helper.make_graph(nodes, "gates", inputs, outputs, tensors)


def _layers(source: str, name: str, out: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("MatMul", [source, f"{name}1"], [f"{name}.m1"]),
        helper.make_node("Add", [f"{name}.m1", f"{name}1.bias"], [f"{name}.a1"]),
        helper.make_node("Relu", [f"{name}.a1"], [f"{name}.h"]),
        helper.make_node("MatMul", [f"{name}.h", f"{name}2"], [f"{name}.m2"]),
        helper.make_node("Add", [f"{name}.m2", f"{name}2.bias"], [out]),
    ]


def _check(content: bytes, layers: tuple[np.ndarray, ...]) -> None:
    rng = np.random.default_rng(0)
    none = np.empty(0)
    for size in (0, 1, 300):
        edges = _within(_EDGE_RANGES, size, rng)
        anchors = _within(_ANCHOR_RANGES, max(size, 1), rng)
        found = GatePolicy(content).gates(LostEdges(none, none, none, edges, anchors))
        signed, strength = edge_parts(layers, edges)
        wanted = (signed * strength, *evaluate_anchors(layers, anchors))
        # The difference of two gates is exact to 1e-7 only, times a strength of up to 403.
        scales = (np.maximum(1.0, strength), *(np.maximum(1.0, np.abs(value)) for value in wanted[1:]))
        for a, b, scale in zip(found, wanted, scales, strict=True):
            check_parity(a, b, "numpy", scale)


def _within(ranges: tuple[tuple[float, float], ...], size: int, rng: np.random.Generator) -> np.ndarray:
    """(size, len(ranges)) float32, uniform."""
    low, high = np.array(ranges, dtype=float).T
    return (low + (high - low) * rng.random((size, len(ranges)))).astype(np.float32)
