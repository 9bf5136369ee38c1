"""Files that are never half-written, and errors in a user's words."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from phygail.config import InputError

DRAFT = ".draft-"  # how the names of files that are being written begin; a killed process leaves them behind


def read_text(path: Path) -> str:
    """The text of a file, or an error that names it."""
    try:
        return path.read_text(encoding="utf-8-sig")  # spreadsheets put a byte order mark in front
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"cannot read {path}: it is not a text file (UTF-8)") from None


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
    # Replacing /dev/null by a file would break the machine; /dev/stdout may lead to a file, but not to be replaced.
    if not stat.S_ISREG(mode) or path.parent.resolve() == Path("/dev"):
        kind = "folder" if stat.S_ISDIR(mode) else "device or pipe"
        raise InputError(f"cannot write {path}: it is a {kind}; name a file")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that replaces it when the block ends well: readers see all of it or nothing."""
    check_writable(path)
    target = Path(os.path.realpath(path))  # a link stays a link
    make_folder(target.parent)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=DRAFT, suffix=path.suffix)
    os.close(handle)
    draft = Path(name)
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


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8")
