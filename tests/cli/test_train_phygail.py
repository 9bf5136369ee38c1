"""`phygail train phygail`: what a user gets wrong is one line, and a tiny run works from start to curves."""

import json

import pytest

from phygail.cli.main import main
from phygail.methods.phygail.experts.database import concatenate, pack, write_archive
from phygail.methods.phygail.experts.recipe import Recipe, demonstrate

TRAIN = ("train", "phygail")
SETTINGS = "worlds=2 horizon=3 batch_graphs=6 ppo_epochs=1 width=8 layers=1 validate_every=9"
TINY = [word for setting in SETTINGS.split() for word in ("--set", setting)]


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    recipe = Recipe("toy", ("sidr",), damage=(0.5,), cases=2)
    path = tmp_path_factory.mktemp("experts") / "toy.h5"
    write_archive(path, concatenate([pack(demonstrate(recipe, k)) for k in range(2)]), recipe.config(), {})
    return path


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "give --out DIR for a new one or --resume DIR"),
        (["--out", "OUT"], "phygail experts --out FILE.h5"),
        (["--out", "OUT", "--experts", "none.h5"], "build it with phygail experts --out none.h5"),
        (["--out", "OUT", "--resume", "OUT"], "--out and --resume cannot be combined"),
        (["--resume", "OUT"], "holds no run"),
        (["--resume", "OUT", "--set", "gamma=0.9"], "keeps the settings of the run"),
        (["--curves", "OUT"], "holds no training log"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(words, line, tmp_path, capsys):
    assert main([*TRAIN, *(str(tmp_path / "run") if word == "OUT" else word for word in words)]) == 2
    assert line in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_an_unknown_setting_names_its_neighbor(database, tmp_path, capsys):
    assert main([*TRAIN, "--experts", str(database), "--out", str(tmp_path / "run"), "--set", "gama=1"]) == 2
    assert "did you mean 'gamma'" in capsys.readouterr().err


def test_a_run_starts_stops_resumes_and_is_drawn(database, tmp_path, capsys):
    run = tmp_path / "run"
    begin = ["--experts", str(database), "--out", str(run), "--profile", "smoke", "--epochs", "2", "--seed", "5"]
    assert main([*TRAIN, *begin, *TINY, "--stop-after", "1", "--no-tensorboard"]) == 0
    config = json.loads((run / "config.json").read_text())
    assert (config["profile"], config["config"]["epochs"], config["config"]["seed"]) == ("smoke", 2, 5)
    assert main([*TRAIN, *begin, *TINY]) == 2  # the folder holds a run
    assert main([*TRAIN, "--resume", str(run), "--no-tensorboard"]) == 0
    assert "best policy (epoch 2)" in capsys.readouterr().err
    (run / "curves.png").unlink()
    assert main([*TRAIN, "--curves", str(run)]) == 0
    assert (run / "curves.png").exists()
