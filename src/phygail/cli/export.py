"""`phygail export`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from phygail.cli.options import Switch
from phygail.config import InputError, require_extra


@dataclass(frozen=True)
class Export:
    """Turn trained weights into one ONNX file that flies without torch.

    For example:
      phygail export runs/paper/best.safetensors --out policy.onnx
      phygail export runs/reach-evolved/best.safetensors --out policy.onnx
    """

    weights: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE.safetensors")]
    """Weights of phygail or reach-evolved, with their JSON beside them."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE.onnx")] = Path("policy.onnx")
    """Where the policy goes; `--policy` of the other commands flies it."""

    half: Switch = False
    """Round the weights of a graph policy to half precision first; they are written beside the policy."""

    def run(self) -> int:
        """Export, check against torch, and say what was written."""
        require_extra("exports", "learn", "torch", "onnxscript")
        from phygail.cli.options import stdout
        from phygail.methods.phygail import load_policy
        from phygail.methods.phygail.export import export_weights, round_weights
        from phygail.methods.reach_evolved.export import export_gates
        from phygail.methods.reach_evolved.gates import KIND, load_gates
        from phygail.weights import weights_kind

        gates = weights_kind(self.weights) == KIND
        if self.half and gates:
            raise InputError("--half rounds graph policies: leave it out for gates")
        weights = round_weights(self.weights, self.out.with_suffix(".safetensors")) if self.half else self.weights
        path = export_gates(weights, self.out) if gates else export_weights(weights, self.out)
        card = load_gates(path.resolve()).card if gates else load_policy(path.resolve()).card
        parameters = int(card["parameters"])
        stdout().print(f"{path}: {parameters:,} parameters, {path.stat().st_size:,} bytes", highlight=False)
        return 0
