"""Compiled world, links and tree: held to `swarm` and `methods.steering`, and never stale in Numba's cache."""

import dis
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("numba")

from numba.core.dispatcher import Dispatcher

import phygail.methods.reach_evolved.compiled as rule
import phygail.swarm.compiled as world
from phygail.config import LINK_TOLERANCE_M, Physics
from phygail.methods.steering import MARGIN, keep_links, link_rules
from phygail.sensing.views import Observer, Scope
from phygail.swarm.links import find_links
from phygail.swarm.scenario import make_scenario
from phygail.swarm.simulator import initial_state
from phygail.swarm.tree import prim_tree

pytestmark = pytest.mark.xdist_group("numba")  # compiled once, not by every worker


def labels(x, range_m=120.0):
    parent, label = np.empty(len(x), dtype=np.int64), np.empty(len(x), dtype=np.int64)
    return world.label_subnets(x, range_m + LINK_TOLERANCE_M, parent, label), label


def test_subnets_are_those_of_the_simulator():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 40):
        x = rng.uniform(0, 500, (n, 2))
        count, label = labels(x)
        links = find_links(x, 120.0)
        assert count == links.count
        np.testing.assert_array_equal(label, [np.flatnonzero(links.subnet == s)[0] for s in links.subnet])


def test_a_link_of_exactly_the_range_counts():
    assert labels(np.array([[0.0, 0.0], [120.0, 0.0]]))[0] == 1
    assert labels(np.array([[0.0, 0.0], [120.1, 0.0]]))[0] == 2


def test_nobody_links_to_a_place_that_is_no_number():
    assert labels(np.array([[0.0, 0.0], [np.nan, 0.0], [50.0, 0.0]]))[0] == 2


def test_the_tree_is_prims_tree():
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 300, (30, 2))
    members = np.sort(rng.permutation(30)[:17])
    left, right, length = world.spanning_tree(x, members)
    edges, lengths = prim_tree(x[members])
    assert {frozenset(edge) for edge in zip(left, right, strict=True)} == {frozenset(members[edge]) for edge in edges}
    assert length.sum() == pytest.approx(lengths.sum())


def test_links_are_kept_as_the_rules_keep_them():
    rng = np.random.default_rng(2)
    chain = [[118.5 * k, 8.0 * (k % 2)] for k in range(8)]
    scenario = make_scenario("chain", [*chain, [0.0, 400.0], [118.9, 400.0]])
    views = Observer(scenario).observe(initial_state(scenario), Scope.SUBNET)
    n = len(scenario.spots)
    wanted = rng.normal(size=(n, 2))
    wanted /= np.maximum(np.hypot(*wanted.T), 1.0)[:, None]
    weight = rng.uniform(0.05, 2.0, n)
    kept = keep_links(views, 10.0 * wanted, weight)
    assert np.abs(kept - 10.0 * wanted).max() > 0.1
    move, physics = wanted.copy(), Physics()
    for subnet in range(views.count):
        members = np.flatnonzero(views.subnet == subnet)
        world.keep_links(
            scenario.spots.copy(), members, move, weight, 120.0, MARGIN * 120.0, physics.stride_m, link_rules()
        )
    np.testing.assert_allclose(10.0 * move, kept, atol=1e-4)


def test_a_world_is_its_scenario():
    pair = make_scenario("pair", [[0.0, 0.0], [300.0, 0.0], [9.0, 9.0]], [2], center=[150.0, 0.0], budget_steps=500)
    arrays = world.World.of(pair)
    np.testing.assert_array_equal(arrays.numbers, [120.0, 120.0 + LINK_TOLERANCE_M, 1.0, 500.0])
    np.testing.assert_array_equal(arrays.alive, [0, 1])
    assert (arrays.unit, len(arrays.roster)) == (1.0, 3)


def globals_read(function):
    return {step.argval for step in dis.get_instructions(function) if step.opname == "LOAD_GLOBAL"}


@pytest.mark.parametrize("module", [world, rule], ids=["world", "rule"])
def test_a_kernel_knows_no_constant_of_another_file(module):
    """An edited constant of config, beliefs or steering cannot meet a kernel compiled with the old one."""
    text = Path(module.__file__).read_text(encoding="utf-8")
    kernels = [value for value in vars(module).values() if isinstance(value, Dispatcher)]
    own = [each for each in kernels if each.py_func.__module__ == module.__name__]
    assert len(own) >= 3
    for each in own:
        for name in globals_read(each.py_func):
            value = vars(module).get(name)
            from_here = f"\n{name} = " in text or getattr(world, name, None) is value  # the digest covers `world`
            assert value is None or isinstance(value, ModuleType | Dispatcher) or from_here, name
    foreign = [each for each in kernels if each not in own]
    for each in own if foreign else []:
        if {vars(module).get(name) for name in globals_read(each.py_func)} & set(foreign):
            assert [cell.cell_contents for cell in each.py_func.__closure__] == [world.SOURCE], each


def test_a_kernel_is_compiled_anew_when_the_kernels_that_it_calls_change(tmp_path):
    kernels, caller = tmp_path / "kernels.py", tmp_path / "caller.py"
    text = (
        "from __future__ import annotations\nimport hashlib, numba\nfrom pathlib import Path\n"
        "from types import CellType, FunctionType\nSOURCE = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()\n"
        + inspect.getsource(world.kernel)
    )
    caller.write_text(
        "from kernels import kernel, number\n\n\n@kernel()\ndef twice():\n    return 2 * number()\n\n\n"
        "print(twice(), sum(twice.stats.cache_hits.values()))\n"
    )
    answers = []
    for value in (1, 1, 4):
        kernels.write_text(f"{text}\n\n@numba.njit(cache=True)\ndef number():\n    return {value}\n")
        done = subprocess.run([sys.executable, str(caller)], capture_output=True, text=True, check=True)
        answers.append(done.stdout.split())
    assert answers == [["2", "0"], ["2", "1"], ["8", "0"]]
