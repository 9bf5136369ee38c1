"""Files that version 0.1.0 wrote (tests/data/v0.1.0, made by its make.sh) are read and flown by this version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from phygail.evaluation.catalog import EXPERIMENTS
from phygail.evaluation.evidence import load_evidence
from phygail.evaluation.flight import fly_case
from phygail.evaluation.report import report_text
from phygail.evaluation.rows import frame, read_rows
from phygail.evaluation.summary import summarize
from phygail.methods.cr_ma import load_actor
from phygail.models.gate_runtime import load_gates
from phygail.models.runtime import load_policy
from phygail.swarm.scenario import load_scenarios

OLD = Path(__file__).parent / "data" / "v0.1.0"


@pytest.fixture
def folder(tmp_path):
    """A copy that a test may write to."""
    shutil.copytree(OLD, tmp_path / "old")
    return tmp_path / "old"


def test_a_scenario_file():
    first, second = load_scenarios(OLD / "scenarios.json")
    assert [len(scenario.layout) for scenario in (first, second)] == [20, 20]
    assert len(first.damaged) == 10


def test_rows_of_a_comparison():
    rows = read_rows(OLD / "compare" / "rows.csv")
    assert len(rows) == 10
    assert {row["version"] for row in rows} == {"0.1.0"}
    assert all(row["converged"] for row in rows)
    assert summarize(frame(rows)).height == 5
    record = json.loads((OLD / "compare" / "run.json").read_text())
    assert record["config"]["methods"] == sorted({row["method"] for row in rows})


def test_the_folder_of_an_experiment():
    experiment = EXPERIMENTS.get("overall")
    assert load_evidence(experiment, OLD / "reproduce").rows.height == 2
    assert "| `sidr` | 1 |" in report_text(experiment, OLD / "reproduce")


def test_an_expert_database():
    pytest.importorskip("h5py")
    from phygail.experts.dataset import ExpertSet

    experts = ExpertSet.open(OLD / "experts.h5")
    assert (len(experts.training), len(experts.held_out)) == (9, 1)
    assert len(experts.held_out.scenarios) == 1


def test_a_run_of_the_papers_training_goes_on(folder):
    pytest.importorskip("h5py")
    pytest.importorskip("torch")
    from phygail.training.run import resume_run
    from phygail.training.trainer import train

    run = resume_run(folder / "train-paper", folder / "experts.h5")
    assert (run.learner.epoch, run.config.epochs, run.config.width) == (2, 2, 8)
    assert train(run, tensorboard=False) is not None  # nothing is left to do: the best so far comes back


def test_a_run_of_the_evolution_goes_on(folder):
    pytest.importorskip("torch")
    pytest.importorskip("numba")
    from phygail.training.evolve_run import resume_evolution

    run = resume_evolution(folder / "train-evolve")
    assert (run.search.generation, run.config.population) == (2, 4)
    assert np.isfinite(run.best)


def test_weights_of_simple_trainings():
    pytest.importorskip("torch")
    from phygail.methods.gdr_ts import load_policy_weights

    assert load_actor(OLD / "cr-ma.safetensors")(np.zeros((3, 20))).shape == (3, 2)
    assert load_policy_weights(OLD / "gdr-ts.safetensors")


@pytest.mark.parametrize(("file", "method"), [("paper.onnx", "phygail-paper"), ("evolved.onnx", "phygail")])
def test_policy_files_fly(file, method):
    scenario = load_scenarios(OLD / "scenarios.json")[0]
    episode, pilot = fly_case(scenario, method, policy=OLD / file)
    assert pilot.name == method
    assert 0 < episode.metrics.max_speed_mps <= 10


def test_weights_become_policy_files_again(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    from phygail.models.export import export_weights
    from phygail.models.gate_export import export_gates

    export_weights(OLD / "train-paper" / "best.safetensors", tmp_path / "paper.onnx")
    assert load_policy(tmp_path / "paper.onnx").graph_spec == load_policy(OLD / "paper.onnx").graph_spec
    export_gates(OLD / "train-evolve" / "best.safetensors", tmp_path / "evolved.onnx")
    assert load_gates(tmp_path / "evolved.onnx").belief == load_gates(OLD / "evolved.onnx").belief
