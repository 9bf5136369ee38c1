"""The paper's propositions, measured and claimed: perception graph, pseudo-force, cost per UAV (IV-E, IV-F, App. A-C).

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
import polars as pl
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from phygail import __version__
from phygail.config import InputError, Physics
from phygail.experiments.grid import Grid
from phygail.experiments.statistics import Evidence
from phygail.files import read_json, read_text, write_text
from phygail.methods.phygail.experts.recipe import POOLS
from phygail.methods.phygail.graph import ACTIVE, CENTER, Graph, perceive
from phygail.render.tables import cell_text, markdown_table
from phygail.sensing.radio import spans
from phygail.sensing.views import Observer, Scope, SubnetViews
from phygail.swarm.scenario import Scenario
from phygail.swarm.simulator import initial_state

if TYPE_CHECKING:
    from phygail.methods.phygail.heads import Actor

MEASURES = "measures.csv"
COST = "cost.json"
COLUMNS = ("uavs", "case", "alive", "quantity", "value", "bound", "version")
DAMAGE = 0.1  # most UAVs live, so the graph is dense, and a loss of 10 % splits every large swarm
FLOAT_BYTES = 4
RADIO = "radio.csv"
TALKING = ("center-fly", "phygail", "phygail-plus", "phygail-taught", "sidr", "cr-ma", "hero", "reach", "bridge",
           "reach-evolved", "reach-cloned")  # fmt: skip
Measure = dict[str, Any]


def measure_all(
    path: Path,
    sizes: Iterable[int],
    cases: int,
    seed: int,
    measured: Callable[[Scenario], list[Measure]],
    tell: Callable[[str], None],
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
            rows += [row | {"uavs": uavs, "case": case} for row in measured(scenario)]
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


def measure_radio(scenario: Scenario) -> list[Measure]:
    """Rounds and bytes per UAV and second of every decentralized method right after the damage (`sensing.radio`).

    Values are means over the alive; the bound of the bytes is their number when the network is one again.
    """
    from phygail.methods.base import make_method, why_not

    found, alive = spans(initial_state(scenario).links), len(scenario.alive)
    share, rate = found.sizes / alive, 1.0 / scenario.physics.step_s
    rows = []
    for name in TALKING:
        if why_not(name):
            continue
        talk = make_method(name).talk
        assert talk is not None
        spoken = np.array([talk.bytes_per_step(m, scenario.uavs) for m in found.sizes])
        waited = np.array([talk.rounds_per_step(h, d) for h, d in zip(found.hops, found.depth, strict=True)])
        whole = talk.bytes_per_step(alive, scenario.uavs)
        rows += [(f"bytes {name}", spoken @ share * rate, whole * rate), (f"rounds {name}", waited @ share * rate, 0.0)]
    return [
        {"alive": alive, "quantity": what, "value": float(value), "bound": float(bound), "version": __version__}
        for what, value, bound in rows
    ]


def packing_bound(range_m: float, separation_m: float) -> float:
    """C_pack: how many points at least `separation_m` apart fit within `range_m` of a point, by area (eq. 45)."""
    return (2 * range_m / separation_m + 1) ** 2


def graph_measures(graph: Graph, physics: Physics) -> dict[str, tuple[float, float]]:
    """Degrees and spectral norms, each with the bound that the paper claims for it (eq. 40, eq. 44, eq. 47)."""
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
    """(n, M) with ones where receiver i listens to node j."""
    edges = graph.edges
    ones = np.ones(len(edges.receiver))
    return csr_array((ones, (edges.receiver, edges.sender)), shape=(graph.receivers, len(graph.types)))


def spectral_norm(matrix: csr_array) -> float:
    """The largest singular value."""
    if min(matrix.shape) < 3 or matrix.nnz == 0:  # too small for Lanczos
        return float(np.linalg.norm(matrix.toarray(), 2))
    start = np.ones(min(matrix.shape))
    return float(svds(matrix, k=1, v0=start, return_singular_vectors=False)[0])


def message_measures(graph: Graph) -> dict[str, tuple[float, float]]:
    """Neighbors that a UAV hears per round, the most of any UAV and on average."""
    heard = (graph.mask & (graph.kind == ACTIVE)).sum(axis=1)
    most = float((graph.kinds == ACTIVE).sum())
    return {"neighbors_heard_most": (float(heard.max()), most), "neighbors_heard_mean": (float(heard.mean()), most)}


def force_measure(actor: Actor, graph: Graph) -> tuple[float, float]:
    """The largest ||m_i|| of any UAV in any layer, and the bound by the weights (eq. 49)."""
    import torch

    from phygail.methods.phygail.network import PhyGNNLayer, sum_messages, to_tensors

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
    """S_max C_f of a PhyGNN layer: no message is larger, whatever the swarm looks like (eq. 48)."""
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
    """(actor, which weights): those of `phygail-taught` where the package holds them, else fresh ones."""
    from phygail.learning.networks import load_weights, seeded
    from phygail.methods.phygail import KIND, VERSION
    from phygail.methods.phygail.heads import Actor
    from phygail.methods.phygail.network import EncoderSpec
    from phygail.weights import bundled

    with seeded(0):
        fresh = Actor()
    try:
        tensors, config = load_weights(bundled("phygail-taught"), KIND, VERSION)
    except InputError:
        return fresh, "untrained"
    actor = Actor(EncoderSpec(**config["encoder"]))
    actor.load_state_dict(tensors)
    return actor, f"trained, {config['sha256'][:12]}"


def cost_per_uav(actor: Actor) -> dict[str, int]:
    """What a UAV stores and sends, whatever the size of the swarm (eq. 43)."""
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


def propositions(evidence: Evidence) -> str:
    """Spectral norm, pseudo-force and cost per UAV over swarm size."""
    rows = read_measures(evidence.folder / MEASURES)
    if not rows:
        raise InputError(f"{evidence.folder} holds no {MEASURES}: run phygail reproduce propositions")
    sizes = sorted({row["uavs"] for row in rows})
    parts = [
        "## Proposition 1: spectral norm of the perception graph\n",
        markdown_table(
            ["N", "alive", "largest in-degree", "largest out-degree, no center", "norm, no center", "norm with center",
             "sqrt(alive)", "the paper's bound"],
            [_norm_cells(n, [row for row in rows if row["uavs"] == n]) for n in sizes],
        ),
    ]  # fmt: skip
    forces = [row for row in rows if row["quantity"] == "force"]
    cost = read_cost(evidence.folder / COST)
    if forces:
        parts += [
            f"## Proposition 2: pseudo-force ({cost['weights']} weights)\n",
            markdown_table(
                ["N", "largest force of any UAV and layer", "bound from the weights"],
                [[f"{n:,}", *_largest([row for row in forces if row["uavs"] == n])] for n in sizes],
            ),
        ]
    parts += ["## Cost per UAV\n", markdown_table(
        ["N", "neighbors heard per round, mean", "most", "at most"],
        [_heard_cells(n, [row for row in rows if row["uavs"] == n]) for n in sizes],
    )]  # fmt: skip
    if cost:
        facts = ", ".join(f"{value:,} {name}" for name, value in cost.items() if name != "weights")
        parts.append(f"The same for every N: {facts}.\n")
    if said := read_measures(evidence.folder / RADIO):
        parts += radio_tables(said)
    return "\n".join(parts)


RADIO_NOTE = (
    "The paper claims O(1) per UAV: true of its network (`phygail-taught`, `phygail`). All are counted by one rule "
    "(`phygail.sensing.radio`): an id is 2 bytes, a number 4; what is needed beyond neighbors is passed on "
    "(every member broadcasts every record once) or summed up and down the subnet's tree. Frame headers, collisions "
    "and repeats are not counted. `vcr`, `ledir` and `dcrmf` plan once: `single-failure` counts their broadcasts.\n"
)
RADIO_TABLES = (  # title, quantity, column
    ("Bytes right after the damage:\n", "bytes", "value"),
    ("Bytes when the network is one again:\n", "bytes", "bound"),
    ("Rounds of broadcasts, one waiting for the other, right after the damage:\n", "rounds", "value"),
)


def radio_tables(rows: list[Measure]) -> list[str]:
    """Bytes and rounds per UAV and second over swarm size, a line per method."""
    sizes, measured = sorted({row["uavs"] for row in rows}), {row["quantity"] for row in rows}
    header = ["method", *(f"N={n:,}" for n in sizes)]
    parts = ["## What is said by radio, per UAV and second\n", RADIO_NOTE]
    for title, quantity, column in RADIO_TABLES:
        lines = [
            [f"`{name}`", *(_radio_cell(rows, n, f"{quantity} {name}", column) for n in sizes)]
            for name in TALKING
            if f"{quantity} {name}" in measured
        ]
        parts += [title, markdown_table(header, lines)]
    return parts


def _radio_cell(rows: list[Measure], uavs: int, quantity: str, column: str) -> str:
    values = [row[column] for row in rows if row["uavs"] == uavs and row["quantity"] == quantity]
    return f"{sum(values) / len(values):,.0f}"


def terminal_reward(evidence: Evidence) -> str:
    """Variance of the terminal success reward against its bound, per swarm size (eq. 42)."""
    from phygail.methods.phygail.config import TrainConfig  # torch

    config = TrainConfig()
    limit = (config.r_time * config.eta_max) ** 2 / 4
    sharp = (config.r_time * min(config.eta_max, math.exp(config.decay))) ** 2 / 4
    rows = with_expert_steps(evidence.rows)
    lines = []
    for name in evidence.methods:
        for uavs in evidence.sizes:
            mine = rows.filter((pl.col("method") == name) & (pl.col("uavs") == uavs) & (pl.col("converged") == 1))
            reward = success_reward(mine)
            if len(reward) > 1:
                lines.append([
                    f"`{name}`", f"{uavs:,}", str(len(reward)), cell_text(mine["steps"].var(), ".0f"),
                    cell_text(float(reward.mean()), ".1f"), cell_text(float(reward.var(ddof=1)), ".1f"),
                    f"{limit:.0f}", f"{sharp:.0f}",
                ])  # fmt: skip
    header = ["method", "N", "successes", "variance of steps", "mean reward", "variance", "the paper's bound", "sharp"]
    note = (
        f"r = {config.r_base:g} + {config.r_time:g} eta(t), T_E of the fastest of the paper's pool on the same case; "
        f"sharp: with lambda = {config.decay:g}, eta never exceeds e, so its cap {config.eta_max:g} is never reached.\n"
    )
    return f"## Proposition 3: variance of the terminal reward\n\n{markdown_table(header, lines)}\n{note}"


def with_expert_steps(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of cases that an expert of the paper's pool solved, with its steps T_E as `expert_steps`."""
    solved = rows.filter(pl.col("method").is_in(POOLS["paper"]) & (pl.col("converged") == 1))
    return rows.join(solved.group_by("scenario").agg(pl.col("steps").min().alias("expert_steps")), on="scenario")


def success_reward(rows: pl.DataFrame) -> np.ndarray:
    """(n,) terminal reward of successes with the paper's constants, before scaling (eq. 41)."""
    from phygail.methods.phygail.config import TrainConfig
    from phygail.methods.phygail.rewards import pace_steps, speed_bonus

    config = TrainConfig()
    steps, expert = rows["steps"].to_numpy(), rows["expert_steps"].to_numpy()
    return config.r_base + config.r_time * speed_bonus(steps, pace_steps(expert, np.zeros_like(steps), config), config)


def _largest(rows: list[Measure]) -> list[str]:
    return [cell_text(max(row["value"] for row in rows), ".3f"), cell_text(rows[0]["bound"], ".1f")] if rows else []


def _value(rows: list[Measure], quantity: str, form: str) -> str:
    values = [row["value"] for row in rows if row["quantity"] == quantity]
    return cell_text(max(values), form) if values else cell_text(None, form)


def _norm_cells(uavs: int, rows: list[Measure]) -> list[str]:
    alive = max(row["alive"] for row in rows)
    claim = next(row["bound"] for row in rows if row["quantity"] == "norm_without_center")
    return [
        f"{uavs:,}", f"{alive:,}", _value(rows, "in_degree", ".0f"), _value(rows, "out_degree", ".0f"),
        _value(rows, "norm_without_center", ".2f"), _value(rows, "norm_with_center", ".2f"),
        f"{math.sqrt(alive):.2f}", f"{claim:.1f}",
    ]  # fmt: skip


def _heard_cells(uavs: int, rows: list[Measure]) -> list[str]:
    most = next(row["bound"] for row in rows if row["quantity"] == "neighbors_heard_most")
    mean, largest = _value(rows, "neighbors_heard_mean", ".2f"), _value(rows, "neighbors_heard_most", ".0f")
    return [f"{uavs:,}", mean, largest, f"{most:.0f}"]
