"""The rooms of the house import only rooms above them (DESIGN, Rooms)."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import phygail

PACKAGE = Path(phygail.__file__).parent
# One row per floor; a module may import its own floor and every floor above.
FLOORS = (
    ("config", "registry", "rng", "files", "groups", "tensors"),
    ("swarm",),
    ("perception",),
    ("models",),
    ("methods",),
    ("experts",),
    ("training",),
    ("evaluation",),
    ("envs",),
    ("web",),
    ("cli", "__main__", "__init__"),  # __init__: the front door, which opens rooms when they are asked for
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path: Path) -> list[tuple[int, str]]:
    """(line, dotted name) of every import of a file, those inside functions too."""
    package = ["phygail", *path.relative_to(PACKAGE).parts[:-1]]
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module or ""]))
            # `from phygail import methods` names a room only in its aliases.
            names = [f"phygail.{a.name}" for a in node.names] if module == "phygail" else [module]
            found += [(node.lineno, name) for name in names]
    return found


def test_every_module_stands_in_a_known_room():
    assert {room_of(path) for path in MODULES} <= set(FLOOR_OF)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_a_room_imports_only_rooms_above_it(path):
    floor = FLOOR_OF[room_of(path)]
    for line, name in imports(path):
        parts = name.split(".")
        if parts[0] == "phygail" and name != "phygail.__version__":
            room = parts[1] if len(parts) > 1 else ""
            assert room in FLOOR_OF, f"{path.name}:{line} imports {name} through the front door: name its room"
            assert FLOOR_OF[room] <= floor, f"{path.name}:{line} imports {name}"


@pytest.mark.parametrize("room", ["swarm", "perception"])
def test_the_world_needs_only_numpy_and_scipy(room):
    for path in (PACKAGE / room).rglob("*.py"):
        for line, name in imports(path):
            top = name.split(".")[0]
            assert top in {"phygail", "numpy", "scipy"} | sys.stdlib_module_names, f"{path.name}:{line} imports {name}"


def test_the_front_door_opens_no_room_by_itself():
    code = "import sys, phygail; sys.exit(any(name.startswith('phygail.') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("module", ["phygail.methods", "phygail.cli.main"])
def test_torch_is_not_imported_with(module):
    """A light install has no torch: what the command line and the methods need of it they import when they use it."""
    if not (PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py").exists() or module == "phygail.methods"):
        pytest.skip(f"{module} is not there yet")
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_import_reader_sees_lazy_and_relative_imports(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    (tmp_path / "swarm").mkdir()
    file = tmp_path / "swarm" / "x.py"
    file.write_text("def f():\n    from ..methods import sidr\n    from . import links\n    import torch.nn\n")
    assert imports(file) == [(2, "phygail.methods"), (3, "phygail.swarm"), (4, "torch.nn")]
