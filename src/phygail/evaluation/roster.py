"""Which methods take part: built in, from plugin files, from entry points of installed packages."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
import logging
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from phygail.config import EndedFromOutside, InputError
from phygail.methods import METHODS
from phygail.methods.base import Method, load_plugin
from phygail.methods.faults import told

ENTRY_POINTS = "phygail.methods"
ALL = "all"
_EXTRA_NEEDS = {"learn": "torch"}  # pip extra -> the module whose absence means that it is not installed

log = logging.getLogger("phygail")


def load_methods(plugins: Iterable[str | Path] = ()) -> None:
    """Register the methods of installed packages and of plugin files."""
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except (KeyboardInterrupt, EndedFromOutside):
            raise
        except BaseException as error:  # somebody else's broken package must not stop this run
            log.warning("the method package %s fails on import: %s", entry.name, told(error))
    for plugin in plugins:
        load_plugin(plugin)


def choose_methods(wanted: str | Sequence[str]) -> tuple[str, ...]:
    """The names of `a,b,c`, checked; `all` is every registered method whose extra is installed."""
    names = [n.strip() for n in wanted.split(",")] if isinstance(wanted, str) else list(wanted)
    if names == [ALL]:
        names = [name for name in METHODS if installed(METHODS.get(name))]
        left_out = [name for name in METHODS if name not in names]
        if left_out:
            log.warning("left out because their extra is not installed: %s", ", ".join(left_out))
    if not names or not all(names):
        raise InputError("an empty method name: give names separated by commas, or all")
    for name in names:
        METHODS.get(name)
        if names.count(name) > 1:
            raise InputError(f"the method {name!r} is listed twice: list each once")
    return tuple(names)


def installed(cls: type[Method]) -> bool:
    """Whether what the method needs beyond the light install is there."""
    return cls.extra is None or importlib.util.find_spec(_EXTRA_NEEDS.get(cls.extra, cls.extra)) is not None


def takes_policy(name: str) -> bool:
    """Whether a method flies a policy file that the user may replace."""
    return "policy" in inspect.signature(METHODS.get(name).__init__).parameters


def check_policy(policy: str | Path | None, names: Iterable[str]) -> Path | None:
    """The path of a policy file that somebody will fly, or an error."""
    if policy is None:
        return None
    path = Path(policy).resolve()
    if not path.is_file():
        raise InputError(f"cannot read the policy {policy}: there is no such file")
    if not any(map(takes_policy, names)):
        raise InputError(f"the policy {policy} is used by none of the methods {', '.join(names)}: add phygail")
    return path


def sources_of(names: Iterable[str]) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """(files, modules) that a fresh process must import to know these methods."""
    files: dict[Path, None] = {}
    modules: dict[str, None] = {}
    for name in names:
        module = METHODS.get(name).__module__
        if module.startswith("phygail.methods"):
            continue
        file = getattr(sys.modules.get(module), "__file__", None)
        if module == "__main__" and file is None:
            raise InputError(
                f"the method {name!r} is defined in an interactive session, which worker processes cannot see: "
                "save it in a file and name it as a plugin"
            )
        if file is not None and (module == "__main__" or module.startswith("phygail_plugin_")):
            files[Path(file).resolve()] = None
        else:
            modules[module] = None
    return tuple(files), tuple(modules)
