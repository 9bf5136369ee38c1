"""What all networks share: initial weights, weights and policy files on disk, one thread, seeded noise, C libraries.

Bundled weights live in phygail/weights (`phygail.weights.bundled`).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import logging
import math
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from phygail.config import InputError
from phygail.files import whole_file, write_text
from phygail.rng import generator
from phygail.weights import read_weights

OPSET = 18  # the first with the reductions that the exporter writes; ONNX Runtime 1.14 and later read it
PARITY = 1e-5  # largest difference between a network and ONNX Runtime that a written file may have
HIDDEN_GAIN = math.sqrt(2.0)
LAST_GAIN = 0.01  # of the actor's last linears: a fresh policy asks for almost no motion
C_FLAGS = ("-O3", "-march=native", "-ffast-math", "-fPIC", "-c")
C_SWITCH = "PHYGAIL_COMPILED"  # environment: 0 does without C

log = logging.getLogger("phygail")


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Modules made inside the block get their weights from this seed; the global generator is restored after it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def orthogonal(head: nn.Sequential, last_gain: float) -> nn.Sequential:
    """Orthogonal weights and zero biases for every linear of a head; the last one has its own gain."""
    linears = [module for module in head if isinstance(module, nn.Linear)]
    for linear in linears:
        nn.init.orthogonal_(linear.weight, last_gain if linear is linears[-1] else HIDDEN_GAIN)
        nn.init.zeros_(linear.bias)
    return head


def parameter_count(module: nn.Module) -> int:
    """Number of trained numbers."""
    return sum(parameter.numel() for parameter in module.parameters())


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


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread inside the block, whatever the machine; the caller's setting comes back after it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def noise_generator(seed: int, *keys: int | str) -> torch.Generator:
    """A torch generator that depends on (seed, keys) only: a resumed run needs no saved random state."""
    return torch.Generator().manual_seed(int(generator(seed, *keys).integers(2**63 - 1)))


def uniform_parameter(shape: tuple[int, ...], bound: float, generator: torch.Generator | None) -> nn.Parameter:
    """A parameter with entries drawn from (-bound, bound)."""
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))


def write_policy(model: Any, card: Mapping[str, str], out: str | Path, check: Callable[[bytes], None]) -> Path:
    """Write an ONNX model with the texts that say what it is; the file appears only if `check` accepts its content.

    Args:
        model: An onnx.ModelProto. card: Its texts.
        out: NAME.onnx.
        check: Raises an error unless ONNX Runtime reproduces the network (`check_parity`).
    """
    path = onnx_path(out)
    for key, value in card.items():
        model.metadata_props.add(key=key, value=value)
    content = model.SerializeToString()
    check(content)
    with whole_file(path) as draft:
        draft.write_bytes(content)
    return path


def onnx_path(out: str | Path) -> Path:
    """A name for a policy file; another ending is refused before anything is computed."""
    if Path(out).suffix != ".onnx":
        raise InputError(f"cannot export to {out}: name a file that ends in .onnx")
    return Path(out)


def check_parity(found: np.ndarray, wanted: np.ndarray, reference: str, scale: np.ndarray | float = 1.0) -> None:
    """Refuse answers of ONNX Runtime that differ from those of the reference by more than `PARITY` times the scale."""
    worst = float((np.abs(found - wanted) / scale).max(initial=0.0))
    if not worst <= PARITY:
        raise InputError(
            f"ONNX Runtime differs from {reference} by {worst:.1e}, more than {PARITY:.0e}: check the weights"
        )


@functools.cache
def c_library(source: Path, *options: str) -> ctypes.CDLL | None:
    """A C file compiled for this machine by CC, else cc, when first asked for; None where that is not to be had.

    Libraries are kept in the user's cache folder, by all that decides them. Compiling and linking are two steps: linked
    with -ffast-math, a library would round the denormal numbers of the whole process to 0 from the moment it is loaded.
    """
    if os.environ.get(C_SWITCH) == "0":
        return None
    try:
        compiler = shlex.split(os.environ.get("CC") or "cc")
        decisive = [source.read_text(encoding="utf-8"), *compiler, *C_FLAGS, *options, _processor()]
        name = f"{source.stem}-{hashlib.sha256(repr(decisive).encode()).hexdigest()[:16]}.so"
        file = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "phygail" / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=file.parent) as folder:
                made, parts = Path(folder) / name, Path(folder) / "parts.o"
                for step in (
                    [*compiler, *C_FLAGS, *options, str(source), "-o", str(parts)],
                    [*compiler, "-shared", str(parts), "-lm", "-o", str(made)],
                ):
                    subprocess.run(step, check=True, capture_output=True, text=True)
                made.replace(file)  # whole or not at all: another process may make the same
        return ctypes.CDLL(str(file))
    except (OSError, ValueError, RuntimeError, subprocess.CalledProcessError) as error:  # a torn CC, no home folder
        told = (getattr(error, "stderr", "") or str(error)).strip().split("\n")[0]
        log.warning("%s does not compile here, torch computes the same in twice the time (%s)", source.name, told)
        return None


def _processor() -> str:
    """What -march=native depends on, as far as the system says it."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(encoding="utf-8").split("\n") if facts.exists() else []
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
