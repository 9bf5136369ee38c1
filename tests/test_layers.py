"""The house is cut by method: rooms import only what stands left of them, and no method folder imports another.

root < swarm < sensing < render < methods/*.py < learning < methods/*/ < experiments < benchmark < envs < web < cli
"""

import ast
import functools
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import phygail

PACKAGE = Path(phygail.__file__).parent
ROOT, RULES, FOLDERS = "the root", "methods/*.py", "methods/*/"
FLOORS = (
    ROOT,
    "swarm",
    "sensing",
    "render",
    RULES,
    "learning",
    FOLDERS,
    "experiments",
    "benchmark",
    "envs",
    "web",
    "cli",
)
FRONT = ("__init__", "__main__")  # the front door opens rooms when they are asked for
MOST_FILES = 130
MOST_IN_A_FOLDER = 20
LINES = range(60, 451)  # of a file; a rule, a command, an __init__ and the root may be shorter
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(parts: tuple[str, ...]) -> str:
    """The floor of a module, by its dotted name below phygail."""
    if parts[0] != "methods":
        return parts[0] if len(parts) > 1 or ((PACKAGE / parts[0]).is_dir() and parts[0] in FLOORS) else ROOT
    return FOLDERS if len(parts) > 1 and (PACKAGE / "methods" / parts[1]).is_dir() else RULES


def name_of(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts


@functools.cache
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


def own_imports(path: Path) -> list[tuple[int, tuple[str, ...]]]:
    return [
        (line, tuple(name.split(".")[1:]))
        for line, name in imports(path)
        if name.startswith("phygail.") and name != "phygail.__version__"
    ]


def test_every_module_stands_in_a_known_room():
    assert {room_of(name_of(path)) for path in MODULES} <= set(FLOORS)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_a_room_imports_only_rooms_left_of_it(path):
    if name_of(path)[0] in FRONT:
        return
    floor = FLOORS.index(room_of(name_of(path)))
    for line, target in own_imports(path):
        assert FLOORS.index(room_of(target)) <= floor, f"{path.name}:{line} imports phygail.{'.'.join(target)}"


def test_method_folders_never_import_each_other():
    for path in MODULES:
        name = name_of(path)
        if room_of(name) == FOLDERS:
            for line, target in own_imports(path):
                assert room_of(target) != FOLDERS or target[1] == name[1], f"{path}:{line} imports {target}"


def test_no_module_imports_itself_in_a_circle():
    """Imports inside functions count; a package's `__init__` is a module like any other."""
    known = {name_of(path) for path in MODULES}
    graph = {name_of(path): {t for _, t in own_imports(path) if t in known} - {name_of(path)} for path in MODULES}
    graph = {name: targets for name, targets in graph.items() if name[0] not in FRONT}
    assert len(list(TopologicalSorter(graph).static_order())) >= len(graph)


def test_the_house_is_small_enough_to_know():
    assert len(MODULES) <= MOST_FILES
    folders = Counter(path.parent for path in MODULES)
    assert max(folders.values()) <= MOST_IN_A_FOLDER, folders.most_common(1)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_a_file_is_neither_a_fragment_nor_a_heap(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    may_be_short = path.name == "__init__.py" or room_of(name_of(path)) in (ROOT, RULES, "cli") or path.stem in SHORT
    assert lines < LINES.stop
    assert lines >= LINES.start or may_be_short


SHORT = {"tables": "all that tables have in common"}


@pytest.mark.parametrize("room", ["swarm", "sensing"])
def test_the_world_needs_only_numpy_and_scipy(room):
    for path in (PACKAGE / room).rglob("*.py"):
        for line, name in imports(path):
            top = name.split(".")[0]
            allowed = {"phygail", "numpy", "scipy"} | sys.stdlib_module_names
            assert top in allowed | COMPILED.get(path.stem, set()), f"{path.name}:{line} imports {name}"


COMPILED = {"compiled": {"numba"}}  # only trainings and long trials import it


def test_only_trainings_and_long_trials_import_compiled_code():
    for path in MODULES:
        if {("swarm", "compiled")} & {target[:2] for _, target in own_imports(path)}:
            assert path.stem in {
                "compiled",
                "train",
                "rollout",
                "rewards",
                "plus_batch",
                "soak",
                "twin",
                "twin_world",
            }, path


def test_the_front_door_opens_no_room_by_itself():
    code = "import sys, phygail; sys.exit(any(name.startswith('phygail.') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("module", ["phygail.methods", "phygail.cli.main"])
def test_torch_is_not_imported_with(module):
    """A light install has no torch: what the command line and the methods need of it they import when they use it."""
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_import_reader_sees_lazy_and_relative_imports(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    (tmp_path / "swarm").mkdir()
    file = tmp_path / "swarm" / "x.py"
    file.write_text("def f():\n    from ..methods import sidr\n    from . import links\n    import torch.nn\n")
    assert imports(file) == [(2, "phygail.methods"), (3, "phygail.swarm"), (4, "torch.nn")]


def test_tests_mirror_the_tree():
    """tests/A/B/test_C.py or test_C_PART.py tests phygail/A/B/C.py; test_B.py the folder's own `__init__`."""
    home = Path(__file__).parent
    for path in home.rglob("test_*.py"):
        folder = path.parent.relative_to(home)
        if folder == Path() or path.stem in WHOLE:
            continue
        words = path.stem.removeprefix("test_").split("_")
        stems = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
        source = PACKAGE / folder
        assert any((source / f"{stem}.py").exists() or stem == source.name for stem in stems), path


@pytest.mark.parametrize(
    ("file", "unit"),
    [
        ("tests/methods/reach_evolved/test_train.py", "numba"),
        ("tests/web/test_build_page.py", "browser"),
        ("tests/methods/test_scale.py", "tests/methods/test_scale.py"),  # its flights are kept
        ("tests/test_rng.py", ""),
    ],
)
def test_files_whose_tests_share_something_are_flown_by_one_process(file, unit, request):
    (here,) = (p for p in request.config.pluginmanager.get_plugins() if hasattr(p, "pytest_xdist_make_scheduler")
               and hasattr(p, "unit"))  # fmt: skip
    assert here.unit(file) == unit


# Tests of a whole room.
WHOLE = {
    "test_generic",
    "test_scale",
    "test_aggregation",
    "test_bad_input",
    "test_commands",
    "test_radio",
    "test_plugins",
    "test_golden",
    "test_golden_page",
}
