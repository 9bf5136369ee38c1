"""Runs of `phygail train reach-evolved`: begun, stopped, resumed, and what they leave on disk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("numba")

from phygail.cli.main import main
from phygail.config import InputError
from phygail.learning.log import read_log
from phygail.learning.run import BEST, LATEST, Score
from phygail.learning.worlds import draw_worlds
from phygail.methods.base import make_method
from phygail.methods.controller import run_episode
from phygail.methods.reach_evolved.compiled import fly_policy
from phygail.methods.reach_evolved.export import export_gates, load_gate_weights
from phygail.methods.reach_evolved.train import (
    CLONE,
    VALIDATION_SEED,
    EvolveConfig,
    evolve,
    resume_evolution,
    start_evolution,
    validation_cells,
)
from phygail.swarm.compiled import World

pytestmark = pytest.mark.xdist_group("numba")  # compiled once

TINY = EvolveConfig(
    seed=123_456, generations=4, population=4, worlds=3, validate_every=2, validation_sizes=(20,),
    validation_damage=(0.5, 0.7), validation_cases=2, clone_worlds=3, clone_passes=2,
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never disturbed."""
    folder = tmp_path_factory.mktemp("evolve") / "whole"
    evolve(start_evolution(folder, TINY, "phygail train reach-evolved --out whole"))
    return folder


def test_stopped_and_resumed_is_the_same_as_undisturbed(finished: Path, tmp_path: Path) -> None:
    evolve(start_evolution(tmp_path / "run", TINY), until=2)
    evolve(resume_evolution(tmp_path / "run"), workers=2)
    for name in (CLONE, BEST, LATEST):
        assert (tmp_path / "run" / name).read_bytes() == (finished / name).read_bytes()
    assert numbers(tmp_path / "run") == numbers(finished)


def numbers(folder: Path) -> list[dict[str, object]]:
    """The log without its clocks."""
    return [
        {key: entry[key] for key in entry if key not in ("seconds", "rate", "cpu_minutes")}
        for entry in read_log(folder)
    ]


CHILD = """
import sys
from pathlib import Path
from phygail.methods.reach_evolved.train import evolve, resume_evolution
evolve(resume_evolution(Path(sys.argv[1])))
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_killed_again_and_again_ends_like_an_undisturbed_one(finished: Path, tmp_path: Path) -> None:
    """kill -9 at several moments, resumed in a fresh process each time."""
    start_evolution(tmp_path / "run", TINY, "phygail train reach-evolved --out whole")
    for seconds in (3.0, 6.0, 9.0):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path / "run")])
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    evolve(resume_evolution(tmp_path / "run"))
    for name in (CLONE, BEST, LATEST):
        assert (tmp_path / "run" / name).read_bytes() == (finished / name).read_bytes()
    assert numbers(tmp_path / "run") == numbers(finished)


def test_log_counts_generations_and_validates_every_second(finished: Path) -> None:
    entries = read_log(finished)
    assert [entry["epoch"] for entry in entries] == [1, 2, 3, 4]
    assert ["validation" in entry for entry in entries] == [False, True, False, True]
    assert (finished / "curves.png").stat().st_size > 0


def test_best_is_the_validated_policy_with_the_fewest_steps_over_the_clone(finished: Path) -> None:
    config = load_gate_weights(finished / BEST)[3]
    scores = [entry["validation"]["over_clone"] for entry in read_log(finished) if "validation" in entry]
    assert config["validation"]["over_clone"] == min(scores)
    assert resume_evolution(finished).best == Score(None, None, **config["validation"])
    assert config["training"]["seed"] == TINY.seed
    assert config["command"] == "phygail train reach-evolved --out whole"


def test_validation_compares_with_the_clone_by_swarm_size(finished: Path) -> None:
    steps = {}
    for name in (CLONE, LATEST):
        vector, shape, belief, _ = load_gate_weights(finished / name)
        steps[name] = [fly_policy(world, vector, shape, belief) for cell in validation_cells(TINY) for world in cell]
    told = read_log(finished)[-1]["validation"]
    assert told["over_clone"] == pytest.approx(np.mean(steps[LATEST]) / np.mean(steps[CLONE]))
    assert told["mean_steps"] == pytest.approx(np.mean(steps[LATEST]))


def test_exported_policy_flies_as_it_was_trained(finished: Path, tmp_path: Path) -> None:
    vector, shape, belief, _ = load_gate_weights(finished / LATEST)
    policy = export_gates(finished / LATEST, tmp_path / "policy.onnx")
    for scenario in draw_worlds(3, 9, "export"):
        flown = run_episode(scenario, make_method("reach-evolved", policy=policy)).steps
        assert abs(flown - fly_policy(World.of(scenario), vector, shape, belief)) <= 1


def test_a_folder_with_a_run_is_not_begun_again(finished: Path) -> None:
    with pytest.raises(InputError, match="holds a run already"):
        start_evolution(finished, TINY)


def test_what_is_no_run_is_not_resumed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run of reach-evolved to resume"):
        resume_evolution(tmp_path)


@pytest.mark.parametrize("change", [{"population": 5}, {"population": 2}, {"worlds": 0}, {"belief_spread": (1.0,)}])
def test_settings_without_meaning_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        EvolveConfig(**change)  # type: ignore[arg-type]


def test_nothing_is_trained_or_validated_on_reporting_seeds() -> None:
    assert EvolveConfig().seed > 1000
    assert VALIDATION_SEED > 1000


def test_command_resumes_and_keeps_its_settings(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "reach-evolved", "--resume", str(finished)]) == 0
    assert "of its clone's steps" in capsys.readouterr().err
    assert main(["train", "reach-evolved", "--resume", str(finished), "--seed", "3"]) == 2
    assert main(["train", "reach-evolved"]) == 2
    assert json.loads((finished / "config.json").read_text())["config"]["generations"] == 4
