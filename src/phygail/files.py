"""Files that are never half-written, and errors in a user's words."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from phygail.config import InputError

DRAFT = ".draft-"  # first part of the names of files that are being written; a killed process leaves them behind
_swept: set[Path] = set()  # folders in which this process has looked for drafts of processes that ended
_writing: set[str] = set()  # drafts of this process: in containers an ended process may have had the same id


def read_text(path: Path) -> str:
    """The text of a file, or an error that names it."""
    try:
        return path.read_text(encoding="utf-8-sig")  # spreadsheets put a byte order mark in front
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"cannot read {path}: it is not a text file (UTF-8)") from None


def read_json(path: Path) -> Any:
    """The content of a JSON file, or an error that names it."""
    text = read_text(path)
    try:
        return parse_json(text)
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from None


def parse_json(text: str) -> Any:
    """What a JSON text says, or ValueError; a key that occurs twice is an error, too, since only one would count."""
    try:
        return json.loads(text, object_pairs_hook=_distinct_keys)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs."""
    entry = dict(pairs)
    if len(entry) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:60]!r} stands twice in one object, keep one of them")
    return entry


def parse_number(text: str) -> float:
    """A number as files write it, or ValueError. Python alone would also take 1_0 and digits of other scripts."""
    if not text.isascii() or "_" in text:
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def make_folder(path: Path) -> Path:
    """Create a folder and prove that it can be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise InputError(f"cannot write to the folder {path}: {error.strerror or error}") from None
    return path


def check_writable(path: Path) -> None:
    """Refuse a path where no file can be written, before any work is done for it."""
    make_folder(path.parent)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    # Replacing /dev/null by a file would break the machine; /dev/stdout may be a file that must not be replaced.
    if not stat.S_ISREG(mode) or path.parent.resolve() == Path("/dev"):
        kind = "folder" if stat.S_ISDIR(mode) else "device or pipe"
        raise InputError(f"cannot write {path}: it is a {kind}; name a file")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that replaces it when the block ends well: readers see all of it or nothing."""
    check_writable(path)
    target = Path(os.path.realpath(path))  # a link stays a link
    make_folder(target.parent)
    sweep_drafts(target.parent, again=False)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=_prefix(), suffix=path.suffix)
    os.close(handle)
    draft = Path(name)
    _writing.add(draft.name)
    try:
        yield draft
        draft.chmod(0o644)
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        draft.unlink(missing_ok=True)
        _writing.discard(draft.name)


def sweep_drafts(folder: Path, *, again: bool = True) -> None:
    """Remove the drafts of killed processes of this machine; running processes, here or elsewhere, keep theirs.

    Args:
        folder: Where to look.
        again: Whether to look again if this process has looked before.
    """
    if folder in _swept and not again:
        return
    _swept.add(folder)
    for draft in folder.glob(f"{DRAFT}*"):
        found = re.fullmatch(rf"{re.escape(DRAFT)}{re.escape(_host())}-(\d+)-.*", draft.name)
        if found and draft.name not in _writing and not _lives(int(found[1])):
            with contextlib.suppress(OSError):
                draft.unlink()


def _prefix() -> str:
    return f"{DRAFT}{_host()}-{os.getpid()}-"


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9.]", "_", platform.node())[:40] or "unnamed"


def _lives(process: int) -> bool:
    """Whether another process with this id runs."""
    if process == os.getpid():
        return False
    if os.name != "posix":  # there, signal 0 does not ask whether a process runs
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # the process belongs to another user
        return True
    return True


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8")
