"""Propositions: norms against a dense oracle, bounds that hold, measures that resume."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from phygail import __version__
from phygail.config import InputError, Physics
from phygail.experiments.catalog import CLASSIC
from phygail.experiments.grid import Grid
from phygail.experiments.propositions import (
    RADIO,
    TALKING,
    adjacency,
    cost_per_uav,
    force_measure,
    graph_measures,
    measure,
    measure_all,
    message_bound,
    packing_bound,
    read_measures,
    save_cost,
    spectral_norm,
    success_reward,
    with_expert_steps,
)
from phygail.learning.networks import seeded
from phygail.methods import METHODS
from phygail.methods.phygail.graph import perceive
from phygail.methods.phygail.heads import Actor
from phygail.methods.phygail.network import EncoderSpec
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import make_scenario
from phygail.swarm.simulator import initial_state

RESULTS = Path(__file__).parents[2] / "results"


def graph_of(scenario):
    return perceive(Observer(scenario).observe(initial_state(scenario), Scope.SUBNET))


@pytest.fixture(scope="module")
def graph():
    return graph_of(Grid((100,), (0.3,), 1).scenario(0))


@pytest.fixture(scope="module")
def actor():
    with seeded(1):
        return Actor(EncoderSpec(width=16, layers=2))


def test_the_norm_is_the_largest_singular_value(graph):
    dense = np.zeros((graph.receivers, len(graph.types)))
    for i, j in np.argwhere(graph.mask):
        dense[i, graph.index[i, j]] += 1
    assert np.array_equal(adjacency(graph).toarray(), dense)
    assert spectral_norm(adjacency(graph)) == pytest.approx(np.linalg.norm(dense, 2))


def test_uavs_out_of_range_of_each_other_share_a_center_of_norm_sqrt_n():
    """Nine UAVs 500 m apart hear nobody but the center: A is one column of ones, its norm is 3."""
    layout = 500.0 * np.array([[x, y] for x in range(3) for y in range(3)])
    found = graph_measures(graph_of(make_scenario("grid", layout, [])), Physics())
    assert found["norm_with_center"][0] == pytest.approx(3.0)
    assert found["norm_without_center"][0] == 0.0
    assert found["out_degree"][0] == 0.0


def test_the_packing_bound_is_hand_worked():
    """Discs of 5 m around each point fit into one of 125 m: (125 / 5)^2; the paper's 15 m: 17^2."""
    assert packing_bound(120.0, 10.0) == 625.0
    assert packing_bound(120.0, 15.0) == 289.0


def test_degrees_and_norm_without_center_keep_the_bounds_of_the_paper(graph):
    found = graph_measures(graph, Physics())
    for name in ("in_degree", "out_degree", "norm_without_center"):
        assert found[name][0] <= found[name][1]
    assert found["norm_with_center"][0] >= math.sqrt(graph.receivers)
    assert found["norm_without_center"][1] == pytest.approx(math.sqrt(12 * 625))


def test_no_message_exceeds_the_bound_of_its_layer_even_for_absurd_states(actor, graph):
    from phygail.methods.phygail.network import to_tensors

    inputs, layer = to_tensors(graph), actor.encoder.layers[0]
    for size in (1.0, 1e3, 1e6):
        states = size * torch.randn(len(graph.types), 16, generator=torch.Generator().manual_seed(0))
        with torch.inference_mode():
            assert float(layer.messages(states, inputs).norm(dim=1).max()) <= message_bound(layer)
    largest, allowed = force_measure(actor, graph)
    assert 0 < largest <= allowed


def test_the_cost_per_uav_is_that_of_the_paper():
    """METHODS 4.2: 722,733 parameters; three broadcasts: 5 features, then two hidden states of 128."""
    cost = cost_per_uav(Actor())
    assert cost == {
        "parameters": 722_733, "stored bytes": 2_890_932, "broadcasts per step": 3, "sent bytes per step": 4 * 261
    }  # fmt: skip


def test_measures_resume_and_refuse_another_version(tmp_path):
    path, told = tmp_path / "measures.csv", []
    measure_all(path, (20,), 1, 0, partial(measure, actor=None), told.append)
    rows = measure_all(path, (20, 50), 2, 0, partial(measure, actor=None), told.append)
    assert len(told) == 4  # the first was not measured again
    assert read_measures(path) == rows
    fresh = measure_all(tmp_path / "fresh.csv", (20, 50), 2, 0, partial(measure, actor=None), told.append)
    assert fresh == rows
    path.write_text(path.read_text().replace(__version__, "0.0.9"))
    with pytest.raises(InputError, match=r"0\.0\.9"):
        measure_all(path, (20,), 1, 0, partial(measure, actor=None), told.append)


def test_forces_of_other_weights_are_refused(tmp_path, actor):
    save_cost(tmp_path / "cost.json", actor, "untrained")
    save_cost(tmp_path / "cost.json", actor, "untrained")
    with pytest.raises(InputError, match="choose another folder"):
        save_cost(tmp_path / "cost.json", actor, "trained")


def test_the_expert_is_the_fastest_success_of_the_papers_pool():
    rows = pl.DataFrame(
        {
            "scenario": ["a", "a", "a", "b"], "method": ["sidr", "center-fly", "reach", "hero"],
            "steps": [12, 20, 10, 256], "converged": [1, 1, 1, 0],
        }
    )  # fmt: skip
    found = with_expert_steps(rows)
    assert found["expert_steps"].to_list() == [12, 12, 12]  # reach is no expert of the paper; nobody solved b


def test_the_terminal_reward_is_hand_worked():
    """PH-7: eta(alpha T_E) = 1, so 40; eta(T_E) = exp(1 - 1/1.2)."""
    rows = pl.DataFrame({"steps": [12, 10], "expert_steps": [10, 10]})
    assert success_reward(rows) == pytest.approx([40.0, 20 + 20 * math.exp(1 - 1 / 1.2)])


def test_every_decentralized_method_is_counted_on_the_radio():
    """All but the classics, which plan once: `single-failure` counts their broadcasts."""
    talking = {name for name in METHODS if str(METHODS.get(name).scope) != "global"}
    assert talking - set(CLASSIC) == set(TALKING)
    measured = {row["quantity"] for row in read_measures(RESULTS / "propositions" / RADIO)}
    assert measured == {f"{what} {name}" for name in TALKING for what in ("bytes", "rounds")}
