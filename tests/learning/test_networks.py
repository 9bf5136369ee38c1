"""Weights survive the round trip; damaged or foreign files get one clear line."""

import json

import pytest
import torch

from phygail.config import InputError
from phygail.learning.networks import load_weights, save_weights


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "net.safetensors"
    save_weights(path, {"a": torch.arange(6.0).reshape(2, 3)}, {"kind": "net", "version": 2, "seed": 7})
    return path


def test_round_trip(saved):
    tensors, config = load_weights(saved, "net", 2)
    assert torch.equal(tensors["a"], torch.arange(6.0).reshape(2, 3))
    assert config["seed"] == 7


def test_other_kind_and_other_version_are_refused(saved):
    with pytest.raises(InputError, match="kind 'net', not 'other'"):
        load_weights(saved, "other", 2)
    with pytest.raises(InputError, match="version 2, not 3"):
        load_weights(saved, "net", 3)


@pytest.mark.parametrize("keep", [0, 5, 60])
def test_a_truncated_file_is_refused(saved, keep):
    saved.write_bytes(saved.read_bytes()[:keep])
    with pytest.raises(InputError, match="damaged"):
        load_weights(saved, "net", 2)


def test_a_file_that_is_no_tensor_file_is_refused_even_with_a_matching_hash(saved):
    import hashlib

    saved.write_bytes(b"nonsense")
    config = json.loads(saved.with_suffix(".json").read_text())
    config["sha256"] = hashlib.sha256(b"nonsense").hexdigest()
    saved.with_suffix(".json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="damaged"):
        load_weights(saved, "net", 2)


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_a_broken_config_is_refused(saved, text):
    saved.with_suffix(".json").write_text(text)
    with pytest.raises(InputError, match="not the JSON config"):
        load_weights(saved, "net", 2)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.json"):
        load_weights(tmp_path / "nothing.safetensors", "net", 1)


def test_a_config_without_kind_is_not_written(tmp_path):
    with pytest.raises(InputError, match="lacks kind"):
        save_weights(tmp_path / "x.safetensors", {}, {"version": 1})
    assert list(tmp_path.iterdir()) == []
