"""`phygail export` of both kinds of policies."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("onnx")

from phygail.cli.main import main
from phygail.models.gate_runtime import load_gates
from phygail.tensors import bundled, weights_kind


@pytest.mark.parametrize("name", ["phygail", "phygail-clone"])
def test_bundled_gates_are_the_export_of_their_weights(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "policy.onnx"
    assert main(["export", str(bundled(name)), "--out", str(out)]) == 0
    assert "157 parameters" in capsys.readouterr().out
    assert out.read_bytes() == bundled(name).with_suffix(".onnx").read_bytes()
    assert load_gates(out).card["kind"] == weights_kind(bundled(name)) == "phygail"


def test_the_paper_policy_says_how_it_was_made() -> None:
    assert weights_kind(bundled("phygail-paper")) == "phygail-actor"
