"""`phygail scenarios`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from phygail.cli.options import Count, Numbers


@dataclass(frozen=True)
class Scenarios:
    """Draw scenarios whose swarm is split, and save them as JSON.

    For example:
      phygail scenarios --uavs 100,200 --damage 0.25,0.5 --cases 50 --seed 7 --out cases.json
      phygail scenarios --uavs 20:100:20 --damage 0.05:0.95:0.05 --cases 5 --out cases.json
    """

    uavs: Numbers
    """Swarm sizes, e.g. 100,200 or 20:100:20 (the last included)."""
    damage: Numbers
    """Damage ratios, e.g. 0.25,0.5 or 0.05:0.95:0.05 (the last included)."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE.json")]
    """Where to save them."""
    cases: Count = 50
    """Scenarios per size and ratio."""
    seed: Count = 0
    """Equal seeds give equal scenarios."""

    def run(self) -> int:
        """Draw and save."""
        from phygail.cli.console import complain
        from phygail.evaluation.grid import Grid, parse_numbers, parse_whole
        from phygail.swarm.scenario import save_scenarios

        grid = Grid(parse_whole(self.uavs, "--uavs"), parse_numbers(self.damage, "--damage"), self.cases, self.seed)
        save_scenarios(self.out, grid.scenarios())
        complain(f"{len(grid):,} scenarios in {self.out}")
        return 0
