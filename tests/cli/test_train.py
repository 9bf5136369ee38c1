"""`phygail train`: what it refuses, and that every registered training can be built."""

import importlib
import inspect

import pytest

from phygail.cli.main import SPECIAL
from phygail.cli.train import Train
from phygail.config import InputError
from phygail.methods import METHODS
from phygail.methods.gcn_planners import train as planners


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (Train("cr-mcg"), "did you mean 'cr-mgc'"),
        (Train("cr-mgc", profile="slow"), "choose fast or faithful"),
        (Train("cr-ma", profile="fast"), "has no profiles"),
        (Train("cr-mgc", seed=-1), "--seed -1"),
        (Train("cr-mgc", set=("iteration=3",)), "iterations"),
        (Train("cr-mgc", set=("iterations=x",)), "whole number"),
    ],
)
def test_bad_input_gets_one_clear_line(command, message):
    with pytest.raises(InputError, match=message):
        command.make_job()


def test_an_output_that_is_no_weights_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"\.safetensors"):
        Train("cr-mgc", out=tmp_path / "weights.pt").run()


TRAINED = [name for name in METHODS if METHODS.get(name).training]


@pytest.mark.parametrize("name", TRAINED)
def test_a_method_names_what_trains_it(name):
    module, _, job = METHODS.get(name).training.partition(":")
    made = getattr(importlib.import_module(module), job)
    if ("train", name) not in SPECIAL and name not in ("phygail-taught", "reach-cloned"):
        assert inspect.signature(made).parameters["config"].default.seed >= 100_000


def test_what_learns_nothing_has_no_training():
    assert TRAINED
    assert all(METHODS.get(name).learned for name in TRAINED)
    with pytest.raises(InputError, match="'sidr' has no training: there are"):
        Train("sidr").make_job()


def test_a_tiny_training_runs_to_its_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(planners, "VALIDATION_DAMAGE", (0.5,))
    monkeypatch.setattr(planners, "VALIDATION_CASES", 1)
    settings = ("iterations=1", "tasks=2", "pairs=1", "online=1")
    assert Train("cr-mgc", out=tmp_path / "w.safetensors", set=settings).run() == 0
    assert {path.suffix for path in tmp_path.iterdir()} == {".safetensors", ".json", ".jsonl"}
    assert "success" in capsys.readouterr().out
