"""How experiments fly: leg by leg, size by size, into folders that grow."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from phygail.evaluation.collect import collect
from phygail.evaluation.draws import draw_cases
from phygail.evaluation.experiment import Leg
from phygail.evaluation.grid import Cases
from phygail.evaluation.pool import Engine
from phygail.evaluation.runner import Progress, make_job
from phygail.swarm.scenario import Scenario

log = logging.getLogger("phygail")


@dataclass(frozen=True)
class Flying:
    """How to fly: nothing here changes a row but for its timings.

    Attributes:
        workers: Processes.
        timeout: Wall time per episode, s.
        plugins: Python files that register methods.
        engine: Makes the place to fly for so many workers; worker processes on this machine if None.
        progress: Opens a progress report with a title.
        command: How a user repeats this run.
        tell: Told what is going on.
    """

    workers: int = 2
    timeout: float | None = None
    plugins: tuple[Path, ...] = ()
    engine: Callable[[int], Engine] | None = None
    progress: Callable[[str], AbstractContextManager[Progress]] | None = None
    command: str = ""
    tell: Callable[[str], None] = log.info


def fly_leg(
    leg: Leg, folder: Path, how: Flying, policy: Path | None = None, kin: Sequence[Path] = ()
) -> dict[str, list[str]]:
    """Fly one leg, size by size; gives what must be said about its settings, by leg and size.

    Args:
        leg: What to fly. folder: For its rows. how: How to fly.
        policy: Policy file for the methods that fly one.
        kin: Folders that may hold some of the same flights.
    """
    notes = {}
    for uavs, ratios, cases in leg.settings():
        scenarios, remarks = draw_cases(leg, uavs, ratios, cases, leg.seed)
        for remark in remarks:
            log.warning("%s", remark)
        notes[f"{leg.name} {uavs}"] = remarks
        if not isinstance(scenarios, list) or scenarios:
            fly_scenarios(scenarios, leg, folder, how, policy, f"{folder.name}, N = {uavs:,}", kin)
    return notes


def fly_scenarios(
    scenarios: Cases | list[Scenario],
    leg: Leg,
    folder: Path,
    how: Flying,
    policy: Path | None = None,
    title: str = "",
    kin: Sequence[Path] = (),
) -> None:
    """Fly scenarios with the settings of a leg."""
    job = make_job(
        scenarios, leg.methods, safety=leg.safety, timeout=how.timeout, policy=policy, plugins=how.plugins,
        sensing=leg.sensing,
    )  # fmt: skip
    workers = 1 if leg.alone else how.workers
    engine = how.engine(workers) if how.engine else None
    with how.progress(title or folder.name) if how.progress else nullcontext() as progress:
        collect(
            job, folder, {"source": leg.source, "seed": leg.seed}, workers=workers, engine=engine, progress=progress,
            command=how.command, kin=kin,
        )  # fmt: skip
