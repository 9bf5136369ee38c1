"""How many files a question leads to: python benchmarks/files_per_question.py

While a thing runs, the files of the package whose functions are called are counted; what runs on import is left out.
So many files must a reader open to follow one epoch of the paper's training, one row of `compare` (parent and worker,
with table and figure) or `reproduce ablation` (in the parent). Each has its limit; `--list` names the files.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pkgutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from multiprocessing import Pipe
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import phygail
from phygail.cli.main import main as phygail_main
from phygail.experiments.engine import serve
from phygail.experiments.grid import Grid
from phygail.experiments.rows import Job, Task
from phygail.learning.run import override
from phygail.methods.phygail.config import PROFILES
from phygail.methods.phygail.experts.database import concatenate, pack, write_archive
from phygail.methods.phygail.experts.recipe import Recipe, demonstrate
from phygail.methods.phygail.train import start_run, train

PACKAGE = str(Path(phygail.__file__).parent) + os.sep
LIMITS = {"one epoch": 26, "one row of compare": 30, "reproduce ablation": 50}
SMALL = ("worlds=2", "horizon=6", "batch_graphs=12", "ppo_epochs=1", "validate_every=1", "validation_cases=1")
CASE = ("--uavs", "20", "--damage", "0.5", "--cases", "1", "--workers", "1")


@contextlib.contextmanager
def files_called() -> Iterator[set[str]]:
    """Files, relative to the package, whose functions this thread calls inside the block."""
    for module in pkgutil.walk_packages(phygail.__path__, "phygail."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)  # before it counts: what runs on import is nobody's answer
    codes: set[CodeType] = set()

    def see(called: FrameType, event: str, _: Any) -> None:
        if event == "call":
            codes.add(called.f_code)

    found: set[str] = set()
    sys.setprofile(see)
    try:
        yield found
    finally:
        sys.setprofile(None)
        called = {code.co_filename for code in codes if code.co_name != "<module>"}
        found |= {name.removeprefix(PACKAGE) for name in called if name.startswith(PACKAGE)}


def make_experts(folder: Path) -> Path:
    """A database of three demonstrations."""
    recipe = Recipe("toy", ("sidr",), damage=(0.5,), cases=3)
    packed = [pack(demonstrate(recipe, number)) for number in range(len(recipe))]
    write_archive(folder / "experts.h5", concatenate(packed), recipe.config(), {})
    return folder / "experts.h5"


def one_epoch(folder: Path) -> set[str]:
    """Algorithm 1 once: two worlds of six steps, the networks of the smoke profile."""
    run = start_run(folder / "run", make_experts(folder), override(PROFILES.get("smoke"), ("epochs=1", *SMALL)))
    with files_called() as found:
        train(run, tensorboard=False)
    return found


def one_row(folder: Path) -> set[str]:
    """`phygail compare` with one scenario and one method: what the parent does, and what its worker does."""
    with files_called() as parent:
        assert phygail_main(["compare", *CASE, "--methods", "sidr", "--out", str(folder / "rows")]) == 0
    near, far = Pipe()

    def ask() -> None:
        near.send(Job(Grid((20,), (0.5,), 1), ("sidr",)))
        near.recv()
        near.send(Task(0, "sidr"))
        near.recv()
        near.close()

    asking = threading.Thread(target=ask)
    asking.start()
    here = signal.getsignal(signal.SIGINT)
    with files_called() as worker:
        serve(os.dup(far.fileno()), os.getppid())
    signal.signal(signal.SIGINT, here)  # a worker leaves Ctrl-C to its parent; this process is none
    asking.join()
    return parent | worker


def ablation(folder: Path) -> set[str]:
    """`phygail reproduce ablation` in the parent: trainings, flights, tables and figures."""
    settings = [word for setting in SMALL for word in ("--set", setting)]
    training = ("--experts", str(make_experts(folder)), "--profile", "smoke", "--epochs", "1", *settings)
    words = ["reproduce", "ablation", *CASE, *training, "--variants", "full,gcn", "--out", str(folder / "ablation")]
    with files_called() as found:
        assert phygail_main(words) == 0
    return found


QUESTIONS = {"one epoch": one_epoch, "one row of compare": one_row, "reproduce ablation": ablation}


def main() -> None:
    for question, limit in LIMITS.items():
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            found = QUESTIONS[question](Path(folder))
        print(f"{question}: {len(found)} files, at most {limit}")
        if "--list" in sys.argv:
            print(*(f"    {name}" for name in sorted(found)), sep="\n")


if __name__ == "__main__":
    main()
