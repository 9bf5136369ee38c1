"""What a method is, how it is registered, and how it becomes a controller of the simulator.

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

import importlib.util
import re
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from phygail.config import EndedFromOutside, InputError
from phygail.methods.faults import checked_command, line_in, told
from phygail.perception.view import GlobalView, LocalView, Observer, Scope, SubnetView, SubnetViews
from phygail.registry import Registry
from phygail.rng import generator
from phygail.swarm.episode import Controller, Episode, fly
from phygail.swarm.scenario import Scenario
from phygail.swarm.state import SwarmState


class Method(ABC):
    """Base of all methods; derive from GlobalMethod, SubnetMethod or LocalMethod.

    Attributes:
        name: How users call it.
        summary: One line for `phygail methods`.
        scope: What it may know.
        learned: Whether it carries trained weights.
        extra: The pip extra it needs, if any ("learn").
        rng: Its randomness; that of the caller, or from the beginning of an episode on that of the scenario
            (`begin_episode`). Draw from it when you act, not when you are made.
        flag: Set during the episode when a fallback fired; goes into the row.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    scope: ClassVar[Scope]
    learned: ClassVar[bool] = False
    extra: ClassVar[str | None] = None
    brings_rng: bool = False  # whether the caller gave it a generator

    def __init__(self, rng: np.random.Generator | None = None) -> None:
        self.rng = rng if rng is not None else np.random.default_rng(0)
        self.brings_rng = rng is not None
        self.flag = ""

    @abstractmethod
    def velocities(self, view: Any) -> np.ndarray:
        """(n, 2) m/s for all alive, in the order of the view's rows."""


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

    `act` is the rule for one subnet. `act_all` may be overridden by a faster form for all subnets at once; a test holds
    it against `act` for every registered method.

    Attributes:
        reckons: Where sensing is imperfect, it wants the mean of all readings so far instead of the latest one, and
            the others, if news of them is late, where they are by now (`perception.noise`).
        own_centers: Its `act_all` asks every subnet for its own idea of the center (`SubnetViews.centers`), so that
            one call serves all of them also where sensing is noisy.
    """

    scope = Scope.SUBNET
    reckons: ClassVar[bool] = False
    own_centers: ClassVar[bool] = False

    @abstractmethod
    def act(self, view: SubnetView) -> np.ndarray:
        """(m, 2) m/s for the members of one subnet."""

    def act_all(self, views: SubnetViews) -> np.ndarray:
        """(n, 2) m/s for all subnets."""
        commands = np.zeros_like(views.positions)
        for rows, view in zip(views.rows, views, strict=True):
            commands[rows] = checked_command(self.act(view), (len(rows), 2), self)
        return commands

    def tell(self, member: int) -> np.ndarray | None:
        """(N,) what UAV `member` has found out about every teammate, None for nothing; of two the greater is right.

        For UAVs that each run a copy of the rule (`methods.sensed`): one copy for all simply remembers.
        """
        return None

    def hear(self, member: int, news: np.ndarray) -> None:
        """UAV `member` hears what its subnet has told."""

    def velocities(self, view: SubnetViews) -> np.ndarray:
        return self.act_all(view)


class LocalMethod(Method):
    """Each UAV knows what it senses itself; row r of the command may depend on row r of the view only."""

    scope = Scope.LOCAL

    @abstractmethod
    def act(self, view: LocalView) -> np.ndarray:
        """(n, 2) m/s, row by row."""

    def velocities(self, view: LocalView) -> np.ndarray:
        return self.act(view)


METHODS: Registry[type[Method]] = Registry("method")

M = TypeVar("M", bound=type[Method])


def register(cls: M) -> M:
    """Class decorator: make a method known under its name, which stands in lists, CSV cells and file names."""
    name = getattr(cls, "name", None)
    if not isinstance(name, str):
        raise InputError(f"the class {cls.__name__} has no name: give it one, e.g. name = 'mine'")
    if not re.fullmatch(r"[\w.-]+", cls.name):
        raise InputError(f"the method name {cls.name!r}: use letters, digits, '-', '_' and '.'")
    METHODS.add(cls.name, cls)
    return cls


def make_method(name: str, rng: np.random.Generator | None = None, **options: Any) -> Method:
    """A fresh instance for one episode."""
    cls = METHODS.get(name)
    if cls.extra == "learn" and importlib.util.find_spec("torch") is None:
        raise InputError(f"the method {name!r} needs torch: pip install 'phygail[learn]'")
    return cls(rng, **options)


def begin_episode(method: Method, scenario: Scenario) -> None:
    """The seed rule: a method's randomness depends on the scenario (its seed and id) and on the method's name only.

    Whoever flies, flies the same flight. A generator that the caller gave to the method is left alone.
    """
    if not method.brings_rng:
        method.rng = generator(scenario.seed or 0, "method", method.name, scenario.id)


def controller(method: Method, scenario: Scenario) -> Controller:
    """The method as a function from states to velocities; it sees only its scope."""
    begin_episode(method, scenario)
    observer = Observer(scenario)

    def command(state: SwarmState) -> np.ndarray:
        view = observer.observe(state, method.scope)
        return checked_command(method.velocities(view), state.positions.shape, method)

    return command


def run_episode(
    scenario: Scenario,
    method: str | Method,
    *,
    safety: bool = False,
    record: bool = False,
    rng: np.random.Generator | None = None,
) -> Episode:
    """Fly one method on one scenario.

    Args:
        scenario: The case.
        method: A registered name, or an instance made for this episode.
        safety: Filter every command so that no new contact can happen.
        record: Keep every state (`Episode.states`) for pictures and trajectories.
        rng: Randomness of a method that is named, in place of the scenario's own (`begin_episode`).
    """
    pilot = make_method(method, rng) if isinstance(method, str) else method
    return fly(scenario, controller(pilot, scenario), safety=safety, record=record)


def load_plugin(path: str | Path) -> None:
    """Import a Python file from outside the package so that the methods it registers are known."""
    file = Path(path).resolve()  # as Python records it in __file__: the same file is not imported twice
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
