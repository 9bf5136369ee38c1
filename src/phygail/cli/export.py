"""`phygail export`."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from phygail.config import InputError


@dataclass(frozen=True)
class Export:
    """Turn trained weights into one ONNX file that flies without torch.

    For example:
      phygail export runs/paper/best.safetensors --out policy.onnx
      phygail export runs/phygail/best.safetensors --out policy.onnx
    """

    weights: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE.safetensors")]
    """Weights of phygail-paper or phygail, with their JSON beside them."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE.onnx")] = Path("policy.onnx")
    """Where the policy goes; `--policy` of the other commands flies it."""

    def run(self) -> int:
        """Export, check against torch, and say what was written."""
        if importlib.util.find_spec("torch") is None or importlib.util.find_spec("onnxscript") is None:
            raise InputError("exporting needs torch and onnxscript: pip install 'phygail[learn]'")
        from phygail.cli.console import stdout
        from phygail.models.export import export_weights
        from phygail.models.gate_export import export_gates
        from phygail.models.gate_runtime import KIND, load_gates
        from phygail.models.runtime import load_policy
        from phygail.tensors import weights_kind

        gates = weights_kind(self.weights) == KIND
        path = export_gates(self.weights, self.out) if gates else export_weights(self.weights, self.out)
        card = load_gates(path.resolve()).card if gates else load_policy(path.resolve()).card
        parameters = int(card["parameters"])
        stdout().print(f"{path}: {parameters:,} parameters, {path.stat().st_size:,} bytes", highlight=False)
        return 0
