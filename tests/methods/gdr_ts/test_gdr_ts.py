"""GDR-TS (METHODS 3.6) as a method: its plans, its weights, odd swarms."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from phygail.config import InputError
from phygail.methods.controller import run_episode
from phygail.methods.gdr_ts import GdrTs, load_policy_weights
from phygail.methods.gdr_ts.policy import PlanPolicy
from phygail.methods.planning import contract_until_connected, contraction, largest_move_m
from phygail.rng import generator
from phygail.sensing.views import GlobalView, Observer, Scope
from phygail.swarm.links import find_links
from phygail.swarm.scenario import Scenario, draw_scenario, make_scenario
from phygail.swarm.simulator import initial_state
from phygail.weights import bundled

UPDATES = 8  # enough for every property but the quality of the plan


def view_of(scenario: Scenario) -> GlobalView:
    view = Observer(scenario).observe(initial_state(scenario), Scope.GLOBAL)
    assert isinstance(view, GlobalView)
    return view


def drawn(seed: int, uavs: int = 50, ratio: float = 0.5) -> Scenario:
    return draw_scenario(uavs, ratio, generator(200_000, "test-gdr-ts", seed))


def warm_start(scenario: Scenario) -> np.ndarray:
    operator = contraction(scenario.spots, 120.0).operator
    return contract_until_connected(scenario.spots, operator, 119.9)[0]


@pytest.mark.parametrize("seed", range(4))
def test_plan_is_connected_and_never_worse_than_the_contraction(seed: int) -> None:
    """GD-1."""
    scenario = drawn(seed)
    method = GdrTs(updates=UPDATES)
    targets = method.plan(view_of(scenario))
    assert find_links(targets, 119.9 + 1e-5).connected
    assert largest_move_m(scenario.spots, targets) <= largest_move_m(scenario.spots, warm_start(scenario)) + 1e-5
    assert method.flag == ""


def test_without_learning_the_plan_is_the_contraction() -> None:
    """GD-2: an untrained policy and no online updates."""
    scenario = drawn(1)
    targets = GdrTs(weights=PlanPolicy().state_dict(), updates=0).plan(view_of(scenario))
    np.testing.assert_allclose(targets, warm_start(scenario), atol=1e-5)


def test_plans_do_not_depend_on_the_cases_before() -> None:
    """GD-5: weights are reset to the offline ones for each case."""
    first, second = drawn(2), drawn(3)
    before = {name: tensor.clone() for name, tensor in load_policy_weights(bundled("gdr-ts")).items()}
    alone = GdrTs(updates=UPDATES).plan(view_of(second))
    GdrTs(updates=UPDATES).plan(view_of(first))
    np.testing.assert_array_equal(GdrTs(updates=UPDATES).plan(view_of(second)), alone)
    for name, tensor in load_policy_weights(bundled("gdr-ts")).items():
        assert (tensor == before[name]).all()


def test_plan_depends_neither_on_numbering_nor_on_the_origin() -> None:
    """G2, G3: exact, because the plan is made in sorted, centered coordinates."""
    scenario = drawn(4)
    targets = GdrTs(updates=UPDATES).plan(view_of(scenario))
    order = generator(1, "order").permutation(len(scenario.spots))
    shift = np.array([1234.5, -77.25])
    other = make_scenario("moved", scenario.spots[order] + shift, center=scenario.center + shift)
    other = Scenario(other.id, other.layout, other.damaged, scenario.width_m, other.center, budget_steps=1)
    np.testing.assert_allclose(GdrTs(updates=UPDATES).plan(view_of(other)), targets[order] + shift, atol=1e-6)


def test_online_learning_shortens_the_largest_flight() -> None:
    cases = [drawn(seed, uavs=30, ratio=ratio) for seed, ratio in [(1, 0.5)]]
    planned = [largest_move_m(case.spots, GdrTs().plan(view_of(case))) for case in cases]
    assert sum(planned) < 0.95 * sum(largest_move_m(case.spots, warm_start(case)) for case in cases)


@pytest.mark.parametrize(
    "positions",
    [
        [[0, 0], [900, 900]],
        [[0, 0], [200, 0], [400, 0], [800, 0], [1500, 0]],
        [[0, 0], [0, 1], [700, 0]],
        [[k * 15, 0] for k in range(12)] + [[3000, 0]],
    ],
    ids=["two", "collinear", "pair-and-one", "one-far-away"],
)
def test_odd_swarms_reconnect(positions: list[list[float]]) -> None:
    scenario = make_scenario("odd", np.array(positions, dtype=float), budget_steps=4000)
    method = GdrTs(updates=UPDATES)
    assert run_episode(scenario, method).terminated
    assert np.isfinite(method.targets).all()
    assert method.flag == ""


def test_heavy_damage_reconnects() -> None:
    assert run_episode(drawn(9, uavs=100, ratio=0.95), GdrTs(updates=UPDATES)).terminated


def copy_weights(folder: Path) -> Path:
    for suffix in (".safetensors", ".json"):
        shutil.copy(bundled("gdr-ts").with_suffix(suffix), folder / f"mine{suffix}")
    return folder / "mine.safetensors"


def test_damaged_or_foreign_weights_are_refused(tmp_path: Path) -> None:
    path = copy_weights(tmp_path)
    config = json.loads(path.with_suffix(".json").read_text())
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(InputError, match="damaged"):
        GdrTs(weights=path)
    path.with_suffix(".json").write_text(json.dumps({**config, "version": 99}))
    with pytest.raises(InputError, match="version 99"):
        GdrTs(weights=path)
    with pytest.raises(InputError, match="cannot read"):
        GdrTs(weights=tmp_path / "none.safetensors")
    with pytest.raises(InputError, match="kind 'cr-ma'"):
        GdrTs(weights=bundled("cr-ma"))


def test_missing_torch_gets_one_clear_line() -> None:
    program = (
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'torch' else find(name, *a)\n"
        "import phygail.methods as m\n"
        "try: m.make_method('gdr-ts')\n"
        "except ValueError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "the method 'gdr-ts' needs torch: pip install 'phygail[learn]'"


def test_listing_the_methods_does_not_import_torch() -> None:
    program = "import sys, phygail.methods; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
