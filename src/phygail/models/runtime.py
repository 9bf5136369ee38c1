"""An exported actor in ONNX Runtime: what flies. No torch here, so that the light install can import it."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from phygail.config import InputError
from phygail.perception.graph import Graph, GraphSpec

INPUTS = ("features", "types", "receiver", "sender", "place")
OUTPUT = "action"
KIND = "phygail-actor"  # of weight and policy files
VERSION = 1  # of observation and network; files of another version are refused


class Policy:
    """A loaded policy file.

    Attributes:
        name: What errors call it.
        card: The texts inside the file: kind, version, graph, observation, encoder, parameters, training.
        graph_spec: The graph that it reads.
    """

    def __init__(self, content: bytes, name: str = "policy") -> None:
        self.name = name
        remedy = "name a file written by `phygail export` of this version"
        self._session, self.card = open_policy(content, name, KIND, VERSION, remedy)
        try:
            self.graph_spec = GraphSpec(**json.loads(self.card["graph"]))
        except (KeyError, TypeError, ValueError):
            raise InputError(f"the policy {name} does not say which graph it reads: {remedy}") from None

    def actions(self, graph: Graph) -> np.ndarray:
        """(n, 2) commands of the receivers over v_max, each component in (-1, 1)."""
        edges = graph.edges
        values = (graph.features, graph.types, edges.receiver, edges.sender, edges.place)
        return self._session.run([OUTPUT], dict(zip(INPUTS, values, strict=True)))[0]


@functools.lru_cache(maxsize=8)
def load_policy(path: Path) -> Policy:
    """The policy in a file, loaded once per process."""
    return Policy(read_policy(path), str(path))


def read_policy(path: Path) -> bytes:
    """The content of a policy file, or one clear line."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the policy {path}: {error.strerror or error}") from None


def open_policy(content: bytes, name: str, kind: str, version: int, remedy: str) -> tuple[Any, dict[str, str]]:
    """(session, card) of a policy of this kind and version; others are refused."""
    session = _open_session(content, name)
    card: dict[str, str] = dict(session.get_modelmeta().custom_metadata_map)
    for key, wanted in (("kind", kind), ("version", str(version))):
        if card.get(key) != wanted:
            raise InputError(f"the policy {name} has {key} {card.get(key)!r}, not {wanted!r}: {remedy}")
    return session, card


def _open_session(content: bytes, name: str) -> Any:
    """A session with one thread: episodes run in parallel, and one UAV has one core."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's exceptions share no base class
        raise InputError(f"the policy {name} is not an ONNX model: {str(error).splitlines()[0][:120]}") from None
