"""swarm.soak: the check of a soak shares no code with the world that it judges."""

import ast
import inspect

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
