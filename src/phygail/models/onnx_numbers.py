"""Look for NaN in the weights of an ONNX file, without the package onnx, which the light install lacks.

An ONNX file is one protobuf message: fields of (number, kind, content), nested. Only the fields that lead to tensors
are followed; their numbers are those of onnx.proto. Nothing is ever executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

# Message -> field -> the message that the field holds. A tensor is the end of every way.
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
    """Names of what holds a NaN in a message of this kind."""
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
    """The numbers of a tensor of a floating type, nothing of others."""
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
    """Floats of these fields, whether they stand alone or many in one."""
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
