"""swarm.soak: the check of a soak shares no code with the world that it judges."""

import ast
import inspect

import numpy as np
import pytest

from phygail.swarm import soak

CASES = {"soak_case", "is_split"}


def test_the_check_uses_nothing_of_the_world():
    """It may use numpy and its own functions, but no name that the module imports from the package."""
    tree = ast.parse(inspect.getsource(soak))
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("phygail")
        for alias in node.names
    }
    defined = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    used = {
        name: {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)} for name, node in defined.items()
    }
    assert used["is_split"] & imported  # the reader of names sees them
    found, todo = set(), {"faults", "world_faults"}
    while todo:
        name = todo.pop()
        found.add(name)
        todo |= (used[name] & set(defined)) - found
    assert not {name: used[name] & imported for name in found if used[name] & imported}
    assert not found & CASES


def slow_contact(trace, present, contact_m):
    """Every pair in every step, a hundred instants each."""
    worst = 0.0
    for i in range(trace.shape[1]):
        for j in range(i):
            if not (present[0, i] and present[0, j]):
                continue
            allowed = min(contact_m, np.hypot(*(trace[0, i] - trace[0, j])))
            for t in range(len(trace) - 1):
                if present[t + 1, i] and present[t + 1, j]:
                    shares = np.linspace(0.0, 1.0, 101)[:, None]
                    apart = (1 - shares) * (trace[t, i] - trace[t, j]) + shares * (trace[t + 1, i] - trace[t + 1, j])
                    worst = max(worst, allowed - np.hypot(*apart.T).min())
    return worst


@pytest.mark.parametrize("seed", range(6))
def test_pairs_that_are_not_looked_at_are_not_the_closest(seed):
    """Steps of up to 12 m among 7 UAVs on 60 m, some of them lost on the way; instants miss at most 0.06 m."""
    rng = np.random.default_rng(seed)
    trace = rng.uniform(0.0, 60.0, (1, 7, 2)) + np.cumsum(rng.uniform(-6.0, 6.0, (9, 7, 2)), axis=0)
    present = np.arange(9)[:, None] < rng.integers(3, 12, 7)
    wanted = slow_contact(trace, present, 10.0)
    assert wanted - 1e-9 <= soak._contact(np.where(present[..., None], trace, 0.0), present, 10.0) <= wanted + 0.06


def test_a_pair_that_crosses_within_a_step_is_seen():
    """Two UAVs 20 m apart pass through each other in one step; they end as far apart as they began."""
    trace = np.array([[[0.0, 0.0], [20.0, 0.0]], [[20.0, 0.0], [0.0, 0.0]]])
    assert soak._contact(trace, np.ones((2, 2), dtype=bool), 10.0) == pytest.approx(10.0)
