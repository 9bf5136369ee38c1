"""Many episodes, a row each: `phygail compare`, `phygail benchmark` on frozen cases, `phygail reproduce`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
    from phygail.experiments.experiment import Experiment, Scale
    from phygail.experiments.failures import Failures
    from phygail.experiments.grid import Grid
    from phygail.experiments.runner import Flying, Progress
    from phygail.experiments.trained import Budget
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


# --- reproduce -------------------------------------------------------------------------------------------------------

ALL = "all"
MaybeCount = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")]


@dataclass(frozen=True)
class Reproduce:
    """Run an experiment of the paper, or beyond it: flights, tables beside the paper's numbers, figures.

    Run it again to resume, or with more --cases, --uavs or --methods to add to what is there.

    For example:
      phygail reproduce --list
      phygail reproduce overall --cases 1 --uavs 20,50 --methods center-fly,sidr,reach --out out/overall
      phygail reproduce noise --workers 8
      phygail reproduce overall --seed 2 --out results/overall-seed-2
      phygail reproduce all --cases 1 --out out
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = ""
    """Of the experiment, or all."""
    list: Switch = False
    """Say which experiments there are."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder for rows, tables and figures, results/NAME unless given; for all the folder of their folders.

    optimality is made of the flights of overall, which stand in a folder of that name beside it. Flights that two
    experiments share are flown once if their folders stand side by side under their names.
    """
    cases: MaybeCount = None
    """Scenarios per setting, instead of the declared number; slow planners never fly more than declared."""
    uavs: MaybeNumbers = None
    """Some of the swarm sizes, e.g. 20,50."""
    damage: MaybeNumbers = None
    """Some of the damage ratios, e.g. 0.25,0.5."""
    failures: MaybeNumbers = None
    """Some of the numbers of failures, e.g. 1,2, where single UAVs fail."""
    methods: Annotated[str | None, tyro.conf.arg(metavar="NAMES", help_behavior_hint="")] = None
    """Some of the methods, or others, e.g. one of --plugin."""
    seed: MaybeCount = None
    """Of the scenarios, 0 in most experiments: another one draws other cases of the same settings, into a folder of
    its own."""
    workers: Count = 2
    """Processes, for flights and for trainings side by side; results do not depend on it."""
    engine: EngineName = "local"
    """Processes on this machine, or Ray: the cluster at RAY_ADDRESS, of which every CPU is used.

    Trainings on a cluster need a folder that all nodes share (--experts, --runs).
    """
    plugin: Plugins = ()
    """Python file that registers further methods."""
    experts: Annotated[Path | None, tyro.conf.arg(metavar="FILE.h5", help_behavior_hint="")] = None
    """Expert database, for experiments that train policies: ablation, sensitivity, training, case-study."""
    profile: Annotated[
        Literal["compact", "plus", "paper-network", "paper", "smoke"] | None, tyro.conf.arg(help_behavior_hint="")
    ] = None
    """Size of an epoch of training; compact unless given, plus for transfer."""
    epochs: Count = 0
    """Of every training, instead of the profile's."""
    seeds: Count = 1
    """Trainings of every variant."""
    variants: Annotated[str | None, tyro.conf.arg(metavar="NAMES", help_behavior_hint="")] = None
    """Some of the variants to train."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE")] = ()
    """A setting of every training; may be repeated."""
    runs: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder of the trainings, runs beside --out unless given; experiments share them."""
    training: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """A training that exists, for the experiments training and case-study, instead of one of their own."""
    timeout: Annotated[float | None, tyro.conf.arg(metavar="S", help_behavior_hint="")] = None
    """Wall time per episode in seconds; a longer one ends as a failure flagged timeout."""

    def run(self) -> int:
        """Reproduce one experiment or all of them."""
        from phygail.cli.options import note
        from phygail.experiments.catalog import EXPERIMENTS

        if self.list:
            self._show()
            return 0
        if not self.name:
            raise InputError("no experiment is named: give one of phygail reproduce --list, or all")
        require_extra("experiments", "report", "polars")
        names = EXPERIMENTS.names() if self.name == ALL else [self.name]
        for name in names:
            experiment = EXPERIMENTS.get(name)
            if self.name == ALL and (why := self._unfit(experiment)):
                note(f"{name} is left out: {why}")
                continue
            base = self.out or Path("results")
            out = base if self.out is not None and self.name != ALL else base / name
            self._one(experiment, out)
        return 0

    def _unfit(self, experiment: Experiment) -> str:
        """Why one of all experiments cannot run with these flags; empty if it can."""
        from phygail.experiments.experiment import scaled

        if experiment.variants and experiment.demonstrated and self.experts is None and self.training is None:
            return "it trains policies, give --experts FILE.h5"
        try:
            scaled(experiment, self._scale(experiment))
        except InputError as error:
            return str(error)
        return ""

    def _one(self, experiment: Experiment, out: Path) -> None:
        from phygail.cli.options import note
        from phygail.experiments.reproduce import REPORT, run_experiment, write_report

        run_experiment(experiment, out, self._scale(experiment), self._flying(), self._budget(experiment))
        evidence = write_report(experiment, out)
        print((out / REPORT).read_text(encoding="utf-8"))
        rows = f"{evidence.rows.height:,} rows, " if evidence.rows.height else ""
        note(f"{experiment.name}: {rows}tables in {out / REPORT}")

    def _scale(self, experiment: Experiment) -> Scale:
        from phygail.experiments.experiment import Scale
        from phygail.experiments.grid import parse_numbers, parse_whole

        return Scale(
            None if self.uavs is None else parse_whole(self.uavs, "--uavs"),
            None if self.damage is None else parse_numbers(self.damage, "--damage"),
            None if self.methods is None else tuple(name.strip() for name in self.methods.split(",")),
            self.cases,
            experiment.seed if self.seed is None else self.seed,
            None if self.failures is None else parse_whole(self.failures, "--failures"),
        )

    def _budget(self, experiment: Experiment) -> Budget:
        from phygail.experiments.trained import Budget

        names = tuple(name.strip() for name in self.variants.split(",")) if self.variants else ()
        profile = self.profile or experiment.profile
        return Budget(self.experts, profile, self.epochs, self.seeds, self.set, self.runs, names, self.training)

    def _flying(self) -> Flying:
        from phygail.cli.options import episodes_bar, note
        from phygail.experiments.runner import Flying

        @contextlib.contextmanager
        def report(title: str) -> Iterator[Progress]:
            note(title)
            with episodes_bar() as progress:
                yield progress

        engine = partial(make_engine, self.engine)
        cluster = self.engine == "ray"
        return Flying(self.workers, self.timeout, self.plugin, engine, report, command_line(), note, cluster)

    def _show(self) -> None:
        from phygail.cli.options import stdout
        from phygail.experiments.catalog import EXPERIMENTS
        from phygail.render.tables import TextTable

        rows = []
        for name in EXPERIMENTS:
            experiment = EXPERIMENTS.get(name)
            flights = f"{sum(map(len, experiment.legs)) * max(1, len(experiment.variants), experiment.checkpoints):,}"
            rows.append([name, f"as {experiment.flights_of}" if experiment.flights_of else flights, experiment.title])
        stdout().print(TextTable("Experiments", ("name", "episodes", "what"), rows, running=True))
