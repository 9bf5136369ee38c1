"""The expert database on disk: one HDF5 file, versioned, checked by a digest of its content, never half-written."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from phygail import __version__
from phygail.config import InputError
from phygail.experts.archive import Archive, make_archive, names
from phygail.files import whole_file

FORMAT = "phygail-experts"
FORMAT_VERSION = 1
SUFFIXES = (".h5", ".hdf5")
_PACKED = ("layout", "positions", "velocities")  # the long ones are compressed
_COUNTS = "dropped"


def require_h5py() -> ModuleType:
    """The module h5py, or one line that says how to get it."""
    try:
        import h5py
    except ImportError:
        raise InputError("expert databases need h5py: pip install 'phygail[learn]'") from None
    return h5py


def write_archive(
    path: Path, archive: Archive, config: dict[str, Any], dropped: dict[str, int], command: str = ""
) -> None:
    """Write a database, whole or not at all; equal arguments give equal bytes.

    Args:
        path: Where.
        archive: The demonstrations.
        config: `Recipe.config`.
        dropped: Scenarios that nobody solved, counted by damage ratio.
        command: How a user repeats it.
    """
    h5py = require_h5py()
    attributes = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "package_version": __version__,
        "command": command,
        "seed": config["seed"],
        "pool": config["pool"],
        "config": json.dumps(config),
        _COUNTS: json.dumps(dropped),
        "content_sha256": digest(archive, config, dropped),
    }
    with whole_file(path) as draft, h5py.File(draft, "w") as file:
        for name in names():
            packing = {"compression": "gzip", "shuffle": True} if name in _PACKED else {}
            file.create_dataset(name, data=getattr(archive, name), **packing)
        for name, starts in archive.starts.items():
            file.create_dataset(f"{name}_start", data=starts)
        file.attrs.update(attributes)


def read_archive(path: Path) -> tuple[Archive, dict[str, Any]]:
    """The demonstrations of a database and its attributes, or one line that says what is wrong with the file."""
    h5py = require_h5py()
    if not path.is_file():
        raise InputError(f"cannot read {path}: there is no such file; build it with phygail experts")
    try:
        with h5py.File(path, "r") as file:
            about = dict(file.attrs)
            _check_format(path, about)
            archive = make_archive({name: file[name][()] for name in names()})
            starts = {name: file[f"{name}_start"][()] for name in archive.starts}
            config, dropped = json.loads(about["config"]), json.loads(about[_COUNTS])
            whole = about["content_sha256"] == digest(archive, config, dropped)
    except InputError:
        raise
    except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"{path} is damaged or no expert database ({error}): build it again") from None
    if not whole or not all(np.array_equal(starts[name], own) for name, own in archive.starts.items()):
        raise InputError(f"{path} is damaged (its content is not what was written): build it again")
    return archive, about | {"config": config, _COUNTS: dropped}


def _check_format(path: Path, about: dict[str, Any]) -> None:
    if about.get("format") != FORMAT:
        raise InputError(f"{path} is no expert database: build one with phygail experts")
    if about.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"{path} has format version {about.get('format_version')}, this version reads {FORMAT_VERSION}: "
            "build it again"
        )


def digest(archive: Archive, config: dict[str, Any], dropped: dict[str, int]) -> str:
    """SHA-256 of all that a database says about scenarios and flights; not of the command that made it."""
    total = hashlib.sha256(json.dumps([config, dropped], sort_keys=True).encode())
    for name, dtype in names().items():
        array = getattr(archive, name)
        total.update(f"{name} {dtype} {array.shape}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()
