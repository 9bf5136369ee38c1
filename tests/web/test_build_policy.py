"""The learned policy of the page: graph and network in JavaScript give what they give in Python."""

from __future__ import annotations

import gzip
import json
import subprocess
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra learn is not installed")
import torch

from phygail.config import InputError
from phygail.experiments.grid import Grid
from phygail.methods.phygail import GRID
from phygail.methods.phygail.graph import PAPER, Graph, perceive
from phygail.methods.phygail.heads import Actor
from phygail.methods.phygail.network import EncoderSpec, to_tensors
from phygail.sensing.views import Observer, Scope
from phygail.swarm.simulator import initial_state, step
from phygail.web import build
from phygail.web.build import SCRIPTS, policy_data

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.timeout(120)]
WIDTH, TYPE_WIDTH, LAYERS = 12, 8, 2
CONFIG: dict[str, Any] = {
    "encoder": {"layer": "phygnn", "layers": LAYERS, "width": WIDTH, "compact": True},
    "graph": {"k_act": 8, "k_dmg": 3, "center": True, "recenter": False, "scale_m": None},
}
ASK = """
import { perceive } from "%s";
import { makePolicy } from "%s";
import { readFileSync } from "node:fs";
const { view, data } = JSON.parse(readFileSync(0, "utf8"));
const arrays = ["roster", "positions", "velocities", "members", "pairs", "lengths"];
for (const key of arrays) view[key] = Float64Array.from(view[key]);
const graph = perceive(view, data.graph), commands = makePolicy(data).act(view);
const flat = {};
for (const [key, value] of Object.entries(graph)) flat[key] = value.length === undefined ? value : [...value];
console.log(JSON.stringify({ ...flat, commands: [...commands] }));
"""


def random_weights(rng: np.random.Generator, width: int = WIDTH, kinds: int = TYPE_WIDTH) -> dict[str, np.ndarray]:
    """Tensors of a compact actor, each number exact in half precision."""
    shapes = {
        "encoder.node_type.weight": (3, kinds),
        "encoder.node.0.weight": (width, 5 + kinds),
        "encoder.node.0.bias": (width,),
        "encoder.node.2.weight": (width, width),
        "encoder.node.2.bias": (width,),
        "mean.0.weight": (width, width),
        "mean.0.bias": (width,),
        "mean.2.weight": (2, width),
        "mean.2.bias": (2,),
        "log_std.0.weight": (2, width),
    }
    layer = {
        "own.weight": (width, width), "own.bias": (width,), "sent.weight": (width, width), "kind.weight": (3, width),
        "out.weight": (width, width), "out.bias": (width,), "force.weight": (3, width), "force.bias": (3,),
        "update.0.weight": (width, 2 * width), "update.0.bias": (width,), "update.2.weight": (width, width),
        "update.2.bias": (width,),
    }  # fmt: skip
    for number in range(LAYERS):
        shapes |= {f"encoder.layers.{number}.{name}": shape for name, shape in layer.items()}
    return {name: rng.normal(0, 0.3, shape).astype("f2").astype("f4") for name, shape in shapes.items()}


def mean_action(graph: Graph, weights: dict[str, np.ndarray], command: str) -> np.ndarray:
    """(n, 2), the definition in numpy (network.CompactLayer): the command over v_max before the projection."""

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", 0)

    def relu(x: np.ndarray) -> np.ndarray:
        return np.maximum(x, 0)

    receiver, sender, n = graph.edges.receiver, graph.edges.sender, graph.receivers
    h = np.concatenate([graph.features, weights["encoder.node_type.weight"][graph.types]], axis=1)
    h = relu(linear(relu(linear(h, "encoder.node.0")), "encoder.node.2"))
    for number in range(LAYERS):
        name = f"encoder.layers.{number}"
        sent = linear(h, f"{name}.sent") + weights[f"{name}.kind.weight"][graph.types]
        f = relu(linear(relu(linear(h[:n], f"{name}.own")[receiver] + sent[sender]), f"{name}.out"))
        attraction, repulsion, strength = linear(f, f"{name}.force").T
        gate = 1 / (1 + np.exp(-attraction)) - 1 / (1 + np.exp(-repulsion))
        received = np.zeros_like(h)
        np.add.at(received, receiver, f * (np.log1p(np.exp(strength)) * gate)[:, None])
        both = np.concatenate([h, received], axis=1)
        h = h + relu(linear(relu(linear(both, f"{name}.update.0")), f"{name}.update.2"))
    u = linear(relu(linear(h[:n], "mean.0")), "mean.2").clip(-3, 3)
    return np.tanh(u) if command == "tanh" else u


def ask_page(node: str, view: Any, data: dict[str, Any]) -> dict[str, Any]:
    told = {
        "physics": {"range_m": 120, "speed_mps": 10},
        "center": view.mission.center.tolist(),
        "width": view.mission.width_m,
    }
    for key in ("roster", "positions", "velocities", "members", "pairs", "lengths"):
        told[key] = getattr(view, key).ravel().tolist()
    script = ASK % tuple((SCRIPTS / "methods" / name).as_uri() for name in ("policy_graph.js", "policy.js"))
    done = subprocess.run(
        [node, "--input-type=module", "-e", script],
        input=json.dumps({"view": told, "data": data}), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("uavs", "damage", "command"), [(40, 0.4, "tanh"), (120, 0.75, "disc")])
def test_graph_and_commands_are_those_of_python(node, uavs, damage, command):
    scenario = Grid((uavs,), (damage,), 1, 8).scenario(0)
    rng = np.random.default_rng(4)
    state = step(initial_state(scenario), rng.uniform(-9, 9, scenario.spots.shape))
    view = Observer(scenario).observe(state, Scope.SUBNET)
    graph, weights = perceive(view, PAPER, np.float64), random_weights(rng)
    found = ask_page(node, view, policy_data(weights, CONFIG | {"command": command}))
    assert found["types"] == graph.types.tolist()
    assert found["receiver"] == graph.edges.receiver.tolist()
    assert found["sender"] == graph.edges.sender.tolist()
    assert found["features"] == pytest.approx(graph.features.ravel(), abs=1e-14)
    expected = np.round(mean_action(graph, weights, command) * GRID)
    assert np.abs(expected).max() > 0.05 * GRID
    assert (np.reshape(found["commands"], (-1, 2)) == 10.0 * (expected / GRID)).all()


@pytest.mark.skipif("compact" not in {f.name for f in fields(EncoderSpec)}, reason="no compact network in this version")
def test_the_definition_above_is_that_of_the_network():
    """Names, shapes and function of the tensors are those of `heads.Actor` in its compact form."""
    torch.manual_seed(3)
    actor = Actor(EncoderSpec(layers=LAYERS, width=WIDTH, compact=True), command="disc")  # type: ignore[call-arg]
    weights = {name: tensor.numpy().astype("f2").astype("f4") for name, tensor in actor.state_dict().items()}
    actor.load_state_dict({name: torch.from_numpy(tensor) for name, tensor in weights.items()})
    scenario = Grid((60,), (0.5,), 1, 8).scenario(0)
    graph = perceive(Observer(scenario).observe(initial_state(scenario), Scope.SUBNET), PAPER)
    with torch.inference_mode():
        expected = actor.mean_action(to_tensors(graph)).numpy()
    assert mean_action(graph, weights, "disc") == pytest.approx(expected, abs=1e-5)
    config = CONFIG | {"encoder": asdict(actor.encoder.spec), "command": "disc"}
    assert len(policy_data(weights, config)["tensors"]) == len([name for name in weights if "log_std" not in name])


def test_a_page_with_a_policy_has_a_lane_for_it(browser, tmp_path, monkeypatch):
    """A network of the size that is trained (32 wide, two rounds), its weights inlined, below the limit of the page."""
    weights = random_weights(np.random.default_rng(2), width=32, kinds=32)
    policy = policy_data(weights, CONFIG | {"command": "disc"})
    monkeypatch.setattr(build, "page_policy", lambda: policy)
    file = tmp_path / "play.html"
    file.write_text(build.build_page(build.data_module()), encoding="utf-8")
    assert len(gzip.compress(file.read_bytes(), 9)) < 80_000
    page = browser.new_context().new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{file.as_uri()}#n=60&lost=0.5&seed=3&race=sidr&speed=1")
    page.check('#methods input[value="phygail"]')
    page.evaluate("phygail.app.race.advanceTo(12)")
    flown = page.evaluate("phygail.app.race.lanes[1].flight.last.distance")
    page.context.close()
    assert flown > 1.0
    assert errors == []


def test_what_the_page_cannot_fly_as_python_does_is_refused():
    weights = random_weights(np.random.default_rng(1))
    with pytest.raises(InputError, match="compact PhyGNN policies"):
        policy_data(weights, CONFIG | {"encoder": CONFIG["encoder"] | {"layer": "gat"}})
    with pytest.raises(InputError, match=r"mean.2.bias of phygail has more than half precision"):
        policy_data(weights | {"mean.2.bias": np.float32([0.1, 0.2])}, CONFIG)
