"""Every file in examples/ runs and says something; one that trains says that it learned."""

from __future__ import annotations

import importlib.util
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from phygail.methods import METHODS

pytestmark = pytest.mark.xdist_group("commands")  # long ones: begun before the many short tests
FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
# Trainings, and how much less of them shows that they run: the slow tests run them whole.
BRIEFLY = {"pettingzoo_tiny_policy": {"GENERATIONS": 1, "HELD_OUT": 2},
           "train_with_sb3": {"AGENT_STEPS": 1_536, "HELD_OUT": 2}}  # fmt: skip
NEEDS = {"train_with_sb3": ("supersuit", "stable_baselines3")}  # beyond what phygail brings


def test_an_example_is_a_script(tmp_path: Path) -> None:
    assert run(FOLDER / "one_episode.py", tmp_path).strip()


@pytest.mark.usefixtures("no_processes")
@pytest.mark.parametrize("example", [path for path in EXAMPLES if path.stem not in BRIEFLY], ids=lambda path: path.stem)
def test_example_runs(example: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(example)])
    monkeypatch.setattr(METHODS, "_entries", dict(METHODS._entries))  # one registers a method
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("name", BRIEFLY)
def test_example_trains(name: str, monkeypatch, capsys) -> None:
    """What it prints before a training and after a brief one."""
    for module in NEEDS.get(name, ()):
        pytest.importorskip(module)
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    for setting, value in BRIEFLY[name].items():
        assert value < getattr(example, setting)
        monkeypatch.setattr(example, setting, value)
    example.main()
    before, after = capsys.readouterr().out.splitlines()
    assert before.startswith("before ")
    assert after.startswith("after ")
    assert before != after


@pytest.mark.slow
@pytest.mark.timeout(620)  # stable-baselines3 takes half a minute on a quiet machine
@pytest.mark.parametrize(("name", "better"), [("pettingzoo_tiny_policy", 0), ("train_with_sb3", 30)])
def test_example_learns(name: str, better: int, tmp_path: Path) -> None:
    for module in NEEDS.get(name, ()):
        pytest.importorskip(module)
    said = run(FOLDER / f"{name}.py", tmp_path)
    before, after = (int(line.rsplit(" ", 1)[1].rstrip("%")) for line in said.splitlines())
    assert after >= before + better  # percent of held-out scenarios that were reconnected


def run(example: Path, folder: Path) -> str:
    """What an example prints in a process of its own."""
    done = subprocess.run([sys.executable, str(example)], cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout
