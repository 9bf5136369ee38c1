"""Read weights with numpy alone, so that small networks run on the light install.

Weights are NAME.safetensors beside NAME.json (`models.weights.save_weights` writes both). The safetensors format: 8
bytes little-endian length of the header, a JSON header ``{name: {dtype, shape, data_offsets}}`` (with optional texts
under ``__metadata__``), then the raw numbers. Nothing is ever executed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from phygail.config import InputError
from phygail.files import parse_json, read_text

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "|u1"}
_LENGTH_BYTES = 8


def bundled(name: str) -> Path:
    """Path of the weights that come with the package, e.g. `bundled("cr-ma")`."""
    return Path(__file__).parent / "weights" / f"{name}.safetensors"


def read_weights(path: str | Path, kind: str, version: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """(arrays, config) of weights of this kind and version, or one clear line on what is wrong with the files."""
    file = Path(path)
    remedy = f"train them again (phygail train {kind}) or name another file"
    config = _read_config(file.with_suffix(".json"), remedy)
    for key, wanted in (("kind", kind), ("version", version)):
        if config.get(key) != wanted:
            raise InputError(f"the weights {file} have {key} {config.get(key)!r}, not {wanted!r}: {remedy}")
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the weights {file}: {error.strerror or error}; {remedy}") from None
    if hashlib.sha256(content).hexdigest() != config.get("sha256"):
        raise InputError(f"the weights {file} are damaged or not those of {file.stem}.json: {remedy}")
    try:
        arrays = parse_safetensors(content)
    except ValueError as error:
        raise InputError(f"the weights {file} are damaged ({error}): {remedy}") from None
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise InputError(f"the weights {file} hold numbers that are not finite: {remedy}")
    return arrays, config


def weights_kind(path: str | Path) -> str:
    """Whose weights a pair of files holds, as its JSON says."""
    return str(
        _read_config(Path(path).with_suffix(".json"), "name the .safetensors file of a training run").get("kind")
    )


def parse_safetensors(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file by name; ValueError if the bytes are truncated or of another format."""
    start = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    if len(content) < max(start, _LENGTH_BYTES):
        raise ValueError("the file ends inside its header")
    try:
        header = parse_json(content[_LENGTH_BYTES:start].decode())
        return {name: _array(entry, content[start:]) for name, entry in header.items() if name != "__metadata__"}
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ValueError(f"the header is not understood: {error}") from None


def _array(entry: dict[str, Any], data: bytes) -> np.ndarray:
    """One tensor; ValueError if the bytes do not fit its shape."""
    first, last = entry["data_offsets"]
    if not 0 <= first <= last <= len(data):
        raise ValueError("a tensor lies outside the file")
    return np.frombuffer(data[first:last], dtype=_DTYPES[entry["dtype"]]).reshape(entry["shape"])


def _read_config(path: Path, remedy: str) -> dict[str, Any]:
    text = read_text(path)  # its own error if there is no such file
    try:
        config = parse_json(text)
    except ValueError as error:
        raise InputError(f"{path} is not the JSON config of weights ({error}): {remedy}") from None
    if not isinstance(config, dict):
        raise InputError(f"{path} is not the JSON config of weights: {remedy}")
    return config
