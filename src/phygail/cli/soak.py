"""`phygail soak`."""

from __future__ import annotations

import json
import math
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from phygail.cli.options import PLAIN_WORLD, Count, Safety, WorldOptions
from phygail.config import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from phygail.swarm.scenario import Scenario
    from phygail.swarm.soak import Limits

EXPECTED = 20  # most failures saved as files where a condition of the argument is not met; all others are saved
BATCH = 100  # episodes between two lines of the record
TWIN = "reach-evolved"  # the method that has a compiled twin
ODD = ("redundant", "level", "wind", "detect-miss", "detect-false")  # what the twin does not know
INERTIA = {"accel", "lag"}


@dataclass(frozen=True)
class Soak:
    """Fly a method on thousands of random and adversarial cases, each checked independently. Run again to resume.

    For example:
      phygail soak --episodes 1000 --out soak
      phygail soak --method reach-evolved --episodes 100000 --workers 2 --out soak
      phygail soak --episodes 10000 --safety on --out soak-filtered
      phygail soak --episodes 1000 --world "waves=2:30:100" --out soak-waves
    """

    out: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """Folder for soak.json and, for every failure, a scenario file."""
    episodes: Count = 1000
    """How many, those of earlier runs included."""
    method: Annotated[str, tyro.conf.arg(metavar="NAME")] = TWIN
    """Method that flies."""
    safety: Safety = "off"
    """Filter every command; the checker then looks for contacts in continuous time."""
    seed: Count = 0
    """Of the cases."""
    workers: Count = 1
    """Processes; results do not depend on it."""
    world: WorldOptions = PLAIN_WORLD

    def run(self) -> int:
        """Fly what is left and say what was found."""
        from phygail.cli.options import episodes_bar, note
        from phygail.methods.base import METHODS

        METHODS.get(self.method)
        if not 1 <= self.episodes <= 10_000_000:
            raise InputError(f"{self.episodes} episodes: choose from 1 to 10,000,000")
        if self.workers < 1:
            raise InputError(f"{self.workers} workers: choose at least 1")
        spec, safety = self.world.spec(), self.safety == "on"
        record = Record(self.out, {"method": self.method, "seed": self.seed, "safety": self.safety, "world": spec})
        kind = flown_by(self.method, spec, safety=safety)
        note(f"{kind}; every flight is checked by a second program")
        batches = [(n, min(BATCH, self.episodes - n)) for n in range(record.done, self.episodes, BATCH)]
        begun, before = time.monotonic(), record.done
        with episodes_bar() as progress:
            for found in _results(batches, (self.seed, self.method, spec, safety), self.workers):
                record.add(found)
                progress(record.done, self.episodes)
        seconds = time.monotonic() - begun
        if record.done > before:
            note(f"{(record.done - before) / max(seconds, 1e-9):.1f} episodes per second")
        print(record.line())
        return 1 if record.failures else 0


class Record:
    """soak.json and the scenario files of failures.

    Args:
        folder: Where. settings: What decides the cases and flights; a folder holds one.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        from phygail.files import make_folder, read_json

        self.folder, self.settings = folder, settings
        make_folder(folder)
        self._path = folder / "soak.json"
        content = read_json(self._path) if self._path.exists() else {"settings": settings, "done": 0, "steps": 0}
        if not isinstance(content, dict) or content.get("settings") != settings:
            raise InputError(f"{folder} holds another soak ({content.get('settings')}): choose another folder")
        self.done, self.steps = int(content["done"]), int(content["steps"])
        self.split = int(content.get("split", 0))
        self.argued = int(content.get("argued", self.split))  # records of the plain world had no such count
        self.failures: list[dict[str, Any]] = content.get("failures", [])

    def add(self, found: dict[str, Any]) -> None:
        """One more batch, on disk when this returns."""
        from phygail.files import write_text
        from phygail.swarm.scenario import save_scenarios

        for scenario, reasons, unproved in found["failures"]:
            if not unproved or len(self.failures) < EXPECTED:
                save_scenarios(self.folder / f"{scenario.id}.json", [scenario])
            self.failures.append({"id": scenario.id, "reasons": reasons, "condition": unproved or "all hold"})
        self.done += found["episodes"]
        self.steps += found["steps"]
        self.split += found["split"]
        self.argued += found["argued"]
        content = {"settings": self.settings, "done": self.done, "split": self.split, "argued": self.argued,
                   "steps": self.steps, "failures": self.failures}  # fmt: skip
        write_text(self._path, json.dumps(content, indent=1) + "\n")

    def line(self) -> str:
        """Counts and failures in one line."""
        failed = f"{len(self.failures)} failures" + (f", saved in {self.folder}" if self.failures else "")
        where = sum(failure.get("condition") == "all hold" for failure in self.failures)
        argued = f"; {where} in the {self.argued:,} where the conditions of the argument hold"
        flown = "split at the start" if not self.settings["world"] else "flown"
        return f"{self.done:,} episodes, {self.split:,} of them {flown}, {self.steps:,} steps: {failed}{argued}"


def _results(batches: list[tuple[int, int]], settings: tuple[int, str, str, bool], workers: int) -> Any:
    """What each batch found, in order."""
    if workers <= 1:
        yield from (fly_batch(first, count, *settings) for first, count in batches)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(_fly_settings, [(*batch, *settings) for batch in batches])


def _fly_settings(arguments: tuple[int, int, int, str, str, bool]) -> dict[str, Any]:
    return fly_batch(*arguments)


def flown_by(method: str, spec: str, *, safety: bool) -> str:
    """What flies: the compiled twin, or why not."""
    from phygail.swarm.recipe import parse_world

    odd = [name for name in ODD if name in parse_world(spec)]
    if method != TWIN:
        return f"{method} itself flies (the compiled twin is that of {TWIN})"
    if odd or (safety and INERTIA & parse_world(spec).keys()):
        return f"{method} itself flies (its compiled twin does not know {', '.join(odd) or 'inertia with the filter'})"
    if not _numba():
        return f"{method} itself flies: its compiled twin needs numba (pip install 'phygail[learn]')"
    return f"the compiled twin of {method} flies"


def _numba() -> bool:
    import importlib.util

    return importlib.util.find_spec("numba") is not None


def fly_batch(first: int, count: int, seed: int, method: str, spec: str, safety: bool) -> dict[str, Any]:
    """Fly episodes `first` ... `first + count - 1` and check each."""
    from phygail.sensing.worlds import unproved
    from phygail.swarm.recipe import parse_world, with_world
    from phygail.swarm.soak import is_split, soak_case

    options = parse_world(spec)
    fly = _method_itself(method, safety=safety)
    if flown_by(method, spec, safety=safety).startswith("the compiled twin"):
        fly = _twin_in_world(safety=safety) if options or safety else _twin()
    failures, steps, split, argued = [], 0, 0, 0
    for number in range(first, first + count):
        scenario = soak_case(seed, number)
        if options:
            try:
                scenario = with_world(scenario, options)
            except InputError:  # no room for its obstacles, or nobody left to lose
                continue
        elif not is_split(scenario):
            continue
        split += 1
        flown, reasons = fly(scenario)
        steps += flown
        why = unproved(scenario) if options else ""
        argued += not why
        if reasons:
            failures.append((scenario, reasons, why))
    return {"episodes": count, "steps": steps, "split": split, "argued": argued, "failures": failures}


def _twin() -> Callable[[Scenario], tuple[int, list[str]]]:
    """The compiled flight of reach-evolved in the plain world."""
    from phygail.methods.reach_evolved.compiled import trace_policy
    from phygail.methods.reach_evolved.export import load_gate_weights
    from phygail.swarm.compiled import World
    from phygail.swarm.soak import faults
    from phygail.weights import bundled

    vector, shape, belief, _ = load_gate_weights(bundled(TWIN).with_suffix(".safetensors"))

    def fly(scenario: Scenario) -> tuple[int, list[str]]:
        physics = scenario.physics
        trace = trace_policy(World.of(scenario), vector, shape, belief)
        found = faults(
            trace, range_m=physics.range_m, stride_m=physics.stride_m, contact_m=physics.contact_m, filtered=False
        )
        return len(trace) - 1, found

    return fly


def _twin_in_world(*, safety: bool) -> Callable[[Scenario], tuple[int, list[str]]]:
    """The compiled flight of reach-evolved in other worlds, or with the filter."""
    from phygail.methods.reach_evolved.export import load_gate_weights
    from phygail.methods.reach_evolved.twin import fly_in_world, knows
    from phygail.swarm.soak import trace_faults
    from phygail.weights import bundled

    vector, shape, belief, _ = load_gate_weights(bundled(TWIN).with_suffix(".safetensors"))
    itself = _method_itself(TWIN, safety=safety)

    def fly(scenario: Scenario) -> tuple[int, list[str]]:
        if not knows(scenario, safety=safety):
            return itself(scenario)
        trace, present, success = fly_in_world(scenario, vector, shape, belief, safety=safety)
        found = trace_faults(trace, present, _limits(scenario, safety=safety))
        return len(trace) - 1, _with_end(found, len(trace) - 1, success=success)

    return fly


def _method_itself(method: str, *, safety: bool) -> Callable[[Scenario], tuple[int, list[str]]]:
    """The method itself, in any world."""
    from phygail.methods.controller import fly_case
    from phygail.swarm.soak import world_faults

    def fly(scenario: Scenario) -> tuple[int, list[str]]:
        episode, _ = fly_case(scenario, method, safety=safety, record=True)
        found = world_faults(
            [state.members for state in episode.states],
            [state.positions for state in episode.states],
            _limits(scenario, safety=safety),
        )
        return episode.steps, _with_end(found, episode.steps, success=episode.terminated)

    return fly


def _with_end(found: list[str], steps: int, *, success: bool) -> list[str]:
    """The faults of a flight; a split network at the end is added unless the checker has reported it."""
    if success or any(reason.startswith("still") for reason in found):
        return found
    return [*found, f"not reconnected after {steps} steps"]


def _limits(scenario: Scenario, *, safety: bool) -> Limits:
    """What a flight must keep in the scenario's world."""
    from phygail.swarm.soak import Limits

    world, physics = scenario.world, scenario.physics
    corners = [(obstacle.corners, obstacle.radius_m) for obstacle in world.obstacles]
    disc = world.links.model == "disc" and not world.level  # outages and shadows only take links of the disc away
    return Limits(
        stride_m=physics.stride_m + math.hypot(*world.vehicle.wind_mps) * physics.step_s,
        contact_m=physics.contact_m if safety else 0.0,
        range_m=physics.range_m if disc else 0.0,
        discs=tuple((*points[0], radius) for points, radius in corners if len(points) == 1),
        walls=tuple((*points[0], *points[1], radius) for points, radius in corners if len(points) == 2),
        change_m=world.vehicle.accel_mps2 * physics.step_s**2,
        heights=world.altitude or (),
        hold_steps=world.hold_steps,
    )
