"""Finished scenarios on disk while a database is being built: ended at any moment, a build goes on where it stopped.

Every scenario is one small file that appears whole or not at all, so nothing in the folder can be half-written.
"""

from __future__ import annotations

import contextlib
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from phygail.config import InputError
from phygail.experts.archive import Archive, make_archive, names
from phygail.files import make_folder, read_json, whole_file, write_text

_RECORD = "build.json"


class Journal:
    """The folder OUT.parts beside the database OUT.

    Args:
        out: The database that is being built.
        config: What decides its content; a folder holds parts of one config.
    """

    def __init__(self, out: Path, config: dict[str, Any]) -> None:
        self.folder = out.with_name(f"{out.name}.parts")
        self._config = config
        self._record = self.folder / _RECORD

    def begin(self) -> set[int]:
        """Make the folder, or find it; the numbers of the scenarios that are finished."""
        if self._record.exists():
            self._check()
        else:
            if any(self.folder.glob("*.npz")):
                raise InputError(f"{self.folder} holds parts but no {_RECORD}: delete it or choose another output")
            make_folder(self.folder)
            write_text(self._record, json.dumps(self._config, indent=2) + "\n")
        return {int(part.stem) for part in self.folder.glob("[0-9]*.npz")}

    def _check(self) -> None:
        remedy = f"repeat its command, delete {self.folder} or choose another output"
        try:
            earlier = dict(read_json(self._record))
        except (TypeError, ValueError):
            raise InputError(f"{self._record} is not the record of a build: {remedy}") from None
        difference = first_difference(earlier, self._config)
        if difference:
            raise InputError(f"{self.folder} holds parts of another database ({difference}): {remedy}")

    def save(self, number: int, part: Archive) -> None:
        """Keep a finished scenario."""
        with whole_file(self._path(number)) as draft:
            np.savez(draft, **{name: getattr(part, name) for name in names()})

    def load(self, number: int) -> Archive:
        """A finished scenario."""
        path = self._path(number)
        try:
            with np.load(path) as arrays:
                return make_archive(dict(arrays))
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
            raise InputError(f"{path} is damaged: delete it and run the same command again") from None

    def remove(self) -> None:
        """Delete the folder; the record goes last, so that an interrupted removal is recognized and repeated."""
        if not self._record.exists():
            return
        self._check()
        for part in self.folder.iterdir():
            if part != self._record:
                part.unlink()
        self._record.unlink()
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.npz"


def first_difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """The first key in which two configs differ, in words; empty if they are equal."""
    for key in dict.fromkeys([*now, *before]):
        if before.get(key) != now.get(key):
            was, wanted = (json.dumps(config.get(key))[:60] for config in (before, now))
            return f"{key} was {was}, now {wanted}"
    return ""
