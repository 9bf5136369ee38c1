"""`phygail inspect`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from phygail.cli.options import PAPER_RADIO, Count, Radio, Switch
from phygail.config import physics_line, physics_values

if TYPE_CHECKING:
    from phygail.experiments.failures import Inspection

_SHOWN = 20  # critical UAVs named in the table; --json names all


@dataclass(frozen=True)
class Inspect:
    """What a failure does to this swarm: links, critical UAVs and the cost of each, split probability by damage.

    For example:
      phygail inspect layout.csv
      phygail inspect paper-100 --json
      phygail inspect layout.csv --range-m 300
    """

    layout: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="LAYOUT.csv")]
    """CSV with the header x_m,y_m, or one of the paper's layouts: paper-20 ... paper-1000."""
    seed: Count = 0
    """Of the random damage."""
    json: Switch = False
    """Print JSON instead of tables."""
    radio: Radio = PAPER_RADIO

    def run(self) -> int:
        """Inspect and print."""
        from phygail.experiments.failures import inspect_layout
        from phygail.swarm.layout import find_layout

        found = inspect_layout(find_layout(self.layout).positions, self.radio.physics(), seed=self.seed)
        if self.json:
            print(json.dumps(asdict(found), indent=2))
        else:
            _print_tables(found)
        return 0


def _print_tables(found: Inspection) -> None:
    from phygail.cli.options import stdout
    from phygail.render.tables import TextTable

    named = ", ".join(map(str, found.critical[:_SHOWN])) + (", ..." if len(found.critical) > _SHOWN else "")
    facts = [
        ["UAVs", f"{found.uavs:,}"],
        ["links", f"{found.links:,} (mean degree {found.mean_degree:.1f})"],
        ["subnets", "1 (connected)" if found.subnets == 1 else f"{found.subnets} (split already)"],
        ["smallest separation", f"{found.separation_m:.1f} m"],
        ["pairs in contact", f"{found.contacts:,} (closer than {found.physics.contact_m:g} m)"],
        ["critical UAVs", _critical_text(len(found.critical))],
        *([["", named]] if named else []),
    ]
    outlook = [
        [f"{o.ratio:g}", str(o.damaged), f"{o.split:.0%}", f"{o.subnets:.1f}", f"{o.largest:.0%}"]
        for o in found.outlook
    ]
    console = stdout()
    console.print(physics_line(physics_values([found.physics])))
    console.print(TextTable("The swarm", (), facts, running=True))
    if found.failures:
        console.print(TextTable(*_failure_cells(found)))
    console.print(
        TextTable("Random damage", ("damage", "UAVs lost", "splits", "subnets", "alive in the largest"), outlook)
    )


def _critical_text(count: int) -> str:
    """How many UAVs are critical, and what that means."""
    if count == 0:
        return "0 (no single loss splits a subnet)"
    return f"{count} (the loss of {'it' if count == 1 else 'any of them'} alone splits a subnet)"


def _failure_cells(found: Inspection) -> tuple[str, tuple[str, ...], list[list[str]]]:
    """(title, header, rows): the critical UAVs whose loss cuts off most, and what it costs."""
    worst = sorted(found.failures, key=lambda f: (-f.cut_off, -f.bound_s, f.uav))[:_SHOWN]
    title = "Loss of one critical UAV" + (f", the worst {_SHOWN}" if len(found.critical) > _SHOWN else "")
    header = ("UAV", "subnets", "UAVs cut off", "least time s", "stand-ins", "they fly m")
    rows = [
        [str(f.uav), str(f.subnets), str(f.cut_off), f"{f.bound_s:.1f}", str(f.stand_ins) if f.stand_ins else "none",
         f"{f.stand_in_m:.1f}" if f.stand_ins else "-"]
        for f in worst
    ]  # fmt: skip
    return title, header, rows
