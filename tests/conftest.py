"""What tests of several rooms share, and how they are shared among processes."""

import collections
import contextlib
import functools
import gc
import hashlib
import importlib
import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What properties draw is the same every time, so that a change fails for what it changed; make test-slow draws anew.
# Slow examples are no failure: the machine may be busy.
settings.register_profile("drawn", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fixed", parent=settings.get_profile("drawn"), derandomize=True, max_examples=40)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

ROOT = Path(__file__).parent.parent
os.environ.setdefault("POLARS_MAX_THREADS", "1")  # two processes share two cores
gc.disable()  # while modules are imported, of which nothing becomes garbage


def pytest_collection_finish(session):
    """Nobody looks for garbage among modules and tests, and not after every few hundred objects."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@functools.cache
def unit(file: str) -> str:
    """The unit of work of a test file: its xdist_group, itself if its tests share what took time, else nothing.

    The controller of xdist sees names only, and pytest 9.2 no longer lets xdist write groups into them.
    """
    text = (ROOT / file).read_text(encoding="utf-8")
    group = re.search(r'^pytestmark = .*xdist_group\("(\w+)"\)', text, re.MULTILINE)
    if group:
        return group[1]
    return file if re.search(r'scope="module"|^@cache$|^@functools.cache$', text, re.MULTILINE) else ""


# The longest units first, so that both processes end together; the browser's, which waits for frames, beside mypy.
FIRST = (
    "browser",
    "export",
    "numba",
    "commands",
    "tests/methods/test_aggregation.py",
    "tests/experiments/test_engine.py",
)
CHUNK = 8  # tests of other files that go to a process at once: one by one it would wait for the next


def pytest_collection_modifyitems(config, items):
    """Units by name, then files that share what took time, then the rest, in both processes alike."""
    if hasattr(config, "workerinput"):
        ranks = {name: rank for rank, name in enumerate(FIRST)}
        names = [unit(item.nodeid.partition("::")[0]) for item in items]
        order = [(ranks.get(name, len(ranks) + (not name)), k) for k, name in enumerate(names)]
        items[:] = [items[k] for _, k in sorted(order)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Whole units, then tests of the other files a few at a time: `pytest -n 2 --dist loadgroup`."""
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def __init__(self, *given):
            super().__init__(*given)
            self._scopes, self._sizes = {}, collections.Counter()

        def _split_scope(self, nodeid):
            if nodeid not in self._scopes:
                file = nodeid.partition("::")[0]
                self._scopes[nodeid] = unit(file) or f"{file} {self._sizes[file] // CHUNK}"
                self._sizes[file] += 1
            return self._scopes[nodeid]

    config.option.loadscopereorder = False  # the order is that of the collection
    return Units(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture(scope="session", autouse=True)
def parsed_once():
    """Commands are parsed hundreds of times here: Tyro reads their docstrings once, Python what is installed once."""
    import importlib.metadata

    from tyro import _docstrings

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(importlib.metadata, "entry_points", functools.cache(importlib.metadata.entry_points))
        if reader := getattr(_docstrings, "_ClassTokenization", None):  # of this version of Tyro
            patched.setattr(reader, "make", staticmethod(functools.cache(reader.make)))
        yield


@pytest.fixture(scope="session")
def cp():
    """An oracle that takes seconds to import: only who runs its tests does."""
    return pytest.importorskip("cvxpy")


@pytest.fixture(scope="session")
def geometric():
    """An oracle that takes seconds to import: only who runs its tests does."""
    return pytest.importorskip("torch_geometric.nn")


KERNELS = ("swarm.compiled", "methods.phygail.plus_batch", "methods.reach_evolved.compiled",
           "methods.reach_evolved.twin", "methods.reach_evolved.twin_world")  # fmt: skip


@pytest.fixture(scope="module")
def uncompiled():
    """Python runs the kernels in this file: Numba compiles them for half a minute, which only slow tests await."""
    from numba.core.dispatcher import Dispatcher

    with pytest.MonkeyPatch.context() as patched:
        for module in [importlib.import_module(f"phygail.{name}") for name in KERNELS]:
            for name, value in list(vars(module).items()):
                if isinstance(value, Dispatcher):
                    patched.setattr(module, name, value.py_func)
        yield


class Here:
    """An engine without processes: their start would take longer than short flights."""

    def __init__(self, workers=1):
        from phygail.config import InputError  # here: most tests need none of it

        if workers < 1:
            raise InputError(f"{workers} workers: choose at least 1")

    def start(self, job):
        from phygail.config import InputError
        from phygail.experiments.engine import RefusedError
        from phygail.experiments.rows import case_reader, prepare

        try:
            prepare(job)
        except InputError as error:
            raise RefusedError(str(error)) from error
        self.job, self.read_case = job, case_reader(job)

    def run(self, tasks):
        from phygail.experiments.rows import fly_task

        for task in tasks:
            yield [fly_task(self.job, task, self.read_case)]

    def stop(self):
        pass


@pytest.fixture(scope="session")
def here():
    """Flies in the process of the test."""
    return Here()


@pytest.fixture(scope="module")
def no_processes():
    """Comparisons of this file fly in the process of the test; tests/experiments/test_engine.py starts workers."""
    with pytest.MonkeyPatch.context() as patched:
        # The engine last: who imports it meanwhile for good must not get this one.
        patched.setattr("phygail.experiments.runner.LocalEngine", Here)
        patched.setattr("phygail.experiments.engine.LocalEngine", Here)
        yield


@pytest.fixture(scope="module")
def typed(no_processes):
    """A function that runs a line as a user types it in a folder and gives its exit code; the process is this one."""
    from phygail.cli.main import main
    from phygail.methods import METHODS

    def run(line, folder):
        with contextlib.chdir(folder):
            try:
                return main(shlex.split(line.removeprefix("phygail ")))
            except SystemExit as end:  # --help
                return end.code or 0

    known, loaded = dict(METHODS._entries), set(sys.modules)
    yield run
    METHODS._entries.clear()
    METHODS._entries.update(known)
    for name in [name for name in set(sys.modules) - loaded if name.startswith("phygail_plugin_")]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def no_figures():
    """Spares the half second that figures of a comparison take; tests/cli/test_commands.py looks at them."""
    import phygail.experiments.reproduce  # noqa: F401  # it must not meet the patch when it is imported

    with pytest.MonkeyPatch.context() as patched:
        for name in ("draw_curves", "draw_over_bound"):
            patched.setattr(f"phygail.experiments.figures.{name}", lambda rows, path: None)
        yield


@pytest.fixture(scope="module")
def no_learning_curves():
    """Trainings of this file end without their picture, half a second each; test_train.py of phygail looks at one."""
    pytest.importorskip("torch")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("phygail.learning.run.draw_curves", lambda folder, panels: None)
        yield


# Graphs that torch exported, by the shape of their network: an export takes seconds, and export_actor holds every file
# against torch, so that a stale graph or a weight in a wrong place does not pass. To write them anew, when the network
# or torch has changed: remove the folder, then PHYGAIL_DRAFTS=write pytest -n0 over files that use `exported_once`.
DRAFTS = Path(__file__).parent / "data" / "drafts"


@pytest.fixture(scope="module")
def exported_once():
    """Policies of the shapes in tests/data/drafts are made of these graphs; torch exports the others."""
    pytest.importorskip("torch")
    from phygail.methods.phygail import export

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(export, "_to_onnx", functools.partial(_filled, export._to_onnx))
        yield


def _filled(to_onnx, module, graph):
    import numpy as np
    import onnx
    from onnx import numpy_helper

    state = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    shape = f"{module}{module.actor.encoder.spec}{module.actor.command}{graph.edge is None}{graph.mask.shape[1]}"
    file = DRAFTS / f"{hashlib.sha256(shape.encode()).hexdigest()[:12]}.onnx"
    if not file.exists():
        model = to_onnx(module, graph)
        if os.environ.get("PHYGAIL_DRAFTS") == "write":
            draft = onnx.ModelProto()
            draft.CopyFrom(model)
            for entry in draft.graph.initializer:
                if parts := _made_of(entry, state):  # the names instead of the numbers
                    entry.ClearField("raw_data")
                    entry.doc_string = " ".join(parts)
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(draft.SerializeToString())
        return model
    model = onnx.load_model_from_string(file.read_bytes())
    for entry in model.graph.initializer:
        if entry.doc_string:
            values = np.concatenate([state[name] for name in entry.doc_string.split()])
            entry.CopyFrom(numpy_helper.from_array(values, entry.name))
    return model


def _made_of(entry, state):
    """Parameters whose rows, one below the other, are a weight of the graph; () for a constant."""
    import numpy as np
    from onnx import numpy_helper

    if entry.name in state:
        return (entry.name,)
    values = numpy_helper.to_array(entry)
    if values.ndim == 0 or values.dtype.kind != "f":
        return ()
    for name, first in state.items():
        if first.shape[1:] == values.shape[1:] and np.array_equal(values[: len(first)], first):
            for other, second in state.items():
                if np.array_equal(values[len(first) :], second):
                    return name, other
    return ()
