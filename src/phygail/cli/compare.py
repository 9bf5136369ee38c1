"""`phygail compare`, and `phygail benchmark`, which compares on frozen cases."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from phygail.cli.options import (
    PAPER_RADIO,
    PLAIN_WORLD,
    Count,
    EngineName,
    FailureSource,
    MaybeNumbers,
    Names,
    Plugins,
    Policy,
    Radio,
    Safety,
    Switch,
    WorldOptions,
    command_line,
    drawn_failures,
    make_engine,
    require_failures,
    require_one,
)
from phygail.config import InputError, physics_line, physics_values, require_extra

if TYPE_CHECKING:
    from phygail.experiments.failures import Failures
    from phygail.experiments.grid import Grid
    from phygail.swarm.scenario import Scenario


@dataclass(frozen=True)
class Compare:
    """Fly methods on scenarios: a row per episode, a summary, figures. Run the same command again to resume.

    For example:
      phygail compare --uavs 100,200 --damage 0.25,0.5 --cases 10 --methods sidr,reach,convex --out results/mine
      phygail compare --scenarios cases.json --methods all --out results/all --workers 8
      phygail compare --uavs 100 --failures 1 --source single --methods ledir,dcrmf,convex --out results/one
      phygail compare --uavs 100 --damage 0.75 --waves 3:40:150 --methods sidr,reach-evolved --out results/waves
      RAY_ADDRESS=auto phygail compare --scenarios cases.json --methods all --out results/all --engine ray
      phygail compare --uavs 50 --damage 0.05:0.95:0.1 --methods sidr,drift --plugin drift.py --out results/drift
    """

    methods: Names
    """Names separated by commas, or all."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """Folder for rows.csv, run.json, summary.md and figures."""
    scenarios: Annotated[Path | None, tyro.conf.arg(metavar="FILE.json", help_behavior_hint="")] = None
    """Scenario file, instead of --uavs and --damage."""
    uavs: MaybeNumbers = None
    """Swarm sizes, e.g. 100,200 or 20:100:20 (the last included)."""
    damage: MaybeNumbers = None
    """Damage ratios, e.g. 0.25,0.5 or 0.05:0.95:0.1 (the last included)."""
    failures: MaybeNumbers = None
    """Numbers of failures, e.g. 1,2,3, instead of damage ratios; a critical UAV is among them."""
    source: FailureSource = None
    """Where the others fail: spread over the swarm (single, unless given) or around the critical one (region)."""
    cases: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """Scenarios per size and damage, 50 unless given."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")] = None
    """Of the scenarios, 0 unless given."""
    workers: Count = 2
    """Processes; rows do not depend on it."""
    engine: EngineName = "local"
    """Processes on this machine, or Ray: the cluster at RAY_ADDRESS, of which every CPU is used."""
    safety: Safety = "off"
    """Filter every command so that no new contact can happen."""
    noise: Annotated[float, tyro.conf.arg(metavar="M")] = 0.0
    """Standard deviation of every position that a method sees, in meters, fresh in every step."""
    bias: Annotated[float, tyro.conf.arg(metavar="M")] = 0.0
    """Standard deviation of a constant error of the stored roster and center, in meters, drawn once per flight."""
    delay: Count = 0
    """Age of what a method knows about neighbors, in steps."""
    policy: Policy = None
    """Policy for the methods that fly one."""
    plugin: Plugins = ()
    """Python file that registers further methods."""
    timeout: Annotated[float | None, tyro.conf.arg(metavar="S", help_behavior_hint="")] = None
    """Wall time per episode in seconds; a longer one ends as a failure flagged timeout."""
    radio: Radio = PAPER_RADIO
    world: WorldOptions = PLAIN_WORLD

    def run(self) -> int:
        """Compare and print the overall table."""
        from phygail.cli.options import episodes_bar, note, stdout
        from phygail.experiments.runner import compare
        from phygail.sensing.imperfect import Sensing

        sensing = Sensing(self.noise, self.delay, self.bias)
        cases = self._cases()
        self.world.tell(self.radio.physics())
        with episodes_bar() as progress:
            rows = compare(
                cases, self.methods, self.out, workers=self.workers, safety=self.safety == "on",
                timeout=self.timeout, policy=self.policy, plugins=self.plugin, progress=progress,
                command=command_line(), engine=make_engine(self.engine, self.workers),
                sensing=sensing,
            )  # fmt: skip
        from phygail.experiments.summary import count_timeouts, summary_table

        kinds = [case.physics for case in cases] if isinstance(cases, list) else [cases.physics]
        console = stdout()
        console.print(physics_line(physics_values(kinds)))
        console.print(summary_table(rows))
        note(f"{rows.height:,} rows in {self.out / 'rows.csv'}, summary in {self.out / 'summary.md'}")
        errors = int(rows["flag"].str.starts_with("error:").sum())
        if errors:
            note(f"{errors} of {rows.height:,} episodes failed with an error: see {self.out / 'errors.log'}")
        if timed_out := count_timeouts(rows):
            note(f"{timed_out} of {rows.height:,} episodes ended at the timeout and count as failures")
        return 1 if errors else 0

    def _cases(self) -> Grid | Failures | list[Scenario]:
        from phygail.experiments.grid import Grid, parse_numbers, parse_whole
        from phygail.swarm.scenario import load_scenarios

        if self.scenarios is not None:
            for flag, value in (("--uavs", self.uavs), ("--damage", self.damage), ("--failures", self.failures),
                                ("--source", self.source), ("--cases", self.cases), ("--seed", self.seed)):  # fmt: skip
                require_one("source of scenarios", {"--scenarios": self.scenarios, flag: value})
            self.radio.refuse_beside(self.scenarios)
            return self.world.applied(load_scenarios(self.scenarios))
        require_one("kind of damage", {"--damage": self.damage, "--failures": self.failures})
        cases, seed = 50 if self.cases is None else self.cases, self.seed or 0
        if self.failures is not None and self.world.spec():
            raise InputError("--failures are those of the plain world: give --damage with the options of a world")
        if self.uavs is not None and self.failures is not None:
            return drawn_failures(self.uavs, self.failures, self.source, cases, seed, self.radio.physics())
        require_failures(self.source)
        if self.uavs is None or self.damage is None:
            raise InputError("nothing to fly: give --scenarios FILE.json, or --uavs and --damage (or --failures)")
        sizes, ratios = parse_whole(self.uavs, "--uavs"), parse_numbers(self.damage, "--damage")
        return Grid(sizes, ratios, cases, seed, self.radio.physics(), self.world.spec())


# --- benchmark -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Benchmark:
    """Fly methods on the frozen cases and score them: success, time over bound, contacts, meters, bytes.

    159 cases that never change: swarms of 20 to 500 UAVs, strikes, single failures, other radios, odd shapes. Run the
    same command again to resume.

    For example:
      phygail benchmark --methods sidr,mine --plugin mine.py --out out/benchmark
      phygail benchmark --methods mine --plugin mine.py --quick --out out/quick
    """

    methods: Names
    """Names separated by commas, or all."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")]
    """Folder for score.md, rows.csv, run.json and figures."""
    quick: Switch = False
    """Only small cases, of at most 50 UAVs: a look, not a score to report."""
    workers: Count = 2
    """Processes; rows do not depend on it."""
    engine: EngineName = "local"
    """Processes on this machine, or Ray: the cluster at RAY_ADDRESS, of which every CPU is used."""
    policy: Policy = None
    """Policy for the methods that fly one."""
    plugin: Plugins = ()
    """Python file that registers further methods."""
    timeout: Annotated[float | None, tyro.conf.arg(metavar="S", help_behavior_hint="")] = None
    """Wall time per episode in seconds; a longer one ends as a failure flagged timeout."""

    def run(self) -> int:
        """Fly, score, print the board."""
        require_extra("benchmarks", "report", "polars")
        from phygail.benchmark import board, load_cases, score_cells
        from phygail.cli.options import episodes_bar, note, stdout
        from phygail.experiments.rows import read_rows
        from phygail.experiments.runner import compare
        from phygail.files import write_text
        from phygail.render.tables import TextTable

        with episodes_bar() as progress:
            compare(
                load_cases(quick=self.quick), self.methods, self.out, workers=self.workers, timeout=self.timeout,
                policy=self.policy, plugins=self.plugin, progress=progress,
                command=command_line(), engine=make_engine(self.engine, self.workers),
            )  # fmt: skip
        rows = read_rows(self.out / "rows.csv")
        write_text(self.out / "score.md", f"# Score\n\n{board(rows, quick=self.quick)}")
        header, lines = score_cells(rows)
        plain = [[line[0].strip("`"), *line[1:]] for line in lines]
        stdout().print(TextTable("Benchmark, best first", header, plain))
        note(f"score in {self.out / 'score.md'}, {len(rows):,} rows in {self.out / 'rows.csv'}")
        return 1 if any(row["flag"].startswith("error:") for row in rows) else 0
