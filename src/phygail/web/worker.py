"""A process that flies one race and tells what happens, so that a slow planner never blocks the server."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from phygail.swarm.episode import Controller
from phygail.swarm.scenario import Scenario

# What the worker sends: ("frame", lane, step, positions) or ("end", lane, steps, converged, flag).
Report = tuple[str, int, int, np.ndarray] | tuple[str, int, int, bool, str]


def fly_race(
    reports: Connection, scenario: Scenario, names: Sequence[str], safety: bool, plugins: tuple[Path, ...]
) -> None:
    """Fly all lanes side by side, the hindmost first, and report every step; runs in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's business: it ends its workers
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    from phygail.evaluation.roster import load_methods

    try:
        load_methods(plugins)
        lanes = [_Lane(number, name, scenario, safety) for number, name in enumerate(names)]
        while flying := [lane for lane in lanes if not lane.over]:
            min(flying, key=lambda lane: lane.state.step).advance(reports)
    except (BrokenPipeError, ConnectionResetError):
        pass  # nobody listens any more
    finally:
        reports.close()


class _Lane:
    """One method in flight."""

    def __init__(self, number: int, name: str, scenario: Scenario, safety: bool) -> None:
        from phygail.swarm.state import initial_state

        self.number, self.name, self.safety, self.scenario = number, name, safety, scenario
        self.state = initial_state(scenario)
        self.over = False
        self._command: Controller | None = None

    def advance(self, reports: Connection) -> None:
        """One step; whatever a method raises ends its lane, not the race."""
        try:
            self._step(reports)
        except (BrokenPipeError, ConnectionResetError):
            raise
        except Exception as error:  # a method from a plugin may raise anything
            self.over = True
            text = f"{type(error).__name__}: {error}"[:200]
            reports.send(("end", self.number, self.state.step, False, text))

    def _step(self, reports: Connection) -> None:
        from phygail.methods.base import controller, make_method
        from phygail.rng import generator
        from phygail.swarm.dynamics import step

        if self._command is None:
            rng = generator(self.scenario.seed or 0, "method", self.name, self.scenario.id)
            self.method = make_method(self.name, rng)
            self._command = controller(self.method, self.scenario)
        if not (self.state.terminated or self.state.truncated):
            self.state = step(self.state, self._command(self.state), safety=self.safety)
            reports.send(("frame", self.number, self.state.step, self.state.positions))
        if self.state.terminated or self.state.truncated:
            self.over = True
            reports.send(("end", self.number, self.state.step, self.state.terminated, self.method.flag))
