"""`phygail scenarios`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from phygail.cli.options import (
    PAPER_RADIO,
    PLAIN_WORLD,
    Count,
    FailureSource,
    MaybeNumbers,
    Radio,
    WorldOptions,
    drawn_failures,
    require_failures,
    require_one,
)
from phygail.config import InputError, physics_line, physics_values

if TYPE_CHECKING:
    from phygail.config import Physics
    from phygail.swarm.scenario import Scenario


@dataclass(frozen=True)
class Scenarios:
    """Draw scenarios whose swarm is split, and save them as JSON.

    For example:
      phygail scenarios --uavs 100,200 --damage 0.25,0.5 --cases 50 --seed 7 --out cases.json
      phygail scenarios --uavs 20:100:20 --damage 0.05:0.95:0.05 --cases 5 --out cases.json
      phygail scenarios --uavs 100 --damage 0.5 --range-m 300 --speed-mps 15 --out cases.json
      phygail scenarios --uavs 100 --failures 1,2,3 --source region --cases 50 --out cases.json
      phygail scenarios --uavs 100 --damage 0.5 --waves 3:40:150 --hold 10 --out cases.json
      phygail scenarios --layout paper-100,mine.csv --damage 0.1,0.5,0.9 --cases 10 --out cases.json
    """

    out: Annotated[Path, tyro.conf.arg(metavar="FILE.json")]
    """Where to save them."""
    damage: MaybeNumbers = None
    """Damage ratios, e.g. 0.25,0.5 or 0.05:0.95:0.05 (the last included)."""
    failures: MaybeNumbers = None
    """Numbers of failures, e.g. 1,2,3, instead of damage ratios; a critical UAV is among them."""
    source: FailureSource = None
    """Where the others fail: spread over the swarm (single, unless given) or around the critical one (region)."""
    uavs: MaybeNumbers = None
    """Draw fresh layouts of these sizes, e.g. 100,200 or 20:100:20 (the last included)."""
    layout: Annotated[str | None, tyro.conf.arg(metavar="LIST", help_behavior_hint="")] = None
    """Damage these layouts instead: CSV files, or the paper's (paper-20 ... paper-1000), separated by commas."""
    cases: Count = 50
    """Scenarios per size and ratio."""
    seed: Count = 0
    """Equal seeds give equal scenarios."""
    radio: Radio = PAPER_RADIO
    world: WorldOptions = PLAIN_WORLD

    def run(self) -> int:
        """Draw and save."""
        from phygail.cli.options import note
        from phygail.swarm.scenario import save_scenarios

        if require_one("source of layouts", {"--uavs": self.uavs, "--layout": self.layout}) is None:
            raise InputError("no swarm is named: give --uavs 100,200 or --layout paper-100")
        if require_one("kind of damage", {"--damage": self.damage, "--failures": self.failures}) is None:
            raise InputError("nobody is lost: give --damage 0.25,0.5 or --failures 1,2,3")
        physics = self.radio.physics()
        self.world.tell(physics)
        if self.failures is not None and self.world.spec():
            raise InputError("--failures are those of the plain world: give --damage with the options of a world")
        scenarios = self._damaged(physics) if self.failures is None else self._failures(self.failures, physics)
        save_scenarios(self.out, scenarios)
        note(f"{len(scenarios):,} scenarios in {self.out}: {physics_line(physics_values([physics]))}")
        return 0

    def _failures(self, failures: str, physics: Physics) -> list[Scenario]:
        if self.uavs is None:
            raise InputError("--failures are drawn on fresh layouts: give --uavs 100,200 instead of --layout")
        return drawn_failures(self.uavs, failures, self.source, self.cases, self.seed, physics).scenarios()

    def _damaged(self, physics: Physics) -> list[Scenario]:
        from phygail.experiments.grid import Grid, damaged_layouts, parse_numbers, parse_whole

        require_failures(self.source)
        damage = parse_numbers(self.damage or "", "--damage")
        if self.uavs is not None:
            sizes = parse_whole(self.uavs, "--uavs")
            return Grid(sizes, damage, self.cases, self.seed, physics, self.world.spec()).scenarios()
        return self.world.applied(
            damaged_layouts((self.layout or "").split(","), damage, self.cases, self.seed, physics)
        )
