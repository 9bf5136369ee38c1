"""`phygail export` of both kinds of policies."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("onnx")

from phygail.cli.main import main
from phygail.methods.reach_evolved import load_gates
from phygail.weights import bundled, weights_kind


@pytest.mark.parametrize("name", ["reach-evolved", "reach-cloned"])
def test_bundled_gates_are_the_export_of_their_weights(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "policy.onnx"
    assert main(["export", str(bundled(name)), "--out", str(out)]) == 0
    assert "157 parameters" in capsys.readouterr().out
    import onnx

    exported, ours = onnx.load(out), onnx.load(bundled(name).with_suffix(".onnx"))
    assert exported.graph.SerializeToString() == ours.graph.SerializeToString()
    cards = [{entry.key: entry.value for entry in model.metadata_props} for model in (exported, ours)]
    assert [card.pop("package") for card in cards] == [exported.producer_version, ours.producer_version]
    assert cards[0] == cards[1]
    assert load_gates(out).card["kind"] == weights_kind(bundled(name)) == "phygail"


def test_the_paper_policy_says_how_it_was_made() -> None:
    assert weights_kind(bundled("phygail-taught")) == "phygail-actor"
