"""The paper's propositions measured: perception graph, pseudo-force, cost per UAV (paper IV-E, IV-F, Appendices A-C).

**Spectral norm (Proposition 1).** ||A|| <= sqrt(in-degree x out-degree), and the proof bounds the out-degree by how
many UAVs fit into radio range. That holds for alive and damaged nodes. It overlooks the center: one shared node that
every alive UAV listens to has out-degree n, so ||A|| >= sqrt(n), which grows with the swarm. Both are measured.

**Pseudo-force (Proposition 2).** The paper argues by compactness. The network gives more: the LayerNorm inside the
message network bounds f whatever its input, ||f|| <= ||W|| (sqrt(256) max|gamma| + ||beta||) + ||b||, hence S and with
at most 12 messages m_i, by a number that the weights alone decide.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from phygail import __version__
from phygail.config import InputError, Physics
from phygail.evaluation.grid import Grid
from phygail.files import read_json, read_text, write_text
from phygail.perception.graph import ACTIVE, CENTER, Graph, perceive
from phygail.perception.view import Observer, Scope, SubnetViews
from phygail.swarm.scenario import Scenario
from phygail.swarm.state import initial_state

if TYPE_CHECKING:
    from phygail.models.actor import Actor

MEASURES = "measures.csv"
COST = "cost.json"
COLUMNS = ("uavs", "case", "alive", "quantity", "value", "bound", "version")
DAMAGE = 0.1  # most UAVs live: the graph is as dense as it gets, and 10 % split every large swarm
FLOAT_BYTES = 4
Measure = dict[str, Any]


def measure_all(
    path: Path, sizes: Iterable[int], cases: int, seed: int, actor: Actor | None, tell: Callable[[str], None]
) -> list[Measure]:
    """Measure every case that the file does not hold yet; the file is replaced whole after each."""
    rows = read_measures(path)
    done = {(row["uavs"], row["case"]) for row in rows}
    for uavs in sizes:
        for case in range(cases):
            if (uavs, case) in done:
                continue
            tell(f"propositions, N = {uavs:,}, case {case}")
            scenario = Grid((uavs,), (DAMAGE,), case + 1, seed).scenario(case)
            rows += [row | {"uavs": uavs, "case": case} for row in measure(scenario, actor)]
            rows.sort(key=lambda row: (row["uavs"], row["case"], row["quantity"]))
            write_text(path, _csv_text(rows))
    return rows


def measure(scenario: Scenario, actor: Actor | None) -> list[Measure]:
    """All quantities of one swarm right after the damage."""
    view = Observer(scenario).observe(initial_state(scenario), Scope.SUBNET)
    assert isinstance(view, SubnetViews)
    graph = perceive(view)
    found = {**graph_measures(graph, scenario.physics), **message_measures(graph)}
    if actor is not None:
        found["force"] = force_measure(actor, graph)
    alive = len(scenario.alive)
    return [
        {"alive": alive, "quantity": name, "value": value, "bound": bound, "version": __version__}
        for name, (value, bound) in found.items()
    ]


def packing_bound(range_m: float, separation_m: float) -> float:
    """C_pack: how many points at least `separation_m` apart fit within `range_m` of a point, by area."""
    return (2 * range_m / separation_m + 1) ** 2


def graph_measures(graph: Graph, physics: Physics) -> dict[str, tuple[float, float]]:
    """Degrees and spectral norms, each with the bound that the paper claims for it."""
    matrix = adjacency(graph)
    plain = matrix[:, graph.types != CENTER]
    slots, packed = graph.index.shape[1], packing_bound(physics.range_m, physics.contact_m)
    claim = math.sqrt(slots * packed)
    return {
        "in_degree": (float(matrix.sum(axis=1).max()), float(slots)),
        "out_degree": (float(plain.sum(axis=0).max()), packed),
        "norm_without_center": (spectral_norm(plain), claim),
        "norm_with_center": (spectral_norm(matrix), claim),
    }


def adjacency(graph: Graph) -> csr_array:
    """(n, M) of ones: who listens to whom."""
    edges = graph.edges
    ones = np.ones(len(edges.receiver))
    return csr_array((ones, (edges.receiver, edges.sender)), shape=(graph.receivers, len(graph.types)))


def spectral_norm(matrix: csr_array) -> float:
    """The largest singular value."""
    if min(matrix.shape) < 3 or matrix.nnz == 0:  # nothing for Lanczos
        return float(np.linalg.norm(matrix.toarray(), 2))
    start = np.ones(min(matrix.shape))
    return float(svds(matrix, k=1, v0=start, return_singular_vectors=False)[0])


def message_measures(graph: Graph) -> dict[str, tuple[float, float]]:
    """Neighbors that a UAV hears per round, the most of any UAV and on average."""
    heard = (graph.mask & (graph.kind == ACTIVE)).sum(axis=1)
    most = float((graph.kinds == ACTIVE).sum())
    return {"neighbors_heard_most": (float(heard.max()), most), "neighbors_heard_mean": (float(heard.mean()), most)}


def force_measure(actor: Actor, graph: Graph) -> tuple[float, float]:
    """The largest ||m_i|| of any UAV in any layer, and what the weights allow."""
    import torch

    from phygail.models.inputs import sum_messages, to_tensors
    from phygail.models.phygnn import PhyGNNLayer

    encoder, inputs = actor.encoder, to_tensors(graph)
    largest, allowed = 0.0, 0.0
    with torch.inference_mode():
        kind = encoder.node_type.weight.index_select(0, inputs.types)
        h = encoder.node(torch.cat([inputs.features, kind], dim=1))
        for layer in encoder.layers:
            if not isinstance(layer, PhyGNNLayer):
                raise InputError("the pseudo-force is that of PhyGNN layers: name weights of such a policy")
            received = sum_messages(layer.messages(h, inputs), inputs)
            largest = max(largest, float(received.norm(dim=1).max()))
            allowed = max(allowed, graph.index.shape[1] * message_bound(layer))
            h = layer(h, inputs)
    return largest, allowed


def message_bound(layer: Any) -> float:
    """S_max C_f of a PhyGNN layer: no message is larger, whatever the swarm looks like."""
    import torch
    from torch.nn.functional import softplus

    def gain(linear: Any) -> float:
        return float(torch.linalg.matrix_norm(linear.weight, 2))

    def offset(linear: Any) -> float:
        return float(linear.bias.norm())

    with torch.inference_mode():
        norm = layer.message_norm
        normed = math.sqrt(norm.weight.numel()) * float(norm.weight.abs().max()) + float(norm.bias.norm())
        f = gain(layer.message_out) * normed + offset(layer.message_out)
        hidden = gain(layer.strength_in) * f + offset(layer.strength_in)
        strength = gain(layer.strength_out) * hidden + offset(layer.strength_out)
        return f * float(softplus(torch.tensor(strength)))


def paper_actor() -> tuple[Actor, str]:
    """(actor, which weights): those of `phygail-paper` where the package holds them, else fresh ones."""
    from phygail.models.actor import Actor
    from phygail.models.encoders import EncoderSpec
    from phygail.models.initial import seeded
    from phygail.models.runtime import KIND, VERSION
    from phygail.models.weights import load_weights
    from phygail.tensors import bundled

    with seeded(0):
        fresh = Actor()
    try:
        tensors, config = load_weights(bundled("phygail-paper"), KIND, VERSION)
    except InputError:
        return fresh, "untrained"
    actor = Actor(EncoderSpec(**config["encoder"]))
    actor.load_state_dict(tensors)
    return actor, f"trained, {config['sha256'][:12]}"


def cost_per_uav(actor: Actor) -> dict[str, int]:
    """What a UAV stores and sends, whatever the size of the swarm."""
    parameters = sum(weight.numel() for weight in actor.parameters())
    spec = actor.encoder.spec
    return {
        "parameters": parameters,
        "stored bytes": parameters * FLOAT_BYTES,
        "broadcasts per step": spec.layers,
        # The first round sends the node features, every later one the hidden state.
        "sent bytes per step": FLOAT_BYTES * (spec.features + (spec.layers - 1) * spec.width),
    }


def save_cost(path: Path, actor: Actor, weights: str) -> None:
    """Write the cost per UAV and whose weights are measured; other weights than before are refused."""
    before = read_cost(path).get("weights", weights)
    if before != weights:
        raise InputError(f"{path.parent} was measured with weights ({before}), now ({weights}): choose another folder")
    write_text(path, json.dumps({"weights": weights, **cost_per_uav(actor)}, indent=1) + "\n")


def read_cost(path: Path) -> dict[str, Any]:
    """The content of cost.json; empty without one."""
    return read_json(path) if path.exists() else {}


# --- file ------------------------------------------------------------------------------------------------------------


def read_measures(path: Path) -> list[Measure]:
    """The rows of a file of measures; none without one, those of another version are refused."""
    if not path.exists():
        return []
    records = list(csv.DictReader(io.StringIO(read_text(path))))
    rows: list[Measure] = []
    for number, record in enumerate(records, start=2):
        try:
            whole = {name: int(record[name]) for name in ("uavs", "case", "alive")}
            real = {name: float(record[name]) for name in ("value", "bound")}
            rows.append({**record, **whole, **real})
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path}, row {number} is damaged: delete the file and run again") from None
        if record["version"] != __version__:
            raise InputError(
                f"{path} holds rows of phygail {record['version']}, this is {__version__}: choose another folder"
            )
    return rows


def _csv_text(rows: Iterable[Measure]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
