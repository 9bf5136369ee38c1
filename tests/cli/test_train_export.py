import json

import pytest

from phygail.cli.main import main
from phygail.learning.networks import parameter_count, save_weights, seeded
from phygail.methods.phygail import load_plus, load_policy, plus
from phygail.methods.phygail.graph import PAPER
from phygail.methods.phygail.heads import Actor
from phygail.methods.phygail.learner import actor_config
from phygail.methods.phygail.network import EncoderSpec

# Torch loads its exporter for seconds: once.
pytestmark = [pytest.mark.xdist_group("export"), pytest.mark.usefixtures("exported_once")]


@pytest.fixture
def weights(tmp_path):
    with seeded(0):
        actor = Actor(EncoderSpec())
    save_weights(tmp_path / "actor.safetensors", actor.state_dict(), actor_config(actor, PAPER, epochs=3))
    return tmp_path / "actor.safetensors"


def test_export_writes_a_policy_that_says_how_it_was_trained(weights, tmp_path, capsys):
    out = tmp_path / "new" / "policy.onnx"
    assert main(["export", str(weights), "--out", str(out)]) == 0
    count = parameter_count(Actor(EncoderSpec()))
    assert f"{count:,} parameters" in capsys.readouterr().out
    assert json.loads(load_policy(out).card["training"])["epochs"] == 3


def test_export_says_what_it_wrote_of_phygail_plus(tmp_path, capsys):
    spec = EncoderSpec(
        layers=1, width=8, features=plus.NODE_NUMBERS, types=4, compact=True, edge_features=plus.EDGE_NUMBERS
    )
    with seeded(0):
        actor = Actor(spec, command="disc")
    save_weights(tmp_path / "plus.safetensors", actor.state_dict(), actor_config(actor, plus.GRAPHS["plus"], epochs=5))
    out = tmp_path / "plus.onnx"
    assert main(["export", str(tmp_path / "plus.safetensors"), "--out", str(out)]) == 0
    assert f"{parameter_count(actor):,} parameters" in capsys.readouterr().out
    assert json.loads(load_plus(out).card["training"])["epochs"] == 5


def test_missing_weights_are_one_line_and_exit_2(tmp_path, capsys):
    assert main(["export", str(tmp_path / "none.safetensors"), "--out", str(tmp_path / "p.onnx")]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not (tmp_path / "p.onnx").exists()
