"""What a method is, how it is registered, and which methods take part.

A method is one class in one file. It declares its scope and receives views of that scope only:

    @register
    class Drift(SubnetMethod):
        name = "drift"
        summary = "every subnet drifts north"

        def act(self, view):                     # one subnet at a time, (m, 2) m/s
            return np.tile([0.0, 10.0], (len(view.members), 1))

An instance lives for one episode, so nothing can leak from case to case.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.metadata
import importlib.util
import inspect
import logging
import os
import re
import sys
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TypeVar

import numpy as np

from phygail.config import EndedFromOutside, InputError, Registry
from phygail.sensing.imperfect import own_estimate
from phygail.sensing.radio import FLOOD, HELLO, Talk
from phygail.sensing.views import GlobalView, LocalView, Scope, SubnetView, SubnetViews
from phygail.swarm.checks import shown

EXPECTED = "one velocity [vx, vy] in m/s per UAV of the view"
_LONGEST = 200  # characters of a message that is not ours

ENTRY_POINTS = "phygail.methods"
ALL = "all"
_EXTRA_NEEDS = {"learn": "torch"}  # pip extra -> the module whose absence means that it is not installed

log = logging.getLogger("phygail")


class CommandError(InputError):
    """A method gave something that is no command, or no flag."""


def checked_command(values: Any, shape: tuple[int, ...], method: object) -> np.ndarray:
    """The command of a method, unchanged, if it is an array of numbers of this shape; else an error that says where.

    NaN passes: the world takes it as zero and the row says `nonfinite`.
    """
    if isinstance(values, np.ndarray) and values.shape == shape and values.dtype.kind in "fiu":
        return values
    try:
        found = np.asarray(values)
    except Exception:  # rows of different lengths, or an object that cannot become an array
        found = np.asarray(None)
    if found.dtype.kind not in "fiu":
        raise CommandError(f"{place_of(method)}: act gave {_described(values)}, expected an array {shape}: {EXPECTED}")
    if found.shape != shape:
        raise CommandError(f"{place_of(method)}: act gave the shape {found.shape}, expected {shape}: {EXPECTED}")
    return found


def checked_flag(method: Any) -> str:
    """The flag that a method has set, on one line."""
    if not isinstance(method.flag, str):
        raise CommandError(f"{place_of(method)}: flag is {shown(method.flag)}, expected a text")
    return " ".join(method.flag.split())


def nonfinite_fault(method: object) -> str:
    """The line about a method whose commands were not finite numbers."""
    return f"{place_of(method)}: act gave NaN or infinite velocities, which were flown as zero; expected {EXPECTED}"


@contextlib.contextmanager
def named_faults(method: type) -> Iterator[None]:
    """Any exception in the block, even SystemExit, becomes an InputError that says where; Ctrl-C stays Ctrl-C."""
    try:
        yield
    except (KeyboardInterrupt, EndedFromOutside):
        raise
    except BaseException as error:
        raise InputError(explained(error, method)) from error


def explained(error: BaseException, method: type) -> str:
    """An exception of a method in one line."""
    line = line_in(_file_of(method), error.__traceback__)
    ours = method.__module__.startswith("phygail.")
    if isinstance(error, InputError) and (ours or line is None or isinstance(error, CommandError)):
        return str(error)  # its text says everything
    where = place_of(method) if line is None else f"{_brief(_file_of(method))}, line {line}"
    return f"{where}: the method {getattr(method, 'name', method.__name__)!r} raised {told(error)}"


def told(error: BaseException) -> str:
    """Type and text of an exception; making the text may itself fail."""
    try:
        words = " ".join(str(error).split())
    except Exception:
        words = ""
    words = words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def place_of(method: object) -> str:
    """File and line of a method's rule, e.g. "mine.py, line 12"; of its class where the rule is inherited."""
    cls = method if isinstance(method, type) else type(method)
    file = _file_of(cls)
    rule = inspect.unwrap(cls.__dict__.get("act") or cls.__dict__.get("velocities") or cls)
    if inspect.isfunction(rule):
        return f"{_brief(rule.__code__.co_filename)}, line {rule.__code__.co_firstlineno}"
    with contextlib.suppress(OSError, TypeError):
        return f"{_brief(file)}, line {inspect.getsourcelines(cls)[1]}"
    return _brief(file)


def line_in(file: str, trace: TracebackType | None) -> int | None:
    """The line of a file where an exception passed through it last."""
    lines = [entry.lineno for entry in traceback.extract_tb(trace) if entry.filename == file]
    return lines[-1] if lines else None


def _file_of(cls: type) -> str:
    return getattr(sys.modules.get(cls.__module__), "__file__", None) or cls.__module__


def _brief(file: str) -> str:
    """The shortest form of a path, seen from the current folder."""
    with contextlib.suppress(ValueError, OSError):
        return os.fspath(Path(file).relative_to(Path.cwd()))
    return file


def _described(values: Any) -> str:
    return "nothing (None)" if values is None else f"{shown(values, 40)} of type {type(values).__name__}"


class Method(ABC):
    """Base of all methods; derive from GlobalMethod, SubnetMethod or LocalMethod.

    Attributes:
        name: How users call it.
        summary: One line for `phygail methods`.
        scope: What it may know.
        learned: Whether it carries trained weights. extra: The pip extra it needs, if any ("learn").
        rng: Its randomness: the caller's, or the scenario's from the beginning of an episode on
            (`methods.controller`). A method draws from it when it acts, not when it is made.
        stream: Key of its randomness, if not its name: a method that was renamed flies as before.
        dead_reckons: Where sensing is imperfect, positions are the mean of all readings so far, carried along with the
            flight, instead of the latest reading; teammates whose news is delayed are put where they are by now if
            they flew on (`sensing.imperfect`).
        flag: Set during the episode when a fallback fired; goes into the row.
        training: "module:job" that trains its weights (`phygail train NAME`), if there is one.
        talk: What its UAVs must broadcast in every step; None where no radio of a split swarm can tell it.
    """

    name: ClassVar[str]
    stream: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    scope: ClassVar[Scope]
    learned: ClassVar[bool] = False
    extra: ClassVar[str | None] = None
    training: ClassVar[str] = ""
    dead_reckons: ClassVar[bool] = False
    talk: Talk | None = None
    brings_rng: bool = False  # whether the caller gave it a generator

    def __init__(self, rng: np.random.Generator | None = None) -> None:
        self.rng = rng if rng is not None else np.random.default_rng(0)
        self.brings_rng = rng is not None
        self.flag = ""

    @abstractmethod
    def velocities(self, view: Any) -> np.ndarray:
        """(n, 2) m/s for all alive, in the order of the view's rows."""

    def act_imperfect(self, view: Any) -> np.ndarray:
        """(n, 2) m/s for all alive where sensing is imperfect; the same rule unless a method has a better one."""
        return self.velocities(view)


class GlobalMethod(Method):
    """Knows everything."""

    scope = Scope.GLOBAL

    @abstractmethod
    def act(self, view: GlobalView) -> np.ndarray:
        """(n, 2) m/s for all alive."""

    def velocities(self, view: GlobalView) -> np.ndarray:
        return self.act(view)


class SubnetMethod(Method):
    """Knows what the members of a subnet know together.

    `act` is the rule for one subnet. `act_all` and `act_imperfect` may be overridden by faster forms for all subnets at
    once; tests hold both against `act` for every registered method.
    """

    scope = Scope.SUBNET
    _copies: RuleCopies | None = None
    talk = FLOOD

    @abstractmethod
    def act(self, view: SubnetView) -> np.ndarray:
        """(m, 2) m/s for the members of one subnet."""

    def act_all(self, views: SubnetViews) -> np.ndarray:
        """(n, 2) m/s for all subnets."""
        commands = np.zeros_like(views.positions)
        for rows, view in zip(views.rows, views, strict=True):
            commands[rows] = checked_command(self.act(view), (len(rows), 2), self)
        return commands

    def act_imperfect(self, views: SubnetViews) -> np.ndarray:
        """(n, 2) m/s for all subnets where sensing is imperfect.

        Subnets are asked one by one, since each reads its own center; where news is delayed, each UAV runs its own copy
        of the rule on its own estimate of the subnet. An override serves all at once: it reads `views.centers`, and
        `views.news` if there is any (`sensing.imperfect.decide_delayed`).
        """
        if views.news is None:
            return SubnetMethod.act_all(self, views)
        if self._copies is None:
            self._copies = RuleCopies(self, len(views.members), views.news.delay_steps)
        return self._copies.fly(views)

    def tell(self, member: int) -> np.ndarray | None:
        """(N,) what UAV `member` has found out about every teammate, or None; of two numbers the greater counts.

        `RuleCopies` calls it, where each UAV runs a copy of the rule; a single copy for all simply remembers.
        """
        return None

    def hear(self, member: int, news: np.ndarray) -> None:
        """UAV `member` hears what its subnet has told."""

    def velocities(self, view: SubnetViews) -> np.ndarray:
        return self.act_all(view)


class RuleCopies:
    """A copy of the rule for every UAV. What a UAV finds out (`SubnetMethod.tell`) reaches the others with a delay."""

    def __init__(self, rule: SubnetMethod, count: int, delay_steps: int) -> None:
        self._rules = [copy.deepcopy(rule) for _ in range(count)]
        self._told: deque[list[np.ndarray | None]] = deque(maxlen=delay_steps)

    def fly(self, views: SubnetViews) -> np.ndarray:
        """(n, 2) m/s: every UAV's own command in its own estimate."""
        commands = np.zeros_like(views.positions)
        told = self._told[0] if self._told else [None] * len(self._rules)
        for rows, view in zip(views.rows, views, strict=True):
            news = [known for row in rows if (known := told[row]) is not None]
            heard = np.maximum.reduce(news) if news else None
            for place, row in enumerate(rows):
                rule = self._rules[row]
                if heard is not None:
                    rule.hear(int(view.members[place]), heard)
                wanted = rule.act(own_estimate(view, place, reckoned=rule.dead_reckons))
                commands[row] = checked_command(wanted, (len(rows), 2), rule)[place]
        self._told.append([rule.tell(int(me)) for rule, me in zip(self._rules, views.members, strict=True)])
        return commands


class LocalMethod(Method):
    """Each UAV knows what it senses itself; row r of the command may depend on row r of the view only."""

    scope = Scope.LOCAL
    talk = HELLO

    @abstractmethod
    def act(self, view: LocalView) -> np.ndarray:
        """(n, 2) m/s, row by row."""

    def velocities(self, view: LocalView) -> np.ndarray:
        return self.act(view)


# Names of version 0.1, in which `phygail` was the evolved rule; today it is the policy learned from scratch.
OLD_NAMES = {"phygail": "reach-evolved", "phygail-clone": "reach-cloned", "phygail-paper": "phygail-taught"}
OLD_VERSION = "0.1."
METHODS: Registry[type[Method]] = Registry(
    "method",
    aliases={"phygail-paper": "phygail-taught"},
    retired={
        "phygail-clone": "it was the start of the evolved rule in version 0.1, which is reach-cloned now",
    },
)

_HOOK = "act_imperfect"
OLD_HOOKS = {"reckons": "dead_reckons", "own_centers": _HOOK, "act_late": _HOOK, "senses": _HOOK}

M = TypeVar("M", bound=type[Method])


def register(cls: M) -> M:
    """Class decorator: make a method known under its name, which appears in lists, CSV cells and file names."""
    name = getattr(cls, "name", None)
    if not isinstance(name, str):
        raise InputError(f"the class {cls.__name__} has no name: give it one, e.g. name = 'mine'")
    if not re.fullmatch(r"[\w.-]+", cls.name):
        raise InputError(f"the method name {cls.name!r}: use letters, digits, '-', '_' and '.'")
    for old in OLD_HOOKS.keys() & vars(cls).keys():
        raise InputError(f"the method {cls.name!r} has {old!r}, which is {OLD_HOOKS[old]} now: see docs/extending.md")
    METHODS.add(cls.name, cls)
    return cls


def make_method(name: str, rng: np.random.Generator | None = None, **options: Any) -> Method:
    """A fresh instance for one episode."""
    cls = METHODS.get(name)
    if not installed(cls):
        needed = _EXTRA_NEEDS.get(str(cls.extra), cls.extra)
        raise InputError(f"the method {name!r} needs {needed}: pip install 'phygail[{cls.extra}]'")
    return cls(rng, **options)


def load_plugin(path: str | Path) -> None:
    """Import a Python file from outside the package so that the methods it registers are known."""
    file = Path(path).resolve()  # the form in which Python records __file__: the same file is not imported twice
    if not file.is_file():
        raise InputError(f"cannot read the plugin {path}: there is no such file")
    module_name = f"phygail_plugin_{file.stem}"
    if module_name in sys.modules and getattr(sys.modules[module_name], "__file__", None) == str(file):
        return
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise InputError(f"cannot import the plugin {file}: name a .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    known = set(METHODS)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[module_name]
        if isinstance(error, (KeyboardInterrupt, EndedFromOutside)):
            raise
        line = error.lineno if isinstance(error, SyntaxError) else line_in(str(file), error.__traceback__)
        where = f"the plugin {path}, line {line}" if line else f"the plugin {path}"
        words = f": {error}" if isinstance(error, InputError) else f" fails on import: {told(error)}"
        raise InputError(where + words) from error
    if known == set(METHODS):
        del sys.modules[module_name]
        raise InputError(
            f"the plugin {path} registers no method: put @register above a class derived from LocalMethod, "
            "SubnetMethod or GlobalMethod (phygail.methods.base)"
        )


def load_methods(plugins: Iterable[str | Path] = ()) -> None:
    """Register the methods of installed packages and of plugin files."""
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except (KeyboardInterrupt, EndedFromOutside):
            raise
        except BaseException as error:  # a broken package of another author must not stop this run
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
    names = [METHODS.canonical(name) for name in names]
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
    """The path of a policy file that one of the methods will fly, or an error."""
    if policy is None:
        return None
    path = Path(policy).resolve()
    if not path.is_file():
        raise InputError(f"cannot read the policy {policy}: there is no such file")
    if not any(map(takes_policy, names)):
        raise InputError(f"the policy {policy} is used by none of the methods {', '.join(names)}: add reach-evolved")
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


def why_not(name: str) -> str:
    """Why a method cannot fly here: unknown, its extra or its weights missing; empty if it can."""
    if name not in METHODS:
        return "there is no such method in this version"
    try:
        make_method(name)
    except InputError as error:
        return str(error)
    return ""
