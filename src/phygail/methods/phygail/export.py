"""An actor as one ONNX file that runs without torch and says what it is (METHODS 4.2).

Inputs, for n receivers among M nodes and E edges: features (M, 5), types (M,), receiver (E,), sender (E,) and
place (n, slots) int64 as in `methods.phygail.graph`; output: action (n, 2), the command over v_max, before the
projection onto the speed disc. Only the edges that exist are computed. Those of `phygail-plus` read edge (E, 8), too.

Compact networks compute in double precision and round the command to v_max / GRID: code that adds in another order, as
the page does (web/static/js/methods/policy.js), flies the same way to the last bit instead of one that parts from it
after some hundred steps. The paper's network computes in single precision, as its rows were flown.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from phygail import __version__
from phygail.config import InputError
from phygail.learning.networks import (
    OPSET,
    check_parity,
    load_weights,
    onnx_path,
    parameter_count,
    save_weights,
    write_policy,
)
from phygail.methods.phygail import GRID, INPUTS, KIND, OUTPUT, PLUS_KIND, VERSION, PlusPolicy, Policy, plus
from phygail.methods.phygail.graph import NODE_FEATURES, Graph, GraphSpec, Surroundings, assemble
from phygail.methods.phygail.heads import ACTION, Actor
from phygail.methods.phygail.network import EncoderSpec, GraphInput, to_tensors
from phygail.sensing.beliefs import Beliefs
from phygail.sensing.views import Observer, Scope, SubnetViews
from phygail.swarm.scenario import make_scenario
from phygail.swarm.simulator import initial_state
from phygail.weights import weights_kind

if TYPE_CHECKING:
    import onnx


def export_weights(weights: str | Path, out: str | Path) -> Path:
    """Write the actor saved under `weights` (NAME.safetensors beside NAME.json) as an ONNX file."""
    tensors, config = load_weights(weights, _kind_of(weights), VERSION)
    try:
        graph_spec, actor = GraphSpec(**config["graph"]), rebuilt(config)
        actor.load_state_dict(tensors)
    except (KeyError, TypeError, RuntimeError) as error:
        raise InputError(f"the weights {weights} do not fit the actor of this version: {_first_line(error)}") from None
    return export_actor(actor, graph_spec, out, training=config)


def round_weights(weights: str | Path, out: str | Path) -> Path:
    """Write weights rounded to half precision (still stored in single): what comes with the package.

    The page carries half of the bytes and flies exactly what Python flies.
    """
    tensors, config = load_weights(weights, _kind_of(weights), VERSION)
    path = Path(out)
    rounded = {name: tensor.half().to(tensor.dtype) for name, tensor in tensors.items()}
    save_weights(path, rounded, {**config, "precision": "half"})
    return path


def _kind_of(weights: str | Path) -> str:
    """The kind of a weight file if it is one of ours; else the paper's, which it will be refused for."""
    return PLUS_KIND if weights_kind(weights) == PLUS_KIND else KIND


def rebuilt(config: Mapping[str, Any]) -> Actor:
    """An actor of the shape that a weight file's JSON tells."""
    squashed = config.get("action") or config.get("training", {}).get("command", "tanh")  # older files: the paper's
    return Actor(EncoderSpec(**config["encoder"]), command=squashed, outputs=config.get("outputs", ACTION))


def export_actor(
    actor: Actor, graph_spec: GraphSpec, out: str | Path, *, training: Mapping[str, Any] | None = None
) -> Path:
    """Write `actor` with its model card; the file appears only if ONNX Runtime reproduces torch to `PARITY`.

    Args:
        actor: The network. graph_spec: The graph it was trained on.
        out: NAME.onnx.
        training: How it was trained; goes into the model card.
    """
    path = onnx_path(out)
    actor = copy.deepcopy(actor).eval().requires_grad_(False)  # the caller's may still be training
    actor = actor.double() if actor.encoder.spec.compact else actor
    model = _to_onnx(_Execution(actor), _example(actor, graph_spec, alive=5))

    def check(content: bytes) -> None:
        policy = PlusPolicy(content) if graph_spec.k_lost else Policy(content)
        for graph in (_example(actor, graph_spec, alive) for alive in (1, 2, 17)):
            with torch.inference_mode():
                check_parity(policy.actions(graph), actor.mean_action(to_tensors(graph)).numpy(), "torch")

    return write_policy(model, model_card(actor, graph_spec, training or {}), path, check)


def model_card(actor: Actor, graph_spec: GraphSpec, training: Mapping[str, Any]) -> dict[str, str]:
    """The texts inside the file; what the runtime needs (`graph`) and what a reader wants to know."""
    read = (*plus.NODE_FEATURES, *plus.EDGE_FEATURES) if graph_spec.k_lost else NODE_FEATURES
    return {
        "kind": PLUS_KIND if graph_spec.k_lost else KIND,
        "version": str(VERSION),
        "phygail": __version__,
        "graph": json.dumps(asdict(graph_spec)),
        "observation": json.dumps([asdict(feature) for feature in read]),
        "encoder": json.dumps(asdict(actor.encoder.spec)),
        "action": actor.command,
        "parameters": str(parameter_count(actor)),
        "training": json.dumps(dict(training), default=str),
    }


class _Execution(nn.Module):
    """The actor as it flies: tensors in, the command of the mean out, on the grid if the network is compact."""

    def __init__(self, actor: Actor) -> None:
        super().__init__()
        self.actor = actor

    def forward(
        self, features: Tensor, types: Tensor, receiver: Tensor, sender: Tensor, place: Tensor,
        edge: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        graph = GraphInput(features, types, receiver, sender, place, types[: place.shape[0]], 1, edge)
        action = self.actor.mean_action(graph)
        return torch.round(action * GRID) / GRID if self.actor.encoder.spec.compact else action


def _example(actor: Actor, spec: GraphSpec, alive: int) -> Graph:
    """A graph with every kind of node that the spec knows, as precise as the actor; one UAV has no links."""
    rng = np.random.default_rng(alive)
    dtype = np.float64 if actor.encoder.spec.compact else np.float32
    if spec.k_lost:
        layout = np.concatenate([rng.uniform(0, 60, (alive, 2)), rng.uniform(100, 220, (alive, 2)), [[30.0, 290.0]]])
        scenario = make_scenario("example", layout, range(alive, 2 * alive), width_m=300.0)
        views = Observer(scenario).observe(initial_state(scenario), Scope.SUBNET)
        assert isinstance(views, SubnetViews)
        return plus.observe_plus(views, Beliefs(plus.belief_spec(spec)), spec, dtype)[0]
    rows = np.arange(alive)
    receiver, sender = np.nonzero(~np.eye(alive, dtype=bool))
    one = np.ones(1)
    around = Surroundings(
        rng.uniform(-60, 60, (alive, 2)), rng.uniform(-7, 7, (alive, 2)), (receiver, sender),
        rng.uniform(-60, 60, (alive, 2)), (rows, rows) if spec.k_dmg else (rows[:0], rows[:0]),
        np.zeros(alive, dtype=np.int64), np.zeros((1, 2)), np.zeros((1, 2)),
        one * (spec.scale_m or 160.0), one * 10.0, np.zeros(1, dtype=np.int64),
    )  # fmt: skip
    return assemble(around, spec, dtype)


def _to_onnx(module: nn.Module, graph: Graph) -> onnx.ModelProto:
    """The exporter's graph, without the traces of this machine that it leaves on every node."""
    given = to_tensors(graph)
    tensors = [given.features, given.types, given.receiver, given.sender, given.place]
    tensors += [] if given.edge is None else [given.edge]
    names = INPUTS if given.edge is None else PlusPolicy.inputs
    with _quiet():
        program = torch.onnx.export(
            module, tuple(tensors), dynamo=True, input_names=list(names), output_names=[OUTPUT], opset_version=OPSET,
            dynamic_shapes=tuple([{0: torch.export.Dim.DYNAMIC}] * len(tensors)), verbose=False,
        )  # fmt: skip
    assert program is not None
    model: onnx.ModelProto = program.model_proto
    for item in [model.graph, *model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output]:
        item.doc_string = ""
        del item.metadata_props[:]
    del model.graph.value_info[:]
    return model


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's progress lines and deprecation notes, which tell a user nothing."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
