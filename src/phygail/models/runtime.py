"""An exported actor in ONNX Runtime: what flies. No torch here, so that the light install can import it."""

from __future__ import annotations

import contextlib
import functools
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from phygail.config import InputError
from phygail.models.onnx_numbers import bad_tensor
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
        answer = self._session.run([OUTPUT], dict(zip(INPUTS, values, strict=True)))[0]
        check_answer(self.name, answer)
        return answer


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


def check_answer(name: str, *answers: np.ndarray) -> None:
    """Refuse what a policy of huge weights may answer: later the speed disc would take it for a wish to stand still."""
    if not all(np.isfinite(answer).all() for answer in answers):
        raise InputError(f"the policy {name} answers with numbers that are not finite: train it again or name another")


def _bad_tensor(content: bytes, name: str, remedy: str) -> str | None:
    try:
        return bad_tensor(content)
    except ValueError as error:  # ONNX Runtime is content with some damage
        raise InputError(f"the policy {name} is damaged ({error}): {remedy}") from None


def _open_session(content: bytes, name: str) -> Any:
    """A session with one thread: episodes run in parallel, and one UAV has one core."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # where it prints that it tries once more, in vain
            return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's exceptions share no base class
        raise InputError(f"the policy {name} is not an ONNX model: {str(error).splitlines()[0][:120]}") from None
