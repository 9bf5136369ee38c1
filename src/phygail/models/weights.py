"""Weights on disk: NAME.safetensors beside NAME.json, never pickle. Written here, read by `phygail.tensors`.

Bundled weights live in phygail/weights (`phygail.tensors.bundled`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from phygail.config import InputError
from phygail.files import whole_file, write_text
from phygail.tensors import bundled, read_weights

__all__ = ["bundled", "load_state", "load_weights", "save_weights"]


def save_weights(path: str | Path, tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> None:
    """Write tensors and, beside them as JSON, their config.

    Args:
        path: NAME.safetensors; the config goes to NAME.json.
        tensors: What to keep, e.g. `module.state_dict()`.
        config: Must hold "kind" (whose weights these are) and "version" (of the architecture); further keys say how
            they were made. The hash of the tensor file is added, so that a pair of files from two runs is noticed.
    """
    file = Path(path)
    missing = {"kind", "version"} - set(config)
    if missing:
        raise InputError(f"the config of the weights {file} lacks {', '.join(sorted(missing))}: add it")
    data = safetensors.torch.save({name: tensor.detach().contiguous() for name, tensor in tensors.items()})
    with whole_file(file) as draft:
        draft.write_bytes(data)
    entries = {**config, "sha256": hashlib.sha256(data).hexdigest()}
    write_text(file.with_suffix(".json"), json.dumps(entries, indent=1) + "\n")


def load_weights(path: str | Path, kind: str, version: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """(tensors, config) of weights of this kind and version, or one clear line on what is wrong with the files."""
    arrays, config = read_weights(path, kind, version)
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}, config


def load_state(module: nn.Module, weights: str | Path | Mapping[str, Tensor], kind: str, version: int) -> None:
    """Fill `module` with weights from a file or from memory; those of other shapes are refused."""
    tensors = weights if isinstance(weights, Mapping) else load_weights(weights, kind, version)[0]
    try:
        module.load_state_dict(tensors)
    except RuntimeError:
        source = "given" if isinstance(weights, Mapping) else str(weights)
        raise InputError(
            f"the weights ({source}) do not fit the network of {kind}: train them again (phygail train {kind})"
        ) from None
