"""Files that version 0.1.0 wrote (tests/data/v0.1.0, made by its make.sh) are read and flown by this version.

Those with names that mean something else now are renamed first, by results/rename_methods.py (`test_names.py`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from phygail.experiments.catalog import EXPERIMENTS
from phygail.experiments.reproduce import report_text
from phygail.experiments.rows import read_rows, rows_table
from phygail.experiments.statistics import load_evidence, summarize
from phygail.methods.controller import fly_case
from phygail.methods.cr_ma import load_actor
from phygail.methods.phygail import load_policy
from phygail.methods.reach_evolved import load_gates
from phygail.swarm.scenario import load_scenarios

ROOT = Path(__file__).parent.parent
OLD = Path(__file__).parent / "data" / "v0.1.0"
RENAMED = ("compare", "reproduce", "train-paper", "train-evolve")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy with the names of today."""
    copy = tmp_path_factory.mktemp("old") / "v0.1.0"
    shutil.copytree(OLD, copy)
    command = [sys.executable, ROOT / "results" / "rename_methods.py", *(copy / name for name in RENAMED)]
    assert subprocess.run(command, check=False).returncode == 0
    return copy


def test_a_scenario_file():
    first, second = load_scenarios(OLD / "scenarios.json")
    assert [len(scenario.layout) for scenario in (first, second)] == [20, 20]
    assert len(first.damaged) == 10


def test_rows_of_a_comparison(folder):
    rows = read_rows(folder / "compare" / "rows.csv")
    assert len(rows) == 10
    assert all(row["converged"] for row in rows)
    assert summarize(rows_table(rows)).height == 5
    record = json.loads((folder / "compare" / "run.json").read_text())
    assert record["config"]["methods"] == sorted({row["method"] for row in rows})


def test_the_folder_of_an_experiment(folder):
    experiment = EXPERIMENTS.get("overall")
    assert load_evidence(experiment, folder / "reproduce").rows.height == 2
    assert "| `sidr` | 1 |" in report_text(experiment, folder / "reproduce")


def test_an_expert_database():
    pytest.importorskip("h5py")
    from phygail.methods.phygail.experts.dataset import ExpertSet

    experts = ExpertSet.open(OLD / "experts.h5")
    assert (len(experts.training), len(experts.held_out)) == (9, 1)
    assert len(experts.held_out.scenarios) == 1


def test_a_run_of_the_papers_training_goes_on(folder):
    pytest.importorskip("h5py")
    pytest.importorskip("torch")
    from phygail.methods.phygail.train import resume_run, train

    run = resume_run(folder / "train-paper", folder / "experts.h5")
    assert (run.learner.epoch, run.config.epochs, run.config.width) == (2, 2, 8)
    assert train(run, tensorboard=False) is not None  # nothing is left to do: the best so far comes back


def test_a_run_of_the_evolution_goes_on(folder):
    pytest.importorskip("torch")
    pytest.importorskip("numba")
    from phygail.learning.run import Score
    from phygail.methods.reach_evolved.train import resume_evolution

    run = resume_evolution(folder / "train-evolve")
    assert (run.search.generation, run.config.population) == (2, 4)
    assert run.best == Score(None, None, 14.0, over_clone=1.0)  # as in its best.json


def test_weights_of_simple_trainings():
    pytest.importorskip("torch")
    from phygail.methods.gdr_ts import load_policy_weights

    assert load_actor(OLD / "cr-ma.safetensors")(np.zeros((3, 20))).shape == (3, 2)
    assert load_policy_weights(OLD / "gdr-ts.safetensors")


@pytest.mark.parametrize(("file", "name"), [("paper.onnx", "phygail-taught"), ("evolved.onnx", "reach-evolved")])
def test_policy_files_fly(file, name):
    """The kind `phygail` of old policy files goes on meaning the evolved rule."""
    scenario = load_scenarios(OLD / "scenarios.json")[0]
    episode, method = fly_case(scenario, name, policy=OLD / file)
    assert method.name == name
    assert 0 < episode.metrics.max_speed_mps <= 10
    if name == "phygail-taught":  # in single precision, as ever
        assert episode.metrics.distance_m_per_uav == pytest.approx(0.468222, abs=1e-5)


@pytest.mark.slow  # tests of the export itself export other weights
def test_weights_of_the_papers_training_become_a_policy_file_again(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    from phygail.methods.phygail.export import export_weights

    export_weights(OLD / "train-paper" / "best.safetensors", tmp_path / "paper.onnx")
    assert load_policy(tmp_path / "paper.onnx").graph_spec == load_policy(OLD / "paper.onnx").graph_spec


def test_weights_of_the_evolution_become_a_policy_file_again(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("onnx")
    from phygail.methods.reach_evolved.export import export_gates

    export_gates(OLD / "train-evolve" / "best.safetensors", tmp_path / "evolved.onnx")
    assert load_gates(tmp_path / "evolved.onnx").belief == load_gates(OLD / "evolved.onnx").belief
