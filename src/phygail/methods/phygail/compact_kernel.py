"""The compact encoder in C (`compact.c`), two to four times as fast as torch's many small operations (METHODS 4.12).

It is compiled for this machine when a training first asks for it, with the C compiler named by CC, else cc; where there is none, torch computes
the same function and gradients up to rounding. Flying and export never use it.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from phygail.config import InputError
from phygail.methods.phygail.network import CompactLayer, EncoderSpec, GraphEncoder, GraphInput

SOURCE = Path(__file__).with_name("compact.c")
FLAGS = ("-O3", "-march=native", "-ffast-math", "-shared", "-fPIC")
WIDTHS = (16, 32, 64)  # that compact.c can be compiled for
MOST_LAYERS, MOST_FEATURES = 16, 64  # as in compact.c
SWITCH = "PHYGAIL_COMPILED"  # environment: 0 leaves it out
GATES = ("both", "no-attraction", "no-repulsion")
LAYER_PARTS = (
    "own.weight", "own.bias", "sent.weight", "kind.weight", "out.weight", "out.bias", "force.weight", "force.bias",
    "update.0.weight", "update.0.bias", "update.2.weight", "update.2.bias", "edge.weight", "edge_scale.weight",
)  # fmt: skip
FIRST_PARTS = ("node_type.weight", "node.0.weight", "node.0.bias", "node.2.weight", "node.2.bias")

log = logging.getLogger("phygail")


class _Task(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_long) for name in ("layers", "features", "types", "edge_features", "gates")),
        *((name, ctypes.c_long) for name in ("n", "nodes", "edges")),
        *((name, ctypes.c_void_p) for name in ("x", "type", "receiver", "sender", "edge")),
    ]


class _Weights(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p * (len(FIRST_PARTS) + MOST_LAYERS * len(LAYER_PARTS)))]


def usable(spec: EncoderSpec) -> bool:
    """Whether compact.c computes such an encoder."""
    return (
        spec.compact
        and spec.layer == "phygnn"
        and spec.dropout == 0.0
        and spec.width in WIDTHS
        and spec.layers <= MOST_LAYERS
        and max(spec.features, spec.edge_features) <= MOST_FEATURES
    )


def speed_up(encoder: GraphEncoder) -> bool:
    """Let an encoder compute in C from now on, where that is possible; says whether it is."""
    library = compiled(encoder.spec.width) if usable(encoder.spec) else None
    if library is not None:
        encoder.kernel = CompactKernel(encoder, library)
    return library is not None


def engine() -> str:
    """What computes compact networks on this machine; results of the two differ in the last digits."""
    return "torch" if compiled(WIDTHS[0]) is None else "compiled"


@functools.cache
def compiled(width: int) -> ctypes.CDLL | None:
    """The library for a width; None where it is not wanted or cannot be made."""
    if os.environ.get(SWITCH, "") == "0":
        return None
    command = [*shlex.split(os.environ.get("CC", "cc")), *FLAGS, f"-DW={width}", str(SOURCE), "-lm"]
    name = hashlib.sha256(SOURCE.read_bytes() + repr(command).encode() + _processor().encode()).hexdigest()[:16]
    file = _cache() / f"compact-{width}-{name}.so"
    try:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=file.parent) as folder:
                made = Path(folder) / file.name
                subprocess.run([*command, "-o", str(made)], check=True, capture_output=True, text=True)
                made.replace(file)  # whole or not at all: another process may make the same
        library = ctypes.CDLL(str(file))
    except (OSError, subprocess.CalledProcessError) as error:
        told = getattr(error, "stderr", "") or str(error)
        log.warning("no compiled network, torch computes it two to four times slower (%s)", told.strip().split("\n")[0])
        return None
    for function in (library.space_floats, library.scratch_floats):
        function.restype, function.argtypes = ctypes.c_long, [ctypes.c_void_p]
    library.forward.restype = library.backward.restype = None
    library.forward.argtypes = [ctypes.c_void_p] * 4
    library.backward.argtypes = [ctypes.c_void_p] * 6
    return library


def _cache() -> Path:
    """Where compiled libraries are kept."""
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser() / "phygail"


def _processor() -> str:
    """What -march=native depends on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").split("\n") if info.exists() else []
    return next((line for line in lines if line.startswith("flags")), "")


class CompactKernel:
    """`GraphEncoder.forward` and its gradient in C."""

    def __init__(self, encoder: GraphEncoder, library: ctypes.CDLL) -> None:
        spec = encoder.spec
        if not usable(spec):
            raise InputError(f"compact.c computes no such network: {spec}")
        parts = [encoder.get_parameter(name) for name in FIRST_PARTS]
        for layer in encoder.layers:
            assert isinstance(layer, CompactLayer)
            known = dict(layer.named_parameters())
            parts += [known.get(name) for name in LAYER_PARTS]  # None: this layer reads no edges
        self.slots = [number for number, part in enumerate(parts) if part is not None]
        self.parameters = [part for part in parts if part is not None]
        self.spec, self.library = spec, library
        self._free: list[Tensor] = []  # what forward and backward work in: fresh pages would cost as much as the sums

    def __call__(self, graph: GraphInput) -> Tensor:
        """(n, width), the embeddings of the receivers."""
        if torch.is_grad_enabled():
            embedded: Tensor = _Encode.apply(self, graph, *self.parameters)
            return embedded
        out, space = self.forward(graph)
        self._free.append(space)
        return out

    def forward(self, graph: GraphInput) -> tuple[Tensor, Tensor]:
        """The embeddings, and what `backward` needs."""
        task = self._task(graph)
        space = self._room(self.library.space_floats(ctypes.byref(task)))
        out = torch.empty(graph.receivers, self.spec.width)
        weights = self._table([parameter.data_ptr() for parameter in self.parameters])
        self.library.forward(ctypes.byref(task), ctypes.byref(weights), space.data_ptr(), out.data_ptr())
        return out, space

    def backward(self, graph: GraphInput, space: Tensor, d_out: Tensor) -> list[Tensor]:
        """The gradients of all parameters; `space` is given back."""
        task = self._task(graph)
        sizes = [parameter.numel() for parameter in self.parameters]
        flat = torch.zeros(sum(sizes)).split(sizes)
        gradients = [part.view_as(parameter) for part, parameter in zip(flat, self.parameters, strict=True)]
        scratch = self._room(self.library.scratch_floats(ctypes.byref(task)))
        weights = self._table([parameter.data_ptr() for parameter in self.parameters])
        into = self._table([gradient.data_ptr() for gradient in gradients])
        d_out = d_out.contiguous()
        self.library.backward(
            ctypes.byref(task), ctypes.byref(weights), ctypes.byref(into), space.data_ptr(), d_out.data_ptr(),
            scratch.data_ptr(),
        )  # fmt: skip
        self._free += [space, scratch]
        return gradients

    def _room(self, floats: int) -> Tensor:
        """At least so many floats that nobody uses."""
        for number, room in enumerate(self._free):
            if room.numel() >= floats:
                return self._free.pop(number)
        self._free.clear()  # all too small
        return torch.empty(floats)

    def _task(self, graph: GraphInput) -> _Task:
        spec, edge = self.spec, graph.edge
        return _Task(
            spec.layers, spec.features, spec.types, spec.edge_features, GATES.index(spec.gates), graph.receivers,
            len(graph.types), len(graph.receiver), *map(_address, (graph.features, graph.types)),
            *map(_address, (graph.receiver, graph.sender)), None if edge is None else _address(edge),
        )  # fmt: skip

    def _table(self, addresses: list[int]) -> _Weights:
        table = _Weights()
        for slot, address in zip(self.slots, addresses, strict=True):
            table.at[slot] = address
        return table


def _address(values: Tensor) -> int:
    if not values.is_contiguous() or values.dtype not in (torch.float32, torch.int64):
        raise InputError(f"compact.c reads contiguous float32 and int64, not {values.dtype}")
    return values.data_ptr()


class _Encode(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernel: CompactKernel, graph: GraphInput, *parameters: Tensor) -> Tensor:
        out, ctx.space = kernel.forward(graph)
        ctx.kernel, ctx.graph = kernel, graph
        return out

    @staticmethod
    def backward(ctx: Any, *d_out: Tensor) -> tuple[Any, ...]:
        return (None, None, *ctx.kernel.backward(ctx.graph, ctx.space, d_out[0]))
