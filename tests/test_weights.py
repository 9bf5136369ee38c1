"""The numpy reader of weights, held against the safetensors package."""

import contextlib
import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phygail.config import InputError
from phygail.weights import parse_safetensors, read_weights

save = pytest.importorskip("safetensors.numpy").save

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([1.5, -2.0]),
    "scalar": np.array(7, dtype=np.int64),
    "empty": np.zeros((0, 4), dtype=np.float32),
}


def store(path, content: bytes, **config: object) -> None:
    path.write_bytes(content)
    entries = {"kind": "toy", "version": 1, "sha256": hashlib.sha256(content).hexdigest(), **config}
    path.with_suffix(".json").write_text(json.dumps(entries))


def test_reader_equals_the_safetensors_package() -> None:
    read = parse_safetensors(save(ARRAYS, metadata={"note": "x"}))
    assert read.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert read[name].dtype == array.dtype
        np.testing.assert_array_equal(read[name], array)


@given(cut=st.integers(1, 400))
def test_truncated_content_is_refused(cut: int) -> None:
    content = save(ARRAYS)
    with pytest.raises(ValueError, match=r"header|file|char|reshape|codec"):
        parse_safetensors(content[: max(0, len(content) - cut)])


@given(st.binary(max_size=64))
def test_foreign_content_is_refused_or_empty(content: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert parse_safetensors(content) == {}


def test_weights_come_with_their_config(tmp_path) -> None:
    path = tmp_path / "toy.safetensors"
    store(path, save(ARRAYS), note="kept")
    arrays, config = read_weights(path, "toy", 1)
    assert config["note"] == "kept"
    assert arrays["a"].shape == (2, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"kind": "other"}, "kind 'other'"), ({"version": 2}, "version 2"), ({"sha256": "0"}, "not those of toy.json")],
)
def test_weights_of_another_kind_version_or_run_are_refused(tmp_path, change, message) -> None:
    path = tmp_path / "toy.safetensors"
    store(path, save(ARRAYS), **change)
    with pytest.raises(InputError, match=message):
        read_weights(path, "toy", 1)


def test_weights_that_are_not_finite_are_refused(tmp_path) -> None:
    path = tmp_path / "toy.safetensors"
    store(path, save({"a": np.array([np.nan])}))
    with pytest.raises(InputError, match="not finite"):
        read_weights(path, "toy", 1)


def test_a_broken_config_is_refused(tmp_path) -> None:
    path = tmp_path / "toy.safetensors"
    store(path, save(ARRAYS))
    path.with_suffix(".json").write_text("[1]")
    with pytest.raises(InputError, match="not the JSON config"):
        read_weights(path, "toy", 1)
