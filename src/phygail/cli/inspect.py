"""What there is before any flight: `phygail inspect`, `phygail scenarios` and `phygail methods`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from phygail.cli.options import (
    PAPER_RADIO,
    PLAIN_WORLD,
    Count,
    FailureSource,
    MaybeNumbers,
    Plugins,
    Radio,
    Switch,
    WorldOptions,
    drawn_failures,
    require_failures,
    require_one,
)
from phygail.config import InputError, physics_line, physics_values

if TYPE_CHECKING:
    from phygail.config import Physics
    from phygail.experiments.failures import Inspection
    from phygail.swarm.scenario import Scenario

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


# --- scenarios -------------------------------------------------------------------------------------------------------


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


# --- methods ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Methods:
    """Every method: name, scope, learned or not, needs which extra.

    For example:
      phygail methods
      phygail methods --plugin mine.py
      phygail methods --json
    """

    plugin: Plugins = ()
    """Python file that registers further methods."""
    json: Switch = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        """List them."""
        from phygail.cli.options import stdout
        from phygail.methods import METHODS
        from phygail.methods.base import installed, load_methods
        from phygail.render.tables import TextTable

        load_methods(self.plugin)
        known = [METHODS.get(name) for name in METHODS]
        if self.json:
            facts = [
                {"name": cls.name, "scope": cls.scope.value, "learned": cls.learned, "extra": cls.extra,
                 "installed": installed(cls), "summary": cls.summary}
                for cls in known
            ]  # fmt: skip
            print(json.dumps({"methods": facts}, indent=1))
            return 0
        header = ("name", "scope", "learned", "extra", "what it does")
        rows = [
            [cls.name, cls.scope.value, "yes" if cls.learned else "no", cls.extra or "", cls.summary] for cls in known
        ]
        stdout().print(TextTable("Methods (an extra is installed by pip install 'phygail[EXTRA]')", header, rows, True))
        return 0
