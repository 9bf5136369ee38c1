"""Weights and policies read without torch, so that they fly on the light install.

Weights are NAME.safetensors beside NAME.json (`learning.networks.save_weights` writes both). The safetensors format: 8
bytes little-endian length of the header, a JSON header ``{name: {dtype, shape, data_offsets}}`` (with optional texts
under ``__metadata__``), then the raw numbers. Nothing is ever executed.

An ONNX file is one protobuf message: fields of (number, kind, content), nested. Only the fields that lead to tensors
are followed; their numbers are those of onnx.proto. Nothing is ever executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from phygail.config import InputError
from phygail.files import parse_json, read_text

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "|u1"}
_LENGTH_BYTES = 8

# Message -> field -> the message that the field holds. Every path ends at a tensor.
_WAYS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor"},
}
_VARINT, _EIGHT, _TEXT, _FOUR = 0, 1, 2, 5  # kinds of protobuf fields
_WIDTHS = {_EIGHT: 8, _FOUR: 4}  # bytes of those of fixed width
_TENSOR_TYPE, _TENSOR_NAME, _TENSOR_RAW = 2, 8, 9
_TENSOR_FLOATS, _TENSOR_WORDS, _TENSOR_DOUBLES = 4, 5, 10
_FLOAT, _HALF, _DOUBLE, _BRAIN = 1, 10, 11, 16  # TensorProto.DataType
_ATTRIBUTE_NAME, _ATTRIBUTE_FLOAT, _ATTRIBUTE_FLOATS = 1, 2, 7
_DEEPEST = 50  # graphs within graphs: no export goes that far


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
    """The kind of the weights in a pair of files, as its JSON says."""
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
    text = read_text(path)  # raises its own error if there is no such file
    try:
        config = parse_json(text)
    except ValueError as error:
        raise InputError(f"{path} is not the JSON config of weights ({error}): {remedy}") from None
    if not isinstance(config, dict):
        raise InputError(f"{path} is not the JSON config of weights: {remedy}")
    return config


class _Field(NamedTuple):
    number: int
    kind: int
    value: int
    content: bytes


def bad_tensor(content: bytes) -> str | None:
    """The name of the first tensor or attribute that holds a NaN, None without one; ValueError for damaged bytes.

    Infinities are allowed: exporters write -inf where an attention is masked.
    """
    return next(_bad(content, "model", 0), None)


def _bad(message: bytes, kind: str, depth: int) -> Iterator[str]:
    """Names of the tensors and attributes that hold a NaN in a message of this kind."""
    if depth > _DEEPEST:
        raise ValueError("graphs are nested too deep")
    fields = list(_fields(message))
    if kind == "tensor":
        if np.isnan(_tensor(fields)).any():
            yield _text(fields, _TENSOR_NAME)
        return
    if kind == "attribute" and np.isnan(_packed(fields, (_ATTRIBUTE_FLOAT, _ATTRIBUTE_FLOATS), "<f4")).any():
        yield _text(fields, _ATTRIBUTE_NAME)
    for field in fields:
        inner = _WAYS[kind].get(field.number)
        if inner is not None and field.kind == _TEXT:
            yield from _bad(field.content, inner, depth + 1)


def _tensor(fields: list[_Field]) -> np.ndarray:
    """The numbers of a tensor of a floating type; empty for other types."""
    raw = b"".join(field.content for field in fields if field.number == _TENSOR_RAW)
    kind = next((field.value for field in fields if field.number == _TENSOR_TYPE), 0)
    if kind == _FLOAT:
        return np.concatenate([_numbers(raw, "<f4"), _packed(fields, (_TENSOR_FLOATS,), "<f4")])
    if kind == _DOUBLE:
        return np.concatenate([_numbers(raw, "<f8"), _packed(fields, (_TENSOR_DOUBLES,), "<f8")])
    if kind not in (_HALF, _BRAIN):
        return np.zeros(0)
    words = np.concatenate([_numbers(raw, "<u2"), _words(fields)])
    return words.view("<f2") if kind == _HALF else (words.astype("<u4") << 16).view("<f4")  # the upper half of a float


def _packed(fields: list[_Field], numbers: tuple[int, ...], dtype: str) -> np.ndarray:
    """The floats of these fields, whether a field holds one or many."""
    alone = _EIGHT if dtype == "<f8" else _FOUR
    parts = [field.content for field in fields if field.number in numbers and field.kind in (alone, _TEXT)]
    return _numbers(b"".join(parts), dtype)


def _words(fields: list[_Field]) -> np.ndarray:
    """Half precision numbers that a file without raw data stores as whole numbers."""
    words = [f.value for f in fields if f.number == _TENSOR_WORDS and f.kind == _VARINT]
    for field in fields:
        place = 0
        while field.number == _TENSOR_WORDS and place < len(field.content):
            word, place = _varint(field.content, place)
            words.append(word)
    return np.array([word & 0xFFFF for word in words], dtype="<u2")


def _numbers(data: bytes, dtype: str) -> np.ndarray:
    return np.frombuffer(data, dtype=dtype)  # ValueError if the length does not fit


def _text(fields: list[_Field], number: int) -> str:
    name = next((field.content for field in fields if field.number == number), b"")
    return name.decode(errors="replace") or "a tensor without a name"


def _fields(message: bytes) -> Iterator[_Field]:
    """The fields of a message, in order."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        value, end = 0, place
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(message, place)
            end = place
        elif kind == _TEXT:
            length, place = _varint(message, place)
            end = place + length
        elif kind in _WIDTHS:
            end = place + _WIDTHS[kind]
        else:
            raise ValueError("a field of unknown kind")
        if end > len(message):
            raise ValueError("the file ends inside a field")
        yield _Field(key >> 3, kind, value, message[place:end])
        place = end


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """(a whole number in base 128, where the next byte stands)."""
    value = shift = 0
    while True:
        if place >= len(message) or shift > 63:
            raise ValueError("the file ends inside a number")
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


class OnnxPolicy:
    """A loaded policy file. Nothing in it changes, so copies of a method share it.

    Attributes:
        kind, version: Of the files that this class reads. inputs, outputs: Names of their tensors.
        remedy: What to do about a file that is not one of them.
        name: What errors call it. card: The texts inside the file.
    """

    kind: ClassVar[str]
    version: ClassVar[int]
    inputs: ClassVar[tuple[str, ...]]
    outputs: ClassVar[tuple[str, ...]]
    remedy: ClassVar[str]

    def __init__(self, content: bytes, name: str = "policy") -> None:
        self.name = name
        self._session, self.card = open_policy(content, name, self.kind, self.version, self.remedy)

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def input_type(self, name: str) -> type[np.floating]:
        """The precision in which an input is read: double or single."""
        double = any(told.name == name and told.type == "tensor(double)" for told in self._session.get_inputs())
        return np.float64 if double else np.float32

    def answer(self, *values: np.ndarray) -> list[np.ndarray]:
        """The outputs for these inputs, all finite.

        A policy with huge weights may give infinite outputs, which the speed disc would turn into standing still.
        """
        answers: list[np.ndarray] = self._session.run(list(self.outputs), dict(zip(self.inputs, values, strict=True)))
        if not all(np.isfinite(answer).all() for answer in answers):
            raise InputError(
                f"the policy {self.name} answers with numbers that are not finite: train it again or name another"
            )
        return answers


def read_policy(path: Path) -> bytes:
    """The content of a policy file, or one clear line."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the policy {path}: {error.strerror or error}") from None


def open_policy(content: bytes, name: str, kind: str, version: int, remedy: str) -> tuple[Any, dict[str, str]]:
    """(session, card) of a policy of this kind and version; others are refused."""
    session = _open_session(content, name)
    try:
        card: dict[str, str] = dict(session.get_modelmeta().custom_metadata_map)
    except UnicodeDecodeError:
        raise InputError(f"the policy {name} is damaged (its texts are no UTF-8): {remedy}") from None
    for key, wanted in (("kind", kind), ("version", str(version))):
        if card.get(key) != wanted:
            raise InputError(f"the policy {name} has {key} {card.get(key)!r}, not {wanted!r}: {remedy}")
    if bad := _bad_tensor(content, name, remedy):
        raise InputError(f"the policy {name} holds weights that are no numbers ({bad}): {remedy}")
    return session, card


def _bad_tensor(content: bytes, name: str, remedy: str) -> str | None:
    try:
        return bad_tensor(content)
    except ValueError as error:  # ONNX Runtime accepts some damaged files
        raise InputError(f"the policy {name} is damaged ({error}): {remedy}") from None


def _open_session(content: bytes, name: str) -> Any:
    """A session with one thread: episodes run in parallel, and one UAV has one core."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints there that it tries once more, in vain
            return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's exceptions share no base class
        raise InputError(f"the policy {name} is not an ONNX model: {str(error).splitlines()[0][:120]}") from None
