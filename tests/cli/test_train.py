"""`phygail train`: what it refuses, and that every registered training can be built."""

import importlib

import pytest

from phygail.cli.train import TRAINABLES, Train
from phygail.config import InputError
from phygail.training import cr_mgc


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


@pytest.mark.parametrize("name", list(TRAINABLES))
def test_every_training_names_a_config_with_a_seed_and_a_job(name):
    entry = TRAINABLES.get(name)
    module = importlib.import_module(entry.module)
    assert getattr(module, entry.config)().seed >= 100_000
    assert callable(module.job)


def test_a_tiny_training_runs_to_its_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cr_mgc, "VALIDATION_DAMAGE", (0.5,))
    monkeypatch.setattr(cr_mgc, "VALIDATION_CASES", 1)
    settings = ("iterations=1", "tasks=2", "pairs=1", "online=1")
    assert Train("cr-mgc", out=tmp_path / "w.safetensors", set=settings).run() == 0
    assert {path.suffix for path in tmp_path.iterdir()} == {".safetensors", ".json", ".jsonl"}
    assert "success" in capsys.readouterr().out
